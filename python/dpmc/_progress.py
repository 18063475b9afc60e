"""Progress of a run: at a terminal and in notebooks, else none."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

Progress = Callable[[int, int, float, "float | None"], Any]


def _line(done: int, total: int, acceptance: float, epsilon: float | None, since: float) -> str:
    rate = done / max(time.monotonic() - since, 1e-9)
    spent = "NOT private" if epsilon is None else f"\u03b5 {epsilon:.3f}"
    return f"{done:,} of {total:,} iterations ({rate:,.0f}/s), acceptance {acceptance:.3f}, {spent}"


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Shown:
    """A line that is written over itself five times a second; gone when the run ends."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.handle = None
        self.every = 0.2
        self.last = -self.every
        self.notebook = _in_notebook()
        self.written = False

    def __call__(self, done: int, total: int, acceptance: float, epsilon: float | None) -> None:
        now = time.monotonic()
        if now - self.last < self.every:
            return
        self.last = now
        line = _line(done, total, acceptance, epsilon, self.since)
        if self.notebook:
            from IPython.display import display

            shown = {"text/plain": line}
            if self.handle is None:
                self.handle = display(shown, raw=True, display_id=True)
            else:
                self.handle.update(shown, raw=True)
            return
        self.written = True
        sys.stderr.write(f"\r\x1b[2K{line}")
        sys.stderr.flush()

    def close(self) -> None:
        if self.written:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
        if self.handle is not None:
            self.handle.update({"text/plain": ""}, raw=True)


def chosen(progress: bool | Progress | None) -> Progress | None:
    """``None``: shown where somebody looks. A function is called with iterations made and to
    make, acceptance, and epsilon so far (``None`` without privacy)."""
    if callable(progress):
        return progress
    if progress is None:
        stderr = sys.stderr
        progress = _in_notebook() or bool(stderr is not None and stderr.isatty())
    return Shown() if progress else None
