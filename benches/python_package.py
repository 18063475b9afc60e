"""What Python adds: a frame of a million rows beside polars, and the main job beside the command.

    cargo build --release && pip install ./python polars && python3 benches/python_package.py

Prints medians of pairs that were timed one after the other. The frame's time is that of
`dpmc.check`, which reads all rows into the engine; polars' is that of reading the frame's Parquet
file. Processor time is that of all threads: on a machine that others use as well it is the steadier
of the two. DPMC names another build of the command.
"""

import os
import statistics
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

os.environ["DPMC_RECORDS"] = "off"

import numpy
import polars

import dpmc

ROWS, COLUMNS, PAIRS = 1_000_000, 11, 15
ROOT = Path(__file__).parent.parent
COMMAND = Path(os.environ.get("DPMC", ROOT / "target/release/dpmc"))


def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu


def pairs(ours, theirs):
    ours(), theirs()
    found = [(timed(ours), timed(theirs)) for _ in range(PAIRS)]
    for k, what in enumerate(["wall", "processor"]):
        a, b = ([pair[side][k] for pair in found] for side in (0, 1))
        ratio = statistics.median(x / y for x, y in zip(a, b) if y > 0)
        yield what, statistics.median(a), statistics.median(b), ratio


def frame(folder):
    random = numpy.random.default_rng(1)
    names = [f"c{j}" for j in range(COLUMNS)]
    table = polars.DataFrame({name: random.normal(size=ROWS).round(6) for name in names})
    table = table.with_columns(y=polars.Series((random.random(ROWS) < 0.5).astype(int)))
    table.write_parquet(folder / "t.parquet")
    run = {
        "data": {
            "name": "t",
            "label": {"column": "y"},
            "features": [{"columns": names, "scale": [-3, 3]}],
        },
        "model": {"kind": "logistic"},
        "sampler": {"algorithm": "mh"},
        "run": {"engine": "cpu"},
        "privacy": {"not_private": True},
    }
    ours = lambda: dpmc.check(run, data=table)
    for what, a, b, ratio in pairs(ours, lambda: polars.read_parquet(folder / "t.parquet")):
        print(f"frame, {what} s: dpmc {a:.3f}, polars {b:.3f}, ratio {ratio:.2f}")


def main_job(folder):
    run = ROOT / "examples/adult_anchored.toml"
    made = iter(range(10**6))

    def by_python():
        dpmc.sample(run, engine="cpu", out=folder / f"p{next(made)}").summary()

    def by_command():
        out = folder / f"c{next(made)}"
        command = [COMMAND, "sample", run, "--engine", "cpu", "--out", out]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    for what, a, b, _ in pairs(by_python, by_command):
        # A child's processor time is not this process's.
        if what == "wall":
            print(f"main job, {what} s: Python {a:.3f}, command {b:.3f}, difference {a - b:.3f}")


with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    warnings.simplefilter("ignore")
    frame(Path(folder))
    main_job(Path(folder))
