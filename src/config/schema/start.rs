//! `[run] start`, or `init`: where chains start, in two spellings.

use serde::de::{Error, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::Numbers;

/// `start = …`: `"usual"`, `"zero"`, `"prior"`, `{ value = […] }`, `{ dpvi = { … } }` or `{ ops = {
/// … } }`. The last two may also name their method beside its settings: `{ method = "dpvi", … }`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", remote = "Self")]
pub enum StartEntry {
    /// The origin; for declared likelihoods where labels spread evenly over their declared range
    /// are fitted best.
    Usual,
    /// The origin.
    Zero,
    /// A prior draw for each chain.
    Prior,
    /// A public point.
    Value(Vec<f64>),
    /// A draw for each chain of a Gaussian fitted by released gradients.
    Dpvi(DpviEntry),
    /// One posterior draw for each chain, taken for exact.
    Ops(OpsEntry),
}

/// The forms of a start, as its errors name them.
const FORMS: &str = "\"usual\", \"zero\", \"prior\", { value = […] }, { dpvi = { … } }, { ops = { … } } or { method = \"dpvi\", … }";

impl Serialize for StartEntry {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StartEntry::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for StartEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Forms)
    }
}

/// Reads a start in any of its forms.
struct Forms;

impl<'de> Visitor<'de> for Forms {
    type Value = StartEntry;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(FORMS)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<StartEntry, E> {
        match name {
            "usual" => Ok(StartEntry::Usual),
            "zero" => Ok(StartEntry::Zero),
            "prior" => Ok(StartEntry::Prior),
            _ => Err(E::custom(format!("'{name}' is no start; give {FORMS}"))),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StartEntry, A::Error> {
        let mut given = toml::Table::deserialize(MapAccessDeserializer::new(map))?;
        let table = match given.remove("method") {
            None => given,
            Some(toml::Value::String(name)) if name == "dpvi" || name == "ops" => {
                toml::Table::from_iter([(name, toml::Value::Table(given))])
            }
            Some(_) => {
                return Err(A::Error::custom("'method' must be \"dpvi\" or \"ops\""));
            }
        };
        if table.len() != 1 {
            return Err(A::Error::custom(format!("a start is one of {FORMS}")));
        }
        // The derived reader, whose errors name the nearest key.
        StartEntry::deserialize(toml::Value::Table(table))
            .map_err(|e| A::Error::custom(e.message()))
    }
}

/// `start = { ops = { box = 5 } }`: one posterior draw (Wang 2015), charged to the run's budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpsEntry {
    /// The draw is restricted to `|θ_j| ≤ box`; the model's own box without it.
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Numbers>,
    /// Steps of the secret chain; 2000 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Rough standard deviations of the posterior; 1 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Numbers>,
}

/// `start = { dpvi = { epsilon = 0.2, delta = 1e-6 } }`: a private warm start, whose cost is
/// charged to the run's own budget first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DpviEntry {
    /// ε that the fit alone may cost at `delta`; in a private run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
    /// δ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delta: Option<f64>,
    /// Steps of the fit, over which its price is spread; 2000 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Adam's first step, in units of `scale`; it falls to 0. 0.1 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// Unit in which means move, up to 100 of it from the origin; 1 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<Numbers>,
    /// Bound on a row's gradient, nats a unit of θ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// The same as a share of the model's true bound; 1 without either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::RunSection;

    fn read(text: &str) -> Result<StartEntry, String> {
        let run: Result<RunSection, _> = toml::from_str(text);
        run.map(|run| run.start).map_err(|e| e.message().into())
    }

    /// Both spellings, under both names, are one start; what is written is `start`.
    #[test]
    fn both_spellings_are_one_start() {
        let dpvi = StartEntry::Dpvi(DpviEntry {
            epsilon: Some(0.2),
            delta: Some(1e-6),
            scale: Some(Numbers::Each(vec![1.0, 2.0])),
            ..DpviEntry::default()
        });
        let keys = "epsilon = 0.2, delta = 1e-6, scale = [1, 2.0]";
        for key in ["start", "init"] {
            assert_eq!(
                read(&format!("{key} = {{ dpvi = {{ {keys} }} }}")),
                Ok(dpvi.clone())
            );
            assert_eq!(
                read(&format!("{key} = {{ {keys}, method = \"dpvi\" }}")),
                Ok(dpvi.clone())
            );
            assert_eq!(
                read(&format!("{key} = {{ value = [1, 2] }}")),
                Ok(StartEntry::Value(vec![1.0, 2.0]))
            );
            assert_eq!(read(&format!("{key} = \"prior\"")), Ok(StartEntry::Prior));
        }
        let section = RunSection {
            start: dpvi,
            ..RunSection::default()
        };
        let text = toml::to_string(&section).unwrap();
        assert!(
            text.contains("[start.dpvi]") && !text.contains("init"),
            "{text}"
        );
        assert_eq!(toml::from_str::<RunSection>(&text).unwrap(), section);
    }

    #[test]
    fn what_is_no_start_is_named() {
        for (text, words) in [
            (
                "start = \"zero\"\ninit = \"zero\"",
                "duplicate field `start`",
            ),
            ("start = \"dpvi\"", "'dpvi' is no start"),
            ("start = { method = \"svi\" }", "'method' must be"),
            ("start = { method = 3 }", "'method' must be"),
            (
                "start = { method = \"dpvi\", stps = 3 }",
                "unknown field `stps`",
            ),
            (
                "start = { method = \"dpvi\", dpvi = {} }",
                "unknown field `dpvi`",
            ),
            ("start = { dpvi = {}, ops = {} }", "a start is one of"),
            ("start = {}", "a start is one of"),
            ("start = { prir = {} }", "unknown variant `prir`"),
            ("start = 3", "invalid type: integer `3`, expected \"usual\""),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
