//! `[[model.hierarchy]]` and `[model.prior]`: which coefficients share a prior whose standard
//! deviation is sampled, and the prior of all parameters in blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Plan;
use super::declared::{Declared, Place};
use super::features::features_of;
use crate::config::ConfigError;
use crate::config::schema::{
    HierarchyEntry, ModelKind, NormalEntry, PriorKind, ScaleKind, StartEntry,
};
use crate::data::{FeatureKind, Interaction};
use crate::model::{Block, BlockLaw, Blocks, Density, Model, ScaleLaw};
use crate::sampler::Family;

/// Coefficients that share a prior.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Hierarchy {
    /// What their standard deviation τ is called: `sd(g)`.
    pub name: String,
    /// The prior of τ in words.
    pub prior: String,
    /// Names of the coefficients.
    pub coefficients: Vec<String>,
    /// The prior of τ.
    #[serde(skip)]
    pub scale: ScaleLaw,
}

/// What a horseshoe's global scale is called.
const HORSESHOE: &str = "sd(horseshoe)";
/// Standard deviation of an intercept beside a horseshoe.
const INTERCEPT_SD: f64 = 10.0;

/// A declared feature or product, by its names.
struct Group {
    /// What `[[model.hierarchy]]` may call all of it.
    name: String,
    /// Names of its coefficients.
    coefficients: Vec<String>,
    /// The hierarchy that a formula puts it in, and where.
    hierarchy: Option<(String, usize)>,
    /// Whether one of its levels is a reference.
    referenced: bool,
}

impl Plan {
    /// The hierarchies of a regression; no row is read.
    ///
    /// # Errors
    /// [`ConfigError`] for a hierarchy without coefficients, a term without its prior, or numbers
    /// out of range.
    pub fn hierarchies(&self) -> Result<Vec<Hierarchy>, ConfigError> {
        let entries = &self.config.model.hierarchy;
        let kind = self.config.model.kind;
        if is_no_regression(kind) {
            return match entries.is_empty() {
                true => Ok(Vec::new()),
                false => Err(self.refuse(
                    "model.hierarchy",
                    "belongs to regressions, whose coefficients are those of features",
                )),
            };
        }
        let declared = self.declared()?;
        let groups = self.groups(&declared)?;
        self.check_terms(&groups)?;
        let mut hierarchies: Vec<Hierarchy> = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            let scale = self.scale_law(i, entry)?;
            let coefficients = match self.config.model.formula {
                Some(_) => self.of_formula(i, entry, &groups)?,
                None => self.of_features(i, entry, &groups)?,
            };
            let name = format!("sd({})", entry.name);
            if hierarchies.iter().any(|h| h.name == name) {
                let what = format!("'{}' is declared twice; drop one", entry.name);
                return Err(self.refuse(&key(i, "name"), what));
            }
            let shared = hierarchies
                .iter()
                .find(|h| h.coefficients.iter().any(|c| coefficients.contains(c)));
            if let Some(other) = shared {
                let what = format!("has coefficients that {} has too; keep one", other.name);
                return Err(self.refuse(&key(i, ""), what));
            }
            if coefficients.len() < 2 {
                let what = "is of one coefficient, which tells next to nothing of their spread; name the levels of a column, or give it a prior of its own";
                return Err(self.refuse(&key(i, ""), what));
            }
            hierarchies.push(Hierarchy {
                name,
                prior: in_words(entry),
                coefficients,
                scale,
            });
        }
        Ok(hierarchies)
    }

    /// Names of the standard deviations that the prior samples: the columns of the draws behind the
    /// parameters.
    ///
    /// # Errors
    /// [`ConfigError`], as for the hierarchies.
    pub fn sampled_scales(&self) -> Result<Vec<String>, ConfigError> {
        let horseshoe = self.prior_kind() == PriorKind::Horseshoe;
        let horseshoe = horseshoe.then(|| HORSESHOE.to_string());
        let names = self.hierarchies()?.into_iter().map(|h| h.name);
        Ok(horseshoe.into_iter().chain(names).collect())
    }

    fn prior_kind(&self) -> PriorKind {
        let prior = self.config.model.prior.as_ref();
        prior.map_or(PriorKind::Flat, |p| p.kind)
    }

    /// Declared features and products.
    fn groups(&self, declared: &Declared) -> Result<Vec<Group>, ConfigError> {
        let mut groups = Vec::new();
        let mut features = Vec::new();
        for (place, entry) in &declared.features {
            let refuse =
                |(part, what): (&str, String)| self.refuse_feature(place, entry, part, &what);
            for feature in features_of(entry).map_err(refuse)? {
                groups.push(Group {
                    name: feature.column.clone().unwrap_or_else(|| "intercept".into()),
                    coefficients: feature.names(),
                    hierarchy: hierarchy_of(place),
                    referenced: matches!(&feature.kind, FeatureKind::OneHot(o) if o.reference.is_some()),
                });
                features.push(feature);
            }
        }
        let main: Vec<String> = features.iter().flat_map(|f| f.names()).collect();
        for (place, entry) in &declared.interactions {
            let refuse = |what: String| self.refuse_interaction(place, &what);
            let interaction = Interaction::new(&features, &entry.features).map_err(refuse)?;
            groups.push(Group {
                name: entry.features.join(":"),
                coefficients: interaction.names(&main),
                hierarchy: hierarchy_of(place),
                referenced: false,
            });
        }
        Ok(groups)
    }

    /// Every term of a formula that is a hierarchy has its prior.
    fn check_terms(&self, groups: &[Group]) -> Result<(), ConfigError> {
        for (name, place) in groups.iter().filter_map(|g| g.hierarchy.as_ref()) {
            let entries = &self.config.model.hierarchy;
            if !entries.iter().any(|e| e.name == *name) {
                let what = format!(
                    "sd({name}) needs a prior: add [[model.hierarchy]] with name = \"{name}\" and scale = …, about the largest that the levels' standard deviation may be"
                );
                return Err(self.refuse_formula(*place, &what));
            }
        }
        Ok(())
    }

    fn of_formula(
        &self,
        i: usize,
        entry: &HierarchyEntry,
        groups: &[Group],
    ) -> Result<Vec<String>, ConfigError> {
        if !entry.features.is_empty() {
            let what = "the formula says which coefficients share the prior; delete 'features'";
            return Err(self.refuse(&key(i, "features"), what));
        }
        let known = groups
            .iter()
            .filter_map(|g| Some((g, g.hierarchy.as_ref()?)));
        let own = known.clone().filter(|(_, (name, _))| *name == entry.name);
        let coefficients: Vec<String> = own.flat_map(|(g, _)| g.coefficients.clone()).collect();
        if !coefficients.is_empty() {
            return Ok(coefficients);
        }
        let names: Vec<String> = known.map(|(_, (name, _))| format!("\"{name}\"")).collect();
        let what = match names.is_empty() {
            true => format!(
                "the formula has no levels that share a prior; write (1 | {})",
                entry.name
            ),
            false => format!("is none of the formula's, which are {}", names.join(", ")),
        };
        Err(self.refuse(&key(i, "name"), what))
    }

    fn of_features(
        &self,
        i: usize,
        entry: &HierarchyEntry,
        groups: &[Group],
    ) -> Result<Vec<String>, ConfigError> {
        if entry.features.is_empty() {
            let what = "needs 'features': columns of [[data.features]] with levels, products \"x:g\", or names of coefficients";
            return Err(self.refuse(&key(i, ""), what));
        }
        let mut coefficients: Vec<String> = Vec::new();
        for (j, name) in entry.features.iter().enumerate() {
            let at = key(i, &format!("features[{j}]"));
            let whole = groups.iter().find(|g| g.name == *name);
            if whole.is_some_and(|g| g.referenced) {
                let what = format!(
                    "'{name}' has a reference, and levels that share a prior have a coefficient each; delete the reference"
                );
                return Err(self.refuse(&at, what));
            }
            let single = groups.iter().any(|g| g.coefficients.contains(name));
            let found = match (whole, single) {
                (Some(group), _) => group.coefficients.clone(),
                (None, true) => vec![name.clone()],
                (None, false) => {
                    let what = format!(
                        "'{name}' is no column, product or coefficient of the declared features"
                    );
                    return Err(self.refuse(&at, what));
                }
            };
            if found
                .iter()
                .any(|c| c == "intercept" || coefficients.contains(c))
            {
                let what = format!("'{name}' is the intercept, or named twice; drop it");
                return Err(self.refuse(&at, what));
            }
            coefficients.extend(found);
        }
        Ok(coefficients)
    }

    fn scale_law(&self, i: usize, entry: &HierarchyEntry) -> Result<ScaleLaw, ConfigError> {
        let scale = entry.scale;
        if !(scale > 0.0 && scale.is_finite()) {
            return Err(self.refuse(&key(i, "scale"), format!("must be positive, not {scale}")));
        }
        self.check_spreads(&key(i, "scale"), &[scale])?;
        let law = match (entry.kind, entry.degrees) {
            (ScaleKind::HalfNormal, None) => ScaleLaw::HalfNormal { scale },
            (ScaleKind::HalfCauchy, None) => ScaleLaw::half_cauchy(scale),
            (ScaleKind::HalfStudentT, Some(degrees)) => ScaleLaw::HalfStudentT { degrees, scale },
            (ScaleKind::HalfStudentT, None) => {
                let what = "a half-student-t prior needs 'degrees', its degrees of freedom";
                return Err(self.refuse(&key(i, ""), what));
            }
            (_, Some(_)) => {
                let what = "belongs to kind = \"half-student-t\"";
                return Err(self.refuse(&key(i, "degrees"), what));
            }
        };
        match law.is_valid() {
            true => Ok(law),
            false => Err(self.refuse(&key(i, "degrees"), "must be a positive number")),
        }
    }

    /// The prior in blocks, of parameters that are the coefficients of `features` first, where some
    /// of them are in a hierarchy or have a prior that is a mixture of normals; `shared` are those
    /// that rows share, at the end. `None` where an older form says it.
    pub(super) fn prior_in_blocks(
        &self,
        features: &[String],
        d: usize,
        shared: &BTreeMap<String, NormalEntry>,
    ) -> Result<Option<Density>, ConfigError> {
        let hierarchies = self.hierarchies()?;
        let kind = self.prior_kind();
        let mixture = matches!(kind, PriorKind::StudentT | PriorKind::Horseshoe);
        if hierarchies.is_empty() && !mixture {
            return Ok(None);
        }
        let own = d - shared.len();
        let mut blocks = Vec::new();
        let mut pooled = vec![false; own];
        for hierarchy in &hierarchies {
            let position = |c: &String| features.iter().position(|f| f == c);
            let members: Vec<usize> = hierarchy.coefficients.iter().filter_map(position).collect();
            members.iter().for_each(|&j| pooled[j] = true);
            let (name, scale) = (hierarchy.name.clone(), hierarchy.scale);
            let law = BlockLaw::Shared { name, scale };
            blocks.push(Block { members, law });
        }
        let rest: Vec<usize> = (0..own).filter(|&j| !pooled[j]).collect();
        let own_blocks = self.own_blocks(rest, features)?;
        let last = Block {
            members: (own..d).collect(),
            law: BlockLaw::Normal {
                mean: shared.values().map(|p| p.mean).collect(),
                sd: shared.values().map(|p| p.sd).collect(),
            },
        };
        let blocks = own_blocks.into_iter().chain(blocks).chain([last]);
        let blocks = blocks.filter(|b| !b.members.is_empty()).collect();
        Ok(Some(Density::Blocks(Arc::new(Blocks { blocks }))))
    }

    /// `[model.prior]` of the coefficients that are in no hierarchy.
    fn own_blocks(
        &self,
        members: Vec<usize>,
        features: &[String],
    ) -> Result<Vec<Block>, ConfigError> {
        let refuse = |what: &str| Err(self.refuse("model.prior", what));
        let n = members.len();
        let prior = self.config.model.prior.as_ref();
        if let Some(prior) = prior {
            self.check_prior_keys(prior)?;
        }
        let scale = prior.and_then(|p| p.scale.as_ref());
        let law = match self.prior_kind() {
            PriorKind::Normal => match self.density(prior, n)? {
                Density::Normal { mean, sd } => BlockLaw::Normal { mean, sd },
                _ => return Ok(Vec::new()),
            },
            PriorKind::StudentT => {
                let degrees = prior.and_then(|p| p.degrees);
                let (Some(scale), Some(degrees)) = (scale, degrees) else {
                    return refuse(
                        "a student-t prior needs 'scale' and 'degrees', its degrees of freedom",
                    );
                };
                let mean = prior.and_then(|p| p.mean.as_ref());
                let scale = scale.expand(n);
                self.check_spreads("model.prior.scale", &scale)?;
                BlockLaw::StudentT {
                    degrees,
                    mean: mean.map_or(vec![0.0; n], |m| m.expand(n)),
                    scale,
                }
            }
            PriorKind::Horseshoe => {
                let scale = match scale.map(|s| s.expand(1)).as_deref() {
                    Some([one]) => *one,
                    _ => return refuse("a horseshoe needs one 'scale'"),
                };
                let sd = prior.and_then(|p| p.intercept_sd);
                return self.horseshoe(members, features, scale, sd.unwrap_or(INTERCEPT_SD));
            }
            PriorKind::Flat | PriorKind::Laplace if n > 0 => {
                return refuse(
                    "coefficients beside a hierarchy need a prior of kind normal, student-t or horseshoe: prior = { kind = \"normal\", sd = … }",
                );
            }
            PriorKind::Flat | PriorKind::Laplace => return Ok(Vec::new()),
        };
        Ok(vec![Block { members, law }])
    }

    /// A horseshoe; an intercept is not shrunk.
    fn horseshoe(
        &self,
        members: Vec<usize>,
        features: &[String],
        scale: f64,
        sd: f64,
    ) -> Result<Vec<Block>, ConfigError> {
        if is_no_regression(self.config.model.kind) {
            let what = "a horseshoe is for coefficients of features, in regressions";
            return Err(self.refuse("model.prior", what));
        }
        if !(sd > 0.0 && sd.is_finite()) {
            let what = format!("must be positive, not {sd}");
            return Err(self.refuse("model.prior.intercept_sd", what));
        }
        self.check_spreads("model.prior.intercept_sd", &[sd])?;
        self.check_spreads("model.prior.scale", &[scale])?;
        let is_intercept = |j: &usize| features.get(*j).is_some_and(|f| f == "intercept");
        let (intercept, members): (Vec<usize>, Vec<usize>) =
            members.into_iter().partition(is_intercept);
        let name = HORSESHOE.to_string();
        let law = BlockLaw::Normal {
            mean: vec![0.0; intercept.len()],
            sd: vec![sd; intercept.len()],
        };
        let intercept = Block {
            members: intercept,
            law,
        };
        let law = BlockLaw::Horseshoe { name, scale };
        Ok(vec![intercept, Block { members, law }])
    }

    /// Refuses samplers that cannot follow a density that is infinite where a block is zero.
    pub(super) fn check_scales(
        &self,
        family: Family,
        model: &dyn Model,
    ) -> Result<(), ConfigError> {
        let sampled = model
            .prior()
            .blocks()
            .is_some_and(|b| !b.names().is_empty());
        let gradients = matches!(
            family,
            Family::StochasticGradient { .. } | Family::Variational | Family::PosteriorDraws
        );
        if sampled && gradients {
            return Err(self.refuse(
                "sampler.algorithm",
                "follows the density's slope without a decision, or draws but once, and the density of a hierarchy or a horseshoe has a pole where its coefficients are 0; use dp-laplace or anchored-barker, whose draws of it are exact, or a sampler that decides (barker, barker-hmc, …)",
            ));
        }
        let start = matches!(
            self.config.run.start,
            StartEntry::Dpvi(_) | StartEntry::Ops(_)
        );
        if sampled && start {
            let what = "is found for densities without poles, and a hierarchy's or a horseshoe's has one; leave it out";
            return Err(self.refuse("run.start", what));
        }
        Ok(())
    }
}

fn is_no_regression(kind: ModelKind) -> bool {
    matches!(
        kind,
        ModelKind::Mlp | ModelKind::GaussianMean | ModelKind::Mixture | ModelKind::Banana
    )
}

fn hierarchy_of(place: &Place) -> Option<(String, usize)> {
    match place {
        Place::Term {
            place,
            hierarchy: Some(name),
            ..
        } => Some((name.clone(), *place)),
        _ => None,
    }
}

fn key(i: usize, part: &str) -> String {
    match part {
        "" => format!("model.hierarchy[{i}]"),
        part => format!("model.hierarchy[{i}].{part}"),
    }
}

fn in_words(entry: &HierarchyEntry) -> String {
    let scale = entry.scale;
    match (entry.kind, entry.degrees) {
        (ScaleKind::HalfNormal, _) => format!("half-normal, scale {scale}"),
        (ScaleKind::HalfCauchy, _) => format!("half-Cauchy, scale {scale}"),
        (ScaleKind::HalfStudentT, degrees) => format!(
            "half-Student-t, {} degrees of freedom, scale {scale}",
            degrees.unwrap_or(1.0)
        ),
    }
}
