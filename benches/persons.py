#!/usr/bin/env python3
"""What it costs to protect persons with several rows: RandHIE, up to five years of each person.

Three private runs of the same model at the same ε and δ = 1e-6: one that protects single rows, one
that protects persons (`unit`, `rows_per_unit`), and one that protects persons as groups of rows,
by a run for single rows with a fifth of the Gaussian-DP parameter μ. Printed are errors of the
released means in posterior sds of a fit without privacy (root mean square over coefficients, mean
of the repeats), with the share of 90 % intervals for the noise that hold that fit's mode.

    python benches/persons.py --suite DIR [--dpmc target/release/dpmc] [--epsilons 1,3,6]

DIR and what else is needed: as families.py has it.
"""

import argparse
from dataclasses import dataclass

import families
import numpy as np
from scipy import optimize

ROWS = 5


@dataclass
class Declared:
    """What families.run reads of a table."""

    path: str
    features: str


def group_epsilon(epsilon):
    """ε for single rows of which ROWS together have this ε."""
    mu = families.mu_of(epsilon) / ROWS
    return optimize.brentq(lambda e: families.delta_of(mu, e) - families.DELTA, 1e-6, 200)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--suite", required=True)
    parser.add_argument("--dpmc", default="target/release/dpmc")
    parser.add_argument("--epsilons", default="1,3,6")
    parser.add_argument("--repeats", type=int, default=10)
    options = parser.parse_args()
    print("| likelihood | ε | single rows | persons | persons as groups |")
    print("| --- | --- | --- | --- | --- |")
    for name in ["negative-binomial", "negative-binomial, shape sampled"]:
        case = families.CASES[name]
        table = case[0](options.suite)
        label = np.asarray(case[4](table.rows), float)
        mode, curvature = families.fit(table.design(), label, case[5], case[3], *case[6:])
        sds = np.sqrt(np.diag(np.linalg.inv(curvature)))
        unit = f'{table.path}"\nname = "RandHIE"\nunit = "zper"\nrows_per_unit = {ROWS} # "'
        persons = Declared(unit, table.features)
        for epsilon in map(float, options.epsilons.split(",")):
            cells = []
            for declared, budget in [
                (table, epsilon),
                (persons, epsilon),
                (table, group_epsilon(epsilon)),
            ]:
                errors, held = [], []
                for seed in range(options.repeats):
                    means, bands = families.run(
                        options.dpmc, name, declared, case, budget, seed + 1
                    )
                    errors.append(np.sqrt(np.mean(((means - mode) / sds) ** 2)))
                    if len(bands) == len(mode):
                        held.append(np.mean((bands[:, 0] <= mode) & (mode <= bands[:, 1])))
                cells.append(f"{np.mean(errors):.2f} ({np.mean(held):.2f})")
            print(f"| `{name}` | {epsilon:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
