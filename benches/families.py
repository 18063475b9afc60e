#!/usr/bin/env python3
"""Errors of named likelihoods on public tables, beside an independent fit.

For every likelihood: the posterior's mode and sds by Newton's method on the densities of
scipy.stats, then private runs of `dpmc sample` whose run file sets nothing of the sampler. Printed
are errors of the released means in posterior sds (root mean square over coefficients, mean of the
repeats), beside them those of a reference that no run can be expected to reach, and the share of
90 % intervals for the noise that hold the mode. The reference spends the whole budget on one sum of
gradients, at the mode and in the posterior's own coordinates, both of which cost it nothing: rows
are clipped at the best of five norms.

    python benches/families.py --suite DIR [--dpmc target/release/dpmc] [--epsilons 1,3,6]

DIR holds RandHIE.csv.gz, CPS1988.csv.gz, HMDA.csv.gz, flchain.csv.gz, InstEval.csv.gz and
diamonds.csv.gz (R's data sets, as Rdatasets has them). Needs numpy, scipy and pandas.
"""

import argparse
import os
import re
import subprocess
import tempfile
import time

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

DELTA = 1e-6


def scaled(values, low, high):
    return 2 * (np.clip(values, low, high) - low) / (high - low) - 1


def feature(**keys):
    lines = [f"{k.rstrip('_')} = {v}" for k, v in keys.items()]
    return "\n".join(["[[data.features]]", *lines, ""])


def levels(names):
    return "[" + ", ".join(f'"{n}"' for n in names) + "]"


class Table:
    """Features of a table, once for a run file and once for the fit."""

    def __init__(self, suite, file):
        self.path = f"{suite}/{file}"
        self.rows = pd.read_csv(self.path)
        self.columns = [np.ones(len(self.rows))]
        self.features = feature(intercept="true")

    def scale(self, column, low, high):
        self.columns.append(scaled(self.rows[column], low, high))
        self.features += feature(column=f'"{column}"', scale=f"[{low}, {high}]")
        return self

    def clamp(self, column):
        self.columns.append(np.clip(self.rows[column], 0, 1))
        self.features += feature(column=f'"{column}"', clamp="[0, 1]")
        return self

    def level(self, column, name):
        self.columns.append((self.rows[column] == name) * 1.0)
        self.features += feature(column=f'"{column}"', indicator=f'{{ in = ["{name}"] }}')
        return self

    def one_hot(self, column, names):
        self.columns += [(self.rows[column] == n) * 1.0 for n in names[1:]]
        self.features += feature(
            column=f'"{column}"', one_hot=levels(names), reference=f'"{names[0]}"', strict="true"
        )
        return self

    def design(self):
        return np.column_stack(self.columns).astype(float)


def randhie(suite):
    table = Table(suite, "RandHIE.csv.gz").scale("logc", 0, 10).scale("linc", 0, 10)
    table.scale("disea", 0, 60)
    for column in ["idp", "physlm", "hlthg", "hlthf", "hlthp"]:
        table.clamp(column)
    return table


def cps(suite):
    table = Table(suite, "CPS1988.csv.gz").scale("education", 0, 18).scale("experience", -4, 63)
    return table.level("ethnicity", "afam").level("smsa", "yes").level("parttime", "yes")


def hmda(suite):
    table = Table(suite, "HMDA.csv.gz").scale("pirat", 0, 1).scale("lvrat", 0, 1.5)
    return table.scale("chist", 1, 6).level("afam", "yes").level("insurance", "yes")


WAGE = 'column = "wage"\nclamp = [20, 5000]'
DENY = 'column = "deny"\npositive = ["yes"]\nnegative = ["no"]'


def wage(rows):
    return np.clip(rows.wage, 20, 5000)


def deny(rows):
    return np.where(rows.deny == "yes", 1.0, -1.0)


def cloglog(y, eta):
    rate = np.exp(np.clip(eta, -50, 50))
    return np.where(y > 0, np.log(-np.expm1(-rate)), -rate)


def flchain(suite):
    table = Table(suite, "flchain.csv.gz").scale("age", 50, 101).scale("kappa", 0, 10)
    return table.scale("lambda", 0, 10).level("sex", "M")


def insteval(suite):
    table = Table(suite, "InstEval.csv.gz")
    table.columns, table.features = [], ""
    table.rows = table.rows.astype({"studage": str, "lectage": str, "service": str, "dept": str})
    for column, names in [
        ("studage", "2468"),
        ("lectage", "123456"),
        ("service", "01"),
        ("dept", ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "14", "15"]),
    ]:
        table.one_hot(column, list(names))
    return table


def diamonds(suite):
    table = Table(suite, "diamonds.csv.gz")
    table.columns, table.features = [], ""
    return table.scale("carat", 0, 5).scale("depth", 40, 80).scale("table", 40, 100)


CUTS = ["Fair", "Good", "Very Good", "Premium", "Ideal"]


def history(suite):
    table = Table(suite, "HMDA.csv.gz")
    table.columns, table.features = [], ""
    table.scale("pirat", 0, 1).scale("lvrat", 0, 1.5)
    return table.level("afam", "yes").level("insurance", "yes")


def written(columns):
    """A table of these columns, in a file that goes with it."""
    folder = tempfile.TemporaryDirectory()
    pd.DataFrame(columns).to_csv(f"{folder.name}/made_up.csv", index=False)
    table = Table(folder.name, "made_up.csv")
    table.folder = folder
    return table


CUTPOINTS = [-1.0, 0.5, 3.0, 5.0]
SHARES = [40, 30, 20, 5, 2, 1, 1, 0.5, 0.3]


def made_up(rows, seed, cuts, shares):
    """A table of ordered classes whose law holds: a level of each share of the rows (the first is
    the reference) and a skewed number."""

    def table(_):
        rng = np.random.default_rng(seed)
        level = rng.choice(len(shares), rows, p=np.array(shares) / np.sum(shares))
        wealth = np.clip(rng.lognormal(0, 1, rows), 0, 30)
        eta = 0.6 * rng.normal(size=len(shares))[level] + 0.2 * wealth
        y = 1 + np.searchsorted(cuts, eta + rng.logistic(size=rows))
        result = written({"level": level, "wealth": wealth, "y": y})
        result.rows = result.rows.astype({"level": str})
        result.columns, result.features = [], ""
        names = [str(k) for k in range(len(shares))]
        return result.one_hot("level", names).scale("wealth", 0, 30)

    return table


def classes(table, column, names):
    """A case of ordered classes."""
    numbers = {str(n): k for k, n in enumerate(names)}
    gaps = [[0.0, 1.0]] * (len(names) - 2)
    label = f'column = "{column}"\nlevels = {levels(names)}'
    return (
        table,
        label,
        "",
        3,
        lambda r: r[column].astype(str).map(numbers),
        ordinal,
        [[0.0, 4.0], *gaps],
    )


def ordinal(y, eta, cut, *log_gaps):
    cuts = np.concatenate([[-np.inf], cut + np.cumsum([0.0, *np.exp(log_gaps)]), [np.inf]])
    y = y.astype(int)
    return np.log(special.expit(cuts[y + 1] - eta) - special.expit(cuts[y] - eta))


def times(draw):
    """A made-up table of times, most of which end before the event, with a rare level; `draw`: logs
    of times about their predictor."""

    def table(_):
        rng = np.random.default_rng(3)
        level = rng.choice(4, 8_000, p=[0.6, 0.3, 0.08, 0.02])
        age = rng.beta(2, 4, 8_000)
        eta = 3.0 - 1.5 * age + np.array([0.0, 0.3, -0.4, -0.8])[level]
        time, end = np.exp(eta + draw(rng)), rng.uniform(1, 20, 8_000)
        seen, time = 1 * (time <= end), np.minimum(time, end)
        result = written({"level": level, "age": age, "time": time, "seen": seen})
        result.scale("age", 0, 1)
        result.rows = result.rows.astype({"level": str})
        return result.one_hot("level", list("0123"))

    return table


def numbers_about(draw):
    """A made-up table of 20,000 numbers, `draw` about their predictor, with a rare level."""

    def table(_):
        rng = np.random.default_rng(4)
        level = rng.choice(4, 20_000, p=[0.6, 0.3, 0.09, 0.01])
        age = rng.beta(2, 4, 20_000)
        y = 1.0 - 1.5 * age + np.array([0.0, 0.3, -0.4, -0.8])[level] + draw(rng, 20_000)
        result = written({"level": level, "age": age, "y": y})
        result.scale("age", 0, 1)
        result.rows = result.rows.astype({"level": str})
        return result.one_hot("level", list("0123"))

    return table


def heavy_tails(draw):
    """The case of a t law of 4 degrees with its scale sampled, on numbers drawn like this."""
    return (
        numbers_about(draw),
        'column = "y"\nclamp = [-8, 8]',
        "constants = { nu = 4 }\nparameters = { log_sigma = { mean = 0, sd = 1 } }",
        10,
        lambda r: np.clip(r.y, -8, 8),
        lambda y, e, s: stats.t.logpdf((y - e) / np.exp(s), 4) - s,
        [[0.0, 1.0]],
    )


def log_normal_survival(y, eta, log_sigma):
    u = (np.log(np.abs(y)) - eta) / np.exp(log_sigma)
    seen = stats.norm.logpdf(u) - log_sigma - np.log(np.abs(y))
    return np.where(y > 0, seen, stats.norm.logsf(u))


def weibull(y, eta, log_shape):
    shape = np.exp(log_shape)
    log_hazard = shape * (np.log(np.abs(y)) - eta)
    return np.where(y > 0, log_shape + log_hazard - np.log(np.abs(y)), 0) - np.exp(log_hazard)


# Table, label, model, sd of the prior, the label's values, log density; parameters that are sampled
# along: mean and sd of their priors.
CASES = {
    "negative-binomial": (
        randhie,
        'column = "mdvis"\ncount = 80',
        "constants = { log_shape = -0.4 }",
        10,
        lambda r: np.clip(r.mdvis, 0, 80),
        lambda y, e: stats.nbinom.logpmf(y, np.exp(-0.4), 1 / (1 + np.exp(e + 0.4))),
    ),
    "gamma": (
        cps,
        WAGE,
        "constants = { log_shape = 1.3 }",
        10,
        wage,
        lambda y, e: stats.gamma.logpdf(y, np.exp(1.3), scale=np.exp(e - 1.3)),
    ),
    "log-normal": (
        cps,
        WAGE,
        "constants = { log_sigma = -0.6 }",
        10,
        wage,
        lambda y, e: stats.norm.logpdf((np.log(y) - e) / np.exp(-0.6)),
    ),
    "student-t": (
        cps,
        WAGE,
        "constants = { log_sigma = 5.2, nu = 4 }",
        1000,
        wage,
        lambda y, e: stats.t.logpdf((y - e) / np.exp(5.2), 4),
    ),
    "quantile": (
        cps,
        WAGE,
        "constants = { share = 0.5, width = 30, log_scale = 5.0 }",
        1000,
        wage,
        lambda y, e: (0.5 * (e - y) - 30 * np.logaddexp(0, (e - y) / 30)) / np.exp(5.0),
    ),
    "gaussian": (
        cps,
        WAGE,
        "parameters = { log_sigma = { mean = 5, sd = 2 } }",
        1000,
        wage,
        lambda y, e, s: stats.norm.logpdf((y - e) / np.exp(s)) - s,
        [[5.0, 2.0]],
    ),
    "log-normal, sd sampled": (
        cps,
        WAGE,
        "parameters = { log_sigma = { mean = 0, sd = 1 } }",
        10,
        wage,
        lambda y, e, s: stats.norm.logpdf((np.log(y) - e) / np.exp(s)) - s,
        [[0.0, 1.0]],
    ),
    "student-t, scale sampled": (
        cps,
        WAGE,
        "constants = { nu = 4 }\nparameters = { log_sigma = { mean = 5, sd = 2 } }",
        1000,
        wage,
        lambda y, e, s: stats.t.logpdf((y - e) / np.exp(s), 4) - s,
        [[5.0, 2.0]],
    ),
    "student-t, made up": heavy_tails(lambda rng, n: 0.5 * rng.standard_t(4, n)),
    "student-t, made up, skewed": heavy_tails(lambda rng, n: 0.6 * rng.exponential(size=n)),
    "negative-binomial, shape sampled": (
        randhie,
        'column = "mdvis"\ncount = 80',
        "parameters = { log_shape = { mean = 0, sd = 1 } }",
        10,
        lambda r: np.clip(r.mdvis, 0, 80),
        lambda y, e, s: stats.nbinom.logpmf(y, np.exp(s), 1 / (1 + np.exp(e - s))),
        [[0.0, 1.0]],
    ),
    "weibull, shape sampled": (
        flchain,
        'column = "futime"\nclamp = [1, 6000]\nevent = { column = "death", in = ["1"] }',
        "parameters = { log_shape = { mean = 0, sd = 1 } }",
        20,
        lambda r: np.where(r.death == 1, 1, -1) * np.clip(r.futime, 1, 6000),
        weibull,
        [[0.0, 1.0]],
    ),
    "ordinal": classes(insteval, "y", range(1, 6)),
    "ordinal, cuts of diamonds": classes(diamonds, "cut", CUTS),
    "ordinal, credit histories": classes(history, "chist", range(1, 7)),
    "ordinal, made up, rare levels": classes(
        made_up(40_000, 1, CUTPOINTS, SHARES), "y", range(1, 6)
    ),
    "ordinal, made up, few rows": classes(made_up(2_000, 2, CUTPOINTS[:2], [5, 3, 2]), "y", "123"),
    "weibull, made up": (
        times(lambda rng: np.exp(-0.3) * np.log(rng.exponential(size=8_000))),
        'column = "time"\nclamp = [0.01, 100]\nevent = { column = "seen", in = ["1"] }',
        "parameters = { log_shape = { mean = 0, sd = 1 } }",
        20,
        lambda r: np.where(r.seen == 1, 1, -1) * np.clip(r.time, 0.01, 100),
        weibull,
        [[0.0, 1.0]],
    ),
    "log-normal-survival, made up": (
        times(lambda rng: 0.8 * rng.normal(size=8_000)),
        'column = "time"\nclamp = [0.01, 100]\nevent = { column = "seen", in = ["1"] }',
        "parameters = { log_sigma = { mean = 0, sd = 1 } }",
        20,
        lambda r: np.where(r.seen == 1, 1, -1) * np.clip(r.time, 0.01, 100),
        log_normal_survival,
        [[0.0, 1.0]],
    ),
    "zero-inflated-negative-binomial": (
        randhie,
        'column = "mdvis"\ncount = 80',
        "parameters = { log_shape = { mean = 0, sd = 1 }, logit_zero = { mean = -2, sd = 1 } }",
        10,
        lambda r: np.clip(r.mdvis, 0, 80),
        lambda y, e, s, z: np.where(
            y > 0,
            -np.logaddexp(0, z) + stats.nbinom.logpmf(y, np.exp(s), 1 / (1 + np.exp(e - s))),
            np.log(special.expit(z) + special.expit(-z) * (1 + np.exp(e - s)) ** -np.exp(s)),
        ),
        [[0.0, 1.0], [-2.0, 1.0]],
    ),
    "probit": (hmda, DENY, "", 10, deny, lambda y, e: special.log_ndtr(y * e)),
    "cloglog": (hmda, DENY, "", 10, deny, cloglog),
}


def fit(design, label, log_density, prior_sd, shared=()):
    """Mode and Laplace's sds, by Newton's method with halved steps and numeric derivatives."""
    h = 1e-4 if prior_sd < 100 else 1e-2
    p, m = design.shape[1], len(shared)
    mean = np.array([0.0] * p + [s[0] for s in shared])
    prior = np.diag([prior_sd**-2.0] * p + [s[1] ** -2.0 for s in shared])
    theta = mean.copy()
    if label.max() > 100:
        target = label if prior_sd > 100 else np.log(np.abs(label))
        theta[:p] = np.linalg.lstsq(design, target, rcond=None)[0]
    steps = np.array([h] + [1e-4] * m)

    def at(theta, *moves):
        """The rows' log densities, predictor and parameters moved."""
        place = np.zeros(1 + m)
        for k, by in moves:
            place[k] += by
        return log_density(label, design @ theta[:p] + place[0], *(theta[p:] + place[1:]))

    def loss(theta):
        gap = theta - mean
        value = 0.5 * gap @ prior @ gap - at(theta).sum()
        return value if np.isfinite(value) else np.inf

    def part(k):
        return design if k == 0 else np.ones((len(label), 1))

    for _ in range(300):
        gradient, curvature = -prior @ (theta - mean), prior.copy()
        places = [slice(0, p)] + [slice(p + k, p + k + 1) for k in range(m)]
        for a in range(1 + m):
            up, down = at(theta, (a, steps[a])), at(theta, (a, -steps[a]))
            gradient[places[a]] += part(a).T @ ((up - down) / (2 * steps[a]))
            for b in range(a + 1):
                corner = [
                    at(theta, (a, i * steps[a]), (b, j * steps[b]))
                    for i, j in [(1, 1), (1, -1), (-1, 1), (-1, -1)]
                ]
                weight = -(corner[0] - corner[1] - corner[2] + corner[3])
                weight = weight / (4 * steps[a] * steps[b])
                block = (part(a) * weight[:, None]).T @ part(b)
                curvature[places[a], places[b]] += block
                if a != b:
                    curvature[places[b], places[a]] += block.T
        ridge = max(0.0, 1e-6 - np.linalg.eigvalsh(curvature).min()) * 1.5
        step = np.linalg.solve(curvature + ridge * np.eye(p + m), gradient)
        share = 1.0
        while loss(theta + share * step) > loss(theta) and share > 1e-6:
            share /= 2
        theta = theta + share * step
        if np.abs(share * step).max() < 1e-7 * (1 + np.abs(theta).max()):
            break
    return theta, curvature


def delta_of(mu, epsilon):
    """δ of μ-GDP at ε (Dong, Roth & Su 2022, Corollary 2.13)."""
    tail = stats.norm.logcdf(-epsilon / mu - mu / 2)
    return stats.norm.cdf(-epsilon / mu + mu / 2) - np.exp(epsilon + tail)


def mu_of(epsilon):
    return optimize.brentq(lambda mu: delta_of(mu, epsilon) - DELTA, 1e-3, 50)


def references(design, label, case, mode, curvature, epsilons):
    """Root mean square errors in posterior sds of one sum of clipped gradients at the mode, with
    Gaussian noise for neighbours by substitution: what clipping moves the mode by, and the noise."""
    log_density, prior_sd, shared = case[5], case[3], case[6] if len(case) > 6 else ()
    p, m = design.shape[1], len(shared)
    mean = np.array([0.0] * p + [s[0] for s in shared])
    prior = np.array([prior_sd**-2.0] * p + [s[1] ** -2.0 for s in shared])
    steps = [1e-4 if prior_sd < 100 else 1e-2] + [1e-4] * m
    root = np.linalg.cholesky(curvature)
    sds = np.sqrt(np.diag(np.linalg.inv(curvature)))

    def gradients(theta):
        eta, own = design @ theta[:p], theta[p:]
        parts = []
        for k, h in enumerate(steps):
            move = np.zeros(1 + m)
            move[k] = h
            up = log_density(label, eta + move[0], *(own + move[1:]))
            down = log_density(label, eta - move[0], *(own - move[1:]))
            score = (up - down) / (2 * h)
            parts.append(design * score[:, None] if k == 0 else score[:, None])
        return np.hstack(parts)

    def lengths(rows):
        return np.linalg.norm(np.linalg.solve(root, rows.T), axis=0)

    usual = np.sqrt(np.mean(lengths(gradients(mode)) ** 2))
    best = [np.inf] * len(epsilons)
    for clip in usual * np.array([0.5, 1.0, 2.0, 4.0, 8.0]):
        theta = mode.copy()
        for _ in range(200):
            rows = gradients(theta)
            shares = np.minimum(1, clip / np.maximum(lengths(rows), 1e-300))
            step = np.linalg.solve(curvature, shares @ rows - prior * (theta - mean))
            theta = theta + step
            if np.abs(step / sds).max() < 1e-4:
                break
        bias = np.mean(((theta - mode) / sds) ** 2)
        if not np.isfinite(bias):
            continue
        for k, epsilon in enumerate(epsilons):
            noise = 2 * clip / mu_of(float(epsilon))
            best[k] = min(best[k], np.sqrt(bias + noise**2))
    return best


def numbers(line):
    """The numbers at the end of a line of the summary."""
    found = []
    for word in reversed(line.split()):
        if not re.fullmatch(r"-?[0-9.]+(e-?[0-9]+)?", word):
            break
        found.insert(0, float(word))
    return found


def run(dpmc, name, table, case, epsilon, seed):
    _, label, constants, prior_sd = case[:4]
    name = name.split(",")[0]
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/run.toml", "w") as f:
            f.write(f"""[data]
file = "{table.path}"
[data.label]
{label}
{table.features}
[model]
kind = "{name}"
prior = {{ kind = "normal", sd = {prior_sd} }}
{constants}
[sampler]
algorithm = "anchored-barker"
[run]
seed = {seed}
[privacy]
epsilon = {epsilon}
delta = 1e-6
""")
        done = subprocess.run(
            [dpmc, "sample", f"{folder}/run.toml", "--out", f"{folder}/out"],
            capture_output=True,
            text=True,
            check=True,
        )
    rows = [numbers(line) for line in done.stdout.splitlines()]
    means = np.array([r[0] for r in rows if len(r) == 8])
    bands = np.array([r[1:3] for r in rows if len(r) == 5])
    return means, bands


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", required=True)
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--epsilons", default="1,3,6")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="", help="names that hold this")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    epsilons = options.epsilons.split(",")
    at = f"ε = {' / '.join(epsilons)}"
    print(f"| likelihood | rows × coefficients | error at {at} | reference | holds |")
    print("| --- | --- | --- | --- | --- |")
    start = time.time()
    for name, case in CASES.items():
        if options.only not in name:
            continue
        table = case[0](os.path.abspath(options.suite))
        design, label = table.design(), np.asarray(case[4](table.rows), float)
        mode, curvature = fit(design, label, case[5], case[3], *case[6:])
        sds = np.sqrt(np.diag(np.linalg.inv(curvature)))
        reference = references(design, label, case, mode, curvature, epsilons)
        reference = " / ".join(f"{r:.2f}" for r in reference)
        errors, held = [], []
        for epsilon in epsilons:
            error, hold = [], []
            for seed in range(options.repeats):
                means, bands = run(options.dpmc, name, table, case, epsilon, seed + 1)
                if options.verbose:
                    print(epsilon, np.round((means - mode) / sds, 2), np.round(mode, 3))
                error.append(np.sqrt(np.mean(((means - mode) / sds) ** 2)))
                if len(bands) == len(mode):
                    hold.append(np.mean((bands[:, 0] <= mode) & (mode <= bands[:, 1])))
            errors.append(f"{np.mean(error):.2f}")
            held.append(f"{np.mean(hold):.2f}" if hold else "–")
        size = f"{len(label):,} × {len(mode)}"
        errors, held = " / ".join(errors), " / ".join(held)
        print(f"| `{name}` | {size} | {errors} | {reference} | {held} |", flush=True)
    print(f"\n{time.time() - start:.0f} s in all")


if __name__ == "__main__":
    main()
