//! Forward and backward through one layer, L rows side by side. Numbers are stored as E and
//! computed with as T: f64 by itself, f32 by functions without branches.
//!
//! Loops over rows are written out and inlined, so that they are compiled with the caller's
//! instruction set; sums go into blocks of channels that stay in registers.

use std::ops::Range;

use super::layer::{Operation, Stage, Window};
use crate::expression::Number;

/// What is computed with.
pub(super) trait Real<E>: Number + From<E> {}
impl<E, T: Number + From<E>> Real<E> for T {}

/// What is stored.
pub(super) trait Element<T>: Copy + PartialEq + From<T> {}
impl<T, E: Copy + PartialEq + From<T>> Element<T> for E {}

/// Added to a group's variance, which may be 0 (Wu & He 2018).
const LEAST_VARIANCE: f64 = 1e-5;

/// Channels whose sums are made together.
const BLOCK: usize = 4;

/// Computes a layer's output from its input, both among `values`.
#[inline(always)]
pub(super) fn forward<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    weights: &[E],
    values: &mut [[E; L]],
) {
    let (before, output) = values.split_at_mut(stage.to);
    let input = &before[stage.from..][..stage.input.size()];
    let output = &mut output[..stage.output.size()];
    match stage.operation {
        Operation::Sums(window) => sums::<T, E, L>(stage, window, weights, input, output),
        Operation::Largest(window) => largest::<T, E, L>(stage, window, input, output),
        Operation::Mean(window) => means::<T, E, L>(stage, window, input, output),
        Operation::Normalise(size) => {
            normalised::<T, E, L>(stage, size, weights, input, output);
        }
        Operation::Tanh => {
            for (o, v) in output.iter_mut().zip(input) {
                for i in 0..L {
                    o[i] = E::from(tanh(T::from(v[i])));
                }
            }
        }
        Operation::Relu => {
            for (o, v) in output.iter_mut().zip(input) {
                for i in 0..L {
                    let v = T::from(v[i]);
                    o[i] = E::from(v.choose(v, T::of(0.0)));
                }
            }
        }
        Operation::Softplus => {
            for (o, v) in output.iter_mut().zip(input) {
                for i in 0..L {
                    o[i] = E::from(T::from(v[i]).softplus());
                }
            }
        }
    }
}

/// From the derivatives in a layer's output, among `errors`, those in its parameters and, where
/// they are asked for (`further`), in its input.
#[inline(always)]
pub(super) fn backward<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    weights: &[E],
    values: &[[E; L]],
    errors: &mut [[E; L]],
    gradients: &mut [[E; L]],
    further: bool,
) {
    let input = &values[stage.from..][..stage.input.size()];
    let output = &values[stage.to..][..stage.output.size()];
    let (before, after) = errors.split_at_mut(stage.to);
    let back = &mut before[stage.from..][..stage.input.size()];
    let errors = &after[..stage.output.size()];
    if let Operation::Sums(window) = stage.operation {
        sums_in_weights::<T, E, L>(stage, window, input, errors, gradients);
    }
    if let Operation::Normalise(size) = stage.operation {
        let gradients = &mut gradients[stage.first..][..stage.parameters()];
        groups_in_weights::<T, E, L>(stage, size, input, errors, gradients);
    }
    if !further {
        return;
    }
    let zero = T::of(0.0);
    match stage.operation {
        Operation::Sums(window) => {
            back.fill([E::from(zero); L]);
            sums_in_input::<T, E, L>(stage, window, weights, errors, back);
        }
        Operation::Largest(window) => {
            back.fill([E::from(zero); L]);
            largest_in_input::<T, E, L>(stage, window, (input, output), errors, back);
        }
        Operation::Mean(window) => {
            back.fill([E::from(zero); L]);
            means_in_input::<T, E, L>(stage, window, errors, back);
        }
        Operation::Normalise(size) => {
            groups_in_input::<T, E, L>(stage, size, weights, input, errors, back);
        }
        Operation::Tanh => {
            for ((b, a), e) in back.iter_mut().zip(output).zip(errors) {
                for i in 0..L {
                    let a = T::from(a[i]);
                    let slope = T::of(1.0).subtract(a.multiply(a));
                    b[i] = E::from(slope.multiply(T::from(e[i])));
                }
            }
        }
        Operation::Relu => {
            for ((b, a), e) in back.iter_mut().zip(output).zip(errors) {
                for i in 0..L {
                    b[i] = E::from(T::from(a[i]).choose(T::from(e[i]), zero));
                }
            }
        }
        Operation::Softplus => {
            for ((b, a), e) in back.iter_mut().zip(output).zip(errors) {
                for i in 0..L {
                    // σ(v) = 1 − e^−softplus(v).
                    let slope = zero.subtract(zero.subtract(T::from(a[i])).exp_m1());
                    b[i] = E::from(slope.multiply(T::from(e[i])));
                }
            }
        }
    }
}

/// `(e^2|v| − 1)/(e^2|v| + 1)` with v's sign.
#[inline(always)]
fn tanh<T: Number>(v: T) -> T {
    let zero = T::of(0.0);
    let size = v.choose(v, zero.subtract(v));
    // Beyond 20 it is 1 to the last bit, and e^40 is still a number.
    let over = size.subtract(T::of(20.0));
    let size = over.choose(T::of(20.0), size);
    let grown = size.add(size).exp_m1();
    let share = grown.divide(grown.add(T::of(2.0)));
    v.choose(share, zero.subtract(share))
}

/// A block of channels at one place: bias, then sums over the window.
#[inline(always)]
fn block_of_sums<T: Real<E>, E: Element<T>, const L: usize, const B: usize>(
    stage: &Stage,
    window: Window,
    weights: &[E],
    input: &[[E; L]],
    (y, x, o): (usize, usize, usize),
    output: &mut [[E; L]],
) {
    let (from, outputs) = (stage.input, stage.output.channels);
    let [rows, columns] = window.kernel;
    let biases = &weights[rows * columns * from.channels * outputs..];
    let mut sum = [[T::of(0.0); L]; B];
    for b in 0..B {
        sum[b] = [T::from(biases[o + b]); L];
    }
    for ky in window.inside(rows, y, from.height) {
        for kx in window.inside(columns, x, from.width) {
            let place = window.position(y, ky) * from.width + window.position(x, kx);
            let input = &input[place * from.channels..][..from.channels];
            let weights = &weights[(ky * columns + kx) * from.channels * outputs..];
            for (c, v) in input.iter().enumerate() {
                let w = &weights[c * outputs + o..][..B];
                for b in 0..B {
                    let w = T::from(w[b]);
                    for i in 0..L {
                        sum[b][i] = w.fused(T::from(v[i]), sum[b][i]);
                    }
                }
            }
        }
    }
    let at = (y * stage.output.width + x) * outputs + o;
    for (out, sum) in output[at..at + B].iter_mut().zip(&sum) {
        for i in 0..L {
            out[i] = E::from(sum[i]);
        }
    }
}

#[inline(always)]
fn sums<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    window: Window,
    weights: &[E],
    input: &[[E; L]],
    output: &mut [[E; L]],
) {
    let weights = &weights[stage.first..][..stage.parameters()];
    let outputs = stage.output.channels;
    let whole = outputs - outputs % BLOCK;
    for y in 0..stage.output.height {
        for x in 0..stage.output.width {
            for o in (0..whole).step_by(BLOCK) {
                let at = (y, x, o);
                block_of_sums::<T, E, L, BLOCK>(stage, window, weights, input, at, output);
            }
            for o in whole..outputs {
                let at = (y, x, o);
                block_of_sums::<T, E, L, 1>(stage, window, weights, input, at, output);
            }
        }
    }
}

/// Derivatives in the weights of a block of channels out at (ky, kx, c).
#[inline(always)]
fn block_in_weights<T: Real<E>, E: Element<T>, const L: usize, const B: usize>(
    stage: &Stage,
    window: Window,
    input: &[[E; L]],
    errors: &[[E; L]],
    (ky, kx, c, o): (usize, usize, usize, usize),
    out: &mut [[E; L]],
) {
    let (from, to) = (stage.input, stage.output);
    let mut sum = [[T::of(0.0); L]; B];
    for y in window.places_of(ky, from.height, to.height) {
        let row = window.position(y, ky) * from.width;
        for x in window.places_of(kx, from.width, to.width) {
            let v = &input[(row + window.position(x, kx)) * from.channels + c];
            let e = &errors[(y * to.width + x) * to.channels + o..][..B];
            for b in 0..B {
                for i in 0..L {
                    sum[b][i] = T::from(e[b][i]).fused(T::from(v[i]), sum[b][i]);
                }
            }
        }
    }
    for b in 0..B {
        for i in 0..L {
            out[o + b][i] = E::from(sum[b][i]);
        }
    }
}

#[inline(always)]
fn sums_in_weights<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    window: Window,
    input: &[[E; L]],
    errors: &[[E; L]],
    gradients: &mut [[E; L]],
) {
    let gradients = &mut gradients[stage.first..][..stage.parameters()];
    let (inputs, outputs) = (stage.input.channels, stage.output.channels);
    let [rows, columns] = window.kernel;
    let (of_weights, of_biases) = gradients.split_at_mut(rows * columns * inputs * outputs);
    let whole = outputs - outputs % BLOCK;
    for (k, out) in of_weights.chunks_exact_mut(outputs).enumerate() {
        let (place, c) = (k / inputs, k % inputs);
        let (ky, kx) = (place / columns, place % columns);
        for o in (0..whole).step_by(BLOCK) {
            let at = (ky, kx, c, o);
            block_in_weights::<T, E, L, BLOCK>(stage, window, input, errors, at, out);
        }
        for o in whole..outputs {
            let at = (ky, kx, c, o);
            block_in_weights::<T, E, L, 1>(stage, window, input, errors, at, out);
        }
    }
    of_biases.fill([E::from(T::of(0.0)); L]);
    for place in errors.chunks_exact(outputs) {
        for (sum, e) in of_biases.iter_mut().zip(place) {
            for i in 0..L {
                sum[i] = E::from(T::from(sum[i]).add(T::from(e[i])));
            }
        }
    }
}

/// Adds to the derivatives in a block of channels in, at one place, those by way of one place out.
#[inline(always)]
fn block_in_input<T: Real<E>, E: Element<T>, const L: usize, const B: usize>(
    weights: &[E],
    errors: &[[E; L]],
    back: &mut [[E; L]],
) {
    let outputs = errors.len();
    let mut sum = [[T::of(0.0); L]; B];
    for b in 0..B {
        for i in 0..L {
            sum[b][i] = T::from(back[b][i]);
        }
    }
    for (o, e) in errors.iter().enumerate() {
        for b in 0..B {
            let w = T::from(weights[b * outputs + o]);
            for i in 0..L {
                sum[b][i] = w.fused(T::from(e[i]), sum[b][i]);
            }
        }
    }
    for b in 0..B {
        for i in 0..L {
            back[b][i] = E::from(sum[b][i]);
        }
    }
}

#[inline(always)]
fn sums_in_input<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    window: Window,
    weights: &[E],
    errors: &[[E; L]],
    back: &mut [[E; L]],
) {
    let weights = &weights[stage.first..][..stage.parameters()];
    let (from, to) = (stage.input, stage.output);
    let [rows, columns] = window.kernel;
    let (inputs, outputs) = (from.channels, to.channels);
    let whole = inputs - inputs % BLOCK;
    for (place, errors) in errors.chunks_exact(outputs).enumerate() {
        let (y, x) = (place / to.width, place % to.width);
        for ky in window.inside(rows, y, from.height) {
            for kx in window.inside(columns, x, from.width) {
                let at = window.position(y, ky) * from.width + window.position(x, kx);
                let back = &mut back[at * inputs..][..inputs];
                let weights = &weights[(ky * columns + kx) * inputs * outputs..];
                for c in (0..whole).step_by(BLOCK) {
                    let (w, back) = (&weights[c * outputs..], &mut back[c..]);
                    block_in_input::<T, E, L, BLOCK>(w, errors, back);
                }
                for c in whole..inputs {
                    let (w, back) = (&weights[c * outputs..], &mut back[c..]);
                    block_in_input::<T, E, L, 1>(w, errors, back);
                }
            }
        }
    }
}

/// The number of a window's k-th value of one channel; `place` is that of an output's value.
#[inline(always)]
fn of_window(stage: &Stage, window: Window, place: usize, k: usize) -> usize {
    let (from, to) = (stage.input, stage.output);
    let (place, c) = (place / to.channels, place % to.channels);
    let (y, x) = (place / to.width, place % to.width);
    let (ky, kx) = (k / window.kernel[1], k % window.kernel[1]);
    let at = window.position(y, ky) * from.width + window.position(x, kx);
    at * from.channels + c
}

#[inline(always)]
fn largest<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    window: Window,
    input: &[[E; L]],
    output: &mut [[E; L]],
) {
    for (place, out) in output.iter_mut().enumerate() {
        let mut top = [T::of(f64::NEG_INFINITY); L];
        for k in 0..window.size() {
            let at = of_window(stage, window, place, k);
            for i in 0..L {
                let v = T::from(input[at][i]);
                top[i] = v.subtract(top[i]).choose(v, top[i]);
            }
        }
        for i in 0..L {
            out[i] = E::from(top[i]);
        }
    }
}

/// The first of equal largest values has the whole derivative.
#[inline(always)]
fn largest_in_input<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    window: Window,
    (input, output): (&[[E; L]], &[[E; L]]),
    errors: &[[E; L]],
    back: &mut [[E; L]],
) {
    let zero = T::of(0.0);
    for (place, (top, e)) in output.iter().zip(errors).enumerate() {
        let mut open = [T::of(1.0); L];
        for k in 0..window.size() {
            let at = of_window(stage, window, place, k);
            for i in 0..L {
                let below = T::from(top[i]).subtract(T::from(input[at][i]));
                let hit = below.choose(zero, open[i]);
                open[i] = open[i].subtract(hit);
                let sum = hit.fused(T::from(e[i]), T::from(back[at][i]));
                back[at][i] = E::from(sum);
            }
        }
    }
}

/// 1 over the values of a window.
#[inline(always)]
fn share<T: Number>(window: Window) -> T {
    T::of(1.0 / window.size() as f64)
}

#[inline(always)]
fn means<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    window: Window,
    input: &[[E; L]],
    output: &mut [[E; L]],
) {
    for (place, out) in output.iter_mut().enumerate() {
        let mut sum = [T::of(0.0); L];
        for k in 0..window.size() {
            let at = of_window(stage, window, place, k);
            for i in 0..L {
                sum[i] = sum[i].add(T::from(input[at][i]));
            }
        }
        for i in 0..L {
            out[i] = E::from(sum[i].multiply(share(window)));
        }
    }
}

#[inline(always)]
fn means_in_input<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    window: Window,
    errors: &[[E; L]],
    back: &mut [[E; L]],
) {
    for (place, e) in errors.iter().enumerate() {
        for k in 0..window.size() {
            let at = of_window(stage, window, place, k);
            for i in 0..L {
                let part = T::from(e[i]).multiply(share(window));
                back[at][i] = E::from(T::from(back[at][i]).add(part));
            }
        }
    }
}

/// Mean of a group's values of each row, and one over their standard deviation.
#[inline(always)]
fn moments<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    channels: Range<usize>,
    input: &[[E; L]],
) -> ([T; L], [T; L]) {
    let all = stage.input.channels;
    let count = T::of((stage.input.size() / all * channels.len()) as f64);
    let (mut mean, mut scale) = ([T::of(0.0); L], [T::of(0.0); L]);
    for place in input.chunks_exact(all) {
        for v in &place[channels.clone()] {
            for i in 0..L {
                mean[i] = mean[i].add(T::from(v[i]));
            }
        }
    }
    for sum in &mut mean {
        *sum = sum.divide(count);
    }
    for place in input.chunks_exact(all) {
        for v in &place[channels.clone()] {
            for i in 0..L {
                let off = T::from(v[i]).subtract(mean[i]);
                scale[i] = off.fused(off, scale[i]);
            }
        }
    }
    for sum in &mut scale {
        let variance = sum.divide(count).add(T::of(LEAST_VARIANCE));
        *sum = T::of(1.0).divide(variance.sqrt());
    }
    (mean, scale)
}

/// Channels of the group that begins at `first`.
fn group(first: usize, size: usize) -> Range<usize> {
    first..first + size
}

#[inline(always)]
fn normalised<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    size: usize,
    weights: &[E],
    input: &[[E; L]],
    output: &mut [[E; L]],
) {
    let all = stage.input.channels;
    let (scales, shifts) = weights[stage.first..][..2 * all].split_at(all);
    for first in (0..all).step_by(size) {
        let (mean, scale) = moments::<T, E, L>(stage, group(first, size), input);
        for (v, out) in input.chunks_exact(all).zip(output.chunks_exact_mut(all)) {
            for c in group(first, size) {
                let by = T::of(1.0).add(T::from(scales[c]));
                let shift = T::from(shifts[c]);
                for i in 0..L {
                    let unit = T::from(v[c][i]).subtract(mean[i]).multiply(scale[i]);
                    out[c][i] = E::from(unit.fused(by, shift));
                }
            }
        }
    }
}

/// Derivatives in scales, then in shifts.
#[inline(always)]
fn groups_in_weights<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    size: usize,
    input: &[[E; L]],
    errors: &[[E; L]],
    gradients: &mut [[E; L]],
) {
    let all = stage.input.channels;
    let (of_scales, of_shifts) = gradients.split_at_mut(all);
    for first in (0..all).step_by(size) {
        let (mean, scale) = moments::<T, E, L>(stage, group(first, size), input);
        for c in group(first, size) {
            let (mut a, mut b) = ([T::of(0.0); L], [T::of(0.0); L]);
            for (v, e) in input.chunks_exact(all).zip(errors.chunks_exact(all)) {
                for i in 0..L {
                    let unit = T::from(v[c][i]).subtract(mean[i]).multiply(scale[i]);
                    a[i] = unit.fused(T::from(e[c][i]), a[i]);
                    b[i] = b[i].add(T::from(e[c][i]));
                }
            }
            for i in 0..L {
                of_scales[c][i] = E::from(a[i]);
                of_shifts[c][i] = E::from(b[i]);
            }
        }
    }
}

/// With h the derivative in the unit values x̂ and means over the group,
/// `∂/∂x = (h − mean h − x̂ · mean(h x̂))/sd`.
#[inline(always)]
fn groups_in_input<T: Real<E>, E: Element<T>, const L: usize>(
    stage: &Stage,
    size: usize,
    weights: &[E],
    input: &[[E; L]],
    errors: &[[E; L]],
    back: &mut [[E; L]],
) {
    let all = stage.input.channels;
    let scales = &weights[stage.first..][..all];
    let count = T::of((stage.input.size() / all * size) as f64);
    for first in (0..all).step_by(size) {
        let (mean, scale) = moments::<T, E, L>(stage, group(first, size), input);
        let (mut along, mut level) = ([T::of(0.0); L], [T::of(0.0); L]);
        for (v, e) in input.chunks_exact(all).zip(errors.chunks_exact(all)) {
            for c in group(first, size) {
                let by = T::of(1.0).add(T::from(scales[c]));
                for i in 0..L {
                    let h = by.multiply(T::from(e[c][i]));
                    let unit = T::from(v[c][i]).subtract(mean[i]).multiply(scale[i]);
                    along[i] = unit.fused(h, along[i]);
                    level[i] = level[i].add(h);
                }
            }
        }
        for i in 0..L {
            along[i] = along[i].divide(count);
            level[i] = level[i].divide(count);
        }
        let places = input.chunks_exact(all).zip(errors.chunks_exact(all));
        for ((v, e), back) in places.zip(back.chunks_exact_mut(all)) {
            for c in group(first, size) {
                let by = T::of(1.0).add(T::from(scales[c]));
                for i in 0..L {
                    let h = by.multiply(T::from(e[c][i]));
                    let unit = T::from(v[c][i]).subtract(mean[i]).multiply(scale[i]);
                    let rest = h.subtract(level[i]).subtract(unit.multiply(along[i]));
                    back[c][i] = E::from(rest.multiply(scale[i]));
                }
            }
        }
    }
}
