"""From a run file, a text or a dict to draws beside their certificate."""

import gc
import json
import logging
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from conftest import columns, run_file

import dpmc

EXAMPLES = Path(__file__).parents[2] / "examples"


def written(folder, table, **changes):
    """A run file and its table on disk."""
    lines = ["age,town,ill"]
    lines += [f"{a},{t},{i}" for a, t, i in zip(table["age"], table["town"], table["ill"])]
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    text = """
[data]
file = "people.csv"
[data.label]
column = "ill"
[[data.features]]
intercept = true
[[data.features]]
column = "age"
scale = [20, 80]
[[data.features]]
column = "town"
indicator = { in = ["north"] }
[model]
kind = "logistic"
prior = { kind = "normal", sd = 5.0 }
[sampler]
algorithm = "anchored-barker"
[run]
iterations = 1000
engine = "cpu"
[privacy]
epsilon = 4.0
delta = 1e-6
"""
    (folder / "people.toml").write_text(text)
    return text


def test_a_run_has_draws_beside_their_certificate(run):
    c = run.certificate
    assert (c["private"], c["epsilon"], c["delta"]) == (True, 4.0, 1e-6)
    assert run.status == "finished" and c["rows"] == 2000
    assert run.draws.parameters == ["intercept", "age", "town=north"]
    assert run.draws.to_numpy().shape == (1, 1000, 3)
    assert len(run.draws) == 1000 and run.draws.chains == 1
    # What made the table, in units of half the range of ages: slope 2 and 1.
    low, high = run.intervals(0.999)["age"]
    assert 1.0 < low < 2.0 < high < 3.0
    assert run.path.stat().st_mode & 0o077 == 0


def test_path_text_and_dict_are_the_same_run(tmp_path, table, monkeypatch):
    text = written(tmp_path, table)
    monkeypatch.chdir(tmp_path)
    as_dict = run_file()
    as_dict["data"]["file"] = "people.csv"
    arguments = {"not_private": True, "seed": 3, "algorithm": "mh", "iterations": 50}
    runs = [dpmc.sample(run, **arguments) for run in ("people.toml", text, as_dict)]
    assert runs[0].draws == runs[1].draws == runs[2].draws
    # The same rows from memory give the same bits.
    assert dpmc.sample(run_file(), data=table, **arguments).draws == runs[0].draws


def test_two_private_runs_have_fresh_coins(table, run):
    assert dpmc.sample(run_file(), data=table, seed=1).draws != run.draws


def test_arguments_override_the_run_file(table):
    run = dpmc.sample(run_file(), data=table, epsilon=2.0, delta=1e-5, iterations=20)
    assert (run.certificate["epsilon"], run.certificate["delta"]) == (2.0, 1e-5)
    assert len(run.draws) == 20


def test_draws_leave_in_every_format(run):
    frame = run.draws.to_pandas()
    assert list(frame.columns) == ["chain", "draw", "intercept", "age", "town=north"]
    assert np.array_equal(frame["age"], run.draws["age"].ravel())
    assert run.draws.to_polars()["age"].to_numpy().tolist() == frame["age"].tolist()
    assert run.draws.to_arrow().num_rows == 1000
    assert polars.DataFrame(run.draws).shape == (1000, 5)
    assert pyarrow.table(run.draws).column_names == list(frame.columns)
    with pytest.raises(KeyError):
        run.draws["absent"]


def test_the_summary_is_the_commands(run):
    summary = run.summary()
    means = {p["name"]: p["mean"] for p in summary["parameters"]}
    assert means["age"] == pytest.approx(run.draws["age"].mean())
    assert len(summary["noise_aware"]) == 3
    assert summary.to_pandas().loc["age", "mean"] == means["age"]
    assert "town=north" in repr(summary) and isinstance(run.notes, list)


def test_arviz_has_draws_and_certificate(run, recwarn):
    data = run.to_arviz()
    posterior = data["posterior"]
    assert posterior["age"].shape == (1, 1000)
    moved = data["sample_stats"]["moved"].values
    same = run.draws["age"][0, 1:] == run.draws["age"][0, :-1]
    assert moved.shape == (1, 1000) and moved[0, 0] and (moved[0, 1:] == ~same).all()
    assert json.loads(posterior.attrs["certificate"])["epsilon"] == 4.0


def test_pictures_and_pages_say_what_they_show(run, tmp_path):
    figure = run.plot(tmp_path / "a.png")
    title = figure.axes[0].get_title(loc="left")
    assert title == "Posterior of people (2,000 rows), private at \u03b5 = 4, \u03b4 = 1e-06"
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert run.plot(tmp_path / "a.svg") is None
    svg = (tmp_path / "a.svg").read_text()
    assert "people (2000 rows), private at" in svg and "the noise for privacy included" in svg
    page = run.report(tmp_path / "a.html").read_text()
    assert "Differentially private" in page
    open_run = dpmc.sample(run_file(), data=columns(300), not_private=True, algorithm="mh")
    assert "NOT private" in open_run.plot().axes[0].get_title(loc="left")


def test_names_with_dollars_are_drawn_as_they_are():
    given = columns(300)
    given["$\\bad{$"] = given.pop("age")
    asked = run_file()
    asked["data"]["name"] = "$a_b$"
    for feature in asked["data"]["features"]:
        if feature.get("column") == "age":
            feature["column"] = "$\\bad{$"
    run = dpmc.sample(asked, data=given, not_private=True, algorithm="mh")
    # Mathematics that cannot be read raises an error when it is drawn.
    assert run.plot()._repr_png_().startswith(b"\x89PNG")


def test_saved_loaded_and_resumed(table, tmp_path):
    run = dpmc.sample(run_file(), data=table, iterations=200)
    before = run.draws.to_numpy()
    temporary = run.path
    saved = run.save(tmp_path / "below" / "kept")
    assert run.path == saved and not temporary.exists()
    with pytest.raises(dpmc.InputError, match="exists already"):
        run.save(saved)
    del run
    again = dpmc.load(saved)
    assert np.array_equal(again.draws.to_numpy(), before)
    with pytest.raises(dpmc.InputError, match="give it again as data="):
        again.resume(iterations=400)
    again.resume(data=table, iterations=400)
    assert len(again.draws) == 400
    assert np.array_equal(again.draws.to_numpy()[:, :200], before)
    assert again.certificate["epsilon"] == 4.0
    with pytest.raises(dpmc.InputError):
        dpmc.load(tmp_path)


def test_what_is_left_of_a_budget_is_there_once(table, tmp_path):
    kept = dpmc.sample(run_file(), data=table, iterations=200, out=tmp_path / "kept")
    copy = dpmc.load(kept.save(tmp_path / "copy"))
    assert copy.draws == kept.draws and not (copy.path / "ledger.json").exists()
    pickled = pickle.loads(pickle.dumps(kept))
    for other in (copy, dpmc.load(pickled.save(tmp_path / "pickled"))):
        with pytest.raises(dpmc.Error, match="ledger"):
            other.resume(data=table, iterations=400)
        assert len(other.draws) == 200
    assert len(kept.resume(data=table, iterations=400).draws) == 400


def test_a_temporary_run_goes_with_its_object(table):
    run = dpmc.sample(run_file(), data=table, iterations=20)
    path = run.path
    assert path.exists()
    del run
    gc.collect()
    assert not path.exists()


def test_an_out_directory_stays_and_is_never_overwritten(table, tmp_path):
    out = tmp_path / "run"
    dpmc.sample(run_file(), data=table, iterations=20, out=out)
    before = (out / "certificate.json").read_bytes()
    with pytest.raises(dpmc.InputError, match="is not empty"):
        dpmc.sample(run_file(), data=table, iterations=20, out=out)
    assert (out / "certificate.json").read_bytes() == before


def test_a_pickled_run_can_be_read_and_not_spend(run):
    again = pickle.loads(pickle.dumps(run))
    assert again.draws == run.draws and again.certificate == run.certificate
    assert repr(again.summary()) == repr(run.summary())
    assert not (again.path / "ledger.json").exists()
    with pytest.raises(dpmc.InputError, match="holds no ledger"):
        again.resume(iterations=2000)
    assert pickle.loads(pickle.dumps(run.draws)) == run.draws
    error = pickle.loads(pickle.dumps(dpmc.BudgetError("spent", "ledger")))
    assert (str(error), error.key) == ("spent", "ledger")


def test_a_pickle_writes_nowhere_else(run, tmp_path):
    state = run.__getstate__()
    for name in ["../x", "draws.parquet/../../x", "/tmp/x", ".."]:
        made = dpmc.Run.__new__(dpmc.Run)
        with pytest.raises(dpmc.InputError, match="of no run"):
            made.__setstate__({"files": {name: b""}})
    assert set(state) == {"files"}


def test_runs_share_a_ledgers_budget(table, tmp_path):
    ledger = dpmc.Ledger(tmp_path / "people.ledger")
    assert not ledger.exists and ledger.budget is None
    free = run_file(sampler={"algorithm": "dp-laplace"})
    first = dpmc.sample(free, data=table, ledger=ledger, iterations=20)
    assert ledger.exists and ledger.budget == (4.0, 1e-6) and ledger.filter
    assert first.certificate["ledger"]
    with pytest.raises(dpmc.BudgetError) as refused:
        dpmc.sample(free, data=table, ledger=ledger, iterations=20)
    assert refused.value.key == "ledger" and "of the ledger's budget is left" in str(refused.value)
    other = run_file(sampler={"algorithm": "dp-laplace"})
    other["data"]["name"] = "others"
    with pytest.raises(dpmc.BudgetError, match="of data set 'people'"):
        dpmc.sample(other, data=table, ledger=ledger)


def test_private_runs_are_recorded_as_the_commands_are(table, tmp_path, monkeypatch):
    monkeypatch.setenv("DPMC_RECORDS", str(tmp_path / "records"))
    dpmc.sample(run_file(), data=table, iterations=20)
    # From another folder: a table in memory is known by its name.
    monkeypatch.chdir(tmp_path)
    with pytest.warns(dpmc.RunWarning, match="adds up to epsilon"):
        again = dpmc.sample(run_file(), data=table, iterations=20)
    assert any("adds up to" in w for w in again.warnings)
    assert any("adds up to" in w for w in dpmc.check(run_file(), data=table)["warnings"])


def test_check_spends_nothing(table, tmp_path):
    ledger = tmp_path / "l"
    report = dpmc.check(run_file(), data=table, ledger=ledger, epsilon=1.0, delta=1e-6)
    assert report["table"]["rows"] == 2000 and report["budget"]["epsilon"] == 1.0
    assert not ledger.exists()


def test_accounting_and_calibration():
    gaussian = {
        "neighbours": "substitution",
        "events": [{"kind": "gaussian", "sensitivity": 1.0, "sigma": 4.0, "count": 1}],
    }
    answer = dpmc.account(gaussian, delta=1e-6)
    assert answer["lower"] <= answer["upper"] == answer["epsilon"]
    found = dpmc.calibrate(gaussian, epsilon=1.0, delta=1e-6, solve="sigma")
    assert found["solution"]["field"] == "sigma" and found["epsilon"] <= 1.0
    with pytest.raises(dpmc.InputError, match="one of delta and epsilon"):
        dpmc.account(gaussian)
    with pytest.raises(dpmc.InputError):
        dpmc.account({"events": [{"kind": "none"}]}, delta=1e-6)


def test_a_table_in_many_files_is_the_table(tmp_path, table, monkeypatch):
    written(tmp_path, table)
    monkeypatch.chdir(tmp_path)
    header, *rows = (tmp_path / "people.csv").read_text().splitlines()
    for place in ("plain", "folders/part=s3cret"):
        (tmp_path / place).mkdir(parents=True)
        for k, piece in enumerate((rows[:700], rows[700:701], rows[701:])):
            (tmp_path / place / f"{k}.csv").write_text("\n".join([header, *piece]) + "\n")
    arguments = {"not_private": True, "seed": 3, "algorithm": "mh", "iterations": 50}
    run = run_file()
    draws = []
    for file in ("people.csv", "plain", "plain/*.csv", Path("folders")):
        run["data"]["file"] = file
        draws.append(dpmc.sample(run, **arguments).draws)
        assert dpmc.check(run)["table"]["rows"] == 2000
    assert all(d == draws[0] for d in draws)
    assert 'name = "folders"' in dpmc.init("folders") and "\npart = { scale" in dpmc.init("folders")
    (tmp_path / "folders/part=s3cret/1.csv").write_text(f"{header}\n30,north,s3cret\n")
    with pytest.raises(dpmc.InputError, match=r"part=…/1.csv \(file 2 by name\), line 2") as e:
        dpmc.sample(run, **arguments)
    assert "s3cret" not in str(e.value) and e.value.key == "ill"


def test_an_audit_attacks_a_sampler():
    report = dpmc.audit("barker", trials=2000, seed=1)
    assert report["verdict"] == "consistent" and report["epsilon_lower"] <= report["claim"]
    with pytest.raises(dpmc.InputError):
        dpmc.audit("none")


def test_a_runs_cost_is_accounted_for(run):
    assert dpmc.account(run, delta=1e-6)["lower"] <= 4.0


def test_init_writes_names_and_no_bound(tmp_path, table):
    written(tmp_path, table)
    text = dpmc.init(tmp_path / "people.csv")
    assert "\nage = { scale = [LOW, HIGH] }\n" in text
    for frame in (table, pandas.DataFrame(table), polars.DataFrame(table), pyarrow.table(table)):
        of_frame = dpmc.init(frame)
        assert of_frame == dpmc.init(polars.DataFrame(table).lazy()[:0])
        assert 'name = "table"' in of_frame and "\nage = { scale" in of_frame
        assert of_frame.splitlines()[10:] == text.splitlines()[10:]
    assert "\nx0 = { scale = [LOW, HIGH] }\nx1 = { scale" in dpmc.init(np.ones((2, 3)))
    # It cannot be run before somebody declares what is public.
    with pytest.raises(dpmc.InputError, match="replace LOW and HIGH"):
        dpmc.sample(text, epsilon=1.0, delta=1e-6)


def test_the_main_job_in_the_repository():
    example = (
        (EXAMPLES / "adult_anchored.toml")
        .read_text()
        .replace("data/adult", str(EXAMPLES / "data/adult"))
    )
    run = dpmc.sample(example, iterations=500, engine="cpu")
    assert run.certificate["rows"] == 32561 and len(run.draws.parameters) == 12
    assert run.summary()["test_accuracy"] > 0.8


def test_the_readme_leads_to_a_picture(tmp_path, monkeypatch):
    """Its run file, and the eight lines of Python below it."""
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    toml, lines = (readme.split(f"```{kind}\n")[1].split("```")[0] for kind in ("toml", "python"))
    assert len(lines.splitlines()) == 8
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "first.toml").write_text(toml)
    monkeypatch.chdir(tmp_path)
    exec(lines, {})
    assert "marital-status" in (tmp_path / "first.svg").read_text()
    assert (tmp_path / "first.html").exists()


def test_predictions_are_of_ones_own_rows(run, table):
    new = {"age": np.array([20.0, 80.0]), "town": np.array(["south", "north"])}
    low, high = run.predict(new)
    assert 0 < low < 0.2 and 0.8 < high < 1
    names, rows = run.features(new)
    assert names == run.draws.parameters
    assert rows.tolist() == [[1, -1, 0], [1, 1, 1]]


def test_steps_are_logged_and_nothing_else(table, caplog):
    with caplog.at_level(logging.INFO, logger="dpmc"):
        dpmc.sample(run_file(), data=table, iterations=20)
    said = caplog.text
    assert "a run on table 'people' begins" in said and "is finished" in said
    assert not re.search(r"\d\.\d{4}", said)


def test_its_version_is_the_librarys():
    workspace = (EXAMPLES.parent / "Cargo.toml").read_text().split("[workspace.package]")[1]
    assert f'version = "{dpmc.__version__}"' in workspace.split("[")[0]


def test_devices_are_listed():
    assert isinstance(dpmc.devices(), list)


def test_the_package_is_typed():
    folder = Path(dpmc.__file__).parent
    assert (folder / "py.typed").exists()
    native = dpmc._dpmc
    stub = (folder / "_dpmc.pyi").read_text()
    for name in [n for n in dir(native) if not n.startswith("__")]:
        assert re.search(rf"(def|class) {name}\b", stub), name
        assert native.__dict__[name].__doc__, name


def test_a_table_in_memory_is_no_file_of_the_command(table, tmp_path):
    run = dpmc.sample(run_file(), data=table, iterations=20, out=tmp_path / "r")
    assert "people.frame" in run.run_file
    shutil.copy(run.path / "run.toml", tmp_path / "again.toml")
    with pytest.raises(dpmc.InputError, match="a program held in memory") as refused:
        dpmc.sample(tmp_path / "again.toml")
    assert refused.value.key == "data.file"


def test_rows_on_disk_give_the_same_draws(table, tmp_path):
    written(tmp_path, table)
    path, kept = tmp_path / "people.toml", tmp_path / "kept"
    fixed = {"not_private": True, "algorithm": "mh", "seed": 3, "iterations": 50}
    memory = dpmc.sample(path, **fixed)
    disk = dpmc.sample(path, **fixed, memory="1K", cache=kept)
    assert disk.draws == memory.draws
    assert len(list(kept.iterdir())) == 3
    assert dpmc.check(path, memory=1024, cache=kept)["memory"]["on_disk"]
    with pytest.raises(dpmc.InputError, match="memory=: write a number of bytes"):
        dpmc.sample(path, **fixed, memory="lots")
