//! Where a summary would mislead its reader. From released values alone: draws, decisions,
//! the kind of sampler.

use nalgebra::{DMatrix, SymmetricEigen};

use crate::diagnostics::{ParameterSummary, mean, sd};
use crate::model::Anchor;
use crate::sampler::Sampler;
use crate::sampler::SamplerState;

/// Draws with a larger R-hat do not tell (the old convention; Vehtari et al. 2021 ask for 1.01).
const LARGEST_R_HAT: f64 = 1.05;
/// Draws with a smaller bulk ESS do not tell (Vehtari et al. 2021, Section 4.1: 100 a chain).
const SMALLEST_ESS: f64 = 100.0;
/// A last step longer than noise makes it by this, mean square, is said.
const UNSETTLED: f64 = 2.0;
/// So is this share of information weighted down.
const WEIGHTED_DOWN: f64 = 0.2;
/// The first draws of a chain, a hundredth but at least so many, are far from its second half where
/// their mean is so many of its sds from its mean …
const LEAST_FIRST: usize = 5;
const FAR: f64 = 5.0;
/// … which is said where the chain's sd is so much larger for it.
const WIDENED: f64 = 1.05;
/// So many parameters are named.
const NAMED: usize = 3;

/// What intervals of a fit do not hold.
const FITTED: &str = "these intervals do not include the noise that was added for privacy: the fit's means and widths are off by noise that they do not show; it also takes parameters as independent, and where they are correlated its widths are too small, by a lot where these are nearly collinear";
/// What a fit takes for granted in any case.
const FITTED_EXACT: &str = "the fit takes parameters as independent, and its widths are those that each has where the others stand still: where parameters are correlated they are too small, by a lot where these are nearly collinear";
/// What those of stochastic gradients do not hold.
const UNDECIDED_PRIVATE: &str = "the noise that was added for privacy is the sampler's own dynamics, and so is in these intervals; the bias of finite steps, of clipping and of minibatches is not: no decision corrects it";
/// The same without privacy.
const UNDECIDED: &str = "no decision corrects the bias of finite steps and of minibatches, which these intervals do not include";

/// What an optimiser ends with.
pub const POINT: &str = "an optimiser ends at a point: there is no posterior draw here, and no interval or standard error can be had from it";

/// What draws of this sampler do not show, whatever they are.
pub fn note_on_sampler(sampler: &Sampler, private: bool) -> Option<&'static str> {
    note_on_state(&sampler.state(), private)
}

fn note_on_state(state: &SamplerState, private: bool) -> Option<&'static str> {
    match (state, private) {
        (SamplerState::Variational(_), true) => Some(FITTED),
        (SamplerState::Variational(_), false) => Some(FITTED_EXACT),
        (SamplerState::StochasticGradient(_), true) => Some(UNDECIDED_PRIVATE),
        (SamplerState::StochasticGradient(_), false) => Some(UNDECIDED),
        (SamplerState::Optimiser(_), _) => Some(POINT),
        _ => None,
    }
}

/// What a reader of these summaries must know. `columns[j]`: the draws of parameter j, one vector
/// a chain; `accepted`: moves accepted since the start, warm-up included.
pub(super) fn notes(
    parameters: &[ParameterSummary],
    columns: &[Vec<Vec<f64>>],
    accepted: f64,
    (state, private): (&SamplerState, bool),
) -> Vec<String> {
    let mut notes = Vec::new();
    let draws = columns.first().and_then(|c| c.first()).map_or(0, Vec::len);
    let still = columns
        .iter()
        .flatten()
        .all(|chain| chain.windows(2).all(|pair| pair[0] == pair[1]));
    if draws == 0 {
        notes.push("no draw was kept: there is nothing to tell from".into());
    } else if accepted == 0.0 {
        notes.push("no move was accepted: the draws are the start".into());
    } else if draws > 1 && still {
        notes.push(
            "no move was accepted after warm-up: the draws are where that ended, and tell no more"
                .into(),
        );
    } else {
        notes.extend(unsettled(parameters));
        notes.extend(way_from_the_start(parameters, columns));
    }
    notes.extend(note_on_state(state, private).map(String::from));
    notes
}

/// Share of pooled levels' information in levels lost in noise that notes speak of.
const ALIKE: f64 = 0.5;

/// Bias by clipped labels, posterior sds, that notes speak of.
const CLIPPED: f64 = 0.5;

/// A parameter of whose variation more than this lies in some directions is named with them.
const MOSTLY: f64 = 0.5;

/// What the releases of an anchor of these parameters say of how hard its table is.
pub(super) fn notes_on_anchor(anchor: &Anchor, parameters: &[String], free: bool) -> Vec<String> {
    let (d, doubts) = (anchor.at.len(), anchor.doubts);
    let noisy = anchor.gradient_sd > 0.0;
    let mut notes = Vec::new();
    if free {
        let price = match noisy {
            true => "; decisions on moves would cost more noise than that here",
            false => "",
        };
        notes.push(format!("the rows were not asked about moves: the draws are those of the released quadratic alone, which misses skewness and is off by a fraction of a posterior sd for it{price}"));
    }
    if doubts.unsettled > UNSETTLED && noisy {
        notes.push(format!(
            "the way to the mode had not settled (its last step was {:.1} times what noise makes it): the draws may lie far from the posterior, as on nearly separable or collinear tables; intervals were widened for that, up to the prior's own width. A larger epsilon, fewer or merged features, a narrower prior, or a [run] start nearer to the answer would help",
            (3.0 * doubts.unsettled).sqrt()
        ));
    } else if doubts.unsettled > UNSETTLED {
        notes.push("the way to the mode had not settled: the draws may lie far from the posterior, as on nearly separable or collinear tables. More sampler.anchor.stages, fewer or merged features, a narrower prior, or a [run] start nearer to the answer would help".into());
    }
    // (Where the way had not settled, nobody knows what the rows would have said at its end.)
    if doubts.lost > 0 && !noisy && doubts.unsettled <= UNSETTLED {
        notes.push(format!(
            "in {} of {d} directions{} the rows say nothing: there draws follow the prior alone",
            doubts.lost,
            mostly(anchor, parameters)
        ));
    } else if doubts.lost > 0 && noisy {
        notes.push(format!(
            "in {} of {d} directions{} the curvature is lost in the noise: there intervals are wide, up to the prior's own. Fewer or merged features, or a larger epsilon, would help",
            doubts.lost,
            mostly(anchor, parameters)
        ));
    }
    if doubts.alike > ALIKE {
        notes.push("most levels of the hierarchy are lost in the noise: the other coefficients are told as if these levels were alike, and may be farther off than their intervals say. Merged levels, or a larger epsilon, would help".into());
    }
    if doubts.weighted_down > WEIGHTED_DOWN {
        notes.push(format!(
            "{:.0} % of the information is in rows that are far out, or whose outcome is rare among rows like them, and was weighted down to bound their influence: transform skewed columns, declare tighter bounds, or, of rare outcomes, spend a larger epsilon",
            100.0 * doubts.weighted_down
        ));
    }
    if doubts.clipped > CLIPPED {
        notes.push(format!(
            "more labels lie far out than the likelihood expects; they were clipped to bound their influence, which may shift means by {:.1} posterior sds (root mean square). Intervals have room for it. A likelihood with heavier tails (student-t, negative-binomial), a transformed label, or a larger variance, where that is declared, would help",
            doubts.clipped
        ));
    }
    if doubts.narrow > 0 {
        notes.push(format!(
            "in {} of {d} columns of the model most values lie within 0.1 of zero: if their bounds allow much more, a few rows far out would be weighted down, and these draws could not show what they would have said. Declare tighter bounds where you know them",
            doubts.narrow
        ));
    }
    notes
}

/// ` (mostly a, b)`: the parameters that vary, to more than half, in the directions of least
/// curvature, of which as many are taken as are lost.
fn mostly(anchor: &Anchor, parameters: &[String]) -> String {
    let d = anchor.at.len();
    if !anchor.is_valid(d) || parameters.len() < d {
        return String::new();
    }
    let eigen = SymmetricEigen::new(DMatrix::from_row_slice(d, d, &anchor.curvature));
    let mut order: Vec<usize> = (0..d).collect();
    order.sort_by(|a, b| eigen.eigenvalues[*a].total_cmp(&eigen.eigenvalues[*b]));
    // θ − θ* = L⁻ᵀu, squared and added up over the lost directions, and over all.
    let (mut lost, mut all) = (vec![0.0; d], vec![0.0; d]);
    for (rank, k) in order.into_iter().enumerate() {
        let direction = eigen.eigenvectors.column(k);
        let moved = anchor.metric.factor.solve_transposed(direction.as_slice());
        for (j, v) in moved.iter().enumerate() {
            all[j] += v * v;
            if rank < anchor.doubts.lost {
                lost[j] += v * v;
            }
        }
    }
    let share = |j: &usize| lost[*j] / all[*j];
    let mut found: Vec<usize> = (0..d).filter(|j| share(j) > MOSTLY).collect();
    found.sort_by(|a, b| share(b).total_cmp(&share(a)));
    match found.is_empty() {
        true => String::new(),
        false => format!(
            " (mostly {})",
            named(found.iter().map(|j| &*parameters[*j]))
        ),
    }
}

/// Parameters that the draws do not tell yet, by R-hat and by ESS.
fn unsettled(parameters: &[ParameterSummary]) -> Vec<String> {
    // Worst first; what cannot be computed is worst.
    let worst = |bad: fn(&ParameterSummary) -> bool, key: fn(&ParameterSummary) -> f64| {
        let mut found: Vec<&ParameterSummary> = parameters.iter().filter(|p| bad(p)).collect();
        found.sort_by(|a, b| {
            let rank = |p| (!key(p).is_nan(), key(p));
            rank(a)
                .partial_cmp(&rank(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        found
    };
    let by_r_hat = worst(|p| p.r_hat > LARGEST_R_HAT, |p| -p.r_hat);
    let by_ess = worst(
        |p| p.ess_bulk.is_nan() || p.ess_bulk < SMALLEST_ESS,
        |p| p.ess_bulk,
    );
    let mut notes = Vec::new();
    if let Some(first) = by_r_hat.first() {
        notes.push(format!(
            "these draws do not tell {} yet: R-hat {:.3} (above {LARGEST_R_HAT}); the chains, or their halves, disagree",
            names(&by_r_hat),
            first.r_hat
        ));
    }
    if let Some(first) = by_ess.first() {
        let ess = match first.ess_bulk.is_nan() {
            true => "too few to say".into(),
            false => format!("{:.0}", first.ess_bulk),
        };
        notes.push(format!(
            "these draws do not tell {} yet: bulk ESS {ess} (below {SMALLEST_ESS})",
            names(&by_ess)
        ));
    }
    notes
}

/// Parameters whose chains began far from where they then were: R-hat by ranks does not see that.
fn way_from_the_start(
    parameters: &[ParameterSummary],
    columns: &[Vec<Vec<f64>>],
) -> Option<String> {
    let pairs = parameters.iter().zip(columns);
    let unnoticed = pairs.filter(|(parameter, _)| parameter.r_hat <= LARGEST_R_HAT);
    let found = unnoticed.filter(|(_, chains)| chains.iter().any(|chain| began_far(chain)));
    let found: Vec<&ParameterSummary> = found.map(|(parameter, _)| parameter).collect();
    (!found.is_empty()).then(|| {
        format!(
            "the first draws of {} lie far from all others: the way from the start is among the draws, whose sds and intervals are too wide for it. Leave it out: run.warmup",
            names(&found)
        )
    })
}

fn began_far(chain: &[f64]) -> bool {
    let first = &chain[..(chain.len() / 100).max(LEAST_FIRST).min(chain.len())];
    let last = &chain[chain.len() / 2..];
    let usual = sd(last);
    usual > 0.0 && (mean(first) - mean(last)).abs() > FAR * usual && sd(chain) > WIDENED * usual
}

fn names(parameters: &[&ParameterSummary]) -> String {
    named(parameters.iter().map(|p| &*p.name))
}

/// The first names, and how many more there are.
fn named<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let first: Vec<&str> = names.take(NAMED).collect();
    match more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use nalgebra::DVector;

    use super::*;
    use crate::diagnostics::summarize;
    use crate::model::{Doubts, Lower, Metric};

    fn of(columns: &[Vec<Vec<f64>>], accepted: f64) -> Vec<String> {
        let rows = columns.iter().enumerate();
        let parameters: Vec<_> = rows.map(|(j, c)| summarize(&format!("x{j}"), c)).collect();
        let state = (&SamplerState::PosteriorDraws, true);
        notes(&parameters, columns, accepted, state)
    }

    /// Golden-ratio turns: as even as independent draws, without a generator.
    fn mixed(n: u32) -> Vec<f64> {
        (0..n).map(|i| (f64::from(i) * 2.399_963).sin()).collect()
    }

    #[test]
    fn draws_that_tell_have_no_notes_and_others_one_a_criterion() {
        let good = mixed(2000);
        assert!(of(&[vec![good.clone()]], 900.0).is_empty());
        let drift: Vec<f64> = (0..2000).map(f64::from).collect();
        let found = of(&[vec![good], vec![drift]], 900.0);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("R-hat") && found[1].contains("ESS"));
        for note in &found {
            assert!(note.starts_with("these draws do not tell x1 yet"), "{note}");
        }
        // Few draws cannot say what they are worth.
        let found = of(&[vec![vec![0.1, 0.2, 0.3]]], 2.0);
        assert!(
            found.len() == 1 && found[0].contains("too few"),
            "{found:?}"
        );
        // Many parameters take one line.
        let short = vec![vec![mixed(40)]; 6];
        let found = of(&short, 9.0).concat();
        assert!(found.contains("x0, x1, x2 and 3 more"), "{found}");
    }

    /// θ₁ is lost; θ₀ and θ₂ share a direction that is, which L mixes, and only θ₂ is mostly there.
    #[test]
    fn parameters_of_lost_directions_are_named() {
        let names: Vec<String> = ["a", "b", "c"].map(String::from).into();
        let anchor = |lower: [f64; 9], curvature: [f64; 3], lost: usize| Anchor {
            at: vec![0.0; 3],
            metric: Metric {
                factor: Lower::new(lower.to_vec()).unwrap(),
                row_bound: 1.0,
            },
            gradient: vec![0.0; 3],
            curvature: DMatrix::from_diagonal(&DVector::from(curvature.to_vec()))
                .as_slice()
                .to_vec(),
            gradient_sd: 0.5,
            curvature_sd: 0.2,
            centre: vec![0.0; 3],
            radius: 100.0,
            spread: Vec::new(),
            doubts: Doubts {
                lost,
                ..Default::default()
            },
            alone: None,
        };
        let plain = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let one = anchor(plain, [40.0, 0.1, 50.0], 1);
        assert_eq!(mostly(&one, &names), " (mostly b)");
        let said = notes_on_anchor(&one, &names, false).concat();
        assert!(
            said.starts_with("in 1 of 3 directions (mostly b) the curvature is lost"),
            "{said}"
        );
        assert_eq!(mostly(&anchor(plain, [1.0, 2.0, 3.0], 0), &names), "");
        // L⁻ᵀu has the first row (1, 0, -0.5): a fifth of it lies in u₂.
        let mixed = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.5, 0.0, 1.0];
        assert_eq!(
            mostly(&anchor(mixed, [40.0, 30.0, 0.1], 1), &names),
            " (mostly c)"
        );
        // (2, 0, -4) has four fifths of it there.
        let mixed = [0.5, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.5];
        assert_eq!(
            mostly(&anchor(mixed, [40.0, 30.0, 0.1], 1), &names),
            " (mostly c, a)"
        );
    }

    /// A hundred draws of a way of twenty sds, of ten thousand in all.
    #[test]
    fn the_way_from_the_start_is_noticed() {
        let mut drawn = mixed(10_000);
        assert!(of(&[vec![drawn.clone()]], 900.0).is_empty());
        for (k, v) in drawn.iter_mut().take(100).enumerate() {
            *v += 14.0 * (1.0 - k as f64 / 400.0);
        }
        let found = of(&[vec![mixed(10_000), drawn]], 900.0).concat();
        assert!(found.contains("the first draws of x0 lie far"), "{found}");
    }

    #[test]
    fn chains_that_never_moved_say_so_alone() {
        let stuck = [vec![vec![0.5; 50]]];
        assert_eq!(
            of(&stuck, 0.0),
            ["no move was accepted: the draws are the start"]
        );
        assert!(of(&stuck, 3.0)[0].contains("after warm-up"));
        assert!(of(&[vec![vec![]]], 0.0)[0].contains("no draw was kept"));
    }
}
