"""Private regressions as scikit-learn estimators.

Whatever decides how rows are read comes from the constructor, never from the rows: bounds of
features and labels, classes, the largest count. Without them ``fit`` refuses.

What scikit-learn does elsewhere is not private by itself: a scaler before an estimator, ``score``
on the training table, cross-validation and a search over settings all look at rows without paying
for it. Each ``fit`` spends ``epsilon`` and ``delta`` anew; fits that name one ``ledger`` share a
budget.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._draws import needed
from ._errors import InputError
from ._run import Ledger, Run, sample

needed("sklearn", "dpmc.sklearn")

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets, type_of_target  # noqa: E402
from sklearn.utils.validation import (  # noqa: E402
    check_array,
    check_is_fitted,
    check_X_y,
    validate_data,
)

__all__ = ["PrivateLinearRegression", "PrivateLogisticRegression", "PrivatePoissonRegression"]

WHY = (
    "declare it from public knowledge (a code book, a law): to take it from the rows would reveal "
    "the most extreme ones, and nothing would have paid for that"
)


def _sigmoid(z: np.ndarray) -> np.ndarray:
    return 0.5 * (1.0 + np.tanh(0.5 * z))


def _pair(key: str, value: Any) -> tuple[float, float]:
    """A range of numbers."""
    try:
        low, high = (float(v) for v in value)
    except (TypeError, ValueError):
        raise InputError(f"{key} must be a pair (low, high)", key) from None
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InputError(f"{key} must be two finite numbers, the lower one first", key)
    return low, high


class _NotNumbers(InputError, TypeError):
    """scikit-learn tells cells of a wrong type from wrong values; here nobody looks which it is."""


def _numbers(name: str, values: Any) -> np.ndarray:
    """An array of float64. What NumPy and scikit-learn say of cells that are none quotes them, so
    their words are dropped, and no exception is a cause of what is raised instead."""
    if np.iscomplexobj(values):
        raise InputError(f"{name}: Complex data not supported", name)
    if hasattr(values, "toarray"):
        raise InputError(f"{name}: Sparse data is not supported; use {name}.toarray()", name)
    try:
        return check_array(
            values,
            dtype=np.float64,
            ensure_2d=False,
            allow_nd=True,
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
        )
    except (TypeError, ValueError):
        pass
    raise _NotNumbers(
        f"{name} has a cell that is no number (an argument must be a string or a number)",
        name,
    )


def _matrix(X: Any) -> np.ndarray:
    matrix = _numbers("X", X)
    if matrix.ndim != 2:
        raise InputError(
            f"X has {matrix.ndim} dimension(s) and needs two. Reshape your data: "
            "X.reshape(-1, 1) if it is one feature, X.reshape(1, -1) if it is one row",
            "X",
        )
    return matrix


class _PrivateRegression(BaseEstimator):
    """What the three have in common."""

    def __init__(
        self,
        *,
        bounds: Sequence[Any] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        prior_sd: float = 5.0,
        fit_intercept: bool = True,
        iterations: int = 5000,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "table",
        random_state: int | None = None,
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.prior_sd = prior_sd
        self.fit_intercept = fit_intercept
        self.iterations = iterations
        self.ledger = ledger
        self.name = name
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags

    def _limits(self, count: int) -> np.ndarray:
        """Bounds of ``count`` features: a pair for all of them, or one for each."""
        if self.bounds is None:
            raise InputError(
                f"bounds (a pair for all features, or one for each) is needed: {WHY}", "bounds"
            )
        given = list(self.bounds)
        if len(given) == 2 and all(np.ndim(v) == 0 for v in given):
            return np.tile(_pair("bounds", given), (count, 1))
        if len(given) != count:
            raise InputError(f"bounds has {len(given)} pairs for {count} features", "bounds")
        return np.array([_pair(f"bounds[{j}]", pair) for j, pair in enumerate(given)])

    def _checked(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        if self.bounds is None:
            self._limits(0)
        matrix = _matrix(X)
        # Names and number of features; that there is a y.
        validate_data(self, X, y, skip_check_array=True)
        if np.iscomplexobj(y):
            raise InputError("y: Complex data not supported", "y")
        return check_X_y(matrix, y, dtype=np.float64, ensure_min_samples=2)

    def _sample(self, X: np.ndarray, labels: np.ndarray, label: dict, model: dict) -> np.ndarray:
        """Draws of intercept and coefficients, in units of the features."""
        limits = self._limits(X.shape[1])
        features: list[dict] = [{"intercept": True}] if self.fit_intercept else []
        features += [{"column": f"x{j}", "scale": pair} for j, pair in enumerate(limits.tolist())]
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        run = {
            "data": {"name": self.name, "label": {"column": "y", **label}, "features": features},
            "model": {"prior": {"kind": "normal", "sd": self.prior_sd}, **model},
            "sampler": {"algorithm": "anchored-barker"},
            "run": {"iterations": self.iterations},
            "privacy": {"epsilon": self.epsilon, "delta": self.delta},
        }
        self.run_: Run = sample(
            run, data={**columns, "y": labels}, ledger=self.ledger, seed=self.random_state
        )
        self.certificate_ = self.run_.certificate
        self._bounds = limits
        draws = self.run_.draws.flat()
        if not self.fit_intercept:
            draws = np.column_stack([np.zeros(len(draws)), draws])
        middle, half = limits.mean(axis=1), 0.5 * (limits[:, 1] - limits[:, 0])
        slopes = draws[:, 1:] / half
        return np.column_stack([draws[:, 0] - slopes @ middle, slopes])

    def _keep(self, draws: np.ndarray) -> None:
        #: Draws of intercept and coefficients, in units of the features.
        self.draws_ = draws
        self._means = draws.mean(axis=0)

    def intervals(self, level: float = 0.9) -> np.ndarray:
        """Central intervals of intercept and coefficients, which hold the noise for privacy: a
        row for each, intercept first."""
        check_is_fitted(self)
        if not 0.0 < level < 1.0:
            raise InputError(f"level must lie between 0 and 1, not {level}", "level")
        tail = 50.0 * (1.0 - level)
        return np.percentile(self.draws_, [tail, 100.0 - tail], axis=0).T

    def _linear(self, X: Any) -> np.ndarray:
        """What the posterior means say of new rows, cut off at the bounds as in ``fit``."""
        check_is_fitted(self)
        matrix = _matrix(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        X = check_array(matrix, dtype=np.float64, input_name="X")
        X = np.clip(X, self._bounds[:, 0], self._bounds[:, 1])
        # Not an average over draws: their noise would draw probabilities to one half.
        return self._means[0] + X @ self._means[1:]


class PrivateLogisticRegression(ClassifierMixin, _PrivateRegression):
    """Bayesian logistic regression under (epsilon, delta)-differential privacy.

    ``bounds``: a pair (low, high) for all features, or a list of pairs; values beyond are cut off.
    ``classes``: both labels, the one of y = 0 first. ``epsilon``, ``delta``: the budget, of this
    fit or of the ``ledger`` (a file) that it shares. ``prior_sd``: of a normal prior on
    coefficients, per half the range of a feature. ``name``: of the table, for ledger and records.
    ``random_state`` fixes proposals, which are public; the noise is always fresh.

    After ``fit``: ``coef_``, ``intercept_`` (posterior means), ``draws_``, ``classes_``,
    ``certificate_``, ``run_``.
    """

    def __init__(
        self,
        *,
        bounds: Sequence[Any] | None = None,
        classes: Sequence[Any] = (0, 1),
        epsilon: float = 1.0,
        delta: float = 1e-6,
        prior_sd: float = 5.0,
        fit_intercept: bool = True,
        iterations: int = 5000,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "table",
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            prior_sd=prior_sd,
            fit_intercept=fit_intercept,
            iterations=iterations,
            ledger=ledger,
            name=name,
            random_state=random_state,
        )
        self.classes = classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> PrivateLogisticRegression:
        """Spends the budget. A label that is none of ``classes`` is refused."""
        X, y = self._checked(X, y)
        check_classification_targets(y)
        if (kind := type_of_target(y)) != "binary":
            what = f"Only binary classification is supported. The type of the target is {kind}."
            raise InputError(what, "classes")
        classes = np.asarray(self.classes)
        if classes.shape != (2,) or classes[0] == classes[1]:
            raise InputError("classes must be two labels, the one of y = 0 first", "classes")
        positive = y == classes[1]
        if not np.all(positive | (y == classes[0])):
            raise InputError(f"y holds a label that is none of classes; {WHY}", "classes")
        labels = positive.astype(np.uint8)
        self._keep(self._sample(X, labels, {}, {"kind": "logistic"}))
        self.classes_ = classes
        self.coef_, self.intercept_ = self._means[None, 1:], self._means[:1]
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both classes at the posterior means."""
        p = _sigmoid(self._linear(X))
        return np.column_stack([1.0 - p, p])

    def decision_function(self, X: Any) -> np.ndarray:
        """Log odds of the second class at the posterior means."""
        return self._linear(X)

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row."""
        check_is_fitted(self)
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


class PrivateLinearRegression(RegressorMixin, _PrivateRegression):
    """Bayesian linear regression under (epsilon, delta)-differential privacy.

    ``label_bounds``: (low, high) of y; values beyond are cut off. ``noise_sd``: standard deviation
    of y around its mean, known beforehand, in units of y. The rest as in
    :class:`PrivateLogisticRegression`; ``prior_sd`` is in units of half the range of y.
    """

    def __init__(
        self,
        *,
        bounds: Sequence[Any] | None = None,
        label_bounds: Sequence[float] | None = None,
        noise_sd: float | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        prior_sd: float = 5.0,
        fit_intercept: bool = True,
        iterations: int = 5000,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "table",
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            prior_sd=prior_sd,
            fit_intercept=fit_intercept,
            iterations=iterations,
            ledger=ledger,
            name=name,
            random_state=random_state,
        )
        self.label_bounds = label_bounds
        self.noise_sd = noise_sd

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Of the 200 rows that scikit-learn tries, at the budget that it does not choose.
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> PrivateLinearRegression:
        """Spends the budget."""
        X, y = self._checked(X, y)
        if self.label_bounds is None:
            raise InputError(f"label_bounds, a pair (low, high), is needed: {WHY}", "label_bounds")
        if self.noise_sd is None:
            raise InputError(f"noise_sd, in units of y, is needed: {WHY}", "noise_sd")
        low, high = _pair("label_bounds", self.label_bounds)
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        labels = _numbers("y", y)
        model = {"kind": "linear", "variance": (self.noise_sd / half) ** 2}
        draws = self._sample(X, labels, {"scale": [low, high]}, model) * half
        draws[:, 0] += middle
        self._keep(draws)
        self.coef_, self.intercept_ = self._means[1:], float(self._means[0])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Expected values at the posterior means, in units of y."""
        return self._linear(X)


class PrivatePoissonRegression(RegressorMixin, _PrivateRegression):
    """Bayesian Poisson regression under (epsilon, delta)-differential privacy.

    ``max_count``: the largest count; larger ones are cut off. The rest as in
    :class:`PrivateLogisticRegression`.
    """

    def __init__(
        self,
        *,
        bounds: Sequence[Any] | None = None,
        max_count: int | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        prior_sd: float = 5.0,
        fit_intercept: bool = True,
        iterations: int = 5000,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        name: str = "table",
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            bounds=bounds,
            epsilon=epsilon,
            delta=delta,
            prior_sd=prior_sd,
            fit_intercept=fit_intercept,
            iterations=iterations,
            ledger=ledger,
            name=name,
            random_state=random_state,
        )
        self.max_count = max_count

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True
        return tags

    def fit(self, X: Any, y: Any) -> PrivatePoissonRegression:
        """Spends the budget."""
        X, y = self._checked(X, y)
        if self.max_count is None:
            raise InputError(f"max_count is needed: {WHY}", "max_count")
        labels = _numbers("y", y)
        label = {"count": int(self.max_count)}
        self._keep(self._sample(X, labels, label, {"kind": "poisson"}))
        self.coef_, self.intercept_ = self._means[1:], float(self._means[0])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Expected counts at the posterior means."""
        return np.exp(self._linear(X))
