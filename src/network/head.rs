//! What outputs say of a label: a Bernoulli law by log odds, or a softmax of log weights.

use super::evaluate::{Element, Real};

/// log p(y | outputs) of every row.
#[inline(always)]
pub(super) fn log_density<T: Real<E>, E: Element<T>, const L: usize>(
    outputs: &[[E; L]],
    labels: &[E; L],
) -> [E; L] {
    let zero = T::of(0.0);
    let mut out = [E::from(zero); L];
    if let [o] = outputs {
        for i in 0..L {
            let against = zero.subtract(T::from(labels[i]).multiply(T::from(o[i])));
            out[i] = E::from(zero.subtract(against.softplus()));
        }
        return out;
    }
    let top = largest::<T, E, L>(outputs);
    let (mut sum, mut own) = ([zero; L], [zero; L]);
    for (k, o) in outputs.iter().enumerate() {
        let class = E::from(T::of(k as f64));
        for i in 0..L {
            let o = T::from(o[i]).subtract(top[i]);
            sum[i] = sum[i].add(o.exp());
            own[i] = if labels[i] == class { o } else { own[i] };
        }
    }
    for i in 0..L {
        out[i] = E::from(own[i].subtract(sum[i].ln()));
    }
    out
}

/// Outputs become `∂ log p(y | o)/∂o`.
#[inline(always)]
pub(super) fn errors<T: Real<E>, E: Element<T>, const L: usize>(
    outputs: &mut [[E; L]],
    labels: &[E; L],
) {
    let (zero, one) = (T::of(0.0), T::of(1.0));
    if let [o] = outputs {
        for i in 0..L {
            let y = T::from(labels[i]);
            let odds = y.multiply(T::from(o[i])).exp();
            o[i] = E::from(y.divide(one.add(odds)));
        }
        return;
    }
    let top = largest::<T, E, L>(outputs);
    let mut sum = [zero; L];
    for o in outputs.iter_mut() {
        for i in 0..L {
            let weight = T::from(o[i]).subtract(top[i]).exp();
            sum[i] = sum[i].add(weight);
            o[i] = E::from(weight);
        }
    }
    // 1 − p_y as the sum of the others: no cancellation.
    let mut others = [zero; L];
    for (k, o) in outputs.iter_mut().enumerate() {
        let class = E::from(T::of(k as f64));
        for i in 0..L {
            let share = T::from(o[i]).divide(sum[i]);
            let other = if labels[i] == class { zero } else { share };
            others[i] = others[i].add(other);
            o[i] = E::from(zero.subtract(share));
        }
    }
    for (k, o) in outputs.iter_mut().enumerate() {
        let class = E::from(T::of(k as f64));
        for i in 0..L {
            o[i] = if labels[i] == class {
                E::from(others[i])
            } else {
                o[i]
            };
        }
    }
}

#[inline(always)]
fn largest<T: Real<E>, E: Element<T>, const L: usize>(outputs: &[[E; L]]) -> [T; L] {
    let mut top = [T::of(f64::NEG_INFINITY); L];
    for o in outputs {
        for i in 0..L {
            let o = T::from(o[i]);
            top[i] = o.subtract(top[i]).choose(o, top[i]);
        }
    }
    top
}
