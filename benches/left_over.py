#!/usr/bin/env python3
"""What few rows leave over, law by law: how far means lie from those of the same posterior without
privacy, on 12,000 made-up rows, where columns nearly add up to another one.

`spline`: one row in twenty is younger than the first knot; `by level`: such a spline for each of
two levels; `pooled`: beside levels that share a prior; `cubic`: a polynomial of age; `years`: two
decades, declared as two centuries; `slopes`: of age by ward, the first ward with one row in fifty;
`cells`: of ward and job; `flag`: one that 985 rows in 1000 have. Errors in posterior sds (root mean
square over parameters that are no level's own, and repeats), the noise that the runs state, and the
share of 90 % intervals that hold the mean without privacy.

    python benches/left_over.py [--dpmc target/release/dpmc] [--epsilon 3] [--repeats 6]

Needs numpy and pandas. Run in the repository's root.
"""

import argparse
import tempfile

import numpy as np
import pandas as pd
from weighted_laws import LAWS, ROWS
from wide_bounds import parameters

WARDS, JOBS = ["w0", "w1", "w2", "w3"], ["j0", "j1", "j2"]
GROUPS = [f"g{k:02d}" for k in range(20)]
SPLINE = "ns(age, knots = [20, 40, 60, 80])"
POOLED = '[[model.hierarchy]]\nname = "g"\nscale = 1'
FORMS = {
    "spline": (f"{SPLINE} + job", ""),
    "by level": ("ns(age, knots = [30, 60]) * job", ""),
    "pooled": (f"{SPLINE} + (1 | g)", POOLED),
    "cubic": ("poly(age, 3) + ward", ""),
    "years": ("year + age + job", ""),
    "slopes": ("age * ward", ""),
    "cells": ("ward * job", ""),
    "flag": ("insured + age", ""),
}


def table(draw):
    rng = np.random.default_rng(11)
    age = rng.gamma(6, 7, ROWS).clip(0, 110).round(1)
    year = rng.integers(2005, 2025, ROWS)
    ward = rng.choice(4, ROWS, p=[0.02, 0.4, 0.3, 0.28])
    job = rng.choice(3, ROWS, p=[0.6, 0.25, 0.15])
    insured = (rng.random(ROWS) < 0.985).astype(int)
    group = rng.choice(len(GROUPS), ROWS)
    slope = np.array([0.5, 0.1, -0.2, 0.3])[ward]
    eta = 0.02 * (age - 42) - 0.0003 * (age - 42) ** 2 + slope * (age - 42) / 38
    eta += 0.03 * (year - 2015) + 0.4 * insured + np.array([0, 0.3, -0.3])[job]
    eta += rng.normal(0, 0.3, len(GROUPS))[group]
    columns = {
        "age": age,
        "year": year,
        "ward": [WARDS[k] for k in ward],
        "job": [JOBS[k] for k in job],
        "insured": insured,
        "g": [GROUPS[k] for k in group],
    }
    return pd.DataFrame({**columns, **draw(rng, eta)})


def levels(names):
    return "levels = [" + ", ".join(f'"{name}"' for name in names) + "], strict = true"


def run_file(law, form, privacy, seed):
    _, label, kind, more = law
    terms, block = FORMS[form]
    return f"""[data]
file = "t.csv"
[data.label]
column = "y"
{label}
[columns]
age = {{ scale = [0, 110] }}
year = {{ scale = [1900, 2100] }}
ward = {{ {levels(WARDS)} }}
job = {{ {levels(JOBS)} }}
insured = {{ indicator = {{ above = 0.5 }} }}
g = {{ {levels(GROUPS)} }}
[model]
kind = "{kind}"
{more}
formula = "~ {terms}"
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


def found(dpmc, folder, text):
    """Mean and sd of each parameter but the pooled levels' own."""
    every = parameters(dpmc, folder, text)
    kept = [p for p in every if not p["name"].startswith(("g=", "sd("))]
    return np.array([(p["mean"], p["sd"]) for p in kept])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--epsilon", default="3")
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--law", default="", help="names that hold this")
    parser.add_argument("--form", default="", help="names that hold this")
    options = parser.parse_args()
    print("| law | form | error | stated | holds |")
    print("| --- | --- | --- | --- | --- |")
    privacy = f"epsilon = {options.epsilon}\ndelta = 1e-6"
    for name, law in LAWS.items():
        if options.law not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            table(law[0]).to_csv(f"{folder}/t.csv", index=False)
            for form in (form for form in FORMS if options.form in form):
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
