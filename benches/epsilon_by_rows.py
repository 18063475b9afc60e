"""Private inference gets cheaper with N: the ε that buys half a posterior sd, and what it then buys.

    cargo build --release && pip install numpy pyarrow matplotlib
    python3 benches/epsilon_by_rows.py --most 1e8 --plot docs/rows.svg

A made-up logistic regression of 20 coefficients at N = 1e4, 1e5, … rows, one Parquet file each, in
a folder that is removed. For each N `dpmc check` forecasts the ε (δ = 1e-6) at which released means
should lie half a posterior standard deviation from those without privacy. Runs at that ε, with
nothing set of the sampler, say how far they really lie: root mean square over coefficients, mean
and range of the runs. Beside it the seconds of a run by the clock, the reading of the file among
them, and the most memory that it held. 1e8 rows take 8 GB of disk and 6 GB of memory. DPMC names
another build of the command.
"""

import argparse
import json
import math
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy
import pyarrow
import pyarrow.parquet

ROOT = Path(__file__).parent.parent
COMMAND = os.environ.get("DPMC", str(ROOT / "target/release/dpmc"))
COLUMNS, BLOCK = 19, 1_000_000
RUN = """
[data]
file = "t.parquet"
label = {{ column = "y" }}
[[data.features]]
intercept = true
[[data.features]]
columns = [{names}]
scale = [-1, 1]
[model]
kind = "logistic"
prior = {{ kind = "normal", sd = 5.0 }}
[sampler]
algorithm = "anchored-barker"
[run]
engine = "cpu"
[privacy]
epsilon = {epsilon}
delta = 1e-6
"""


def write(path, rows):
    """Uniform columns, and labels that follow them."""
    random = numpy.random.default_rng(rows)
    slopes = numpy.linspace(-1.0, 1.0, COLUMNS)
    names = [f"x{j}" for j in range(COLUMNS)]
    schema = pyarrow.schema([(n, pyarrow.float32()) for n in names] + [("y", pyarrow.int8())])
    with pyarrow.parquet.ParquetWriter(path, schema, compression="none") as file:
        for first in range(0, rows, BLOCK):
            count = min(BLOCK, rows - first)
            x = random.random((COLUMNS, count), dtype=numpy.float32) * 2 - 1
            eta = slopes @ x - 0.5
            y = (random.random(count) < 1 / (1 + numpy.exp(-eta))).astype(numpy.int8)
            columns = [pyarrow.array(c) for c in [*x, y]]
            file.write_table(pyarrow.table(columns, schema=schema))


def run_file(folder, epsilon):
    names = ", ".join(f'"x{j}"' for j in range(COLUMNS))
    path = folder / "run.toml"
    path.write_text(RUN.format(names=names, epsilon=repr(float(epsilon))))
    return path


def asked(*words):
    done = subprocess.run([COMMAND, *map(str, words)], check=True, stdout=subprocess.PIPE)
    return done.stdout


def sampled(run, out, *words):
    """The run's summary, its seconds, and the most memory that it held, GB."""
    start = time.perf_counter()
    child = subprocess.Popen(
        [COMMAND, "sample", str(run), "--out", str(out), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    assert status == 0, f"dpmc sample ended with {status}"
    summary = json.loads(asked("summary", out, "--json"))
    return summary["parameters"], seconds, used.ru_maxrss / 1e6


def forecast(folder):
    """The ε for half a posterior sd, looked for where it is forecast itself."""
    epsilon = 1.0
    for _ in range(4):
        found = json.loads(asked("check", run_file(folder, epsilon), "--json"))["forecast"]
        epsilon = found["epsilon_for_target"]
    return epsilon


def measured(rows, runs):
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write(folder / "t.parquet", rows)
        epsilon = forecast(folder)
        run = run_file(folder, epsilon)
        exact, _, _ = sampled(run, folder / "exact", "--not-private", "--seed", "1")
        errors, seconds, memory = [], [], []
        for k in range(runs):
            found, took, held = sampled(run, folder / f"r{k}")
            away = [((a["mean"] - b["mean"]) / b["sd"]) ** 2 for a, b in zip(found, exact)]
            errors.append(math.sqrt(sum(away) / len(away)))
            seconds.append(took)
            memory.append(held)
        return epsilon, errors, sorted(seconds)[len(seconds) // 2], max(memory)


def plot(lines, path):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
    rows, epsilons = [line[0] for line in lines], [line[1] for line in lines]
    axes.loglog(rows, epsilons, "o-", color="#0550ae")
    for n, e in zip(rows, epsilons):
        axes.annotate(f"{e:.2g}", (n, e), (6, 4), textcoords="offset points", fontsize=9)
    axes.set_xlabel("rows")
    axes.set_ylabel("ε (δ = 1e-6)")
    axes.set_title("ε for half a posterior sd, logistic regression, 20 coefficients", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None})


def main():
    asks = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asks.add_argument("--most", type=float, default=1e6, help="rows of the largest table")
    asks.add_argument("--runs", type=int, default=5)
    asks.add_argument("--plot", type=Path, help="SVG of ε against rows")
    given = asks.parse_args()
    os.environ["DPMC_RECORDS"] = "off"
    lines = []
    print("| rows | ε for half a sd | error, posterior sds | seconds a run | memory, GB |")
    print("| --- | --- | --- | --- | --- |")
    for power in range(4, round(math.log10(given.most)) + 1):
        rows = 10**power
        epsilon, errors, seconds, memory = measured(rows, given.runs)
        spread = f"{sum(errors) / len(errors):.2f} ({min(errors):.2f} to {max(errors):.2f})"
        print(f"| {rows:,} | {epsilon:.3g} | {spread} | {seconds:.2g} | {memory:.2g} |", flush=True)
        lines.append((rows, epsilon))
    if given.plot:
        plot(lines, given.plot)


if __name__ == "__main__":
    main()
