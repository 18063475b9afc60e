"""Runs: from a run file, a text or a dict to draws beside their certificate."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _dpmc, _plot
from ._draws import Draws, needed
from ._errors import Error, InputError, RunWarning
from ._formula import ByFormula, Column, chosen_model
from ._progress import Progress, Shown, chosen
from ._tables import names, table

log = logging.getLogger("dpmc")

#: What a pickled run holds: all that its readers need, not its ledger.
_PICKLED = ("run.toml", "certificate.json", "state.json")


def _plain(value: Any) -> Any:
    """What JSON does not know: paths and NumPy's numbers."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (np.integer, np.floating, np.bool_)):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} belongs to no run file")


def plan(run: Any, frame: bool) -> _dpmc.Plan:
    """A run file as it is given: a path, TOML text (which has line breaks), or a dict."""
    if isinstance(run, Mapping):
        try:
            text = json.dumps(dict(run), default=_plain, allow_nan=False)
        except (TypeError, ValueError) as e:
            raise InputError(f"the run's dict: {e}", None) from None
        return _dpmc.Plan.of_dict(text, Path.cwd(), frame)
    if isinstance(run, str) and "\n" in run:
        return _dpmc.Plan.parse(run, Path.cwd() / "run.toml", frame)
    if isinstance(run, (str, os.PathLike)):
        if frame:
            try:
                text = Path(run).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError):
                return _dpmc.Plan.read(Path(run))
            return _dpmc.Plan.parse(text, Path(run), frame)
        return _dpmc.Plan.read(Path(run))
    raise InputError("give a run file's path, its text, or a dict of the same shape", "run")


def prepared(run: Any, data: Any, arguments: dict[str, Any]) -> tuple[_dpmc.Plan, Any]:
    """The plan with its keyword arguments, and its table where that is in memory."""
    frame = data is not None
    if frame and (arguments["memory"], arguments["cache"]) != (None, None):
        raise InputError("memory=, cache=: are for tables in files; data= is in memory", "memory=")
    ledger = arguments.get("ledger")
    if ledger is not None:
        path = ledger.path if isinstance(ledger, Ledger) else ledger
        arguments = {**arguments, "ledger": Path(path).absolute()}
    settings = plan(run, frame).with_(**arguments, frame=frame)
    return settings, table(data, settings.columns()) if frame else None


class Ledger:
    """A ledger file, out of whose budget all runs on one table pay.

    Give it to :func:`sample` as ``ledger``. The first run makes the file, with its own budget; no
    two runs use it at once (the second one is refused), in whatever threads or processes.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        """Whether a run has made it yet."""
        return _dpmc.ledger(self.path) is not None

    @property
    def budget(self) -> tuple[float, float] | None:
        """Epsilon and delta that it holds in all; ``None`` before the first run."""
        terms = _dpmc.ledger(self.path)
        return None if terms is None else terms[:2]

    @property
    def filter(self) -> str | None:
        """What it counts, in words; ``None`` before the first run."""
        terms = _dpmc.ledger(self.path)
        return None if terms is None else terms[2]

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __repr__(self) -> str:
        return f"dpmc.Ledger({os.fspath(self.path)!r})"


class Summary(dict):
    """What ``dpmc summary --json`` gives: ``parameters``, ``noise_aware``, ``certificate``, …"""

    def __repr__(self) -> str:
        head = ("mean", "sd", "q5", "q50", "q95", "ess_bulk", "r_hat")
        rows = self["parameters"]
        width = max([len(p["name"]) for p in rows] + [9])
        lines = [" ".join(["parameter".ljust(width), *(h.rjust(9) for h in head)])]
        for p in rows:
            cells = [f"{p[h]:9.4f}" if p[h] is not None else "nan".rjust(9) for h in head]
            lines.append(" ".join([p["name"].ljust(width), *cells]))
        return "\n".join(lines)

    def to_pandas(self) -> Any:
        """A pandas frame with a row for each parameter."""
        frame = needed("pandas", "to_pandas()").DataFrame(self["parameters"])
        return frame.set_index("name")


class Run:
    """A run's draws beside their certificate. Everything it shows is released."""

    def __init__(self, path: Path, *, own: bool = False, resumable: bool = True) -> None:
        self._path = Path(path)
        self._draws: Draws | None = None
        self._summary: Summary | None = None
        self._resumable = resumable
        # A folder of this object's own goes with it, in this process alone.
        self._clean = weakref.finalize(self, _remove, self._path, os.getpid()) if own else None

    @property
    def path(self) -> Path:
        """The run's directory: temporary, and gone with this object, without ``out`` or
        :meth:`save`."""
        return self._path

    @property
    def draws(self) -> Draws:
        """The kept draws of all chains; none, and no parameter, before the first one."""
        if self._draws is None:
            names, chains, length, values = _dpmc.draws(self._path)
            shape = (len(names), chains, length)
            self._draws = Draws(names, np.frombuffer(values, dtype=np.float64).reshape(shape))
        return self._draws

    @property
    def certificate(self) -> dict[str, Any]:
        """What the draws may reveal, and what was charged for them."""
        return json.loads((self._path / "certificate.json").read_text(encoding="utf-8"))

    @property
    def status(self) -> str:
        """``finished``, ``budget spent`` or ``interrupted``, as the certificate says."""
        return self.certificate["status"]

    @property
    def run_file(self) -> str:
        """The resolved run file: all that was asked, with paths absolute."""
        return (self._path / "run.toml").read_text(encoding="utf-8")

    def _table_name(self) -> str:
        return _dpmc.Plan.read(self._path / "run.toml").dataset()

    def summary(self) -> Summary:
        """Moments, quantiles, effective draws and R-hat of each parameter; printed as a table."""
        if self._summary is None:
            self._summary = Summary(json.loads(_dpmc.summary(self._path)))
        return self._summary

    @property
    def notes(self) -> list[str]:
        """Where the summary would mislead a reader."""
        return list(self.summary()["notes"])

    @property
    def warnings(self) -> list[str]:
        """What the certificate warns of."""
        return list(self.certificate.get("warnings", []))

    def intervals(self, level: float = 0.9) -> dict[str, tuple[float, float]]:
        """Central intervals of all parameters that hold ``level`` of the draws."""
        if not 0.0 < level < 1.0:
            raise InputError(f"level must lie between 0 and 1, not {level}", "level")
        tail = 50.0 * (1.0 - level)
        flat = self._drawn().flat()
        low, high = np.percentile(flat, [tail, 100.0 - tail], axis=0)
        return {n: (float(a), float(b)) for n, a, b in zip(self.draws.parameters, low, high)}

    def features(self, data: Any) -> tuple[list[str], np.ndarray]:
        """Names and values (float32, rows by features) of what ``data`` is by the run's
        declarations, without a label. A model with an offset has it in a last column, "offset",
        of which there is no draw: its coefficient is 1. No ledger pays for these rows: they are your own."""
        settings = _dpmc.Plan.read(self._path / "run.toml")
        names, values = _dpmc.features(settings, self._new(data))
        return names, np.frombuffer(values, dtype=np.float32).reshape(-1, len(names))

    def _new(self, data: Any, *, labels: bool = False) -> _dpmc.Table:
        settings = _dpmc.Plan.read(self._path / "run.toml")
        wanted = settings.feature_columns()
        return table(data, [*wanted, *settings.label_columns()] if labels else wanted)

    def predict(
        self, data: Any, *, intervals: float | None = None, draws: int | None = None
    ) -> Any:
        """What is expected of new rows, in the label's own units: probabilities of a binary label,
        a column for each of classes; of a quantile regression the quantile. Averages are over
        draws with the noise for privacy left out.

        With ``intervals``, a level such as 0.9, a dict of arrays as ``dpmc predict`` has columns:
        the same with credible intervals, which hold the noise, and of numbers and counts
        ``label_low`` and ``label_high``, between which a new label lies. ``draws``: how many at
        most.

        No privacy is spent. What is predicted for a row follows that row: whoever sees the
        prediction learns of it.
        """
        self._drawn()
        level = 0.9 if intervals is None else float(intervals)
        names, values, notes = _dpmc.predict(self._path, self._new(data), level, _count(draws))
        columns = {n: np.frombuffer(v, dtype=np.float64) for n, v in zip(names, values)}
        if intervals is not None:
            for note in notes:
                warnings.warn(note, RunWarning, stacklevel=2)
            return columns
        ends = ("_low", "_high")
        means = [column for name, column in columns.items() if not name.endswith(ends)]
        return means[0] if len(means) == 1 else np.stack(means, axis=1)

    def effects(
        self,
        data: Any,
        *,
        shift: Mapping[str, float] | None = None,
        set: Mapping[str, Any] | None = None,
        contrast: Mapping[str, tuple[Any, Any]] | None = None,
        intervals: float = 0.9,
        draws: int | None = None,
    ) -> dict[str, Any]:
        """What a change of a column does to the expected label, on average over the rows of
        ``data``: a number added (``shift``), a value for all rows (``set``), or one against another
        (``contrast={"town": ("north", "south")}``). As ``dpmc effects --json``."""
        self._drawn()
        changes = (
            [(column, float(by)) for column, by in (shift or {}).items()],
            [(column, str(to)) for column, to in (set or {}).items()],
            [(column, str(a), str(b)) for column, (a, b) in (contrast or {}).items()],
        )
        if not any(changes):
            raise InputError("effects(): give shift=, set= or contrast=")
        new = self._new(data)
        return json.loads(_dpmc.effects(self._path, new, changes, intervals, _count(draws)))

    def compare(self, data: Any = None, *, draws: int | None = None) -> dict[str, Any]:
        """Public labels beside what the draws predict: a predictive check. ``data`` holds
        features and label; without it the run file's public ``[test]`` table does. As
        ``dpmc compare --json``. Not for the run's own table, whose labels no ledger pays for."""
        self._drawn()
        new = None if data is None else self._new(data, labels=True)
        return json.loads(_dpmc.compare(self._path, new, _count(draws)))

    def validate(self) -> dict[str, Any]:
        """A score of the draws on the protected held-out table of ``[validate]``, as
        ``dpmc validate --json``. Each call spends a share of that table's budget."""
        self._drawn()
        return json.loads(_dpmc.validate(self._path))

    def synthesize(self, data: Any, *, sets: int = 5, seed: int | None = None) -> list[np.ndarray]:
        """Made-up labels for public features: an array for each set, all of one draw of the
        posterior, in the label's own words. The guide says how to combine estimates."""
        self._drawn()
        if seed is None:
            seed = int.from_bytes(os.urandom(8), "little")
        made, names = _dpmc.synthesize(self._path, self._new(data), _count(sets) or 0, seed)
        arrays = [np.frombuffer(labels, dtype=np.float64) for labels in made]
        if names is None:
            return arrays
        return [np.array(names, dtype=object)[labels.astype(int)] for labels in arrays]

    def _drawn(self) -> Draws:
        if len(self.draws) == 0:
            raise Error("the run ended before its first draw; resume() goes on")
        return self.draws

    def to_arviz(self) -> Any:
        """ArviZ's ``DataTree`` (``InferenceData`` before ArviZ 1): groups ``posterior``, whose
        attributes hold the certificate as JSON, and ``sample_stats`` with ``moved``: whether a
        draw differs from the one before it. Nothing else of a run is released."""
        az = needed("arviz", "to_arviz()")
        draws = self._drawn()
        posterior = {name: draws[name] for name in draws.parameters}
        differ = (np.diff(draws.to_numpy(), axis=1) != 0).any(axis=2)
        # Before the first draw there is nothing to differ from.
        moved = np.concatenate([np.ones((draws.chains, 1), dtype=bool), differ], axis=1)
        groups = {"posterior": posterior, "sample_stats": {"moved": moved}}
        if int(az.__version__.split(".")[0]) >= 1:
            data = az.from_dict(groups)
            group = data["posterior"]
        else:
            data = az.from_dict(**groups)
            group = data.posterior
        group.attrs["inference_library"] = "dpmc"
        group.attrs["inference_library_version"] = _dpmc.__version__
        group.attrs["certificate"] = json.dumps(self.certificate)
        return data

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """The parameters with their intervals, which hold the noise for privacy.

        With a ``path`` that ends in ``.svg`` it is drawn there without another package, as ``dpmc
        summary --plot`` does (densities of up to twelve parameters, intervals of more); else a
        figure of matplotlib is returned, and written to ``path`` where one is given.
        """
        self._drawn()
        if path is not None and os.fspath(path).lower().endswith(".svg"):
            _dpmc.plot(self._path, Path(path))
            return None
        figure = _plot.forest(self)
        if path is not None:
            figure.savefig(path)
        return figure

    def report(self, path: str | os.PathLike[str] = "report.html") -> Path:
        """Writes the run as one page: guarantee, cost, results, warnings. Replaces the file."""
        _dpmc.report(self._path, Path(path))
        return Path(path)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Keeps the run in ``path``, which must not exist; :func:`load` reads it.

        A temporary directory moves there with its ledger, and this object with it. Of a run that
        has a directory already a copy is made to be read, without the ledger: what is left of a
        budget is there once.
        """
        path = Path(path)
        if path.exists():
            raise InputError(f"{path}: exists already; choose another path", "path")
        path.parent.mkdir(parents=True, exist_ok=True)
        if self._clean is None:
            ignored = shutil.ignore_patterns("run.lock", "ledger.json")
            shutil.copytree(self._path, path, ignore=ignored)
        else:
            shutil.move(self._path, path)
            self._clean.detach()
            self._path, self._clean = path, None
        return path

    def resume(
        self,
        *,
        data: Any = None,
        iterations: int | None = None,
        engine: str | None = None,
        memory: str | int | None = None,
        cache: str | os.PathLike[str] | None = None,
        progress: bool | Progress | None = None,
    ) -> Run:
        """Goes on with this run, out of what its ledger has left.

        ``iterations`` (of each chain, in all) may grow. A table in memory must be given again.
        """
        if not self._resumable:
            what = "a pickled run holds no ledger and cannot go on; save() and load() keep it"
            raise InputError(what)
        settings = _dpmc.Plan.read(self._path / "run.toml")
        if settings.is_of_frame() and data is None:
            what = "its table was in memory: give it again as data="
            raise InputError(f"resume(): {what}", "data=")
        if data is not None and not settings.is_of_frame():
            what = "its table is a file, which is read again; leave data= out"
            raise InputError(f"resume(): {what}", "data=")
        frame = data is not None
        arguments = {"iterations": iterations, "engine": engine, **_room(memory, cache)}
        settings = settings.with_(**arguments, frame=frame)
        rows = table(data, settings.columns()) if data is not None else None
        self._draws = self._summary = None
        _go(settings, rows, self._path, True, progress)
        return self._told()

    def _told(self) -> Run:
        for text in [*self.warnings, *self.notes]:
            warnings.warn(text, RunWarning, stacklevel=3)
        return self

    def __repr__(self) -> str:
        c = self.certificate
        if not c["private"]:
            return f"<dpmc.Run: NOT private, {c['status']}>"
        return (
            f"<dpmc.Run: ({c['epsilon']:.4f}, {c['delta']:g})-DP, {c['status']}, "
            f"{len(self.draws.parameters)} parameters>"
        )

    def __getstate__(self) -> dict[str, Any]:
        parts = {
            f"draws.parquet/{part.name}": part.read_bytes()
            for part in sorted((self._path / "draws.parquet").iterdir())
        }
        files = {name: (self._path / name).read_bytes() for name in _PICKLED}
        return {"files": {**files, **parts}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        path = Path(tempfile.mkdtemp(prefix="dpmc-"))
        (path / "draws.parquet").mkdir()
        for name, content in state["files"].items():
            folder, _, file = name.rpartition("/")
            if folder not in ("", "draws.parquet") or "\\" in file or file in ("", "..", "."):
                raise InputError("this pickle is of no run")
            (path / folder / file).write_bytes(content)
        Run.__init__(self, path, own=True, resumable=False)


def _remove(path: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def _count(number: int | None) -> int | None:
    """A number of draws or sets, at least 1."""
    if number is not None and number < 1:
        raise InputError(f"give a number from 1 on, not {number}")
    return number


def _go(
    settings: _dpmc.Plan,
    rows: Any,
    out: Path,
    resume: bool,
    progress: bool | Progress | None,
) -> None:
    told = chosen(progress)
    log.info("a run on table '%s' begins in %s", settings.dataset(), out)
    try:
        status, remarks = _dpmc.sample(settings, out, table=rows, resume=resume, progress=told)
    finally:
        if isinstance(told, Shown):
            told.close()
    for remark in remarks:
        log.info("%s", remark)
    log.info("the run in %s is %s", out, status)
    if status == "interrupted":
        warnings.warn(
            "the run was interrupted: what was drawn is kept; resume() goes on",
            RunWarning,
            stacklevel=3,
        )


def _room(memory: str | int | None, cache: str | os.PathLike[str] | None) -> dict[str, Any]:
    """Where a table's rows may be, for the plan."""
    folder = None if cache is None else Path(cache)
    return {"memory": None if memory is None else str(memory), "cache": folder}


def sample(
    run: Any,
    *,
    data: Any = None,
    formula: str | None = None,
    columns: Mapping[str, Column] | None = None,
    model: str | Mapping[str, Any] | None = None,
    name: str | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    not_private: bool = False,
    algorithm: str | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    chains: int | None = None,
    iterations: int | None = None,
    engine: str | None = None,
    seed: int | None = None,
    memory: str | int | None = None,
    cache: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool | Progress | None = None,
) -> Run:
    """Draws from a posterior.

    ``run`` is a run file's path, its text, or a dict of the same shape: docs/reference/run_file.md
    says what it declares. Bounds and levels come from public knowledge, never from the rows.

    ``data`` is a table in memory in place of the run file's: a frame of pandas, polars or
    pyarrow, a dict of columns, or a NumPy array, whose columns are called x0, x1, …

    ``formula``, such as ``"ill ~ age + ns(bmi, knots=[20, 30]) + region * smoker"``, takes the
    place of a run file. The first argument is then the table (a frame, or a file's path), ``name``
    what ledgers call it, ``columns`` what is public about its columns (:class:`Column`), ``model``
    a kind or a dict of ``[model]``: ``{"kind": "logistic", "prior": {"kind": "normal", "sd": 5}}``.
    docs/guide/formulas.md says what a formula may hold. The sampler is ``anchored-barker`` unless
    ``algorithm`` says otherwise. ``unit`` is the column that says whose a row is, where a person
    has several, and ``rows_per_unit`` how many of one count: docs/guide/persons.md.

    ``epsilon``, ``delta``: the budget, of this run or of its ``ledger``, a file that all runs on
    one table share. ``not_private``: no noise, the draws may reveal any row. ``seed`` fixes
    proposals, which are public; the secret coins of a private run are always fresh.

    ``out``: the directory to make; without it the run lies in a temporary one until
    :meth:`Run.save`. Its budget is spent either way, and recorded as the command does.

    ``memory``, such as ``"8G"``, bounds what the rows of a table in files may take of it: beyond it
    they lie on disk, and in the folder ``cache`` also for later runs, as copies of the rows
    (docs/guide/large_tables.md).

    ``progress``: True, False, a function of iterations made, iterations to make, acceptance and
    epsilon so far, or None, which shows a line at terminals and in notebooks.

    Ctrl-C ends a run; it returns what was drawn. While the table is read, nothing is charged yet,
    and Ctrl-C raises KeyboardInterrupt.

    Raises :class:`InputError` and :class:`BudgetError` before anything is charged, with ``key``.
    """
    arguments = {
        "algorithm": algorithm,
        "epsilon": epsilon,
        "delta": delta,
        "not_private": not_private,
        "ledger": ledger,
        "chains": chains,
        "iterations": iterations,
        "engine": engine,
        "seed": seed,
        **_room(memory, cache),
    }
    asked = ByFormula(formula, columns, model, name, unit, rows_per_unit)
    run, data = chosen_model(run, data, asked, not_private)
    settings, rows = prepared(run, data, arguments)
    own = out is None
    folder = Path(tempfile.mkdtemp(prefix="dpmc-")) if out is None else Path(out)
    try:
        _go(settings, rows, folder, False, progress)
    except BaseException:
        if own:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    return Run(folder, own=own)._told()


def check(
    run: Any,
    *,
    data: Any = None,
    formula: str | None = None,
    columns: Mapping[str, Column] | None = None,
    model: str | Mapping[str, Any] | None = None,
    name: str | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    not_private: bool = False,
    algorithm: str | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    chains: int | None = None,
    iterations: int | None = None,
    memory: str | int | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """What a run would do and how large its errors should be; spends nothing.

    The dict of ``dpmc check --json``: ``table``, ``model``, ``budget``, ``forecast``, ``warnings``,
    ``notes`` and more; costs in nats of what the ledger counts. With a ``formula`` (see
    :func:`sample`) ``formula`` holds its terms with their coefficients.
    """
    arguments = {
        "algorithm": algorithm,
        "epsilon": epsilon,
        "delta": delta,
        "not_private": not_private,
        "ledger": ledger,
        "chains": chains,
        "iterations": iterations,
        **_room(memory, cache),
    }
    asked = ByFormula(formula, columns, model, name, unit, rows_per_unit)
    run, data = chosen_model(run, data, asked, not_private)
    return json.loads(_dpmc.check(*prepared(run, data, arguments)))


def load(path: str | os.PathLike[str]) -> Run:
    """The run in a directory, which ``dpmc sample`` or :meth:`Run.save` made."""
    run = Run(Path(path))
    run.summary()
    return run


def _events(events: Any) -> str:
    if isinstance(events, Run):
        return json.dumps(events.certificate)
    return json.dumps(events, default=_plain)


def account(
    events: Any, *, delta: float | None = None, epsilon: float | None = None
) -> dict[str, Any]:
    """What a sequence of privacy events costs: ε at ``delta``, or δ at ``epsilon``.

    ``events`` is a dict ``{"neighbours": "substitution", "events": [{"kind": …}]}``, a
    certificate, or a :class:`Run`. Answers are ``lower`` and ``upper`` bounds.
    """
    if (delta is None) == (epsilon is None):
        raise InputError("account(): give one of delta and epsilon", "delta")
    return json.loads(_dpmc.account(_events(events), delta, epsilon))


def calibrate(events: Any, *, epsilon: float, delta: float, solve: str) -> dict[str, Any]:
    """The smallest noise (or most steps) with which a sequence meets a budget.

    ``solve`` is sigma, eta, epsilon, rate, batch or count; INDEX.NAME where several events have
    it. ``solution`` holds its value.
    """
    return json.loads(_dpmc.calibrate(_events(events), epsilon, delta, solve))


def audit(
    algorithm: str,
    *,
    steps: int | None = None,
    trials: int | None = None,
    delta: float | None = None,
    seed: int | None = None,
) -> dict[str, Any]:
    """Attacks a sampler on worst-case tables of its own making; takes seconds to minutes.

    ``epsilon_lower`` is a lower bound on ε at ``delta`` that holds with ``confidence``, beside the
    ``claim``. A bound above the claim refutes it; one below proves nothing. ``trials`` runs are
    made on each of two tables; ``seed`` fixes every coin of the audit.
    """
    return json.loads(_dpmc.audit(algorithm, steps, trials, delta, seed))


def init(table: Any, *, delimiter: str | None = None) -> str:
    """A run file's text for a frame, or a table's file, folder or pattern, of its columns' names.

    LOW, HIGH and LEVEL are yours to declare from public knowledge. No function looks at a column to
    find them: that would reveal its most extreme rows, and nothing would have paid for it.
    """
    if isinstance(table, (str, os.PathLike)):
        return _dpmc.init(Path(table), delimiter)
    return _dpmc.init_of_columns(names(table))


def devices() -> list[dict[str, Any]]:
    """The GPU adapters that ``engine="gpu"`` could use."""
    return json.loads(_dpmc.devices())
