use super::chart::*;
use dpmc::diagnostics::{CellDensity, Cells};

/// A figure with every kind of mark and with values that have no place.
fn chart(y: f64) -> Chart {
    let cells = Cells::new([0.0, 0.0], [1.0, 2.0], [4, 4]).unwrap();
    let log = |t: [f64; 2]| -8.0 * ((t[0] - 0.5).powi(2) + (t[1] - 1.0).powi(2));
    let density = CellDensity::from_log_density(cells.clone(), log).unwrap();
    let points = vec![
        (1.0, 2.0),
        (2.0, f64::NAN),
        (3.0, y),
        (-1.0, 5.0),
        (9.0, 4.0),
    ];
    let axes = |marks| Plot {
        name: "a<b".into(),
        x: Axis::log("iterations"),
        y: Axis::linear("value"),
        marks,
    };
    let map = Plot {
        x: Axis::linear("theta1"),
        ..axes(vec![
            Mark::Map {
                label: "draws".into(),
                shares: cells.shares(&[[0.5, 1.0], [0.1, 0.1]]).unwrap(),
                cells,
            },
            Mark::Contours {
                label: "exact".into(),
                density,
                masses: vec![0.5],
            },
        ])
    };
    Chart {
        title: "title".into(),
        note: "word ".repeat(60),
        columns: 2,
        height: 100.0,
        plots: vec![
            axes(vec![
                Mark::line("solid", points.clone()),
                Mark::dashed("dashed", points),
            ]),
            map,
            axes(vec![]),
        ],
    }
}

#[test]
fn values_without_a_place_are_gaps() {
    for y in [3.0, f64::INFINITY, 2.0, 1e300, -1e300] {
        let svg = chart(y).svg().unwrap();
        assert!(svg.starts_with(r#"<svg width="900" height=""#));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{y}");
        assert!(svg.contains("a&lt;b"));
        // Four corners of each of two cells.
        assert!(svg.matches("<polygon").count() >= 2);
    }
}

#[test]
fn numbers_hold_every_point() {
    let numbers = String::from_utf8(chart(3.0).numbers().unwrap()).unwrap();
    let lines: Vec<&str> = numbers.lines().collect();
    assert_eq!(lines[0], "panel,series,x,y,share");
    assert_eq!(lines.len(), 1 + 2 * 5 + 2);
    assert!(lines.contains(&"a<b,solid,3,3,"));
    assert!(lines.contains(&"a<b,draws,0.125,0.25,0.5"), "{numbers}");
}

/// Text is there without a system font: dark pixels in the title's band.
#[test]
fn the_png_has_text_and_the_stated_size() {
    let chart = chart(3.0);
    let bytes = dpmc::output::plot::png(chart.total_height(), |paper| chart.draw(paper)).unwrap();
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(bytes))
        .read_info()
        .unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let height = (2.0 * chart.total_height()).round() as u32;
    assert_eq!((info.width, info.height), (1800, height));
    let title = &pixels[3 * 1800 * 30..3 * 1800 * 74];
    let dark = title
        .chunks(3)
        .filter(|p| p.iter().all(|c| *c < 100))
        .count();
    assert!(dark > 150, "{dark}");
}
