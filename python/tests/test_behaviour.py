"""Threads, signals, forks, progress, defects: what a run does to the program around it."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import columns, run_file

import dpmc
from dpmc import _progress

# Seconds within which an interrupted call is back on any machine, however crowded: alone it takes
# under 0.2. What goes on without the interrupt takes far longer.
SOON = 5.0

unix = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and forks as Unix has them")


def endless(**sections):
    """A private run that would last for days."""
    return run_file(run={"iterations": 10**9, "thin": 100, "engine": "cpu"}, **sections)


class Struck:
    """Sends Ctrl-C to this process once a run goes on, and knows when."""

    def __init__(self, after=0.15):
        self.after, self.at, self.begun = after, None, None

    def __call__(self, done, total, acceptance, epsilon):
        now = time.monotonic()
        self.begun = self.begun or now
        if self.at is None and now - self.begun >= self.after:
            threading.Thread(target=self.strike).start()
            self.at = now

    def strike(self):
        self.at = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)


@unix
@pytest.mark.parametrize(
    "run",
    [
        endless(),
        {**endless(sampler={"algorithm": "mh"}), "privacy": {"not_private": True}},
    ],
    ids=["private", "not private"],
)
def test_ctrl_c_ends_a_run_and_keeps_what_was_drawn(run, tmp_path):
    struck = Struck()
    with pytest.warns(dpmc.RunWarning, match="was interrupted"):
        kept = dpmc.sample(run, data=columns(), progress=struck, out=tmp_path / "r")
    took = time.monotonic() - struck.at
    assert took < SOON, f"{took:.3f} s"
    assert kept.status == "interrupted" and len(kept.draws) > 0
    # Certificate, draws and state belong together: the directory is read and goes on.
    again = dpmc.load(tmp_path / "r")
    assert again.draws == kept.draws
    assert again.certificate["iterations"] >= 100 * len(kept.draws)
    # The handler is as it was.
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@unix
def test_ctrl_c_ends_a_step_that_would_last_for_hours(tmp_path):
    """A fit of ten million gradients: nothing is drawn yet, and what was released stays paid."""
    run = run_file(sampler={"algorithm": "dpvi", "steps": 10**7})
    struck = {}

    def strike():
        # Its first state is there once it has begun.
        while not (tmp_path / "r" / "state.json").exists():
            time.sleep(0.01)
        time.sleep(0.2)
        struck["at"] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=strike).start()
    with pytest.warns(dpmc.RunWarning, match="was interrupted"):
        kept = dpmc.sample(run, data=columns(20_000), out=tmp_path / "r")
    assert time.monotonic() - struck["at"] < SOON
    assert (kept.status, len(kept.draws)) == ("interrupted", 0)
    assert kept.certificate["events"]
    assert "interrupted" in repr(kept) and repr(kept.summary()) and kept.draws.to_dict()
    for asked in (kept.plot, kept.intervals, kept.to_arviz, lambda: kept.predict({})):
        with pytest.raises(dpmc.Error, match="before its first draw"):
            asked()


@unix
def test_ctrl_c_while_a_table_is_read_charges_nothing(tmp_path):
    os.mkfifo(tmp_path / "slow.csv")
    run = run_file()
    run["data"]["file"] = str(tmp_path / "slow.csv")
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        dpmc.sample(run, out=tmp_path / "r", ledger=tmp_path / "l")
    assert time.monotonic() - begun < SOON
    # Whoever reads goes on alone, finds a table, and begins no run.
    with open(tmp_path / "slow.csv", "w") as pipe:
        pipe.write("age,town,ill\n" + "30,north,1\n" * 50)
    time.sleep(0.3)
    assert not (tmp_path / "r").exists() and not (tmp_path / "l").exists()


@unix
def test_ctrl_c_ends_a_question_at_once():
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        dpmc.audit("barker", trials=300_000)
    assert time.monotonic() - begun < SOON


def test_numpy_is_all_that_it_needs():
    out = python("""
import sys
for name in ("pandas", "polars", "pyarrow", "matplotlib", "arviz", "sklearn", "IPython"):
    sys.modules[name] = None
import dpmc
from conftest import columns, run_file
run = dpmc.sample(run_file(), data=columns(500), iterations=20)
run.summary(), run.intervals(), run.plot(run.path / "a.svg"), run.report(run.path / "a.html")
for asked in (run.draws.to_pandas, run.to_arviz, run.plot):
    try:
        asked()
    except dpmc.Error as e:
        print(str(e).split("pip install ")[1])
try:
    import dpmc.sklearn
except dpmc.Error as e:
    print(str(e).split("pip install ")[1])
""")
    assert out.split() == ["pandas", "arviz", "matplotlib", "scikit-learn"]


def test_other_threads_run_meanwhile():
    counted = 0
    stop = threading.Event()

    def count():
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begun = time.monotonic()
    dpmc.sample(run_file(), data=columns(), iterations=20_000, progress=False)
    took = time.monotonic() - begun
    stop.set()
    thread.join()
    # A run that held the lock would let the other thread count a few times at most.
    assert counted > 20 * took


def test_runs_in_threads_agree_with_runs_alone(table):
    exact = {"not_private": True, "algorithm": "mh", "iterations": 200}
    alone = [dpmc.sample(run_file(), data=table, seed=s, **exact).draws for s in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(
            pool.map(lambda s: dpmc.sample(run_file(), data=table, seed=s, **exact).draws, range(4))
        )
    assert alone == together


def test_threads_with_one_ledger_pay_once(table, tmp_path):
    """Each of them wants the whole budget: one gets it, and the others nothing."""
    run = run_file(sampler={"algorithm": "dp-laplace"})

    def one(i):
        try:
            out = tmp_path / f"r{i}"
            return dpmc.sample(run, data=table, ledger=tmp_path / "l", iterations=200, out=out)
        except dpmc.BudgetError as e:
            assert "in use by another run" in str(e) or "is left" in str(e)
            return None

    with ThreadPoolExecutor(6) as pool:
        runs = [r for r in pool.map(one, range(6)) if r is not None]
    assert len(runs) == 1 and runs[0].certificate["epsilon"] == 4.0
    left = [i for i in range(6) if (tmp_path / f"r{i}").exists()]
    assert len(left) == 1


def python(code):
    """Runs code in a process of its own; not from the folder of the sources, which it would import."""
    folder = os.path.dirname(__file__)
    code = f"import sys; sys.path.insert(0, {folder!r})\n" + code
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


FORK = """
import os, dpmc
from conftest import columns, run_file
def tried():
    try:
        dpmc.check(run_file(), data=columns(200))
        return "worked"
    except dpmc.Error as e:
        return "refused" if "forked" in str(e) else "failed"
FIRST
child = os.fork()
if child == 0:
    print(tried(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(tried())
"""


@unix
def test_a_fork_after_threads_is_refused_and_one_before_works():
    assert python(FORK.replace("FIRST", "tried()")).split() == ["refused", "worked"]
    assert python(FORK.replace("FIRST", "")).split() == ["worked", "worked"]


def test_a_fork_removes_no_run_of_its_parent():
    out = python("""
import os, dpmc
from conftest import columns, run_file
run = dpmc.sample(run_file(), data=columns(500), iterations=20)
child = os.fork()
if child == 0:
    del run
    raise SystemExit
os.waitpid(child, 0)
print(run.path.exists(), len(run.draws))
""")
    assert out.split() == ["True", "20"]


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_at_terminals_alone(table, monkeypatch):
    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    dpmc.sample(run_file(), data=table, iterations=30_000)
    assert quiet.getvalue() == ""
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    dpmc.sample(run_file(), data=table, iterations=30_000, progress=False)
    assert screen.getvalue() == ""
    dpmc.sample(run_file(), data=table, iterations=200_000)
    shown = screen.getvalue()
    assert "of 200,000 iterations" in shown and "\u03b5" in shown and "acceptance" in shown
    assert shown.endswith("\r\x1b[2K")


def test_a_notebook_updates_one_line(monkeypatch):
    class Handle:
        def __init__(self):
            self.seen = []

        def update(self, shown, raw):
            self.seen.append(shown["text/plain"])

    handle = Handle()
    made = type("ZMQInteractiveShell", (), {})()
    ipython = type(sys)("IPython")
    ipython.get_ipython = lambda: made
    ipython.display = type(sys)("IPython.display")
    ipython.display.display = lambda shown, raw, display_id: handle
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    shown = _progress.chosen(None)
    shown(10, 100, 0.5, 1.0)
    shown(15, 100, 0.5, 1.0)  # Too soon to be seen.
    shown.last -= 1.0
    shown(20, 100, 0.5, None)
    shown.close()
    assert len(handle.seen) == 2 and "NOT private" in handle.seen[0] and handle.seen[1] == ""


def test_an_error_of_the_progress_function_ends_the_run_whole(tmp_path):
    class Mine(Exception):
        pass

    def progress(done, total, acceptance, epsilon):
        raise Mine

    with pytest.raises(Mine):
        dpmc.sample(endless(), data=columns(), progress=progress, out=tmp_path / "r")
    assert dpmc.load(tmp_path / "r").status == "interrupted"


def test_a_defect_is_an_error_that_shows_no_value(capfd):
    with pytest.raises(dpmc.Error, match="a defect of dpmc") as caught:
        dpmc._dpmc.panic_for_tests()
    said = str(caught.value) + "".join(capfd.readouterr())
    assert "errors.rs:" in said and "4711" not in said


def test_bad_input_has_a_key_and_makes_nothing(table, tmp_path):
    out = tmp_path / "r"

    def refused(run, **arguments):
        with pytest.raises(dpmc.InputError) as caught:
            dpmc.sample(run, data=table, out=out, **arguments)
        assert not out.exists()
        return caught.value

    assert isinstance(refused(run_file(), epsilon=-1.0), dpmc.BudgetError)
    assert refused(run_file(), epsilon=-1.0).key == "epsilon="
    assert refused(run_file(), iterations=0).key == "iterations="
    assert "is unknown" in str(refused(run_file(), algorithm="nuts"))
    assert refused(run_file(), engine="tpu")
    assert refused(run_file(sampler={"algorithm": "anchored-barker", "stpe": 1})).key == "stpe"
    bad = run_file(model={"kind": "logistic", "prior": {"kind": "normal", "sd": -5.0}})
    error = refused(bad)
    assert error.key.startswith("model.prior") and str(error).startswith("model.prior")
    assert refused(run_file(privacy={}))
    assert "line" in str(refused("[data]\nname = 'x'\nfile = 'y'\nwrong = 1\n"))
    assert isinstance(refused(3), ValueError)
    assert refused({**run_file(), "run": {"iterations": object()}})
    with pytest.raises(dpmc.InputError, match="no such run file"):
        dpmc.sample("absent.toml")


def test_a_repr_holds_what_is_released_alone(run):
    assert repr(run) == "<dpmc.Run: (4.0000, 1e-06)-DP, finished, 3 parameters>"
    assert repr(run.draws) == "<dpmc.Draws of 3 parameters: 1 chain(s), 1000 draws each>"
