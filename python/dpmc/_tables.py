"""Tables from pandas, polars, pyarrow and NumPy, as private from here on as a file is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import _dpmc
from ._errors import InputError


def names(data: Any) -> list[str]:
    """Names of all columns of a frame, of which no cell is looked at."""
    if isinstance(data, np.ndarray):
        return [name for name, _ in _of_array(data[:0])]
    if hasattr(data, "collect_schema"):
        return list(data.collect_schema().names())
    if isinstance(data, Mapping):
        return list(data)
    found = getattr(data, "column_names", None)
    if found is None:
        found = getattr(data, "columns", None)
    if found is None:
        raise InputError("give a table's path, or a frame with columns", "table")
    return [str(name) for name in found]


def table(data: Any, wanted: list[str]) -> _dpmc.Table:
    """The columns of ``data`` that a run declares; others are not looked at."""
    if data is None or isinstance(data, (str, bytes)):
        raise InputError("data=: give a frame, or a file's path as 'file' in [data]", "data=")
    if isinstance(data, np.ndarray):
        return _dpmc.Table.of_columns(_of_array(data))
    if isinstance(data, Mapping):
        columns = {name: data[name] for name in data if name in set(wanted)}
        _check_found(columns, wanted, len(data))
        return _dpmc.Table.of_columns([(n, _column(n, v)) for n, v in columns.items()])
    if hasattr(data, "to_numpy") and hasattr(data, "columns") and hasattr(data, "loc"):
        return _of_pandas(data, wanted)
    if hasattr(data, "select") and (hasattr(data, "collect_schema") or hasattr(data, "columns")):
        data = _selected(data, wanted)
    if hasattr(data, "__arrow_c_stream__"):
        return _of_stream(data)
    raise InputError(
        "data=: give a frame of pandas, polars or pyarrow (anything with __arrow_c_stream__), "
        "a dict of columns, or a NumPy array",
        "data=",
    )


def _check_found(found: Any, wanted: list[str], count: int) -> None:
    for name in wanted:
        if name not in found:
            raise InputError(
                f"data=: none of its {count} columns is called '{name}'; write it as the frame "
                "does, case included",
                name,
            )


def _of_stream(data: Any) -> _dpmc.Table:
    try:
        capsule = data.__arrow_c_stream__()
    except Exception:  # Its words may quote a cell.
        capsule = None
    if capsule is None:
        raise InputError(
            "data=: it cannot be read as Arrow (a column holds values of several types?); make "
            "each column boolean, integer, float or text",
            "data=",
        )
    return _dpmc.Table.of_stream(capsule)


def _selected(data: Any, wanted: list[str]) -> Any:
    """The declared columns of a polars or pyarrow frame; all of it where a name stands twice."""
    found = names(data)
    _check_found(found, wanted, len(found))
    if len(set(found)) < len(found):
        return data
    data = data.select(list(dict.fromkeys(wanted)))
    # A lazy frame of polars.
    return _collected(data) if hasattr(data, "collect") else data


def _collected(data: Any) -> Any:
    try:
        return data.collect()
    except Exception:  # Its words may quote a cell.
        pass
    raise InputError("data=: the lazy frame cannot be collected; collect() it before", "data=")


def _of_pandas(data: Any, wanted: list[str]) -> _dpmc.Table:
    found = list(data.columns)
    _check_found(found, wanted, len(found))
    declared = list(dict.fromkeys(wanted))
    for name in declared:
        if found.count(name) > 1:
            raise InputError(f"data=: two columns are called '{name}'; rename one", name)
    part = data[declared]
    # An index is no column. With pyarrow there is no copy of numbers.
    part = part.reset_index(drop=True)
    objects = any(str(dtype) == "object" for dtype in part.dtypes)
    if hasattr(part, "__arrow_c_stream__") and not objects:
        try:
            import pyarrow  # noqa: F401

            return _of_stream(part)
        except ImportError:
            pass
    return _dpmc.Table.of_columns([(name, _pandas_column(name, part[name])) for name in declared])


def _pandas_column(name: str, series: Any) -> bytes | list[object]:
    kind = str(series.dtype)
    if kind == "category" or kind.startswith("str"):
        series = series.astype(object)
    elif hasattr(series.dtype, "na_value") and series.dtype.kind in "biuf":
        return _numbers(name, series.to_numpy(dtype="float64", na_value=float("nan")))
    return _column(name, series.to_numpy())


def _numbers(name: str, values: Any) -> bytes:
    try:
        return np.ascontiguousarray(values, dtype=np.float64).tobytes()
    except (TypeError, ValueError):
        values = None
    raise _unsupported(name)


def _unsupported(name: str) -> InputError:
    return InputError(
        f"data=: column '{name}' is not of one type (boolean, integer, float or text) in one "
        "dimension; convert it",
        name,
    )


def _column(name: str, values: Any) -> bytes | list[object]:
    """A column's numbers as float64, or its objects. Integers beyond 2^53 are rounded."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    elif hasattr(values, "__array__"):
        values = np.asarray(values)
    if not isinstance(values, np.ndarray):
        return _objects(name, values)
    if values.ndim != 1:
        raise _unsupported(name)
    if values.dtype.kind in "biuf":
        return _numbers(name, values)
    if values.dtype.kind == "U":
        return values.tolist()
    if values.dtype.kind != "O":
        raise _unsupported(name)
    return _objects(name, values)


def _objects(name: str, values: Any) -> list[object]:
    """Each cell by itself: none may decide how another is read. So NumPy is not asked for a type
    of cells that have none in common: it would make all of them texts for one that is."""
    if isinstance(values, (str, bytes, Mapping)):
        raise _unsupported(name)
    try:
        cells = list(values)
    except TypeError:
        cells = None
    if cells is None:
        raise _unsupported(name)
    return [_cell(v) for v in cells]


def _cell(v: Any) -> object:
    if isinstance(v, np.generic):
        v = v.item()
    if isinstance(v, (str, bool, int, float)):
        return v
    missing = v is None or type(v).__name__ in ("NAType", "NaTType")
    return None if missing else ()


def _of_array(array: np.ndarray) -> list[tuple[str, Any]]:
    """Columns x0, x1, … of a two-dimensional array, as an NPY file has; fields by their names."""
    if array.dtype.names:
        return [(name, _column(name, array[name])) for name in array.dtype.names]
    if array.ndim != 2:
        raise InputError(
            "data=: a NumPy array has rows and columns (two dimensions), or named fields", "data="
        )
    return [(f"x{j}", _column(f"x{j}", array[:, j])) for j in range(array.shape[1])]
