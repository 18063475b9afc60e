//! Networks of layers: ratios and gradients of all rows or of listed ones, a batch of rows at a
//! time.
//!
//! `shaders/network_layers.wgsl` and `shaders/network_pass.wgsl` say how a row is computed and why
//! its part stays within the bound.

use std::ops::Range;

use super::GpuEngine;
use super::gradient_text::clip_factor;
use super::pipelines::Program;
use super::submit::{Dispatch, Job, uniform};
use crate::engine::{EngineError, GradientQuery, GradientSum, RatioQuery, RatioSum, Rows};
use crate::network::{LayerKernel, LayerParams, LayerStep, Network};

/// Threads of a workgroup, and of one that clips a row.
const THREADS: usize = 128;
const LANES: usize = 64;
/// Rows of a batch: a thread adds up their integers in an i32.
const ROWS: usize = 1024;
/// Bytes of scratch memory, by preference.
pub(super) const SCRATCH_BYTES: usize = 1 << 28;
/// Slots of a chain's ratios, so that atomic additions hardly meet.
const SLOTS: usize = 64;
/// Batches of a submission: low halves of a slot's ratios stay below 2^31.
const BATCHES: usize = 32_767 / ROWS.div_ceil(SLOTS);
/// Turns of loops after which Mesa's software driver ends them, less those that no layer's are.
pub(super) const SOFTWARE_TURNS: usize = 60_000;

const LAYERS: &str = include_str!("../../../../shaders/network_layers.wgsl");
const PASS: &str = include_str!("../../../../shaders/network_pass.wgsl");

/// The text of all steps, after shared pieces.
pub(super) fn source() -> String {
    format!(
        "const THREADS: u32 = {THREADS}u;\nconst LANES: u32 = {LANES}u;\nconst SLOTS: u32 = {SLOTS}u;\n{}\n{LAYERS}\n{PASS}",
        clip_factor()
    )
}

/// What a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kernel {
    Features,
    Layer(LayerKernel),
    Weigh,
    Density,
    Ratio,
    HeadErrors,
    /// A workgroup a row.
    Clip,
    /// A thread for each coordinate of all rows.
    AddUp,
}

impl Kernel {
    /// Entry point.
    pub fn entry(self) -> &'static str {
        match self {
            Kernel::Features => "features",
            Kernel::Layer(layer) => layer.entry(),
            Kernel::Weigh => "weigh",
            Kernel::Density => "density",
            Kernel::Ratio => "ratio",
            Kernel::HeadErrors => "head_errors",
            Kernel::Clip => "clip",
            Kernel::AddUp => "add_up",
        }
    }
}

/// A step of a batch.
struct Step {
    kernel: Kernel,
    /// Threads of a row, and turns of a thread's loops at most.
    threads: usize,
    turns: usize,
    layer: LayerParams,
    /// Where its weights begin among the chain's.
    weights: usize,
}

impl Step {
    /// A step that is no layer's.
    fn between(kernel: Kernel, threads: usize, turns: usize) -> Self {
        Step {
            kernel,
            threads,
            turns,
            layer: LayerParams::default(),
            weights: 0,
        }
    }

    /// What it costs a row, in the bytes that a card reads meanwhile: it makes about eight products
    /// a byte, and four a turn.
    fn bytes(&self) -> usize {
        self.threads * (4 + self.turns / 2)
    }
}

/// Uniform of a step; twin of `NetworkParams` in the shader.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
pub(super) struct NetworkParams {
    pub row_stride: u32,
    pub first: u32,
    pub items: u32,
    pub listed: u32,
    pub labelled: u32,
    pub steps: u32,
    pub weights: u32,
    pub first_answer: u32,
    pub bound_high: u32,
    pub bound_low: u32,
    pub bound: i32,
    pub scale: f32,
    pub limit: f32,
    pub room: u32,
    pub features: u32,
    pub values: u32,
    pub parameters: u32,
    pub outputs: u32,
    pub layer: LayerParams,
}

/// Consecutive rows of a chunk, or of its part of the list, for one chain.
#[derive(Clone, Copy)]
struct Batch {
    chunk: usize,
    chain: usize,
    first: usize,
    count: usize,
}

/// Rows of lists in their chunks, in the order of batches, and their places in their chains' lists.
#[derive(Default)]
struct Listed {
    rows: Vec<u32>,
    places: Vec<usize>,
}

/// What some batches, one after the other, take of the list.
fn span(batches: &[Batch]) -> Range<usize> {
    match batches {
        [first, .., last] => first.first..last.first + last.count,
        [only] => only.first..only.first + only.count,
        [] => 0..0,
    }
}

/// A query: every chain's weights one after the other, and its uniform.
struct Asked {
    network: Network,
    gradients: bool,
    weights: Vec<f32>,
    chains: Vec<NetworkParams>,
    steps: Vec<Step>,
}

impl Asked {
    /// Weights of a chain.
    fn of_chain(&self) -> usize {
        self.weights.len() / self.chains.len().max(1)
    }

    /// Words of a row.
    fn room(&self) -> usize {
        room(self.network)
    }

    /// Sums of a chain in each slot, and slots.
    fn sums(&self) -> (usize, usize) {
        match self.gradients {
            true => (self.network.parameters() + 1, 1),
            false => (2, SLOTS),
        }
    }
}

/// Words of a row.
fn room(network: Network) -> usize {
    2 * network.values() + network.parameters() + network.notes() + 2
}

/// The steps of a batch.
fn steps(network: Network, gradients: bool) -> Vec<Step> {
    let (d, classes) = (network.parameters(), network.outputs());
    let mut steps = vec![Step::between(Kernel::Features, room(network), 0)];
    let layers = |steps: &mut Vec<Step>, layers: Vec<LayerStep>, weights| {
        steps.extend(layers.into_iter().map(|step| Step {
            kernel: Kernel::Layer(step.kernel),
            threads: step.threads,
            turns: step.turns,
            layer: step.layer,
            weights,
        }));
    };
    layers(&mut steps, network.forward_steps(), 0);
    if gradients {
        steps.push(Step::between(Kernel::Weigh, 1, 2 * classes));
        steps.push(Step::between(Kernel::HeadErrors, classes, classes));
        layers(&mut steps, network.backward_steps(), 0);
        steps.push(Step::between(
            Kernel::Clip,
            LANES,
            2 * d.div_ceil(LANES) + 2 * LANES,
        ));
        steps.push(Step::between(Kernel::AddUp, d + 1, 0));
    } else {
        steps.push(Step::between(Kernel::Density, 1, 2 * classes));
        layers(&mut steps, network.forward_steps(), d);
        steps.push(Step::between(Kernel::Ratio, 1, 2 * classes));
    }
    steps
}

/// A query of log ratios.
fn ask_ratios(query: &RatioQuery, network: Network) -> Asked {
    let chain = |c| {
        let params = NetworkParams {
            bound: query.grid(c).bound(),
            scale: query.scale(c),
            ..NetworkParams::default()
        };
        (query.weights_of(c), params)
    };
    ask(network, false, query.chains(), &chain)
}

/// A query from each chain's weights and uniform.
fn ask<'a>(
    network: Network,
    gradients: bool,
    chains: usize,
    chain: &dyn Fn(usize) -> (&'a [f32], NetworkParams),
) -> Asked {
    let (mut weights, mut params) = (Vec::new(), Vec::new());
    for (own, mut of) in (0..chains).map(chain) {
        // Drivers may lose a NaN on its way; one in the scale makes every answer 0.
        if own.iter().any(|w| w.is_nan()) {
            of.scale = f32::NAN;
        }
        weights.extend(own);
        params.push(of);
    }
    Asked {
        network,
        gradients,
        weights,
        chains: params,
        steps: steps(network, gradients),
    }
}

impl GpuEngine {
    /// Gradients of all rows or of listed ones.
    pub(super) fn network_gradients(
        &mut self,
        query: &GradientQuery,
        network: Network,
        rows: Rows<'_>,
    ) -> Result<Vec<GradientSum>, EngineError> {
        let square = i64::from(query.grid().bound()).pow(2);
        let chain = |c| {
            let params = NetworkParams {
                bound_high: (square >> 20) as u32,
                bound_low: (square & 0xf_ffff) as u32,
                scale: query.scale(),
                limit: query.limit(),
                ..NetworkParams::default()
            };
            (query.weights(c), params)
        };
        let asked = ask(network, true, query.chains(), &chain);
        let lists = match rows {
            Rows::All => None,
            Rows::Listed(lists) => Some(lists),
        };
        let totals = self.sum(&asked, lists)?;
        let sum = |chain: &[i64]| {
            let (steps, clipped) = chain.split_at(query.dim());
            GradientSum {
                steps: steps.to_vec(),
                clipped: clipped.iter().sum::<i64>().unsigned_abs(),
            }
        };
        Ok(totals.chunks(query.dim() + 1).map(sum).collect())
    }

    /// Log ratios of all rows.
    pub(super) fn network_sums(
        &mut self,
        query: &RatioQuery,
        network: Network,
    ) -> Result<Vec<RatioSum>, EngineError> {
        let asked = ask_ratios(query, network);
        let totals = self.sum(&asked, None)?;
        let sums = totals.chunks(2).enumerate();
        let sum = |(c, of): (usize, &[i64])| RatioSum {
            steps: of[0] * i64::from(query.sign(c)),
            saturated: of[1].unsigned_abs(),
        };
        Ok(sums.map(sum).collect())
    }

    /// Log ratios of listed rows, one by one.
    pub(super) fn network_rows(
        &mut self,
        query: &RatioQuery,
        network: Network,
        rows: &[Vec<u64>],
        out: &mut [Vec<i32>],
    ) -> Result<(), EngineError> {
        let asked = ask_ratios(query, network);
        for chains in self.groups_of_chains(&asked) {
            let (batches, listed) = self.listed_batches(&asked, &rows[chains.clone()]);
            for c in chains.clone() {
                out[c].clear();
                out[c].resize(rows[c].len(), 0);
            }
            for batches in batches.chunks(self.batches_at_once(&asked)) {
                let span = span(batches);
                let list = &listed.rows[span.clone()];
                let answers = self.run(&asked, chains.start, (batches, Some(list)), list.len())?;
                let of = batches
                    .iter()
                    .flat_map(|b| std::iter::repeat_n(b.chain, b.count));
                let places = listed.places[span].iter().zip(of);
                for (answer, (place, chain)) in answers.iter().zip(places) {
                    let c = chains.start + chain;
                    out[c][*place] = answer * query.sign(c);
                }
            }
        }
        Ok(())
    }

    /// Refuses a network whose loops the adapter would not run to their end.
    fn check_loops(&self, steps: &[Step]) -> Result<(), EngineError> {
        let turns = steps.iter().map(|step| step.turns).max();
        match self.device.software && turns > Some(SOFTWARE_TURNS) {
            true => Err(EngineError::Device(
                "a layer of the network sums more values than a software adapter takes; use `--engine cpu`".into(),
            )),
            false => Ok(()),
        }
    }

    /// Chains whose weights and answers a binding takes.
    fn groups_of_chains(&self, asked: &Asked) -> Vec<Range<usize>> {
        let chains = asked.chains.len();
        let (sums, slots) = asked.sums();
        let weights = (self.binding() / 4).saturating_sub(self.steps.len());
        let weights = weights / asked.of_chain().max(1);
        let most = weights.min(self.binding() / (8 * sums * slots)).max(1);
        let firsts = (0..chains).step_by(most);
        firsts
            .map(|first| first..chains.min(first + most))
            .collect()
    }

    /// Rows of a batch, at most: by scratch memory, what a thread adds up, and the time of a step.
    fn rows_of_batch(&self, asked: &Asked) -> usize {
        let scratch = self.binding().min(self.scratch) / (4 * asked.room());
        let longest = asked.steps.iter().map(Step::bytes).max().unwrap_or(1);
        let rows = scratch.min(self.device.piece() as usize / longest);
        rows.clamp(1, ROWS)
    }

    /// Batches of a submission, at most: half of a binding holds their lists.
    fn batches_at_once(&self, asked: &Asked) -> usize {
        let lists = self.binding() / 8 / self.rows_of_batch(asked);
        lists.clamp(1, BATCHES)
    }

    /// Every row for so many chains; chunk by chunk, as a streamed one is uploaded once.
    fn all_batches(&self, asked: &Asked, chains: usize) -> Vec<Batch> {
        let mut batches = Vec::new();
        for (chunk, rows) in self.chunks.iter().enumerate() {
            for chain in 0..chains {
                self.cut(asked, (chunk, chain), 0..rows.rows, &mut batches);
            }
        }
        batches
    }

    /// Listed rows, chunk by chunk.
    fn listed_batches(&self, asked: &Asked, lists: &[Vec<u64>]) -> (Vec<Batch>, Listed) {
        let mut of_chunk = vec![vec![Vec::new(); lists.len()]; self.chunks.len()];
        for (chain, rows) in lists.iter().enumerate() {
            for (place, &row) in rows.iter().enumerate() {
                let chunk = self.chunks.partition_point(|k| k.first <= row as usize) - 1;
                let local = row as usize - self.chunks[chunk].first;
                of_chunk[chunk][chain].push((local as u32, place));
            }
        }
        let (mut batches, mut listed) = (Vec::new(), Listed::default());
        for (chunk, chains) in of_chunk.into_iter().enumerate() {
            for (chain, own) in chains.into_iter().enumerate() {
                let first = listed.rows.len();
                listed.rows.extend(own.iter().map(|(row, _)| row));
                listed.places.extend(own.iter().map(|(_, place)| place));
                let rows = first..listed.rows.len();
                self.cut(asked, (chunk, chain), rows, &mut batches);
            }
        }
        (batches, listed)
    }

    fn cut(
        &self,
        asked: &Asked,
        (chunk, chain): (usize, usize),
        rows: Range<usize>,
        batches: &mut Vec<Batch>,
    ) {
        let most = self.rows_of_batch(asked);
        batches.extend(rows.clone().step_by(most).map(|first| Batch {
            chunk,
            chain,
            first,
            count: most.min(rows.end - first),
        }));
    }

    /// Sums of all chains over all rows, or over their lists.
    fn sum(&mut self, asked: &Asked, lists: Option<&[Vec<u64>]>) -> Result<Vec<i64>, EngineError> {
        let (sums, slots) = asked.sums();
        let mut totals = vec![0i64; asked.chains.len() * sums];
        for chains in self.groups_of_chains(asked) {
            let (batches, listed) = match lists {
                None => (self.all_batches(asked, chains.len()), None),
                Some(lists) => {
                    let (batches, listed) = self.listed_batches(asked, &lists[chains.clone()]);
                    (batches, Some(listed.rows))
                }
            };
            let totals = &mut totals[chains.start * sums..chains.end * sums];
            for batches in batches.chunks(self.batches_at_once(asked)) {
                let numbers = 2 * chains.len() * slots * sums;
                let listed = listed.as_ref().map(|rows| &rows[span(batches)]);
                let answers = self.run(asked, chains.start, (batches, listed), numbers)?;
                let halves = answers.as_chunks().0.chunks(sums);
                for (of, answers) in halves.enumerate() {
                    let totals = &mut totals[of / slots * sums..];
                    for (total, [low, high]) in totals.iter_mut().zip(answers) {
                        *total += i64::from(*high) * 65_536 + i64::from(*low);
                    }
                }
            }
        }
        Ok(totals)
    }

    /// One submission or more over these batches, whose chains count from `first_chain`, and whose
    /// part of the list this is: so many answers.
    fn run(
        &mut self,
        asked: &Asked,
        first_chain: usize,
        (batches, listed): (&[Batch], Option<&[u32]>),
        answers: usize,
    ) -> Result<Vec<i32>, EngineError> {
        let (network, of_chain, room) = (asked.network, asked.of_chain(), asked.room());
        self.check_loops(&asked.steps)?;
        let (sums, slots) = asked.sums();
        let chains = batches.iter().map(|batch| batch.chain + 1).max();
        let weights = chains.unwrap_or(0) * of_chain;
        let mut coefficients = asked.weights[first_chain * of_chain..][..weights].to_vec();
        // A list begins with the first batch.
        let shift = listed.map_or(0, |_| span(batches).start);
        let mut dispatches = Vec::with_capacity(batches.len() * asked.steps.len());
        for batch in batches {
            let of_batch = NetworkParams {
                row_stride: 4 * self.chunks[batch.chunk].quads() as u32,
                first: (batch.first - shift) as u32,
                items: batch.count as u32,
                listed: u32::from(listed.is_some()),
                labelled: u32::from(self.labelled),
                steps: weights as u32,
                first_answer: (2 * batch.chain * slots * sums) as u32,
                room: room as u32,
                features: network.features() as u32,
                values: network.values() as u32,
                parameters: network.parameters() as u32,
                outputs: network.outputs() as u32,
                ..asked.chains[first_chain + batch.chain]
            };
            dispatches.extend(asked.steps.iter().map(|step| Dispatch {
                program: Program::Network(step.kernel, !self.steps.is_empty()),
                chunk: batch.chunk,
                bytes: (batch.count * step.bytes()) as u64,
                tiles: 1,
                groups: match step.kernel {
                    Kernel::Clip => batch.count,
                    Kernel::AddUp => step.threads.div_ceil(THREADS),
                    _ => (batch.count * step.threads).div_ceil(THREADS),
                } as u32,
                params: uniform(&NetworkParams {
                    weights: (batch.chain * of_chain + step.weights) as u32,
                    layer: step.layer,
                    ..of_batch
                }),
            }));
        }
        coefficients.extend(&self.steps);
        let most = batches.iter().map(|batch| batch.count).max().unwrap_or(0);
        let answers = self.submit(&Job {
            coefficients: &coefficients,
            entries: bytemuck::cast_slice(listed.unwrap_or_default()),
            dispatches: &dispatches,
            answers: 4 * answers,
            zeroed: true,
            scratch: 4 * most * room,
        })?;
        Ok(bytemuck::pod_collect_to_vec(&answers))
    }
}
