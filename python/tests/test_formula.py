"""Formulas in place of run files."""

import re
from pathlib import Path

import numpy as np
import pandas
import pytest
from conftest import SECRET, columns, run_file

import dpmc

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "python.md"

FORMULA = "ill ~ age + I(town == 'north')"
DECLARED = {"ill": {}, "age": {"scale": (np.float64(20), 80)}}
MODEL = {"kind": "logistic", "prior": {"kind": "normal", "sd": 5.0}}
OPEN = {"not_private": True, "seed": 3, "algorithm": "mh", "iterations": 50, "engine": "cpu"}
BUDGET = {"epsilon": 4.0, "delta": 1e-6}


def test_a_formula_is_the_run_that_it_stands_for(tmp_path, table):
    expected = dpmc.sample(run_file(), data=table, **OPEN).draws
    frame = pandas.DataFrame(table)
    frame.to_csv(tmp_path / "people.csv", index=False)
    for people in (table, frame, tmp_path / "people.csv"):
        run = dpmc.sample(people, formula=FORMULA, columns=DECLARED, model=MODEL, **OPEN)
        assert run.draws == expected
    # A run file's dict may hold one too.
    as_dict = run_file(columns=DECLARED, model={**MODEL, "formula": FORMULA})
    as_dict["data"] = {"name": "people"}
    assert dpmc.sample(as_dict, data=table, **OPEN).draws == expected


def test_a_private_run_goes_on_and_predicts(table):
    run = dpmc.sample(
        table, formula=FORMULA, columns=DECLARED, model=MODEL, name="people", **BUDGET
    )
    assert run.certificate["private"] and run.certificate["epsilon"] == 4.0
    assert "formula = " in run.run_file
    assert run.draws.parameters == ["intercept", "age", "town=north"]
    few = {"age": table["age"][:5], "town": table["town"][:5]}
    assert run.predict(few).shape == (5,)
    before = len(run.draws)
    run.resume(data=table, iterations=before + 20)
    assert len(run.draws) > before


def test_check_lists_the_coefficients(table):
    formula = "ill ~ ns(age, knots=[40, 60]) * town"
    declared = {**DECLARED, "town": {"levels": ["south", "north"], "strict": True}}
    report = dpmc.check(
        table, formula=formula, columns=declared, model="logistic", name="people", **BUDGET
    )
    terms = {t["term"]: t["coefficients"] for t in report["formula"]["terms"]}
    assert terms["town"] == ["town=north"]
    assert terms["ns(age, knots=[40, 60]):town"] == [f"age~s{k}:town=north" for k in (1, 2, 3)]


def test_persons_are_protected_with_all_of_their_rows(table):
    people = {**table, "person": np.arange(len(table["age"])) // 3}
    run = dpmc.sample(
        people,
        formula=FORMULA,
        columns=DECLARED,
        model=MODEL,
        name="people",
        unit="person",
        rows_per_unit=2,
        **BUDGET,
    )
    assert run.certificate["unit"] == {"column": "person", "rows": 2}
    assert run.certificate["rows"] == len(set(people["person"]))


def test_levels_may_share_a_prior(table):
    declared = {**DECLARED, "town": {"levels": ["south", "north"], "strict": True}}
    model = {**MODEL, "hierarchy": [{"name": "town", "scale": 1.0}]}
    formula = "ill ~ age + (1 | town)"
    told = {"formula": formula, "columns": declared, "model": model, "name": "people"}
    report = dpmc.check(table, **told, **BUDGET)
    assert report["hierarchies"][0]["name"] == "sd(town)"
    run = dpmc.sample(table, **told, **BUDGET)
    assert run.draws.parameters[2:] == ["town=south", "town=north", "sd(town)"]
    assert run.predict({"age": [30, 50], "town": ["south", "north"]}).shape == (2,)
    with pytest.raises(dpmc.InputError, match="needs a prior"):
        dpmc.check(table, **{**told, "model": MODEL}, **BUDGET)


@pytest.mark.parametrize(
    "changes, key, words",
    [
        ({"unit": "age"}, "data.rows_per_unit", "how many rows of one unit count"),
        ({"formula": "ill ~ agee"}, "model.formula", "at character 7 of 'ill ~ agee'"),
        ({"columns": {"ill": {}}}, "model.formula", "column 'age' is not declared"),
        ({"columns": {**DECLARED, "age": {"scale": [3, 2]}}}, "columns.age", "reversed"),
        ({"columns": {"ill": {"scael": 1}}}, "scael", "unknown field"),
        ({"columns": ["ill"]}, "columns", "give a dict by name"),
        ({"model": None}, "model", "say what the label is"),
        ({"model": 3}, "model", "give a kind"),
        ({"model": {**MODEL, "formula": FORMULA}}, "model", "keep formula= alone"),
        ({"model": "poisson"}, "columns.ill", "counts as its label"),
        ({"name": None}, "name", "name the table"),
        ({"data": {}}, "data=", "the table is the first argument"),
    ],
)
def test_what_is_wrong_is_said_by_key(table, changes, key, words):
    arguments = {"formula": FORMULA, "columns": DECLARED, "model": MODEL, "name": "people"}
    for call in (dpmc.sample, dpmc.check):
        with pytest.raises(dpmc.InputError, match=re.escape(words)) as error:
            call(table, **{**arguments, **BUDGET, **changes})
        assert error.value.key == key


def test_arguments_of_formulas_need_one(table):
    for name, value in (("columns", DECLARED), ("model", "logistic"), ("name", "people"), ("unit", "age")):
        with pytest.raises(dpmc.InputError, match=f"{name}=: belongs to formula="):
            dpmc.sample(run_file(), data=table, **{name: value})
    with pytest.raises(dpmc.InputError, match="give the table as the first argument"):
        dpmc.sample(None, formula=FORMULA, columns=DECLARED, model=MODEL)


def test_no_cell_is_shown(table):
    ages = [*table["age"][:-1].tolist(), f"{SECRET} years"]
    with pytest.raises(dpmc.InputError) as error:
        dpmc.sample(
            {**table, "age": ages},
            formula=FORMULA,
            columns=DECLARED,
            model=MODEL,
            name="people",
            **BUDGET,
        )
    assert str(SECRET) not in str(error.value) and error.value.key == "age"


def test_the_types_have_the_keys_of_run_files(table):
    with pytest.raises(dpmc.InputError) as error:
        dpmc.check(table, formula=FORMULA, columns={"ill": {"x": 1}}, model=MODEL, name="p")
    named = re.findall("`(.*?)`", str(error.value).split("expected one of")[1].split(";")[0])
    assert sorted(named) == sorted(dpmc.Column.__annotations__)


def test_the_guide_shows_what_runs():
    block = GUIDE.read_text().split("## Formulas")[1].split("```python\n")[1].split("```")[0]
    made = columns()
    rows = len(made["age"])
    people = {
        "ill": np.where(made["ill"] == 1, "yes", "no"),
        "age": made["age"],
        "region": np.array(["north", "south", "west", "east"])[np.arange(rows) % 4],
        "smoker": np.where(np.arange(rows) % 3 == 0, "yes", "no"),
    }
    names = {"dpmc": dpmc, "people": people}
    exec(block, names)
    parameters = names["run"].draws.parameters
    assert parameters[:4] == ["intercept", "age~s1", "age~s2", "age~s3"]
    assert parameters[-1] == "region=other:smoker=yes"
