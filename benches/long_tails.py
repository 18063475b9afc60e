#!/usr/bin/env python3
"""A number with a long tail beside tens of levels: errors of anchored runs.

Made-up tables of 9,000 rows in 25 groups, of which the most frequent has twelve times the rows of
the least, with two numbers and a flag beside them. One number is log-normal with median 1 and must
be declared up to 30, so that it says nearly what the intercept says. Groups are columns of their
own, or share a prior ("levels"). Run files set nothing of the sampler. Printed are errors against
the run without privacy and the noise that is stated, both in its posterior sds (root mean square
over intercept, numbers, flag and shared parameters), and the share of 90 % intervals that hold its
means.

    python benches/long_tails.py [--dpmc target/release/dpmc] [--epsilons 1,3] [--repeats 12]

Needs numpy and pandas.
"""

import argparse
import tempfile

import numpy as np
import pandas as pd
from wide_bounds import GROUPS, ROWS, SHAPE, found

SIGMA = "parameters = { log_sigma = { mean = 0, sd = 1 } }"
EVENT = 'event = { column = "seen", in = ["1"] }'


def seen(rng, event):
    end = rng.uniform(0.1, 9, ROWS)
    return {"y": np.minimum(event, end).clip(0.01).round(4), "seen": (event <= end).astype(int)}


def chance(eta):
    return 1 / (1 + np.exp(1.5 - eta))


def shares(rng, eta):
    mean = chance(eta)
    return {"y": rng.beta(9 * mean, 9 * (1 - mean)).clip(0.001, 0.999).round(5)}


def numbers(rng, eta):
    return {"y": (eta + 0.8 * rng.normal(size=ROWS)).clip(-3, 10).round(4)}


def visits(rng, eta):
    return {"y": rng.poisson(3 * np.exp(eta) * rng.gamma(1.2, 1 / 1.2, ROWS)).clip(0, 200)}


def ratings(rng, eta):
    return {"y": np.digitize(eta + rng.logistic(size=ROWS), [-1, 0.3, 1.5]) + 1}


# Name: labels of a row's predictor, their declaration, the model.
LAWS = {
    "logistic": (
        lambda rng, eta: {"y": (rng.random(ROWS) < chance(eta)).astype(int)},
        "",
        'kind = "logistic"',
    ),
    "linear": (numbers, "clamp = [-3, 10]", 'kind = "linear"\nvariance = 0.64'),
    "poisson, to 200": (
        lambda rng, eta: {"y": rng.poisson(2 * np.exp(eta)).clip(0, 200)},
        "count = 200",
        'kind = "poisson"',
    ),
    "gaussian": (numbers, "clamp = [-3, 10]", f'kind = "gaussian"\n{SIGMA}'),
    "gamma": (
        lambda rng, eta: {"y": rng.gamma(1.5, np.exp(eta) / 1.5).clip(0.01, 100).round(4)},
        "clamp = [0.01, 100]",
        f'kind = "gamma"\n{SHAPE}',
    ),
    "negative-binomial, to 200": (visits, "count = 200", f'kind = "negative-binomial"\n{SHAPE}'),
    "beta": (
        shares,
        "clamp = [0.001, 0.999]",
        'kind = "beta"\nparameters = { log_precision = { mean = 1, sd = 1 } }',
    ),
    "weibull, to 300": (
        lambda rng, eta: seen(rng, 2 * np.exp(eta) * rng.weibull(0.8, ROWS)),
        f"clamp = [0.01, 300]\n{EVENT}",
        f'kind = "weibull"\n{SHAPE}',
    ),
    "log-normal-survival, to 300": (
        lambda rng, eta: seen(rng, 2 * np.exp(eta + 0.8 * rng.normal(size=ROWS))),
        f"clamp = [0.01, 300]\n{EVENT}",
        f'kind = "log-normal-survival"\n{SIGMA}',
    ),
    "ordinal": (ratings, 'levels = ["1", "2", "3", "4"]', 'kind = "ordinal"'),
}


def table(draw):
    rng = np.random.default_rng(21)
    often = np.geomspace(1, 12, len(GROUPS))
    group = rng.choice(len(GROUPS), ROWS, p=often / often.sum())
    effects = rng.normal(0, 0.35, len(GROUPS))
    income = np.exp(rng.normal(size=ROWS)).clip(0, 30).round(3)
    even = rng.uniform(-1, 1, ROWS).round(3)
    flag = (rng.random(ROWS) < 0.12).astype(int)
    eta = 0.1 * income - 0.5 * even + 0.4 * flag + effects[group]
    rows = {"income": income, "even": even, "flag": flag, "g": [GROUPS[k] for k in group]}
    return pd.DataFrame({**rows, **draw(rng, eta)})


def run_file(law, levels, privacy, seed):
    _, label, model = law
    groups = ", ".join(f'"{name}"' for name in GROUPS)
    term, block = "g", ""
    if levels:
        term, block = "(1 | g)", '[[model.hierarchy]]\nname = "g"\nscale = 1'
    return f"""[data]
file = "t.csv"
[data.label]
column = "y"
{label}
[columns]
income = {{ scale = [0, 30] }}
even = {{ scale = [-1, 1] }}
flag = {{ clamp = [0, 1] }}
g = {{ levels = [{groups}], strict = true }}
[model]
{model}
formula = "y ~ income + even + flag + {term}"
prior = {{ kind = "normal", sd = 5 }}
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--epsilons", default="1,3")
    parser.add_argument("--repeats", type=int, default=12)
    parser.add_argument("--only", default="", help="names that hold this")
    options = parser.parse_args()
    print("| law | groups | ε | error | of income | stated | holds |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, law in LAWS.items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            table(law[0]).to_csv(f"{folder}/t.csv", index=False)
            for levels in [False, True]:
                text = run_file(law, levels, "not_private = true", 1)
                mean, sd = found(options.dpmc, folder, text).T
                income = 0 if name == "ordinal" else 1
                for epsilon in options.epsilons.split(","):
                    privacy = f"epsilon = {epsilon}\ndelta = 1e-6"
                    texts = [run_file(law, levels, privacy, seed) for seed in range(options.repeats)]
                    runs = np.array([found(options.dpmc, folder, text) for text in texts])
                    gaps, sds = runs[:, :, 0] - mean, runs[:, :, 1]
                    error = np.sqrt(np.mean((gaps / sd) ** 2))
                    own = np.sqrt(np.mean((gaps[:, income] / sd[income]) ** 2))
                    stated = np.sqrt(np.mean(np.maximum(sds**2 / sd**2 - 1, 0)))
                    holds = np.mean(np.abs(gaps) < 1.645 * sds)
                    kind = "levels" if levels else "columns"
                    cells = f"{error:.2f} | {own:.2f} | {stated:.2f} | {holds:.2f}"
                    print(f"| {name} | {kind} | {epsilon} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
