"""Tables made here, and runs on them that take well under a second."""

import os
import signal

# Before anything is recorded: no test writes to the data folder of whoever runs it.
os.environ["DPMC_RECORDS"] = "off"

import numpy as np
import pytest

import dpmc

#: A cell that no message may show.
SECRET = 73.190417

# What is started in the background ignores interrupts, and Python leaves that so.
signal.signal(signal.SIGINT, signal.default_int_handler)


def columns(rows=2000, seed=1):
    """Ages, towns and an illness that follows both."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 80, rows)
    town = rng.choice(["north", "south"], rows)
    z = (age - 50) / 15 + (town == "north") - 0.3
    ill = (rng.random(rows) < 1 / (1 + np.exp(-z))).astype(np.int64)
    return {"age": age, "town": town, "ill": ill}


def run_file(**changes):
    """The dict of a private run; ``changes`` replace whole sections."""
    run = {
        "data": {
            "name": "people",
            "label": {"column": "ill"},
            "features": [
                {"intercept": True},
                {"column": "age", "scale": [20, 80]},
                {"column": "town", "indicator": {"in": ["north"]}},
            ],
        },
        "model": {"kind": "logistic", "prior": {"kind": "normal", "sd": 5.0}},
        "sampler": {"algorithm": "anchored-barker"},
        "run": {"iterations": 1000, "engine": "cpu"},
        "privacy": {"epsilon": 4.0, "delta": 1e-6},
    }
    run.update(changes)
    return run


@pytest.fixture(scope="session")
def table():
    return columns()


@pytest.fixture(scope="session")
def run(table):
    """A private run that tests look at and do not change."""
    return dpmc.sample(run_file(), data=table)
