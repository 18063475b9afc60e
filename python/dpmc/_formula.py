"""Models as formulas: from a table and a few words to a run file's dict."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from ._errors import InputError


class Column(TypedDict, total=False):
    """What is public about a column, as in ``[columns]`` of a run file.

    A feature has exactly one of ``scale``, ``clamp``, ``levels`` and ``indicator``; a label has
    ``positive``, ``count``, ``classes``, ``levels``, ``scale`` or ``clamp``, or nothing where it is
    0 or 1.
    Bounds and levels come from public knowledge, never from the rows.
    """

    #: Bounds of a number, which becomes -1 to 1 …
    scale: Sequence[float]
    #: … or keeps its units.
    clamp: Sequence[float]
    transform: Literal["log", "log1p", "sqrt", "asinh"]
    #: ``{"mean": m, "sd": s}``, with ``clamp``.
    standardize: Mapping[str, float]
    #: Texts that have a coefficient each, but the reference, which is the first if none is named.
    levels: Sequence[str]
    groups: Mapping[str, Sequence[str]]
    strict: bool
    reference: str
    #: ``{"in": [texts]}``, ``{"above": number}`` or ``{"below": number}``.
    indicator: Mapping[str, Any]
    #: Stands for a missing cell, in the column's own units.
    missing: float
    positive: Sequence[str]
    negative: Sequence[str]
    count: int
    classes: int


@dataclass
class ByFormula:
    """What stands beside ``formula=``, as it was given."""

    formula: str | None
    columns: Mapping[str, Column] | None
    model: str | Mapping[str, Any] | None
    name: str | None
    unit: str | None
    rows_per_unit: int | None


def chosen_model(run: Any, data: Any, asked: ByFormula, not_private: bool) -> tuple[Any, Any]:
    """Run and table as they are given; with a formula the first argument is the table."""
    if asked.formula is None:
        for argument in fields(asked):
            if getattr(asked, argument.name) is not None:
                what = "belongs to formula=; a run file says it in a section of its own"
                raise InputError(f"{argument.name}=: {what}", argument.name)
        return run, data
    if data is not None:
        what = "the table is the first argument beside formula=; a run file holds its own formula"
        raise InputError(f"data=: {what}", "data=")
    if asked.model is None:
        raise InputError("model=: say what the label is, such as 'logistic' or 'poisson'", "model")
    return _of_formula(run, asked, not not_private)


def _of_formula(table: Any, asked: ByFormula, private: bool) -> tuple[dict[str, Any], Any]:
    """The dict of a run file, and its table where that is in memory."""
    model = asked.model
    if isinstance(model, str):
        model = {"kind": model}
    if not isinstance(model, Mapping):
        raise InputError("model=: give a kind, such as 'logistic', or a dict of [model]", "model")
    if "formula" in model:
        raise InputError("model=: holds a formula too; keep formula= alone", "model")
    if asked.columns is not None and not isinstance(asked.columns, Mapping):
        what = "give a dict by name, such as {'age': {'scale': [17, 90]}}"
        raise InputError(f"columns=: {what}", "columns")
    data: dict[str, Any] = {"name": asked.name}
    if asked.unit is not None:
        data["unit"] = asked.unit
    if asked.rows_per_unit is not None:
        data["rows_per_unit"] = asked.rows_per_unit
    in_memory = not isinstance(table, (str, os.PathLike))
    if not in_memory:
        data["file"] = os.fspath(table)
    elif table is None:
        raise InputError("formula=: give the table as the first argument", "formula")
    elif asked.name is None and private:
        what = "name the table: ledger and records know it by that name, whoever hands it over"
        raise InputError(f"name=: {what}", "name")
    run = {
        "data": data,
        "columns": dict(asked.columns or {}),
        "model": {**model, "formula": asked.formula},
        "sampler": {"algorithm": "anchored-barker"},
    }
    return run, table if in_memory else None
