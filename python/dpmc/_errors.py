"""Exceptions and warnings. None of their words shows a cell."""

from __future__ import annotations


class Error(Exception):
    """What went wrong, and what to do next.

    ``key`` is the key of the run file, the keyword argument or the column at fault, where there
    is one.
    """

    key: str | None

    def __init__(self, message: str = "", key: str | None = None) -> None:
        super().__init__(message)
        self.key = key

    def __reduce__(self):
        return (type(self), (str(self), self.key))


class InputError(Error, ValueError):
    """What was given is at fault; nothing was charged."""


class BudgetError(InputError):
    """The budget or its ledger does not allow the run; nothing was charged."""


class RunWarning(UserWarning):
    """What a reader of a run's draws must know."""
