"""Tables from pandas, polars, pyarrow and NumPy: the same rows, the same errors, no cell shown."""

import datetime
import sys
import traceback

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from conftest import SECRET, columns, run_file

import dpmc

EXACT = {"not_private": True, "seed": 5, "algorithm": "mh", "iterations": 30}


def draws(data, run=None):
    return dpmc.sample(run or run_file(), data=data, **EXACT).draws


def chunked(table):
    parts = [table.slice(0, 700), table.slice(700, 0), table.slice(700)]
    return pyarrow.concat_tables(parts)


LAYOUTS = {
    "pandas": lambda t: pandas.DataFrame(t),
    "pandas with an index": lambda t: pandas.DataFrame(t, index=t["age"]),
    "pandas categories": lambda t: pandas.DataFrame(t).astype({"town": "category"}),
    "pandas objects": lambda t: pandas.DataFrame(t).astype({"town": object, "ill": object}),
    "pandas nullable": lambda t: pandas.DataFrame(t).astype({"ill": "Int64", "age": "Float64"}),
    "pandas arrow": lambda t: pandas.DataFrame(t).convert_dtypes(dtype_backend="pyarrow"),
    "polars": lambda t: polars.DataFrame(t),
    "polars lazy": lambda t: polars.DataFrame(t).lazy(),
    "polars categories": lambda t: polars.DataFrame(t).with_columns(
        polars.col("town").cast(polars.Categorical)
    ),
    "polars levels": lambda t: polars.DataFrame(t).with_columns(
        polars.col("town").cast(polars.Enum(["south", "north"]))
    ),
    "polars booleans": lambda t: polars.DataFrame(t).with_columns(polars.col("ill") == 1),
    "polars chunks": lambda t: polars.concat(
        [polars.DataFrame(t)[:9], polars.DataFrame(t)[9:]], rechunk=False
    ),
    "pyarrow": lambda t: pyarrow.table(t),
    "pyarrow chunks": lambda t: chunked(pyarrow.table(t)),
    "pyarrow codes": lambda t: pyarrow.table(
        {**t, "town": pyarrow.array(t["town"]).dictionary_encode()}
    ),
    "pyarrow large": lambda t: pyarrow.table(
        {**t, "town": pyarrow.array(t["town"], pyarrow.large_string())}
    ),
    "pyarrow views": lambda t: pyarrow.table(
        {**t, "town": pyarrow.array(list(t["town"]), pyarrow.string_view())}
    ),
    "pyarrow reader": lambda t: pyarrow.table({k: t[k] for k in t}).to_reader(),
    "numpy dict": lambda t: t,
    "numpy narrow": lambda t: {**t, "ill": t["ill"].astype(np.uint8)},
    "numpy strided": lambda t: {**t, "age": np.repeat(t["age"], 2)[::2]},
    "lists": lambda t: {k: v.tolist() for k, v in t.items()},
    "more columns": lambda t: pandas.DataFrame(
        {**t, "odd": [object()] * len(t["age"]), "day": datetime.date(2000, 1, 1)}
    ),
}


@pytest.fixture(scope="module")
def expected():
    return draws(columns(1000))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_the_same_table(layout, expected):
    assert draws(LAYOUTS[layout](columns(1000))) == expected


def test_frames_need_no_other_package(expected, monkeypatch):
    """A pandas frame without pyarrow."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for layout in ("pandas", "pandas categories", "pandas nullable"):
        assert draws(LAYOUTS[layout](columns(1000))) == expected


def test_arrays_have_columns_x0_x1():
    t = columns(1000)
    rows = np.column_stack([t["age"], t["ill"]])
    run = run_file()
    run["data"]["features"] = [{"column": "x0", "scale": [20, 80]}]
    run["data"]["label"] = {"column": "x1"}
    named = np.array(list(map(tuple, rows)), dtype=[("x0", "f8"), ("x1", "i8")])
    assert draws(rows, run) == draws(np.asfortranarray(rows), run) == draws(named, run)
    with pytest.raises(dpmc.InputError, match="two dimensions"):
        draws(rows.ravel(), run)


def refused(data, run=None, **arguments):
    """What a run on ``data`` is refused with, all that its traceback would show included."""
    with pytest.raises(dpmc.Error) as caught:
        dpmc.sample(run or run_file(), data=data, **arguments)
    error = caught.value
    shown = "".join(traceback.format_exception(error))
    link = error
    while link is not None:
        shown += str(link)
        link = link.__context__
    for hidden in (str(SECRET), "73.19", "mystery"):
        assert hidden not in shown
    assert isinstance(error, dpmc.InputError)
    return error


def test_missing_cells_are_refused_or_declared():
    t = columns(1000)
    t["age"][17] = np.nan
    frames = [
        t,
        pandas.DataFrame(t),
        polars.DataFrame(t).fill_nan(None),
        pyarrow.table(pandas.DataFrame(t)),
    ]
    declared = run_file()
    declared["data"]["features"][1]["missing"] = 40
    kept = []
    for frame in frames:
        error = refused(frame)
        assert "line 18, column 'age'" in str(error) and error.key == "age"
        assert "'people' in memory" in str(error)
        kept.append(draws(frame, declared))
    assert kept[0] == kept[1] == kept[2] == kept[3]
    # Without a declaration polars' NaN is no missing cell, and no number either.
    assert refused(polars.DataFrame(t)).key == "age"


@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table, dict])
def test_levels_beyond_the_declared_ones_show_no_cell(make):
    t = columns(1000)
    answers = np.where(t["ill"] == 1, "yes", "no").astype("U7")
    answers[5] = "mystery"
    run = run_file()
    run["data"]["label"] = {"column": "ill", "positive": ["yes"], "negative": ["no"]}
    error = refused(make({**t, "ill": answers}), run)
    assert error.key == "ill" and "line 6" in str(error)


def test_objects_of_several_types_are_read_cell_by_cell():
    t = columns(1000)
    odd = list(t["age"])
    odd[3] = "mystery"
    for bad in ("mystery", object(), "\ud800", b"mystery", {"mystery": 1}, float("inf")):
        odd[3] = bad
        for frame in (
            {**t, "age": list(odd)},
            {**t, "age": tuple(odd)},
            {**t, "age": np.array(odd, dtype=object)},
            pandas.DataFrame({**t, "age": pandas.Series(odd, dtype=object)}),
        ):
            error = refused(frame)
            assert error.key == "age" and "line 4" in str(error), str(error)
    # One record stops no run, and bends no other, where that is declared.
    run = run_file()
    run["data"]["bad_cells"] = "missing"
    run["data"]["label"]["missing"] = 0
    del run["data"]["label"]
    run["data"]["label"] = {"column": "ill", "count": 1, "missing": 0}
    run["model"] = {"kind": "poisson", "prior": {"kind": "normal", "sd": 5.0}}
    for feature in run["data"]["features"][1:]:
        feature["missing"] = 20 if "scale" in feature else 0
    gone = {**t, "age": np.where(np.arange(1000) == 3, 20.0, t["age"])}
    odd[3] = "mystery"
    assert draws({**t, "age": np.array(odd, dtype=object)}, run) == draws(gone, run)
    assert draws({**t, "age": odd}, run) == draws(gone, run)


@pytest.mark.parametrize("kind", [float, int, bool])
@pytest.mark.parametrize("odd", ["mystery", b"mystery", [73.19], None, 7])
def test_a_cell_of_a_list_decides_about_no_other(kind, odd):
    """Labels are matched by their texts: NumPy would make texts of all of them for one that is."""
    t = columns(1000)
    run = run_file()
    run["data"]["bad_cells"] = "missing"
    run["data"]["label"] = {"column": "ill", "positive": ["1"], "negative": ["0", ""]}
    for feature in run["data"]["features"][1:]:
        feature["missing"] = 20 if "scale" in feature else 0
    cells = [kind(v) for v in t["ill"]]
    row = cells.index(kind(1))
    gone = np.where(np.arange(1000) == row, 0, t["ill"])
    cells[row] = odd
    assert draws({**t, "ill": cells}, run) == draws({**t, "ill": gone}, run)


def test_columns_that_are_no_cells_are_refused():
    t = columns(1000)
    days = np.full(1000, np.datetime64("2000-01-01"))
    for frame in (
        {**t, "age": days},
        pandas.DataFrame({**t, "age": days}),
        pyarrow.table({**t, "age": pyarrow.array(days)}),
        pyarrow.table({**t, "age": pyarrow.array([[1.0]] * 1000)}),
        {**t, "age": np.ones((1000, 2))},
        {**t, "age": "mystery"},
        {**t, "age": 73.19},
    ):
        assert "age" in str(refused(frame))


def test_frames_that_do_not_fit():
    t = columns(1000)
    assert refused({k: t[k] for k in ("town", "ill")}).key == "age"
    assert "age" in str(refused(pandas.DataFrame(t).drop(columns="age")))
    assert "age" in str(refused(polars.DataFrame(t).drop("age")))
    assert "length" in str(refused({**t, "age": t["age"][:-1]}))
    twice = pandas.DataFrame(np.zeros((9, 4)), columns=["age", "age", "town", "ill"])
    assert "two columns are called 'age'" in str(refused(twice))
    same = pyarrow.table(
        [t["age"], t["age"], t["town"], t["ill"]], names=["age", "age", "town", "ill"]
    )
    assert "same name" in str(refused(same))
    for empty in (
        pandas.DataFrame(t)[:0],
        polars.DataFrame(t)[:0],
        {k: v[:0] for k, v in t.items()},
    ):
        assert "0 row(s)" in str(refused(empty))
    for none in ("people.csv", 5, [1, 2]):
        assert refused(none).key == "data="


def test_a_column_of_one_bad_cell_shows_none():
    t = columns(1000)
    t["age"] = t["age"].astype(object)
    t["age"][4] = SECRET * 1j
    assert refused(t).key == "age"
    # A label out of its declaration.
    t = columns(1000)
    t["ill"] = t["ill"].astype(float)
    t["ill"][8] = SECRET
    for make in (dict, pandas.DataFrame, polars.DataFrame):
        assert refused(make(t)).key == "ill"


def test_a_stream_whose_maker_fails_says_no_cell():
    class Leaky:
        columns = ["age", "town", "ill"]

        def __arrow_c_stream__(self, schema=None):
            raise ValueError(f"cannot convert {SECRET}")

    refused(Leaky())
    lazy = polars.LazyFrame(columns(10)).with_columns(
        polars.lit("mystery").str.to_integer().alias("age")
    )
    refused(lazy)

    class Other(Leaky):
        def __arrow_c_stream__(self, schema=None):
            return pyarrow.field("a", pyarrow.int8()).__arrow_c_schema__()

    refused(Other())


def test_nothing_of_a_table_is_in_a_repr():
    t = columns(50)
    t["age"][0] = SECRET
    native = dpmc._dpmc.Table.of_columns([("age", t["age"].tobytes())])
    assert "73.19" not in repr(native) + str(native) + str(dir(native))


def test_a_table_in_memory_needs_a_name():
    run = run_file()
    del run["data"]["name"]
    error = refused(columns(1000), run)
    assert error.key == "data.name"


def test_bounds_never_come_from_the_data():
    run = run_file()
    del run["data"]["features"][1]["scale"]
    assert "data.features[1]" in refused(columns(1000), run).key
