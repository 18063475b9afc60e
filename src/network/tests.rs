//! Layers by hand, derivatives against differences, f32 against f64, and what does not fit.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;

use super::*;

fn volume(height: usize, width: usize, channels: usize) -> Volume {
    Volume {
        height,
        width,
        channels,
    }
}

fn conv(channels: usize, kernel: usize, stride: usize, padding: usize) -> Layer {
    Layer::Conv {
        channels,
        kernel,
        stride,
        padding,
    }
}

fn numbers(count: usize, size: f64, seed: u64) -> Vec<f64> {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    let draw = || size * (2.0 * rng.random::<f64>() - 1.0);
    std::iter::repeat_with(draw).take(count).collect()
}

/// Networks with every kind of layer, with strides and paddings that leave rests, channels that
/// leave rests of a block, and both heads.
pub(crate) fn networks() -> Vec<Network> {
    let max = Layer::MaxPool {
        kernel: 2,
        stride: 2,
    };
    let mean = Layer::AveragePool {
        kernel: 2,
        stride: 1,
    };
    let dense = |units| Layer::Dense { units };
    let of = |input, layers: &[Layer], outputs| Network::new(input, layers, outputs).unwrap();
    vec![
        of(Volume::flat(3), &[], 1),
        of(Volume::flat(3), &[dense(5), Layer::Tanh], 1),
        of(
            Volume::flat(4),
            &[dense(6), Layer::Softplus, dense(5), Layer::Tanh],
            3,
        ),
        of(volume(5, 4, 2), &[conv(5, 3, 1, 1), Layer::Tanh], 2),
        of(
            volume(6, 7, 1),
            &[
                conv(6, 3, 2, 2),
                Layer::Softplus,
                max,
                dense(4),
                Layer::Relu,
            ],
            4,
        ),
        of(
            volume(7, 6, 3),
            &[
                conv(4, 4, 2, 1),
                mean,
                Layer::Relu,
                conv(3, 2, 1, 0),
                Layer::Tanh,
            ],
            1,
        ),
        of(volume(6, 6, 2), &[max, mean, dense(7), Layer::Tanh], 5),
        of(
            volume(5, 6, 2),
            &[
                Layer::GroupNorm { groups: 1 },
                conv(6, 3, 1, 1),
                Layer::GroupNorm { groups: 3 },
                Layer::Softplus,
                max,
            ],
            3,
        ),
        of(
            Volume::flat(4),
            &[dense(8), Layer::GroupNorm { groups: 2 }, Layer::Tanh],
            1,
        ),
    ]
}

/// A label of a head with so many outputs.
pub(crate) fn label(network: Network, k: usize) -> f64 {
    match network.outputs() {
        1 => [1.0, -1.0][k % 2],
        outputs => (k % outputs) as f64,
    }
}

/// A convolution of two channels, a bias, a pool and a head, worked out by hand.
#[test]
fn a_small_network_by_hand() {
    let max = Layer::MaxPool {
        kernel: 2,
        stride: 1,
    };
    let network = Network::new(volume(2, 3, 1), &[conv(2, 2, 1, 0), Layer::Relu, max], 1);
    // Two places out: a 1 × 2 output, on which a pool of side 2 does not fit.
    let refused = network.unwrap_err();
    assert_eq!(refused.layer, Some(2));
    assert!(refused.what.contains("1 × 2 × 2"), "{refused}");

    let network = Network::new(volume(2, 3, 1), &[conv(2, 2, 1, 0), Layer::Relu], 1).unwrap();
    // Weights of (y, x) to channels 0 and 1: (0,0) 1, 2; (0,1) 0, −1; (1,0) 3, 0; (1,1) −1, 1.
    let mut theta = vec![1.0, 2.0, 0.0, -1.0, 3.0, 0.0, -1.0, 1.0];
    // Biases, then the head's weights of places 0 and 1 with channels 0 and 1, and its bias.
    theta.extend([0.5, -20.0, 1.0, 7.0, -2.0, 9.0, 0.25]);
    assert_eq!(theta.len(), network.parameters());
    let row = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    // Channel 0: 1·1 + 3·4 − 5 + 0.5 = 8.5 and 2 + 15 − 6 + 0.5 = 11.5; channel 1 is cut to 0.
    let odds: f64 = 8.5 - 2.0 * 11.5 + 0.25;
    let expected = -(1.0f64 + odds.exp()).ln();
    assert!((network.log_likelihood(&theta, &row, -1.0) - expected).abs() < 1e-12);
    let p = network.probabilities(&theta, &row.map(|v| v as f32));
    assert!((p[0] - 1.0 / (1.0 + (-odds).exp())).abs() < 1e-12);
    let names = network.names();
    assert_eq!(names[5], "conv1.w[1,0,0,1]");
    assert_eq!((&*names[8], &*names[14]), ("conv1.b[0]", "head.b[0]"));
}

/// Two groups of two channels at one place: (1, 3) become −1 and 1, (2, 2) become 0, but for 1e-5
/// in the variance; then scales of 1 + 1 and a shift of 0.5.
#[test]
fn groups_by_hand() {
    let groups = Layer::GroupNorm { groups: 2 };
    let network = Network::new(volume(1, 1, 4), &[groups], 1).unwrap();
    let mut theta = vec![1.0, 1.0, 1.0, 1.0, 0.0, 0.5, 0.0, 0.5];
    theta.extend([1.0, 10.0, 100.0, 1000.0, 0.0]);
    assert_eq!(theta.len(), network.parameters());
    assert_eq!(network.names()[4], "group_norm1.shift[0]");
    assert!(network.summands()[..8].iter().all(|n| *n == 0));
    let unit = 2.0 / (1.0f64 + 1e-5).sqrt();
    let odds = -unit + 10.0 * (unit + 0.5) + 1000.0 * 0.5;
    let theta: Vec<f64> = theta
        .into_iter()
        .enumerate()
        .map(|(k, t)| if k > 7 { t / odds } else { t })
        .collect();
    let p = network.probabilities(&theta, &[1.0, 3.0, 2.0, 2.0]);
    assert!(
        (p[0] - 1.0 / (1.0 + (-1.0f64).exp())).abs() < 1e-12,
        "{p:?}"
    );
}

/// Means and largest values by hand, a padding whose corner holds one value alone.
#[test]
fn pools_and_paddings_by_hand() {
    let layers = [
        Layer::AveragePool {
            kernel: 2,
            stride: 2,
        },
        conv(1, 2, 2, 1),
        Layer::MaxPool {
            kernel: 2,
            stride: 1,
        },
    ];
    let network = Network::new(volume(4, 4, 1), &layers, 2).unwrap();
    // The four means are 1, 2, 3, 4; the windows hold one of them each, in the corner nearest to
    // the middle; weights 1, 10, 100, 1000 by (y, x), bias 0.5.
    let mut theta = vec![1.0, 10.0, 100.0, 1000.0, 0.5];
    theta.extend([1e-3, 0.0, 0.0, 0.0]);
    let row = [
        1.0, 1.0, 0.0, 4.0, //
        1.0, 1.0, 2.0, 2.0, //
        3.0, 3.0, 4.0, 4.0, //
        6.0, 0.0, 4.0, 4.0,
    ];
    // 1000·1, 100·2, 10·3, 1·4: the largest is 1000.5.
    let p = network.probabilities(&theta, &row.map(|v| v as f32));
    assert!(
        (p[0] - 1.0 / (1.0 + (-1.0005f64).exp())).abs() < 1e-12,
        "{p:?}"
    );
    assert!((p[0] + p[1] - 1.0).abs() < 1e-12);
}

/// Back-propagation against central differences, every parameter of every network: rounding of
/// 1e-16/h and a bend of h² leave 1e-8, a sign or a factor would leave the whole. Kinks are met
/// with probability of about h.
#[test]
fn derivatives_are_those_of_differences() {
    const H: f64 = 1e-6;
    for (n, network) in networks().into_iter().enumerate() {
        let d = network.parameters();
        for k in 0..4 {
            let seed = (10 * n + k) as u64;
            let theta = numbers(d, 0.8, seed);
            let row = numbers(network.features(), 1.5, seed + 1000);
            let y = label(network, k);
            let gradient = network.gradient(&theta, &row, y);
            let mut largest = 0.0f64;
            for j in 0..d {
                let at = |by: f64| {
                    let mut moved = theta.clone();
                    moved[j] += by;
                    network.log_likelihood(&moved, &row, y)
                };
                let difference = (at(H) - at(-H)) / (2.0 * H);
                let error = (difference - gradient[j]).abs();
                assert!(
                    error < 1e-7,
                    "{network:?} {}: {} {difference}",
                    network.names()[j],
                    gradient[j]
                );
                largest = largest.max(difference.abs());
            }
            assert!(largest > 1e-3, "{network:?}: nothing to be seen");
        }
    }
}

/// The probabilities of all labels add up to one, and are those of the log likelihood.
#[test]
fn heads_are_laws() {
    for (n, network) in networks().into_iter().enumerate() {
        let theta = numbers(network.parameters(), 1.0, n as u64);
        let row = numbers(network.features(), 1.0, 7);
        let labels: Vec<f64> = (0..network.outputs().max(2))
            .map(|k| label(network, k))
            .collect();
        let sum: f64 = labels
            .iter()
            .map(|y| network.log_likelihood(&theta, &row, *y).exp())
            .sum();
        assert!((sum - 1.0).abs() < 1e-12);
        // Eleven rows leave a rest of a block.
        let single: Vec<f32> = row.iter().map(|v| *v as f32).collect();
        let same: Vec<f64> = single.iter().map(|v| f64::from(*v)).collect();
        let mut rows = vec![0.5; 10 * network.features()];
        rows.extend(&single);
        let said = network.probabilities(&theta, &rows);
        assert_eq!(said.len(), 11 * network.outputs());
        let own = network.log_likelihood(&theta, &same, labels[0]).exp();
        assert!((said[10 * network.outputs()] - own).abs() < 1e-12);
    }
}

fn check_lanes<const FMA: bool>(network: Network, seed: u64) {
    let (d, features) = (network.parameters(), network.features());
    let theta = numbers(d, 0.7, seed);
    let proposal: Vec<f64> = theta
        .iter()
        .zip(numbers(d, 0.1, seed + 1))
        .map(|(t, m)| t + m)
        .collect();
    // Numbers that f32 has, so that only the arithmetic differs.
    let single = |v: &[f64]| -> Vec<f32> { v.iter().map(|v| *v as f32).collect() };
    let back = |v: &[f32]| -> Vec<f64> { v.iter().map(|v| f64::from(*v)).collect() };
    let (theta, proposal) = (single(&theta), single(&proposal));
    let rows: Vec<Vec<f32>> = (0..LANES as u64)
        .map(|i| single(&numbers(features, 1.2, seed + 10 + i)))
        .collect();
    let tile: Vec<[f32; LANES]> = (0..features)
        .map(|j| std::array::from_fn(|i| rows[i][j]))
        .collect();
    let labels: [f32; LANES] = std::array::from_fn(|i| label(network, i) as f32);
    let mut room = Room::new(network);
    // Whatever lies in the scratch memory is no part of the answer.
    let mut gradients = vec![[f32::NAN; LANES]; d];
    for _ in 0..2 {
        network.gradients::<FMA>(&theta, (&tile, &labels), &mut room, &mut gradients);
    }
    let both = [theta.clone(), proposal.clone()].concat();
    let ratios = network.ratios::<FMA>(&both, &tile, &labels);
    for (i, row) in rows.iter().enumerate() {
        let (row, y) = (back(row), f64::from(labels[i]));
        let (theta, proposal) = (back(&theta), back(&proposal));
        let exact = network.gradient(&theta, &row, y);
        let largest = exact.iter().fold(0.0f64, |m, g| m.max(g.abs()));
        for (g, lanes) in exact.iter().zip(&gradients) {
            let error = (g - f64::from(lanes[i])).abs();
            assert!(
                error <= 3e-6 * largest + 1e-9,
                "{network:?}: {g} {}",
                lanes[i]
            );
        }
        let at = |t: &[f64]| network.log_likelihood(t, &row, y);
        let error = (at(&proposal) - at(&theta) - f64::from(ratios[i])).abs();
        assert!(
            error < 5e-6 * (1.0 + at(&theta).abs()),
            "{network:?}: {}",
            ratios[i]
        );
    }
}

#[test]
fn lanes_agree_with_the_oracle() {
    for (n, network) in networks().into_iter().enumerate() {
        check_lanes::<true>(network, 100 * n as u64);
        check_lanes::<false>(network, 100 * n as u64);
    }
}

#[test]
fn what_does_not_fit_is_refused_by_layer() {
    let pool = |kernel, stride| Layer::MaxPool { kernel, stride };
    let cases = [
        (
            vec![conv(3, 6, 1, 0)],
            2,
            "layer 1 (conv) has squares of side 6, and gets 5 × 5 × 1",
        ),
        (vec![conv(3, 0, 1, 0)], 2, "layer 1 (conv) has a side = 0"),
        (vec![conv(0, 2, 1, 0)], 2, "layer 1 (conv) has channels = 0"),
        (
            vec![Layer::Tanh, conv(3, 2, 0, 0)],
            2,
            "layer 2 (conv) has stride = 0",
        ),
        (
            vec![conv(3, 2, 1, 2)],
            2,
            "padding = 2, which must be less than its side of 2",
        ),
        (
            vec![pool(2, 2), pool(3, 1)],
            2,
            "layer 2 (max_pool) has squares of side 3, and gets 2 × 2 × 1",
        ),
        (
            vec![Layer::Dense { units: 0 }],
            2,
            "layer 1 (dense) has units = 0",
        ),
        (vec![Layer::Dense { units: 20_000 }], 2, "at most 262144"),
        (
            vec![Layer::Dense { units: usize::MAX }],
            2,
            "layer 1 (dense) is beyond any memory",
        ),
        (
            vec![conv(usize::MAX / 2, 2, 1, 1)],
            2,
            "layer 1 (conv) is beyond any memory",
        ),
        (vec![conv(3, 2, 1, usize::MAX / 2)], 2, "padding"),
        (
            vec![conv(3, 2, 1, 0), Layer::GroupNorm { groups: 2 }],
            2,
            "layer 2 (group_norm) has 2 groups, which do not divide the channels of 4 × 4 × 3",
        ),
        (vec![Layer::GroupNorm { groups: 0 }], 2, "groups = 0"),
        (vec![], 0, "the label has units = 0"),
    ];
    for (layers, outputs, words) in cases {
        let error = Network::new(volume(5, 5, 1), &layers, outputs).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    let error = Network::new(volume(usize::MAX, 2, 1), &[], 1).unwrap_err();
    assert!(error.to_string().contains("input"), "{error}");
    // The same declaration is the same network.
    let twice = [0, 1].map(|_| Network::new(Volume::flat(2), &[Layer::Tanh], 1).unwrap());
    assert_eq!(twice[0], twice[1]);
}
