//! Columns of texts as 0/1 features, one a level or a group of levels.

use std::collections::BTreeMap;

/// One 0/1 feature for each declared level and group but the reference, and one for anything
/// else (missing cells too) unless `strict`.
#[derive(Clone, Debug, Default)]
pub struct OneHot {
    /// Declared levels.
    pub levels: Vec<String>,
    /// Levels that share a feature, by the group's name; none of them is among `levels`.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Refuse undeclared levels instead of giving them a feature.
    pub strict: bool,
    /// The declared level or group whose rows are 0 in all of these features: without one
    /// they add up to 1, which is the intercept.
    pub reference: Option<String>,
}

impl OneHot {
    /// Levels and groups by name, the reference too.
    fn classes(&self) -> impl Iterator<Item = &String> {
        self.levels.iter().chain(self.groups.keys())
    }

    fn is_kept(&self, name: &String) -> bool {
        self.reference.as_ref() != Some(name)
    }

    pub(crate) fn names(&self, column: &str) -> Vec<String> {
        let kept = self.classes().filter(|name| self.is_kept(name));
        let mut names: Vec<String> = kept.map(|name| format!("{column}={name}")).collect();
        if !self.strict {
            names.push(format!("{column}=other"));
        }
        names
    }

    /// All declared levels, those of groups too.
    pub(crate) fn all_levels(&self) -> impl Iterator<Item = &String> {
        self.levels.iter().chain(self.groups.values().flatten())
    }

    /// Checks the declaration; an error comes with the key at fault, "" for all of it.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        if self.levels.is_empty() && self.groups.is_empty() {
            return Err(("", "declare at least one level".into()));
        }
        check_levels(&self.levels).map_err(|what| ("", what))?;
        self.check_groups().map_err(|what| ("groups", what))?;
        self.check_reference().map_err(|what| ("reference", what))
    }

    fn check_groups(&self) -> Result<(), String> {
        for (i, (name, levels)) in self.groups.iter().enumerate() {
            if levels.is_empty() {
                return Err(format!("group '{name}' has no level; list some or drop it"));
            }
            check_levels(levels)?;
            if self.levels.contains(name) {
                return Err(format!(
                    "group '{name}' has the name of a level of one_hot; rename the group"
                ));
            }
            if name == "other" && !self.strict {
                return Err(
                    "a group 'other' has the name of the column for everything else; rename it, or set strict = true where no other level exists"
                        .into(),
                );
            }
            for level in levels {
                if self.levels.contains(level) {
                    return Err(format!(
                        "level '{level}' is in one_hot and in group '{name}'; keep one"
                    ));
                }
                let other = self.groups.iter().take(i);
                if let Some((other, _)) = other.into_iter().find(|(_, l)| l.contains(level)) {
                    return Err(format!(
                        "level '{level}' is in the groups '{other}' and '{name}'; keep one"
                    ));
                }
            }
        }
        Ok(())
    }

    fn check_reference(&self) -> Result<(), String> {
        let Some(reference) = &self.reference else {
            return Ok(());
        };
        if !self.classes().any(|name| name == reference) {
            let group = self.groups.iter().find(|(_, l)| l.contains(reference));
            return Err(match group {
                Some((name, _)) => {
                    format!("'{reference}' is a level of group '{name}'; name the group")
                }
                None if self.groups.is_empty() => {
                    format!("'{reference}' is none of the levels of one_hot; name one of them")
                }
                None => format!(
                    "'{reference}' is none of the levels of one_hot and none of the groups; name one of them"
                ),
            });
        }
        if self.strict && self.classes().count() == 1 {
            return Err("leaves no feature; declare another level".into());
        }
        Ok(())
    }

    /// Appends the features of a cell that holds a level or not.
    pub(crate) fn push(
        &self,
        holds: impl Fn(&str) -> bool,
        out: &mut Vec<f32>,
    ) -> Result<(), String> {
        let alone = self.levels.iter().map(|l| (l, std::slice::from_ref(l)));
        let grouped = self.groups.iter().map(|(name, l)| (name, l.as_slice()));
        let mut hit = false;
        for (name, levels) in alone.chain(grouped) {
            let here = !hit && levels.iter().any(|l| holds(l));
            hit |= here;
            if self.is_kept(name) {
                out.push(f32::from(u8::from(here)));
            }
        }
        if self.strict && !hit {
            return Err("holds a level that is not declared; declare it or drop 'strict'".into());
        }
        if !self.strict {
            out.push(f32::from(u8::from(!hit)));
        }
        Ok(())
    }
}

/// The number that a declared level stands for in a column of numbers. Booleans are 0 and 1 there,
/// and go by their names too.
pub(crate) fn number_of(level: &str) -> Option<f64> {
    match level {
        _ if level.eq_ignore_ascii_case("true") => Some(1.0),
        _ if level.eq_ignore_ascii_case("false") => Some(0.0),
        _ => level.parse().ok(),
    }
}

/// Levels of a list are each named once.
pub(crate) fn check_levels(levels: &[String]) -> Result<(), String> {
    for (i, level) in levels.iter().enumerate() {
        if levels[..i].contains(level) {
            return Err(format!("level '{level}' is declared twice"));
        }
    }
    Ok(())
}
