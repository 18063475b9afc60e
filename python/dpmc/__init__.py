"""Bayesian posterior sampling over sensitive tables under differential privacy.

>>> import dpmc
>>> run = dpmc.sample("examples/adult_anchored.toml")  # doctest: +SKIP
>>> run.plot("adult.svg")  # doctest: +SKIP

Draws come with a certificate: a proven bound on what they reveal about any one row. Nothing else
of the table leaves this package: no error, warning, log line or ``repr`` shows a cell.
"""

from ._dpmc import __version__
from ._draws import Draws
from ._errors import BudgetError, Error, InputError, RunWarning
from ._formula import Column
from ._run import (
    Ledger,
    Run,
    Summary,
    account,
    audit,
    calibrate,
    check,
    devices,
    init,
    load,
    sample,
)

__all__ = [
    "BudgetError",
    "Column",
    "Draws",
    "Error",
    "InputError",
    "Ledger",
    "Run",
    "RunWarning",
    "Summary",
    "__version__",
    "account",
    "audit",
    "calibrate",
    "check",
    "devices",
    "init",
    "load",
    "sample",
]
