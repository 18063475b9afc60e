#!/usr/bin/env python3
"""Labels that are a small part of their declared bounds: errors of anchored runs.

Made-up tables of 9,000 rows in 25 groups, of which the most frequent has twelve times the rows of
the least, with three numbers beside them, one of them skewed. Labels are drawn from several laws
and declared up to 4 to 900 times their mean. Groups are columns of their own, or share a prior
("levels"). Run files set nothing of the sampler. Printed are errors against the run without privacy
and the noise that is stated, both in its posterior sds (root mean square over intercept, numbers
and shared parameters), and the share of 90 % intervals that hold its means.

    python benches/wide_bounds.py [--dpmc target/release/dpmc] [--epsilons 1,3] [--repeats 12]

Needs numpy and pandas.
"""

import argparse
import json
import subprocess
import tempfile

import numpy as np
import pandas as pd

ROWS = 9_000
GROUPS = [f"g{k}" for k in range(25)]
SHAPE = "parameters = { log_shape = { mean = 0, sd = 1 } }"
SIGMA = "parameters = { log_sigma = { mean = MEAN, sd = 2 } }"


def charges(rng, eta, mean=900):
    return {"y": (mean * rng.gamma(1.5, np.exp(eta) / 1.5)).clip(0.01).round(3)}


def times(rng, eta):
    event = 2 * np.exp(eta) * rng.weibull(0.8, ROWS)
    end = rng.uniform(0.1, 9, ROWS)
    return {"y": np.minimum(event, end).clip(0.01).round(4), "seen": (event <= end).astype(int)}


def shares(rng, eta):
    mean = 1 / (1 + np.exp(2.5 - eta))
    return {"y": rng.beta(12 * mean, 12 * (1 - mean)).clip(0.001, 0.999).round(5)}


def visits(rng, eta, mean=12, most=400):
    rates = mean * np.exp(eta) * rng.gamma(1.2, 1 / 1.2, ROWS)
    return {"y": rng.poisson(rates).clip(0, most)}


def wages(rng, eta):
    return {"y": (30_000 + 9_000 * eta + 4_000 * rng.normal(size=ROWS)).clip(0).round()}


def incomes(rng, eta):
    return {"y": np.exp(6 + eta + 0.6 * rng.normal(size=ROWS)).clip(0.1).round(3)}


EVENT = 'event = { column = "seen", in = ["1"] }'
# Name: labels, their declaration, the model, the prior's sd of coefficients.
LAWS = {
    "gamma, to 1,000,000": (charges, "clamp = [0.01, 1e6]", f'kind = "gamma"\n{SHAPE}', 5),
    "gamma, to 50": (
        lambda rng, eta: charges(rng, eta, 2),
        "clamp = [0.01, 50]",
        f'kind = "gamma"\n{SHAPE}',
        5,
    ),
    "an expression, to 10,000,000": (
        lambda rng, eta: charges(rng, eta, 5_000),
        "clamp = [0.01, 1e7]",
        'kind = "declared"\nlikelihood = "1.5 * (-eta - y * exp(-eta))"',
        5,
    ),
    "weibull, to 300": (times, f"clamp = [0.01, 300]\n{EVENT}", f'kind = "weibull"\n{SHAPE}', 5),
    "log-normal, to 100,000": (
        incomes,
        "clamp = [0.1, 1e5]",
        'kind = "log-normal"\n' + SIGMA.replace("MEAN", "0"),
        5,
    ),
    "beta": (
        shares,
        "clamp = [0.001, 0.999]",
        'kind = "beta"\nparameters = { log_precision = { mean = 1, sd = 1 } }',
        5,
    ),
    "gaussian, to 1,000,000": (
        wages,
        "clamp = [0, 1e6]",
        'kind = "gaussian"\n' + SIGMA.replace("MEAN", "8"),
        100_000,
    ),
    "negative-binomial, to 400": (
        visits,
        "count = 400",
        f'kind = "negative-binomial"\n{SHAPE}',
        5,
    ),
}


def table(draw):
    rng = np.random.default_rng(51)
    often = np.geomspace(1, 12, len(GROUPS))
    group = rng.choice(len(GROUPS), ROWS, p=often / often.sum())
    effects = rng.normal(0, 0.35, len(GROUPS))
    skewed = rng.gamma(2, 1.5, ROWS).clip(0, 20).round(2)
    even = rng.uniform(-1, 1, ROWS).round(3)
    flag = (rng.random(ROWS) < 0.12).astype(int)
    eta = 0.06 * skewed - 0.5 * even + 0.4 * flag + effects[group]
    rows = {"skewed": skewed, "even": even, "flag": flag, "g": [GROUPS[k] for k in group]}
    return pd.DataFrame({**rows, **draw(rng, eta)})


def run_file(law, levels, privacy, seed):
    _, label, model, sd = law
    groups = ", ".join(f'"{name}"' for name in GROUPS)
    term, block = "g", ""
    if levels:
        scale = 10_000 if sd > 1_000 else 1
        term, block = "(1 | g)", f'[[model.hierarchy]]\nname = "g"\nscale = {scale}'
    return f"""[data]
file = "t.csv"
[data.label]
column = "y"
{label}
[columns]
skewed = {{ scale = [0, 20] }}
even = {{ scale = [-1, 1] }}
flag = {{ clamp = [0, 1] }}
g = {{ levels = [{groups}], strict = true }}
[model]
{model}
formula = "y ~ skewed + even + flag + {term}"
prior = {{ kind = "normal", sd = {sd} }}
{block}
[sampler]
algorithm = "anchored-barker"
[run]
iterations = 4000
chains = 2
seed = {seed}
[privacy]
{privacy}
"""


def parameters(dpmc, folder, text):
    """The summary's parameters, of a run of this run file."""
    with open(f"{folder}/run.toml", "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["rm", "-rf", f"{folder}/out"], check=True)
    command = [dpmc, "sample", f"{folder}/run.toml", "--out", f"{folder}/out", "--quiet"]
    subprocess.run(command, capture_output=True, check=True)
    command = [dpmc, "summary", f"{folder}/out", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["parameters"]


def found(dpmc, folder, text):
    """Mean and sd of intercept, numbers and shared parameters."""
    every = parameters(dpmc, folder, text)
    asked = [p for p in every if "=" not in p["name"] and not p["name"].startswith("sd(")]
    return np.array([[p["mean"], p["sd"]] for p in asked])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--epsilons", default="1,3")
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--only", default="", help="names that hold this")
    options = parser.parse_args()
    print("| law and bounds | groups | ε | error | stated | holds |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, law in LAWS.items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            table(law[0]).to_csv(f"{folder}/t.csv", index=False)
            for levels in [False, True]:
                text = run_file(law, levels, "not_private = true", 1)
                mean, sd = found(options.dpmc, folder, text).T
                for epsilon in options.epsilons.split(","):
                    privacy = f"epsilon = {epsilon}\ndelta = 1e-6"
                    runs = np.array(
                        [
                            found(options.dpmc, folder, run_file(law, levels, privacy, seed))
                            for seed in range(1, options.repeats + 1)
                        ]
                    )
                    gaps, sds = runs[:, :, 0] - mean, runs[:, :, 1]
                    error = np.sqrt(np.mean((gaps / sd) ** 2))
                    stated = np.sqrt(np.mean(np.maximum(sds**2 / sd**2 - 1, 0)))
                    holds = np.mean(np.abs(gaps) < 1.645 * sds)
                    kind = "levels" if levels else "columns"
                    numbers = f"{error:.2f} | {stated:.2f} | {holds:.2f}"
                    print(f"| {name} | {kind} | {epsilon} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
