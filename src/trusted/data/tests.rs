//! Tests of data sets: clipped rows, refused norms, nothing shown.

use super::*;

#[test]
fn rows_are_clipped_to_the_declared_norm() -> Result<(), DataError> {
    let mut b = Dataset::builder(vec!["a".into(), "b".into()], true, 1.0)?;
    b.push(&[3.0, 4.0], Some(true))?;
    b.push(&[0.3, 0.4], Some(false))?;
    let set = b.finish()?;
    let rows = set.public_rows();
    let norm = f64::from(rows[0]).hypot(f64::from(rows[1]));
    assert!(norm <= 1.0 && norm > 0.999_999);
    assert_eq!(&rows[2..], &[0.3, 0.4]);
    assert_eq!(set.as_public().labels(), [true, false]);
    Ok(())
}

#[test]
fn rows_are_clipped_to_their_own_bounds() -> Result<(), DataError> {
    let mut b = Dataset::builder(vec!["a".into(), "b".into()], false, 2.0)?;
    b.push_bounded(&[3.0, 4.0], None, 0.25)?;
    b.push_bounded(&[0.3, 0.375], None, 0.25)?;
    assert!(b.push_bounded(&[0.3, 0.4], None, 0.0).is_err());
    assert!(b.push(&[0.3, 0.4], None).is_err());
    b.push_bounded(&[3.0, 4.0], None, 1.0)?;
    let set = b.finish()?;
    let rows = set.public_rows();
    let norm = |i: usize| f64::from(rows[2 * i]).hypot(f64::from(rows[2 * i + 1]));
    assert!(norm(0) <= 0.5 && norm(0) > 0.499_999);
    assert_eq!(&rows[2..4], &[0.3, 0.375]);
    assert!(norm(2) <= 2.0 && norm(2) > 1.999_999);
    assert_eq!((set.rows(), set.population().total), (3, 1.5));
    let mut plain = Dataset::builder(vec!["a".into()], false, 2.0)?;
    plain.push(&[1.0], None)?;
    assert!(plain.push_bounded(&[1.0], None, 0.5).is_err());
    Ok(())
}

#[test]
fn one_row_or_a_bad_norm_is_refused() -> Result<(), DataError> {
    let mut b = Dataset::builder(vec!["a".into()], false, 1.0)?;
    b.push(&[1.0], None)?;
    assert!(matches!(b.finish(), Err(DataError::TooFewRows { rows: 1 })));
    assert!(Dataset::builder(vec!["a".into()], false, 0.0).is_err());
    assert!(Dataset::builder(vec!["a".into()], false, f64::NAN).is_err());
    Ok(())
}

#[test]
fn debug_shows_no_cell() -> Result<(), DataError> {
    let mut b = Dataset::builder(vec!["a".into()], false, 1e3)?;
    b.push(&[123.25], None)?;
    b.push(&[321.5], None)?;
    let text = format!("{:?}", b.finish()?);
    assert!(!text.contains("123") && !text.contains("321"), "{text}");
    Ok(())
}

/// Blocks of any sizes add up to the rows pushed one by one.
#[test]
fn blocks_add_up() -> Result<(), DataError> {
    let row = |i: usize| [i as f32 / 64.0, -(i as f32) / 128.0];
    for sizes in [[16, 32, 5], [1, 40, 12], [7, 9, 37], [53, 0, 0]] {
        for bounded in [false, true] {
            let start = || Dataset::builder(vec!["a".into(), "b".into()], true, 1.0);
            let push = |to: &mut DatasetBuilder, i: usize| match bounded {
                true => to.push_bounded(&row(i), Some([1.0, -1.0][i % 2]), 0.5),
                false => to.push(&row(i), Some(i.is_multiple_of(2))),
            };
            let (mut whole, mut blocks, mut i) = (start()?, start()?, 0);
            for size in sizes {
                let mut block = blocks.like();
                for _ in 0..size {
                    push(&mut block, i)?;
                    push(&mut whole, i)?;
                    i += 1;
                }
                blocks.append(block);
            }
            let (whole, blocks) = (whole.finish()?, blocks.finish()?);
            assert_eq!(whole.public_rows(), blocks.public_rows(), "{sizes:?}");
            assert_eq!(whole.labels(), blocks.labels(), "{sizes:?}");
            assert_eq!(whole.population(), blocks.population(), "{sizes:?}");
            assert_eq!((whole.rows(), blocks.rows()), (53, 53));
        }
    }
    Ok(())
}
