//! The promise: bad input ends with exit code 2 and a message that names the file, line,
//! column or key at fault; it never panics, quotes no cell and leaves no output behind.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::tables::{RUN, csv, edit, folder_with, gzip, npy, parquet, run_over};

/// What an offending cell holds; no message may contain it.
const CELL: &str = "s3cretcell";

/// Text of the run file or of the table (`*`: the whole table, `--`: flags) => what stands
/// there instead => what is said; `@text` is the line of the run file that holds the text.
const CASES: &str = r#"
,                => ;                        => table.csv; 'a'; delimiter
0.571,-0.800,0   =>                          => table.csv, line 6; is empty
0.571,-0.800,0   => "0.571,-0.800,0          => table.csv, line 6; not closed on its line; quoted_newlines
"table.csv"      => 3                        => @file = 3; a path in quotes
"table.csv"      => { bytes = 'a\xf' }       => @bytes; a path in quotes
row_norm = 2.0   => delimiter = ";;"         => @delimiter; data.delimiter; one ASCII character
row_norm = 2.0   => delimiter = "é"          => @delimiter; data.delimiter; one ASCII character
row_norm = 2.0   => delimiter = '"'          => @delimiter; data.delimiter; one ASCII character
row_norm = 2.0   => bad_cells = "mising"     => @bad_cells; nearest valid one is `missing`
row_norm = 2.0   => storage = "f16"          => @storage; `i16`; `f32`
row_norm = 2.0   => bad_cells = "missing"    => @bad_cells; data.bad_cells; column 'a'; give 'missing'
0.571,-0.800,0   => 0.571,s3cretcell         => table.csv, line 6
0.571,-0.800,0   => 0,0,1,s3cretcell         => table.csv, line 6
0.857,-0.200,0   => 0.857,s3cretcell,0       => table.csv, line 8; 'b'
0.857,-0.200,0   => ,-0.200,0                => table.csv, line 8; 'a'; missing
0.857,-0.200,0   => 0.857,NAN,0              => table.csv, line 8; 'b'; NaN
0.857,-0.200,0   => -inf,-0.200,0            => table.csv, line 8; 'a'; infinity
0.857,-0.200,0   => 0.857,-0.200,s3cretcell  => table.csv, line 8; 'y'
0.857,-0.200,0   => 0.857,-0.200,2           => table.csv, line 8; 'y'; 0 or 1
a,b,y            => a,bb,y                   => table.csv; none of its 3 columns is called 'b'; case included
a,b,y            => a,a,y                    => table.csv; columns 1 and 2; the same name
*                =>                          => table.csv; empty
*                => a,b,y\n                  => table.csv; 0 row
*                => a,b,y\n0.1,0.2,1\n       => table.csv; 1 row
"y"              => "y"\npositive = ["1"]\nnegative = ["-"] => table.csv, line 2; 'y'; declared
scale = [-1, 1]  => one_hot = ["0.000"]\nstrict = true => table.csv, line 2; 'b'; not declared
scale = [-1, 1]  => scale = [1, -1]          => run.toml, line; data.features[1]; reversed
scale = [-1, 1]  => scale = [1]              => @scale = [1]
scale = [-1, 1]  =>                          => run.toml, line; data.features[1]; missing
row_norm = 2.0   => row_norm = 0             => @row_norm; data.row_norm
row_norm = 2.0   => row_norm = -1            => @row_norm; data.row_norm
epsilon = 5.0    => epsilon = 0              => @epsilon; privacy.epsilon
delta = 1e-6     => delta = 0                => @delta; privacy.delta
delta = 1e-6     => delta = 1                => @delta; privacy.delta
chains = 1       => chains = 0               => @chains; run.chains
iterations = 20  => iterations = 0           => @iterations; run.iterations
tempering = 1.0  => tempering = 0.0          => @tempering; model.tempering
tempering = 1.0  => tempering = 1.01         => @tempering; model.tempering
sd = 3.0         => sd = 0                   => @sd = 0; model.prior.sd
sd = 3.0         => sd = 1e-100              => @sd = 1e-100; model.prior.sd; between 1e-18 and 1e18
sd = 3.0         => sd = [1.0, 1e19]         => @sd = [1.0; model.prior.sd; between 1e-18 and 1e18
iterations = 20  => iterations = 20\nthin = 21 => @thin; run.thin; no draw; more iterations
"y"              => "y"\npositive = ["1 "]   => @positive; data.label.positive; without blanks around them
scale = [-1, 1]  => one_hot = ["u", " v"]    => run.toml, line 9; data.features[1]; level ' v'; without blanks
"barker"         => "mh"                     => @"mh"; sampler.algorithm; --not-private
delta = 1e-6     =>                          => @epsilon; delta
epsilon = 5.0\ndelta = 1e-6 =>               => no budget; --epsilon; --not-private
row_norm         => row_nrom                 => @row_nrom; nearest valid one is `row_norm`
scale = [-1, 1]  => scale = [LOW, HIGH]      => @LOW; replace LOW and HIGH by numbers
scale = [-1, 1]  => one_hot = [LEVEL]        => @LEVEL; replace LEVEL by a level
scale = [-1, 1]  => one_hot = ["LEVEL"]      => run.toml, line 9; data.features[1]; replace LEVEL by a level
"y"              => "y"\npositive = ["LEVEL"] => @LEVEL; data.label.positive; replace LEVEL by a level
"y"              => "y"\ncount = MAX         => @MAX; replace MAX or K by a number
"table.csv"      => "..\x.csv"              => @x.csv; write / or single quotes
"table.csv"      => "..\data\table.csv"     => @table.csv; write / or single quotes
"table.csv"      => "..\table.csv"          => able.csv; no such file; write / or single quotes
"normal"         => "gaussian"               => @"gaussian"; nearest valid one is `normal`
"barker"         => "nuts"                   => @"nuts"; nearest valid one is `hmc`
[privacy]        => [privcy]                 => @[privcy]; nearest valid one is `privacy`
"barker"         => "barkr"                  => @"barkr"; nearest valid one is `barker`
"barker"         => "barker"\nanchor = { stages = 2 } => @anchor = ; sampler.anchor; anchored-barker
"barker"         => "anchored-barker" => @step = 0.001; sampler.step; sampler.proposal
"barker"\nstep = 0.001 => "anchored-barker"\nadapt = "full" => @adapt = ; sampler.adapt
"barker"\nstep = 0.001 => "anchored-barker"\nclip = { rate = 1.0 } => @clip = ; sampler.clip; share
"barker"\nstep = 0.001 => "anchored-barker"\nclip = { share = -1.0 } => @clip = ; sampler.clip; share
"barker"\nstep = 0.001 => "anchored-barker"\nproposal = { autoregressive = { correlation = 1.0 } } => @proposal; sampler.proposal; correlation
"barker"\nstep = 0.001 => "anchored-barker"\nproposal = { random-walk = { step = 0.0 } } => @proposal; sampler.proposal; step
"barker"\nstep = 0.001 => "anchored-barker"\nanchor = { start = 0.5, gradient = 0.4, curvature = 0.1 } => @anchor = ; sampler.anchor; nothing for the steps
"barker"\nstep = 0.001 => "anchored-barker"\nanchor = { gradient = 1.5 } => @anchor = ; gradient; share
"barker"\nstep = 0.001 => "anchored-barker"\nanchor = { radius = 0.0 } => @anchor = ; radius
"barker"\nstep = 0.001 => "anchored-barker"\nanchor = { stages = 0, start = 0.1 } => @anchor = ; sampler.anchor.start; stages = 0
"barker"\nstep = 0.001 => "anchored-barker"\nanchor = { stages = 1000 } => @anchor = ; stages; at most 100
"barker"\nstep = 0.001 => "anchored-barker"\nlambda = 0 => @lambda = 0; sampler.lambda
"barker"         => "barker"\nclip = { share = 0.5, rate = 1.0 } => @clip = ; sampler.clip; exactly one
delta = 1e-6     => delta = 1e-6\nnot_private = true => @not_private; epsilon
epsilon = 5.0\ndelta = 1e-6 => not_private = true\nledger = "l" => @ledger; privacy.ledger
scale = [-1, 1]  => scale = [-1, 1]\nclamp = [-1, 1] => run.toml, line; data.features[1]
"barker"         => "barker"\nlambda = 3.0   => @lambda; sampler.lambda
"barker"         => "barker"\ntau = 3.0      => @tau; sampler.tau
"barker"         => "poisson-barker"\nlambda = 3.0\nchi = 2.0 => @chi; sampler.chi
"barker"         => "barker"\nscale = 1\ncovariance = [[1]] => @covariance; 'scale'
row_norm = 2.0   => label_file = "l.npy"     => @label_file; [data.label]
"logistic"       => "logistic"\nvariance = 2 => @variance; model.variance
"y"              => "y"\nnegative = ["0"]    => @negative; data.label.negative; positive
"y"              => "y"\npositive = ["1"]\nnegative = ["0", "1"] => @negative; data.label.negative; '1'
"y"              => "y"\nclamp = [1, 2]\nevent = { column = "died", in = ["1"], censored = ["0", "1"] } => data.label.event.censored; '1'
intercept = true => intercept = true\nmissing = 0 => @missing = 0; data.features[0].missing
scale = [-1, 1]  => indicator = { in = ["0"] }\nmissing = 2 => @missing = 2; data.features[1].missing; 0 or 1
0.857,-0.200,0   => 0.857,-0.200,            => table.csv, line 8; 'y'; is missing; "0", ""
scale = [-1, 1]  => one_hot = ["0"]\nmissing = 0 => @missing = 0; data.features[1].missing; level ""
scale = [-1, 1]  => scale = [-1, 1]\nmissing = 1000 => @missing = 1000; data.features[1].missing; inside; [-1, 1]
scale = [-1, 1]  => clamp = [-1, 1]\nmissing = -1.5 => @missing = -1.5; data.features[1].missing; inside; [-1, 1]
scale = [-1, 1]  => indicator = { above = 0 }\nmissing = inf => data.features[1]; finite
scale = [-1, 1]  => scale = [-1, 1]\ntransform = "log" => @transform; data.features[1].transform; above 0
scale = [-1, 1]  => scale = [-1, 1]\nspline = { knots = [2] } => @spline; data.features[1].spline; inside the bounds
[model]          => [[data.interactions]]\nfeatures = ["a", "c"]\n[model] => @features = ; data.interactions[0].features; 'c'; nearest
"logistic"       => "gaussian-mean"\nbox = 3\ncovariance = [[1, 0, 0, 0], [1, 0], [0, 0, 1]] => @covariance; model.covariance; row 1
"logistic"       => "gaussian-mean"\nbox = 3\ncovariance = [[1, 0, 0, 0, 1, 0, 0, 0, 1]] => @covariance; model.covariance[0]; row 1
"logistic"       => "linear"\nvariance = 1 => @[data.label]; data.label; linear; clamp = [low, high]
"logistic"       => "poisson"                => @[data.label]; data.label; count = max
"logistic"       => "logistic"\ncurvature = 2 => @curvature; model.curvature; banana
"logistic"       => "banana"\nvariances = [1, 1] => data.features; exactly two
"logistic"       => "logistic"\nvariances = [1, 1] => @variances; model.variances; banana
"y"              => "y"\nclamp = [0, 1]      => @[data.label]; data.label; binary
"logistic"       => "logistic"\nhidden = 2 => @hidden; model.hidden; mlp
"logistic"       => "mlp"                    => @[model]; model; 'hidden'
"logistic"       => "mlp"\nhidden = 0        => @hidden; model.hidden; 1 or more
"logistic"       => "mlp"\nhidden = 1000000000000 => @hidden; model.hidden; at most
"logistic"       => "mlp"\nhidden = 3        => @[sampler]; no bound; clip = 
"y"              => "y"\nclasses = 3         => @[data.label]; data.label; binary
"y"              => "y"\nclamp = [1, 0]      => @[data.label]; data.label; reversed
"y"              => "y"\nscale = [0, nan]    => @[data.label]; data.label; finite
"y"              => "y"\nclamp = [0,5, 60,0] => @clamp; two numbers; there are 4; decimals have a point
"y"              => "y"\ncount = 0           => @[data.label]; data.label; count
"y"              => "y"\ncount = -3          => @count
"y"              => "y"\nclasses = 1         => @[data.label]; data.label; classes
"y"              => "y"\nmissing = 1         => @missing = 1; data.label.missing
"y"              => "y"\nclamp = [0, 1]\nmissing = 2 => @missing = 2; data.label.missing; inside
"y"              => "y"\nclamp = [0, 1]\ncount = 3 => @[data.label]; data.label; contradict
column = "y"     =>                          => @[data.label]; data.label; column
"barker"         => "barker"\ncovariance = [[1, 0, 0], [0], [1, 0, 0, 0, 1]] => @covariance; sampler.covariance; row 2
"a", "b"         => "a", "y"                 => @"a", "y"; data.features[1].columns; 'y'; label
columns = ["a", "b"] => column = "y"         => run.toml, line 10:; data.features[1].column; 'y'; label
"a", "b"         => "a", "a"                 => run.toml, line; data.features; 'a'
delta = 1e-6     => delta = 1e-6\n[test]\nfile = "no.csv"\npublic = true => no.csv
delta = 1e-6     => delta = 1e-6\n[test]\nfile = "no.csv"\nlabel_file = "l.npy"\npublic = true => @label_file; test.label_file; [data.label]
delta = 1e-6     => delta = 1e-6\n[test]\nfile = "no.csv"\npublic = false => @public; test.public
delta = 1e-6     => delta = 1e-6\n[test]\nfile = "./table.csv"\npublic = true => @./table.csv; test.file; which the run protects
"barker"         => "dp-fast-mh"\nbatch_cap = 0.5 => @batch_cap; sampler.batch_cap; at least 1
"barker"         => "dp-fast-mh"\nbatch_cap = nan => @batch_cap; sampler.batch_cap
"barker"         => "dp-fast-mh"\nlambda = 0 => @lambda; sampler.lambda; positive
"barker"         => "dp-fast-mh"\nlambda = -1 => @lambda; sampler.lambda; positive
"barker"         => "dp-fast-mh"\nlambda = 20\nbatch_cap = 10 => @lambda; sampler.lambda; smaller than batch_cap
"barker"         => "dp-fast-mh"\nlambda_ratio = 2 => @lambda_ratio; 'lambda' itself
"barker"         => "dp-fast-mh"\nbatch_cap = 30\nlambda = 2 => @batch_cap; sampler.batch_cap; half
"barker"         => "dp-fast-mh"\nbatch_cap = 3\nlambda = 1\nstep_delta = 0.3 => @step_delta; 2.5 K/N
"barker"         => "dp-fast-mh"\nstep_delta = 1 => @step_delta; sampler.step_delta
"barker"         => "dp-fast-mh"\nstep_epsilon = 0 => @step_epsilon; sampler.step_epsilon
"barker"         => "dp-fast-mh"\nas_published = true => @as_published; dp-sgld
"barker"         => "barker"\nas_published = true => @as_published; dp-sghmc
"barker"         => "barker"\nbatch_cap = 5 => @batch_cap; dp-fast-mh
"barker"         => "dp-fast-mh-full"\nbatch_cap = 5 => @batch_cap; dp-fast-mh
"barker"         => "barker"\nbatch = 50   => @batch; dp-barker-subsampled
"barker"         => "dp-barker-subsampled"\nbatch = 10 => @batch; sampler.batch; exceed 10
"barker"         => "dp-barker-subsampled"\nbatch = 41 => @batch; sampler.batch; at most 40
"barker"         => "dp-barker-subsampled"\nbatch = 20\nclip = { rate = 1 } => @clip; sampler.clip; drop 'clip'
"barker"         => "dp-barker-subsampled"\nbatch = 20\nvariance = 2 => @variance; dp-barker alone
delta = 1e-6     => delta = 1e-6\norder = 1 => @order = 1; privacy.order; 1.01
delta = 1e-6     => delta = 1e-6\norder = 1.1 => @order = 1.1; privacy.order; larger
epsilon = 5.0\ndelta = 1e-6 => not_private = true\norder = 3 => @order; privacy.order
"barker"         => "dp-hmc"\nleapfrog_steps = 0 => @leapfrog_steps; sampler.leapfrog_steps; between 1 and
"barker"         => "dp-hmc"\nleapfrog_steps = 2000000000 => @leapfrog_steps; sampler.leapfrog_steps; between 1 and
"barker"         => "dp-hmc"\ncovariance = [[1, 2, 0], [2, 1, 0], [0, 0, 1]] => @covariance; sampler.covariance; positive definite
"barker"         => "dp-hmc"\nscale = [1, 2] => @scale = [1, 2]; sampler.scale; 3 of them
"barker"         => "dp-hmc"\ngradient = { rate = 0.5 } => @gradient; sampler.gradient.rate; stochastic gradients
"barker"\nstep = 0.001 => "dp-hmc"\nstep = 1e300 => @step = 1e300; sampler.step; 1e200
"barker"         => "dp-hmc"\nsteps = 3 => @steps = 3; sampler.steps; dpvi
"barker"         => "dp-hmc"\ngradient = { tau = 0 } => @gradient; sampler.gradient.tau; positive
"barker"         => "dp-hmc"\ngradient = { share = -1 } => @gradient; sampler.gradient.share; not -1
"barker"         => "dp-hmc"\ngradient = { clip = 1, share = 1 } => @gradient; sampler.gradient.share; contradicts
"barker"         => "sgld"                   => @"sgld"; sampler.algorithm; dp-sgld; --not-private
"barker"         => "dp-sgld"\ntau = 2       => @tau = 2; sampler.tau; 'dp-sgld' has no use
"barker"         => "dp-sgld"\nfriction = 0.1 => @friction; sampler.friction; dp-sghmc
"barker"         => "dp-sgld"\ngradient = { tau = 2 } => @gradient; sampler.gradient.tau; extra_tau
"barker"         => "dp-sgld"\ngradient = { rate = 0 } => @gradient; sampler.gradient.rate; (0, 1]
"barker"         => "dp-sgld"\ngradient = { rate = 1.5 } => @gradient; sampler.gradient.rate; (0, 1]
"barker"\nstep = 0.001 => "dp-sgld"\ngradient = { extra_tau = -1 } => @gradient; sampler.gradient.extra_tau; must be at least 0
"barker"\nstep = 0.001 => "dp-sgld"\nschedule = { offset = 1, exponent = 1.3 } => @schedule; sampler.schedule; (0, 1]
"barker"\nstep = 0.001 => "dp-sgld"\nschedule = "fast" => @schedule; "cube-root"
"barker"\nstep = 0.001 => "dp-sgld"\npreconditioner = { decay = 2, floor = 0.1, adapt = 9 } => @preconditioner; sampler.preconditioner; 'decay'
"barker"\nstep = 0.001 => "dp-sgld"\nscale = [1, 2] => @scale = [1, 2]; sampler.scale; 3 of them
"barker"\nstep = 0.001 => "dp-sgld"\nas_published = true\ngradient = { extra_tau = 1 } => @gradient; sampler.gradient.extra_tau; as_published
"barker"\nstep = 0.001 => "dp-sgld"\nstep = 1e10 => @step = 1e10; sampler.step; between 0.05 and 1e9
"barker"\nstep = 0.001 => "dp-sgld"\nstep = 0.5 => @epsilon; too small for a single step; a smaller step
"barker"         => "dp-sghmc"\nfriction = 2 => @friction; sampler.friction; (0, 1]
"barker"         => "dp-sgnht"\nas_published = true => @as_published; dp-sghmc
"barker"         => "dpvi"\nestimator = "all" => @estimator; sampler.estimator; already
"barker"         => "dpvi"\nsteps = 0        => @steps = 0; sampler.steps; between 1 and
"barker"         => "dpvi"\ngradient = { rate = 0.1 } => @gradient; sampler.gradient.rate; a fit follows all rows
"barker"         => "ops"                    => @[model]; model; declare a 'box'
chains = 1       => start = { dpvi = {} }    => @start = ; run.start; epsilon and delta
chains = 1       => start = { dpvi = { epsilon = 5.0, delta = 1e-6 } } => @start = ; run.start; leaves nothing
chains = 1       => init = { method = "dpvi", epsilon = 5.0, delta = 1e-6 } => @init = ; run.start; leaves nothing
chains = 1       => init = "zero"\nstart = "zero" => run.toml, line; duplicate field `start`
chains = 1       => start = { dpvi = { epsilon = 0.2, delta = 1e-6, stps = 3 } } => @start = ; nearest valid one is `steps`
chains = 1       => start = { ops = {} }     => @start = ; run.start; declare a 'box'
chains = 1       => start = { ops = { box = 1 } } => @start = ; run.start; leaves nothing; box (ops)
chains = 1       => start = "dpvi"           => @start = ; 'dpvi' is no start
-- => --as-published                         => --as-published; dp-sgld
-- => --chains 0                             => chains
-- => --algorithm mh                         => algorithm; --not-private
-- => --algorithm bark                       => --algorithm; barker
-- => --data no.csv                          => no.csv; no such file
-- => --not-private --epsilon 1              => --not-private; --epsilon
-- => --not-private --ledger l.json          => ledger
"#;

/// Attempts in a folder with a used ledger, one held by a run, and a folder not empty:
/// arguments => exit code => what is said.
const ATTEMPTS: &str = "
check no.toml                                  => 2 => no.toml
init no.csv                                    => 2 => no.csv
summary absent --json                          => 2 => absent
sample --resume absent                         => 2 => absent
sample run.toml --out taken                    => 2 => taken; not empty; --resume
sample run.toml --out table.csv                => 1 => table.csv
sample run.toml --out table.csv/out            => 1 => table.csv/out
init table.csv --out table.csv/x.toml          => 1 => table.csv/x.toml
sample run.toml --out a/b/c --data no.csv      => 2 => no.csv
sample run.toml --out a --ledger damaged.json  => 2 => damaged.json
sample run.toml --out a --ledger no/l.json     => 2 => no/l.json
sample run.toml --out a --ledger held.json     => 2 => held.json; in use
sample run.toml --out a --ledger l.json --epsilon 2      => 2 => l.json; budget
sample run.toml --out a --ledger l.json --data short.csv => 2 => l.json; 40; 29
sample other.toml --out a --ledger l.json      => 2 => l.json; 'people'; 'others'
";

/// Splits a table above into its cells.
fn cases<const N: usize>(table: &str) -> impl Iterator<Item = [String; N]> {
    table.lines().filter(|line| !line.is_empty()).map(|line| {
        let cells = line.split("=>").map(|c| c.trim().replace("\\n", "\n"));
        cells.collect::<Vec<_>>().try_into().unwrap()
    })
}

fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dpmc"));
    command.env("DPMC_RECORDS", "off");
    command.current_dir(folder);
    command.args(arguments.split_whitespace());
    command
}

/// Exit code and what was said on standard error.
fn dpmc(folder: &Path, arguments: &str) -> (i32, String) {
    let output = command(folder, arguments).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap_or(-1), message)
}

/// Runs the command; asserts its exit code and every part (by `; `) of what it must say.
fn assert_refused(folder: &Path, arguments: &str, code: i32, says: &str) {
    let (found, message) = dpmc(folder, arguments);
    let context = format!("{arguments} ({says}): {message}");
    assert_eq!(found, code, "{context}");
    assert!(!message.contains("panicked"), "{context}");
    assert!(!message.contains(CELL), "quotes a cell: {context}");
    for part in says.split("; ") {
        assert!(message.contains(part), "no '{part}': {context}");
    }
}

/// `check` and `sample` refuse `run` with exit code 2 and leave nothing behind.
fn assert_both_refuse(folder: &Path, run: &str, flags: &str, says: &str) {
    std::fs::write(folder.join("run.toml"), run).unwrap();
    let mut says = says.to_string();
    if says.starts_with('@') {
        let text = says[1..].split("; ").next().unwrap().to_string();
        let line = 1 + run.lines().position(|l| l.contains(&text)).unwrap();
        says = says.replacen(&format!("@{text}"), &format!("run.toml, line {line}:"), 1);
    }
    for command in ["check run.toml", "sample run.toml --out out"] {
        assert_refused(folder, &format!("{command} {flags}"), 2, &says);
        assert!(!folder.join("out").exists(), "{says}: leaves output");
    }
}

#[test]
fn bad_tables_keys_and_flags_are_refused() {
    for [from, to, says] in cases(CASES) {
        let (mut table, mut run, mut flags) = (csv(), RUN.to_string(), "");
        match from.as_str() {
            "*" => table = to,
            "--" => flags = &to,
            _ if from != "," && RUN.contains(&from) => run = edit(RUN, &from, &to),
            _ => table = edit(&table, &from, &to),
        }
        let folder = folder_with("table.csv", table.as_bytes());
        assert_both_refuse(folder.path(), &run, flags, &says);
    }
}

#[test]
fn damaged_and_missing_files_are_refused_by_name() {
    let (zipped, columnar) = (gzip(csv().as_bytes()), parquet());
    let half = |bytes: &[u8]| bytes[..bytes.len() / 2].to_vec();
    for (file, bytes, says) in [
        ("table.xls", b"a,b,y\n".to_vec(), ".csv"),
        ("table.csv", b"a,b,y\n0,\xff,1\n".to_vec(), "line 2"),
        ("table.csv", b"a,b,y\n0,0,1\n0,\xff,1\n".to_vec(), "line 3"),
        ("table.csv.gz", half(&zipped), "truncated"),
        ("table.csv.gz", zipped[..zipped.len() - 3].into(), "end"),
        ("table.csv.gz", Vec::new(), "truncated"),
        ("table.csv.gz", b"a,b,y\n0,0,1\n".to_vec(), "gzip"),
        ("table.parquet", half(&columnar), "truncated"),
        ("table.parquet", Vec::new(), "truncated"),
        ("table.npy", npy("(40, 2)", 79), "NPY"),
        ("table.npy", npy("(40, 2)", 81), "longer"),
        ("table.npy", half(&npy("(40, 2)", 0)), "NPY"),
        ("table.npy", npy("(2, 1000000000000000000)", 80), "npy"),
        // Said before a row is read: there is none.
        ("table.npy", npy("(1000000000000, 2)", 0), "memory"),
    ] {
        let folder = folder_with(file, &bytes);
        let says = format!("{file}; {says}");
        assert_both_refuse(folder.path(), &run_over(file), "", &says);
    }
    let folder = folder_with("table.parquet", &columnar);
    let run = edit(
        &run_over("table.parquet"),
        "row_norm",
        "delimiter = \";\"\nrow_norm",
    );
    let says = "@delimiter; data.delimiter; text tables";
    assert_both_refuse(folder.path(), &run, "", says);
    let folder = tempfile::tempdir().unwrap();
    assert_both_refuse(folder.path(), RUN, "", "table.csv; no such file");
}

#[test]
fn a_budget_too_small_for_one_step_names_a_step_that_fits() {
    let folder = folder_with("table.csv", csv().as_bytes());
    let path = folder.path();
    let (mut refused, mut fits) = (Duration::ZERO, Duration::ZERO);
    for (settings, epsilon) in [
        ("barker", "1e-4"),
        ("barker", "7e-3"),
        ("barker\"\nclip = { rms = 2.0 } # \"", "3e-3"),
        ("poisson-barker\"\nlambda_ratio = 0.5 # \"", "1e-3"),
        ("poisson-barker\"\nlambda = 10.0 # \"", "1e-2"),
        ("poisson-barker\"\nchi = 0.5 # \"", "0.2"),
    ] {
        let run = edit(&edit(RUN, "5.0", epsilon), "barker", settings);
        let says = "@epsilon; privacy.epsilon; too small; proposal step of ";
        assert_both_refuse(path, &edit(&run, "0.001", "1.4"), "", says);
        let start = Instant::now();
        let (_, message) = dpmc(path, "check run.toml");
        refused += start.elapsed();
        let step = message.split("proposal step of ").nth(1).unwrap();
        let step = step.split_whitespace().next().unwrap();
        std::fs::write(path.join("run.toml"), edit(&run, "0.001", step)).unwrap();
        let start = Instant::now();
        let (code, message) = dpmc(path, "check run.toml");
        fits += start.elapsed();
        assert_eq!(code, 0, "{settings}: step {step}: {message}");
    }
    // The search for a step takes milliseconds, not a budget's bisection a trial.
    assert!(refused < 20 * fits, "{refused:?} against {fits:?}");
    // The cost of a penalty step does not depend on its size.
    let run = edit(RUN, "\"barker\"", "\"dp-penalty\"\ntau = 1.0");
    assert_both_refuse(path, &run, "--epsilon 0.01", "too small; tau");
    let (_, message) = dpmc(path, "check run.toml --epsilon 0.01");
    assert!(!message.contains("proposal step"), "{message}");
}

#[test]
fn bad_output_and_ledgers_are_refused_and_left_alone() {
    let folder = folder_with("table.csv", csv().as_bytes());
    let path = folder.path();
    let write = |file: &str, text: &str| std::fs::write(path.join(file), text).unwrap();
    let short: Vec<String> = csv().lines().take(30).map(String::from).collect();
    write("run.toml", RUN);
    write("other.toml", &edit(RUN, "people", "others"));
    write("short.csv", &short.join("\n"));
    write("damaged.json", "{}");
    std::fs::create_dir(path.join("taken")).unwrap();
    write("taken/note", "mine");
    let (code, message) = dpmc(path, "sample run.toml --out first --ledger l.json");
    assert_eq!(code, 0, "the run that the cases spoil works: {message}");
    let ledger = std::fs::read(path.join("l.json")).unwrap();
    write("long.toml", &edit(RUN, "0.001", "1e-9"));
    let long = "sample long.toml --ledger held.json --iterations 1000000000";
    let mut long = command(path, long).spawn().unwrap();
    for _ in 0..2000 {
        if !path.join("held.json").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    for [arguments, code, says] in cases(ATTEMPTS) {
        assert_refused(path, &arguments, code.parse().unwrap(), &says);
        assert!(!path.join("a").exists(), "{arguments}: leaves output");
    }
    long.kill().unwrap();
    long.wait().unwrap();
    assert_eq!(std::fs::read(path.join("l.json")).unwrap(), ledger);
    let table = std::fs::read_to_string(path.join("table.csv"));
    assert_eq!(table.unwrap(), csv());
    assert_eq!(std::fs::read_dir(path.join("taken")).unwrap().count(), 1);
}
