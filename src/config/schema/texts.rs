//! Texts of cells: a list, or one alone. Whole numbers, true and false may stand without quotes, as
//! a table has them; a decimal may not, since a table may write it otherwise.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::Deserializer;

/// The text of a cell.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a text in quotes or a whole number is needed here; decimals stand in quotes, as the table has them"
)]
enum Cell {
    Text(String),
    Whole(i64),
    Bool(bool),
}

impl From<Cell> for String {
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Text(text) => text,
            Cell::Whole(number) => number.to_string(),
            Cell::Bool(value) => value.to_string(),
        }
    }
}

/// One or several.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "texts are needed here, such as [\"a\", \"b\"]; whole numbers may stand without quotes, decimals may not"
)]
enum Cells {
    One(Cell),
    Several(Vec<Cell>),
}

impl From<Cells> for Vec<String> {
    fn from(cells: Cells) -> Self {
        match cells {
            Cells::One(cell) => vec![cell.into()],
            Cells::Several(cells) => cells.into_iter().map(String::from).collect(),
        }
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Cells::deserialize(from).map(Vec::from)
}

/// The same where the key may be absent.
pub(super) fn optional<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<String>>, D::Error> {
    Ok(Option::<Cells>::deserialize(from)?.map(Vec::from))
}

/// One text.
pub(super) fn cell<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Cell::deserialize(from).map(String::from)
}

/// One text, where the key may be absent.
pub(super) fn one<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Cell>::deserialize(from)?.map(String::from))
}

/// Groups of texts, by name.
pub(super) fn groups<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<BTreeMap<String, Vec<String>>>, D::Error> {
    let groups = Option::<BTreeMap<String, Cells>>::deserialize(from)?;
    let texts = |(name, cells): (String, Cells)| (name, cells.into());
    Ok(groups.map(|groups| groups.into_iter().map(texts).collect()))
}

#[cfg(test)]
mod tests {
    use crate::config::{ColumnEntry, LabelEntry};

    #[test]
    fn cells_are_texts_or_whole_numbers_and_one_needs_no_list() {
        let text = "levels = [1, 2, \"x\", true]\nreference = 1\ngroups = { few = [7, 8], one = 9 }\npositive = 1\nnegative = [0, \"no\"]";
        let entry: ColumnEntry = toml::from_str(text).unwrap();
        assert_eq!(entry.levels.unwrap(), ["1", "2", "x", "true"]);
        assert_eq!(entry.reference.unwrap(), "1");
        let groups = entry.groups.unwrap();
        assert_eq!(
            (&groups["few"], &groups["one"]),
            (&vec!["7".into(), "8".into()], &vec!["9".into()])
        );
        assert_eq!(
            (entry.positive, entry.negative),
            (vec!["1".into()], vec!["0".into(), "no".into()])
        );
        let text =
            "levels = [1, [2, \"3\"]]\npositive = \"yes\"\nevent = { column = \"e\", in = 1 }";
        let label: LabelEntry = toml::from_str(text).unwrap();
        let levels: Vec<Vec<String>> = label.levels.iter().map(|l| l.texts()).collect();
        assert_eq!(
            levels,
            [vec!["1".to_string()], vec!["2".into(), "3".into()]]
        );
        assert_eq!(
            (label.positive, label.event.unwrap().seen),
            (vec!["yes".into()], vec!["1".into()])
        );
        // A table may write it as 0.50.
        assert!(toml::from_str::<ColumnEntry>("levels = [0.5, 1]").is_err());
        assert!(toml::from_str::<ColumnEntry>("positive = 1.0").is_err());
    }
}
