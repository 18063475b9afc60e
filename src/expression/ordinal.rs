//! Ordered classes: cumulative logits, whose cutpoints are parameters that rows share.

/// Fewest and most classes: a law has up to eight shared parameters.
pub const ORDINAL_CLASSES: std::ops::RangeInclusive<u32> = 2..=9;

/// The parameters of an ordinal law, with mean and sd of the priors they have unless others are
/// given: the first cutpoint, then logarithms of the gaps between one cutpoint and the next.
pub fn ordinal_parameters(classes: u32) -> Vec<(String, [f64; 2])> {
    let gaps = (2..classes).map(|k| (format!("log_gap_{k}"), [0.0, 1.0]));
    std::iter::once(("cut_1".to_string(), [0.0, 4.0]))
        .chain(gaps)
        .collect()
}

/// log P(y | η) of classes 0 … K − 1: P(y < k) = σ(c_k − η), c_1 = cut_1 and c_k = c_(k−1) +
/// e^log_gap_k. With g the gap below c_(y+1), a class in the middle has
/// σ(c_(y+1) − η) − σ(c_y − η) = σ(c_(y+1) − η) σ(η − c_y) (1 − e^−g), which does not cancel.
pub fn ordinal(classes: u32) -> String {
    let cut = |k: u32| {
        let gaps: String = (2..=k).map(|j| format!(" + exp(log_gap_{j})")).collect();
        format!("(cut_1{gaps})")
    };
    let below = |k: u32| format!("-log1p_exp(eta - {})", cut(k));
    let above = |k: u32| format!("-log1p_exp({} - eta)", cut(k));
    let mut text = above(classes - 1);
    for class in (0..classes - 1).rev() {
        let own = match class {
            0 => below(1),
            k => {
                let gap = k + 1;
                format!(
                    "{} {} + log(-expm1(-exp(log_gap_{gap})))",
                    below(gap),
                    above(k)
                )
            }
        };
        text = format!("if(y < {}.5, {own}, {text})", class);
    }
    text
}
