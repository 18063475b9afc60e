"""Tables larger than memory: seconds and memory of an anchored regression from 1e6 to 1e8 rows on disk.

    cargo build --release && pip install numpy pyarrow
    python3 benches/rows_on_disk.py --most 1e8 --memory 64M

The made-up logistic regression of 20 coefficients of `epsilon_by_rows.py`, at N = 1e6, 3e6, 1e7, …
rows, one Parquet file each. Every table's rows take more than `--memory`, so that they lie on disk:
44 bytes a row in a folder that is removed at the end, beside the Parquet file with its 71. For each
N:

    read    `dpmc check`: from the Parquet file to rows on disk
    run     `dpmc sample`: the whole anchored run, from those
    pass    one pass of `mh` over all rows
    memory  the most that the run held beside pages of files, which the system takes back at need

The system's cache is emptied before each where this program may do that (root). The line a + b·N of
least relative squares is put through each column, and the column compared with it. With `--ranks R`
(a command that was built with MPI) the largest table of up to 1e7 rows is also run on R ranks.
"""

import argparse
import json
import math
import os
import subprocess
import tempfile
import time
from pathlib import Path

from epsilon_by_rows import COMMAND, run_file, write

MH = """algorithm = "mh"
step = 0.0005
adapt = "none"
[run]
warmup = 0
chains = 1
"""


def emptied():
    """Empties the system's cache of files, if that is allowed."""
    try:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        pass


def timed(*words, ranks=1):
    """Seconds by the clock, and the most memory that is no file's, GB."""
    emptied()
    words = [COMMAND, *map(str, words)]
    if ranks > 1:
        words = ["mpirun", "--oversubscribe", "--bind-to", "core", "-n", str(ranks), *words]
    settings = dict(os.environ, DPMC_RECORDS="off", OMPI_ALLOW_RUN_AS_ROOT="1")
    settings["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    start = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, env=settings)
    most = 0
    while child.poll() is None:
        try:
            lines = Path(f"/proc/{child.pid}/status").read_text().splitlines()
        except OSError:
            continue
        held = [line.split()[1] for line in lines if line.startswith("RssAnon")]
        most = max([most, *map(int, held)])
        time.sleep(0.02)
    assert child.returncode == 0, words
    return time.perf_counter() - start, most * 1024 / 1e9


def measured(rows, epsilon, memory, kept):
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        folder = Path(folder)
        write(folder / "t.parquet", rows)
        run = run_file(folder, epsilon)
        room = ["--memory", memory, "--cache", folder / "kept"]
        read, held = timed("check", run, *room)
        ran, most = timed("sample", run, "--out", folder / "run", "--quiet", *room)
        text = run.read_text().split("[sampler]")
        mh = folder / "mh.toml"
        mh.write_text(text[0] + "[sampler]\n" + MH + '[privacy]\nnot_private = true\n')
        passes = [
            timed("sample", mh, "--iterations", n, "--out", folder / f"m{n}", "--quiet", *room)[0]
            for n in (4, 24)
        ]
        return read, ran, (passes[1] - passes[0]) / 20, max(held, most)


def ranked(rows, epsilon, ranks, kept):
    """Seconds of reading and running in one process and on ranks, all in memory."""
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        folder = Path(folder)
        write(folder / "t.parquet", rows)
        run = run_file(folder, epsilon)
        out = folder / "run"
        return [
            timed("sample", run, "--out", f"{out}{n}", "--quiet", ranks=n)[0] for n in (1, ranks)
        ]


def line_through(points):
    """a and b for which the squares of (a + b·n)/t − 1 add up to least."""
    rows = [(1 / t, n / t) for n, t in points]
    aa, ab, bb = [sum(x[i] * x[j] for x in rows) for i, j in ((0, 0), (0, 1), (1, 1))]
    pa, pb = [sum(x[i] for x in rows) for i in (0, 1)]
    whole = aa * bb - ab * ab
    return (pa * bb - pb * ab) / whole, (pb * aa - pa * ab) / whole


def main():
    asks = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asks.add_argument("--most", type=float, default=1e7, help="rows of the largest table")
    asks.add_argument("--memory", default="16M", help="what rows may take")
    asks.add_argument("--folder", help="where tables are written (a temporary folder)")
    asks.add_argument("--ranks", type=int, default=0, help="also on so many ranks")
    asks.add_argument("--json", help="write the figures there")
    given = asks.parse_args()
    counts = [int(m * 10**k) for k in range(6, 11) for m in (1, 3)]
    counts = [n for n in counts if n <= given.most]
    lines = []
    print(f"{'rows':>10} {'read s':>8} {'run s':>8} {'pass s':>8} {'memory GB':>10}")
    for n in counts:
        # About what half a posterior sd of error takes (epsilon_by_rows.py).
        found = measured(n, 0.453 * math.sqrt(1e6 / n), given.memory, given.folder)
        lines.append((n, *found))
        print(f"{n:10} {found[0]:8.2f} {found[1]:8.2f} {found[2]:8.4f} {found[3]:10.3f}", flush=True)
    for k, name in enumerate(["read", "run", "pass"], 1):
        a, b = line_through([(line[0], line[k]) for line in lines])
        (n0, t0) = lines[0][0], lines[0][k]
        off = [f"{line[k] / (a + b * line[0]):.2f}" for line in lines]
        slope = math.log(lines[-1][k] / t0) / math.log(lines[-1][0] / n0)
        print(f"{name}: {a:.3f} s + {1e9 * b:.1f} ns a row; measured/line: {' '.join(off)}")
        print(f"{name}: slope of log seconds in log rows {slope:.2f}")
    if given.ranks:
        n = min(10_000_000, counts[-1])
        one, many = ranked(n, 0.453 * math.sqrt(1e6 / n), given.ranks, given.folder)
        print(f"{n} rows: {one:.2f} s in one process, {many:.2f} s on {given.ranks} ranks")
    if given.json:
        Path(given.json).write_text(json.dumps(lines))


if __name__ == "__main__":
    main()
