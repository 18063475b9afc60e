#!/usr/bin/env python3
"""What weights of rows cost: logistic regression of Adult with the census's own weights, and
successes in trials by row on a made-up table, each at δ = 1e-6.

Errors of the private means in posterior sds of the mode of the same weighted posterior without
privacy (root mean square over coefficients, mean of the repeats), with the share of 90 % intervals
for the noise that hold that mode, and what `dpmc check` had said of the noise.

    python benches/row_weights.py [--dpmc target/release/dpmc] [--epsilons 1,3,6] [--repeats 20]

Needs numpy. Run in the repository's root.
"""

import argparse
import csv
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import families
import numpy as np

ONE = 172_000.0  # 260 million people over a sample of 151,000, in hundredths.
RUN = """[data]
file = "{file}"
{label}
{weights}
{features}
[model]
kind = "{kind}"
prior = {{ kind = "normal", sd = 10.0 }}
[sampler]
algorithm = "anchored-barker"
[run]
iterations = 1000
seed = {seed}
[privacy]
epsilon = {epsilon}
delta = 1e-6
"""
INTERCEPT = "[[data.features]]\nintercept = true\n"


def feature(column, declared):
    return f'[[data.features]]\ncolumn = "{column}"\n{declared}\n'


def scaled(x, low, high):
    return 2 * (np.clip(np.asarray(x, float), low, high) - low) / (high - low) - 1


def adult(most):
    with gzip.open("examples/data/adult_train.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    column = lambda name: [row[name] for row in rows]
    numbers = [("age", 17, 90), ("educational-num", 1, 16), ("hours-per-week", 1, 99)]
    texts = [("gender", "Male"), ("marital-status", "Married-civ-spouse"), ("race", "White")]
    x = [np.ones(len(rows))]
    features = INTERCEPT
    for name, low, high in numbers:
        x.append(scaled(column(name), low, high))
        features += feature(name, f"scale = [{low}, {high}]")
    for name, level in texts:
        x.append(np.array([cell == level for cell in column(name)], float))
        features += feature(name, f'indicator = {{ in = ["{level}"] }}')
    y = np.array([cell == ">50K" for cell in column("income")], float)
    w = np.asarray(column("fnlwgt"), float)
    weights = ""
    if most:
        weights = f'[data.weights]\ncolumn = "fnlwgt"\nmost = {most}\none = {ONE}\n'
        w = np.minimum(w, most) / ONE
    else:
        w = np.ones(len(rows))
    label = '[data.label]\ncolumn = "income"\npositive = [">50K"]\n'
    file = pathlib.Path("examples/data/adult_train.csv.gz").resolve()
    return dict(file=file, label=label, weights=weights, features=features, kind="logistic"), (
        np.stack(x, 1),
        y,
        w,
    )


def trials(folder, rows, most, seed=1):
    """Skewed and collinear columns, a rare group, many rows of one trial and few of very many."""
    rng = np.random.default_rng(seed)
    dose = rng.exponential(1.0, rows).clip(0, 6)
    age = (40 + 12 * dose + rng.normal(0, 6, rows)).clip(20, 110)
    rare = (rng.random(rows) < 0.01).astype(float)
    n = np.minimum(1 + rng.geometric(0.15, rows), 400)
    x = np.stack([np.ones(rows), scaled(dose, 0, 6), scaled(age, 20, 110), rare], 1)
    hits = rng.binomial(n, 1 / (1 + np.exp(-(x @ [-1.5, 1.0, -0.8, 1.5]))))
    file = pathlib.Path(folder) / "trials.csv"
    with open(file, "w") as out:
        out.write("hits,shots,dose,age,rare\n")
        for h, s, d, a, r in zip(hits, n, dose, age, rare):
            out.write(f"{h},{s},{d},{a},{int(r)}\n")
    label = f'[data.label]\ncolumn = "hits"\ntrials = {{ column = "shots", most = {most} }}\n'
    features = INTERCEPT + feature("dose", "scale = [0, 6]") + feature("age", "scale = [20, 110]")
    features += feature("rare", "indicator = { above = 0.5 }")
    run = dict(file=file, label=label, weights="", features=features, kind="binomial")
    return run, (x, hits / n, np.minimum(n, most).astype(float))


def mode(x, y, w):
    """Mode and sds of the weighted posterior under the normal prior."""
    theta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-(x @ theta)))
        hessian = (x * (w * p * (1 - p))[:, None]).T @ x + np.eye(len(theta)) / 100
        theta = theta + np.linalg.solve(hessian, x.T @ (w * (y - p)) - theta / 100)
    return theta, np.sqrt(np.diag(np.linalg.inv(hessian)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--epsilons", default="1,3,6")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            "Adult, no weights": adult(None),
            "Adult, up to 400,000": adult(400_000),
            "Adult, up to 1,000,000": adult(1_000_000),
            "8,000 rows of trials, up to 10": trials(folder, 8000, 10),
        }
        cases["8,000 rows of trials, up to 40"] = trials(folder, 8000, 40)
        print("| table | ε | error | noise intervals that hold | forecast |")
        print("| --- | --- | --- | --- | --- |")
        for name, (run, (x, y, w)) in cases.items():
            theta, sds = mode(x, y, w)
            for epsilon in map(float, options.epsilons.split(",")):
                errors, held = [], []
                for seed in range(options.repeats):
                    path = pathlib.Path(folder) / "run.toml"
                    path.write_text(RUN.format(**run, epsilon=epsilon, seed=seed + 1))
                    out = pathlib.Path(folder) / "out"
                    ask = lambda *a: subprocess.run(
                        [options.dpmc, *map(str, a)], check=True, capture_output=True, text=True
                    ).stdout
                    if seed == 0:
                        told = json.loads(ask("check", path, "--json"))
                        forecast = told["forecast"]["noise_posterior_sds"]
                    said = ask("sample", path, "--out", out).splitlines()
                    shutil.rmtree(out)
                    rows = [families.numbers(line) for line in said]
                    means = np.array([r[0] for r in rows if len(r) == 8])
                    low, high = np.array([r[1:3] for r in rows if len(r) == 5]).T
                    errors.append(np.sqrt(np.mean(((means - theta) / sds) ** 2)))
                    held.append(np.mean((low <= theta) & (theta <= high)))
                error, holds = np.mean(errors), np.mean(held)
                print(f"| {name} | {epsilon:g} | {error:.2f} | {holds:.2f} | {forecast:.2f} |")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
