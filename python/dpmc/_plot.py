"""Pictures of a run. All that they show is released."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from ._draws import needed

if TYPE_CHECKING:
    from ._run import Run


def caption(run: Run) -> str:
    """What a picture of the draws must say; a bound is never rounded down."""
    c = run.certificate
    unit = c.get("unit")
    counted = f"{c['rows']:,} rows" if unit is None else f"{c['rows']:,} units of '{unit['column']}'"
    counted = f"{run._table_name()} ({counted})"
    if not c["private"]:
        return f"Posterior of {counted}, NOT private"
    epsilon = -(-c["epsilon"] * 1e4 // 1) / 1e4
    return (
        f"Posterior of {counted}, private at \u03b5 = {epsilon:g}, \u03b4 = {c['delta']:g}"
    )


def rows(run: Run) -> list[tuple[str, float, float, float, float, float]]:
    """Name, mean, 50 % interval and 90 % interval of each parameter. Where an anchor was released,
    the 90 % interval is the noise-aware one."""
    summary = run.summary()
    aware = {row["name"]: row for row in summary.get("noise_aware") or []}
    middle = run.intervals(0.5)
    found = []
    for p in summary["parameters"]:
        name = p["name"]
        low, high = aware[name]["interval"] if name in aware else (p["q5"], p["q95"])
        found.append((name, p["mean"], *middle[name], low, high))
    return found


def as_it_is(name: str) -> str:
    """A name of the user's, which matplotlib would read as mathematics between two dollars."""
    return name.replace("$", r"\$")


def forest(run: Run) -> Any:
    """A figure with an interval for each parameter, which notebooks show."""
    needed("matplotlib", "plot()")
    from matplotlib.figure import Figure

    class Shown(Figure):
        def _repr_png_(self) -> bytes:
            image = io.BytesIO()
            self.savefig(image, format="png")
            return image.getvalue()

    drawn = rows(run)
    figure = Shown(figsize=(7, 1.2 + 0.28 * len(drawn)), layout="constrained")
    axes = figure.subplots()
    for at, (_, mean, a, b, low, high) in enumerate(drawn):
        axes.plot([low, high], [at, at], color="#0550ae", linewidth=1.2)
        axes.plot([a, b], [at, at], color="#0550ae", linewidth=3.5)
        axes.plot([mean], [at], "o", color="white", markeredgecolor="#0550ae", markersize=4.5)
    axes.axvline(0.0, color="#8c959f", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(drawn)), [as_it_is(row[0]) for row in drawn])
    axes.invert_yaxis()
    axes.set_title(as_it_is(caption(run)), fontsize=10, loc="left")
    noise = "with the noise for privacy in them" if run.certificate["private"] else "no noise added"
    # To the right: long names leave it no room in the middle.
    axes.set_xlabel(f"mean, 50 % and 90 % intervals, {noise}", loc="right")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
