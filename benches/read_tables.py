"""Seconds to read 1e6 rows × 50 columns: `dpmc check` (the whole command) beside polars, paired.

    cargo build --release && pip install polars && python3 benches/read_tables.py [FOLDER]
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import polars

ROWS, COLUMNS, PAIRS = 1_000_000, 50, 7
DPMC = Path(__file__).parent.parent / "target/release/dpmc"
RUN = """[data]
file = "FILE"
[data.label]
column = "y"
[[data.features]]
columns = NAMES
scale = [-3, 3]
[model]
kind = "logistic"
[sampler]
algorithm = "mh"
[privacy]
not_private = true
"""


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    random = numpy.random.default_rng(1)
    names = [f"c{j}" for j in range(COLUMNS)]
    table = polars.DataFrame({name: random.normal(size=ROWS).round(6) for name in names})
    labels = polars.Series((random.random(ROWS) < 0.5).astype(int))
    table = table.with_columns(y=labels)
    table.write_csv(folder / "t.csv")
    table.write_parquet(folder / "t.parquet")
    for file, peer in [("t.parquet", polars.read_parquet), ("t.csv", polars.read_csv)]:
        run = folder / f"{file}.toml"
        run.write_text(RUN.replace("FILE", file).replace("NAMES", str(names).replace("'", '"')))
        command = [DPMC, "check", run]
        ours = lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        theirs = lambda: peer(folder / file)
        ours(), theirs()
        pairs = [(seconds(ours), seconds(theirs)) for _ in range(PAIRS)]
        median = [statistics.median(side) for side in zip(*pairs)]
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"{file}: dpmc {median[0]:.2f} s, polars {median[1]:.2f} s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
