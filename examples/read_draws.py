#!/usr/bin/env python3
"""Reads a run directory of dpmc and prints a table of means. Needs pyarrow.

    python3 examples/read_draws.py people-run

The directory may still be written, or be left by a run that was killed: what is in it is
whole, and its certificate covers it. For ArviZ, reshape each column to chain x draw.
"""

import json
import os
import pathlib
import sys

import pyarrow.compute as pc
import pyarrow.parquet as pq


def main():
    run = pathlib.Path(sys.argv[1])
    draws = pq.read_table(run / "draws.parquet")  # all parts, in order of their names
    certificate = json.loads((run / "certificate.json").read_text())

    chains = pc.count_distinct(draws["chain"]).as_py()
    print(f"{draws.num_rows} draws of {chains} chain(s), status: {certificate['status']}")
    if certificate["private"]:
        print(f"private: ({certificate['epsilon']}, {certificate['delta']})-DP")
    else:
        print("NOT private")
    for name in draws.column_names:
        if name not in ("chain", "iteration"):
            mean, sd = pc.mean(draws[name]).as_py(), pc.stddev(draws[name], ddof=1).as_py()
            print(f"{name:24} mean {mean:12.6f}  sd {sd:12.6f}")
    sys.stdout.flush()


try:
    main()
except BrokenPipeError:  # whoever read it (`| head -1`) has seen enough
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
