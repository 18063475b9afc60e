"""From draws to answers: predictions, effects, comparisons, made-up labels."""

import numpy as np
import pandas
import pytest
from conftest import run_file

import dpmc


def test_predictions_come_with_intervals_and_effects(run, table):
    new = {"age": np.array([20.0, 50.0, 80.0]), "town": np.array(["south", "north", "north"])}
    told = run.predict(new, intervals=0.8)
    assert list(told) == ["probability", "probability_low", "probability_high"]
    assert told["probability"] == pytest.approx(run.predict(new))
    assert (told["probability_low"] < told["probability"]).all()
    assert (told["probability"] < told["probability_high"]).all()
    assert run.predict({"age": [20.0], "town": ["south"]}) == pytest.approx(told["probability"][:1])
    effects = run.effects(
        new, shift={"age": 10}, set={"town": "north"}, contrast={"town": ("south", "north")}
    )
    assert [e["change"] for e in effects["effects"]] == ["age+10", "town=north", "town=south:north"]
    older = dict(new, age=np.minimum(new["age"] + 10, 80))
    expected = (run.predict(older) - run.predict(new)).mean()
    assert effects["effects"][0]["effect"] == pytest.approx(expected, abs=1e-4)
    with pytest.raises(dpmc.InputError, match="no level of column 'town'"):
        run.effects(new, set={"town": "east"})
    with pytest.raises(dpmc.InputError, match="shift="):
        run.effects(new)
    with pytest.raises(dpmc.InputError, match="between 0 and 1"):
        run.predict(new, intervals=2)
    with pytest.raises(dpmc.InputError, match="from 1 on"):
        run.predict(new, draws=0)
    with pytest.raises(dpmc.InputError, match="'town'"):
        run.predict({"age": [20.0]})


def test_labels_are_made_up_and_compared(run, table):
    new = {"age": np.linspace(18, 90, 400), "town": np.array(["south", "north"] * 200)}
    made = run.synthesize(new, sets=3, seed=1)
    assert len(made) == 3 and {len(labels) for labels in made} == {400}
    again = run.synthesize(new, sets=3, seed=1)
    assert all((a == b).all() for a, b in zip(made, again))
    told = run.compare({**new, "ill": made[0]})
    assert told["rows"] == 400 and told["label"] == "ill" and told["calibration"]
    with pytest.raises(dpmc.InputError, match=r"\[test\]"):
        run.compare()
    with pytest.raises(dpmc.InputError, match="of its own"):
        run.synthesize(new, sets=10**9)


def test_numbers_are_predicted_in_the_labels_own_units():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 10, 500)
    people = {"x": x, "y": 100 + 2 * x + rng.normal(0, 1, 500)}
    run = dpmc.sample(
        {
            "data": {
                "name": "people",
                "label": {"column": "y", "scale": [90, 130]},
                "features": [{"intercept": True}, {"column": "x", "scale": [0, 10]}],
            },
            "model": {
                "kind": "linear",
                "variance": 0.0025,
                "prior": {"kind": "normal", "sd": 2.0},
            },
            "sampler": {"algorithm": "hmc"},
            "run": {"iterations": 400, "warmup": 200},
        },
        data=people,
        not_private=True,
    )
    new = {"x": [0.0, 10.0]}
    assert run.predict(new) == pytest.approx([100.0, 120.0], abs=1.5)
    told = run.predict(new, intervals=0.9)
    width = told["label_high"] - told["label_low"]
    assert width == pytest.approx([2 * 1.645] * 2, rel=0.1)


def test_protected_rows_are_scored_at_a_price(tmp_path, table):
    pandas.DataFrame(table).to_csv(tmp_path / "others.csv", index=False)
    settings = run_file()
    settings["validate"] = {
        "file": str(tmp_path / "others.csv"),
        "clip": [-3, 0],
        "epsilon": 2.0,
        "delta": 1e-6,
        "ledger": str(tmp_path / "others.ledger.json"),
    }
    run = dpmc.sample(settings, data=table, not_private=True, algorithm="mh", iterations=50, seed=3)
    told = run.validate()
    assert -3 < told["log_score"] < 0.5 and told["epsilon"] == 2.0
    assert told["rows"] == len(table["age"]) and told["accuracy_sd"] > 0
    with pytest.raises(dpmc.InputError, match="budget is spent"):
        run.validate()


def test_an_offset_is_added_as_it_is():
    rng = np.random.default_rng(2)
    years = rng.uniform(0.2, 8, 600)
    people = {"events": rng.poisson(1.5 * years), "years": years, "age": rng.uniform(20, 80, 600)}
    run = dpmc.sample(
        people,
        formula="events ~ age + offset(log(years))",
        columns={
            "events": {"count": 60},
            "years": {"clamp": (0.1, 10)},
            "age": {"scale": (20, 80)},
        },
        model={"kind": "poisson", "prior": {"kind": "normal", "sd": 3.0}},
        not_private=True,
        algorithm="hmc",
        iterations=300,
        seed=1,
    )
    assert run.draws.parameters == ["intercept", "age"]
    new = {"years": [1.0, 4.0], "age": [50.0, 50.0]}
    one, four = run.predict(new)
    assert four / one == pytest.approx(4, rel=1e-3) and one == pytest.approx(1.5, rel=0.2)
    names, values = run.features(new)
    assert names == ["intercept", "age", "offset"]
    assert values[:, 2] == pytest.approx(np.log(new["years"]), abs=1e-3)


def test_made_up_ordered_labels_are_level_texts():
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, 3000)
    levels = ["never", "sometimes", "often"]
    grade = np.digitize(2 * x + rng.logistic(size=3000), [-1.0, 1.0])
    people = {"x": x, "smokes": np.array(levels)[grade]}
    run = dpmc.sample(
        {
            "data": {
                "name": "people",
                "label": {"column": "smokes", "levels": levels},
                "features": [{"column": "x", "scale": [-1, 1]}],
            },
            "model": {"kind": "ordinal", "prior": {"kind": "normal", "sd": 2.0}},
            "sampler": {"algorithm": "dp-laplace"},
            "run": {"iterations": 500},
            "privacy": {"epsilon": 6.0, "delta": 1e-6},
        },
        data=people,
    )
    low, high = (run.synthesize({"x": np.full(2000, at)}, sets=1, seed=1)[0] for at in (-1.0, 1.0))
    assert set(low) | set(high) == set(levels)
    # As often as the law that made the table says: P(y < k) = 1/(1 + exp(eta - cut)).
    assert (low == "never").mean() == pytest.approx(1 / (1 + np.exp(-1.0)), abs=0.12)
    assert (high == "often").mean() == pytest.approx(1 / (1 + np.exp(-1.0)), abs=0.12)
    told = run.compare({"x": x[:50], "smokes": people["smokes"][:50]})
    assert told["rows"] == 50
