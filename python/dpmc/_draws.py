"""Draws of a run."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._errors import Error


def needed(module: str, what: str) -> Any:
    """A package that is not always there."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        name = {"sklearn": "scikit-learn"}.get(module, module)
        raise Error(f"{what} needs {name}: pip install {name}") from None


class Draws:
    """Posterior draws, which are released: ``draws["age"]`` is an array of chains by draws.

    Parameters are in units of the declared features: of a column with ``scale = [low, high]``,
    which becomes -1 to 1, a coefficient is per half of that range.
    """

    def __init__(self, parameters: list[str], values: np.ndarray) -> None:
        self.parameters = list(parameters)
        self._values = values

    @property
    def chains(self) -> int:
        """Number of chains."""
        return self._values.shape[1]

    def __len__(self) -> int:
        """Draws of each chain."""
        return self._values.shape[2]

    def __getitem__(self, name: str) -> np.ndarray:
        try:
            return self._values[self.parameters.index(name)]
        except ValueError:
            raise KeyError(name) from None

    def __repr__(self) -> str:
        return (
            f"<dpmc.Draws of {len(self.parameters)} parameters: {self.chains} chain(s), "
            f"{len(self)} draws each>"
        )

    def to_numpy(self) -> np.ndarray:
        """An array of chains by draws by parameters."""
        return np.ascontiguousarray(np.moveaxis(self._values, 0, 2))

    def flat(self) -> np.ndarray:
        """An array of all draws by parameters, chain after chain."""
        return self.to_numpy().reshape(self.chains * len(self), len(self.parameters))

    def to_dict(self) -> dict[str, np.ndarray]:
        """Columns ``chain``, ``draw`` and one a parameter, all chains one after another."""
        chains, draws = self.chains, len(self)
        columns: dict[str, np.ndarray] = {
            "chain": np.repeat(np.arange(chains, dtype=np.int32), draws),
            "draw": np.tile(np.arange(draws, dtype=np.int64), chains),
        }
        flat = self.flat()
        columns.update({name: flat[:, j] for j, name in enumerate(self.parameters)})
        return columns

    def to_pandas(self) -> Any:
        """A pandas frame of :meth:`to_dict`'s columns."""
        return needed("pandas", "to_pandas()").DataFrame(self.to_dict())

    def to_polars(self) -> Any:
        """A polars frame of the same."""
        return needed("polars", "to_polars()").DataFrame(self.to_dict())

    def to_arrow(self) -> Any:
        """A pyarrow table of the same."""
        return needed("pyarrow", "to_arrow()").table(self.to_dict())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Draws):
            return NotImplemented
        same = self.parameters == other.parameters
        return same and np.array_equal(self._values, other._values, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]
