#!/usr/bin/env python3
"""Rows with weights, law by law: how far means of intercept, numbers and shared parameters lie from
those of the same weighted posterior without privacy, on 12,000 made-up rows in 20 groups.

The weights are log-normal, 1 in the mean, and cut off at 4; `successes` has 1 to 40 trials instead.
The groups are left out, or are columns, or levels that share a prior. Errors in posterior sds (root
mean square over parameters and repeats), the noise that the runs state, and the share of 90 %
intervals that hold the mean without privacy.

    python benches/weighted_laws.py [--dpmc target/release/dpmc] [--epsilon 3] [--repeats 6]

Needs numpy and pandas. Run in the repository's root.
"""

import argparse
import tempfile

import numpy as np
import pandas as pd
from wide_bounds import found

ROWS = 12_000
GROUPS = [f"g{k:02d}" for k in range(20)]
WEIGHTS = '[data.weights]\ncolumn = "w"\none = 1\nmost = 4'
FORMS = {
    "none": ("", ""),
    "columns": (" + g", ""),
    "levels": (" + (1 | g)", '[[model.hierarchy]]\nname = "g"\nscale = 1'),
}


def shared(name):
    return f"parameters = {{ {name} = {{ mean = 0, sd = 1 }} }}"


def chance(eta):
    return 1 / (1 + np.exp(-eta))


def times(rng, eta):
    event = 2 * np.exp(eta) * rng.exponential(size=ROWS) ** 0.8
    end = rng.uniform(0.2, 6, ROWS)
    seen = (event <= end).astype(int)
    return {"y": np.minimum(event, end).clip(0.01, 10).round(4), "seen": seen}


def successes(rng, eta):
    trials = (1 + rng.geometric(0.13, ROWS)).clip(1, 60)
    return {"y": rng.binomial(trials, chance(eta - 1.5)), "trials": trials}


def one(draw):
    return lambda rng, eta: {"y": draw(rng, eta)}


NUMBERS = "clamp = [-8, 10]"
NORMAL = one(lambda rng, eta: (eta + rng.normal(size=ROWS)).clip(-8, 10).round(3))
HEAVY = one(lambda rng, eta: (eta + rng.standard_t(4, ROWS)).clip(-20, 20).round(3))
COUNTS = one(lambda rng, eta: rng.poisson(np.exp(eta)).clip(0, 60))
MIXED = one(lambda rng, eta: rng.poisson(np.exp(eta) * rng.gamma(2, 0.5, ROWS)).clip(0, 100))
GAMMA = one(lambda rng, eta: (np.exp(eta) * rng.gamma(1.5, 1 / 1.5, ROWS)).clip(0.01, 100).round(4))
RATINGS = one(lambda rng, eta: np.searchsorted([-1, 0.5, 2], eta + rng.logistic(size=ROWS)))
YES = one(lambda rng, eta: (rng.random(ROWS) < chance(eta - 1.5)).astype(int))
RARE = one(lambda rng, eta: (rng.random(ROWS) < -np.expm1(-np.exp(eta - 1.5))).astype(int))


def shares(rng, eta):
    mean = chance(eta - 1)
    return {"y": rng.beta(5 * mean, 5 * (1 - mean)).clip(0.001, 0.999).round(4)}


LAWS = {
    "logistic": (YES, "positive = [1]", "logistic", ""),
    "cloglog": (RARE, "positive = [1]", "cloglog", ""),
    "linear": (NORMAL, NUMBERS, "linear", "variance = 1"),
    "gaussian": (NORMAL, NUMBERS, "gaussian", shared("log_sigma")),
    "student-t": (
        HEAVY,
        "clamp = [-20, 20]",
        "student-t",
        shared("log_sigma") + "\nconstants = { nu = 4 }",
    ),
    "poisson": (COUNTS, "count = 60", "poisson", ""),
    "negative-binomial": (MIXED, "count = 100", "negative-binomial", shared("log_shape")),
    "gamma": (GAMMA, "clamp = [0.01, 100]", "gamma", shared("log_shape")),
    "beta": (shares, "clamp = [0.001, 0.999]", "beta", shared("log_precision")),
    "weibull": (
        times,
        'clamp = [0.01, 10]\nevent = { column = "seen", in = ["1"] }',
        "weibull",
        shared("log_shape"),
    ),
    "ordinal": (RATINGS, 'levels = ["0", "1", "2", "3"]', "ordinal", ""),
    "successes": (successes, 'trials = { column = "trials", most = 40 }', "binomial", ""),
}


def table(draw):
    rng = np.random.default_rng(5)
    group = np.floor((8 ** rng.random(ROWS) - 1) / 7 * len(GROUPS)).astype(int)
    effects = rng.normal(0, 0.35, len(GROUPS))
    age = rng.uniform(18, 95, ROWS).round()
    stay = rng.exponential(3, ROWS).clip(0, 30).round(1)
    weights = np.exp(rng.normal(-0.32, 0.8, ROWS)).round(3)
    eta = 0.9 * (age - 56) / 38 + 0.08 * stay + effects[group]
    rows = {"age": age, "stay": stay, "w": weights, "g": [GROUPS[k] for k in group]}
    return pd.DataFrame({**rows, **draw(rng, eta)})


def run_file(law, form, privacy, seed):
    _, label, kind, more = law
    term, block = FORMS[form]
    groups = ", ".join(f'"{name}"' for name in GROUPS)
    return f"""[data]
file = "t.csv"
{"" if kind == "binomial" else WEIGHTS}
[data.label]
column = "y"
{label}
[columns]
age = {{ scale = [18, 95] }}
stay = {{ scale = [0, 30] }}
g = {{ levels = [{groups}], strict = true }}
[model]
kind = "{kind}"
{more}
formula = "~ age + stay{term}"
prior = {{ kind = "normal", sd = 5 }}
{block}
[sampler]
algorithm = "anchored-barker"
[run]
iterations = 2000
chains = 1
seed = {seed}
[privacy]
{privacy}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--epsilon", default="3")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--only", default="", help="names that hold this")
    options = parser.parse_args()
    print("| law | groups | error | stated | holds |")
    print("| --- | --- | --- | --- | --- |")
    privacy = f"epsilon = {options.epsilon}\ndelta = 1e-6"
    for name, law in LAWS.items():
        if options.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            table(law[0]).to_csv(f"{folder}/t.csv", index=False)
            for form in FORMS:
                text = run_file(law, form, "not_private = true", 1)
                mean, sd = found(options.dpmc, folder, text).T
                seeds = range(1, options.repeats + 1)
                texts = [run_file(law, form, privacy, seed) for seed in seeds]
                runs = np.array([found(options.dpmc, folder, text) for text in texts])
                gaps, sds = runs[:, :, 0] - mean, runs[:, :, 1]
                error = np.sqrt(np.mean((gaps / sd) ** 2))
                stated = np.sqrt(np.mean(np.maximum(sds**2 / sd**2 - 1, 0)))
                holds = np.mean(np.abs(gaps) < 1.645 * sds)
                print(f"| {name} | {form} | {error:.2f} | {stated:.2f} | {holds:.2f} |", flush=True)


if __name__ == "__main__":
    main()
