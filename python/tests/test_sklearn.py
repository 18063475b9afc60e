"""The estimators do what scikit-learn's do, but where privacy or the model forbids it."""

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import dpmc
from dpmc.sklearn import (
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivatePoissonRegression,
)

FRESH = "two fits have fresh noise: equal ones would show it"
CLASSES = "labels are declared, not taken from the rows; these are others than 0 and 1"
COUNTS = "labels of a Poisson regression are counts; these are fractions"

#: Checks of scikit-learn that privacy (or the model) forbids to pass, and why.
FORBIDDEN = {
    PrivateLogisticRegression: {
        "check_fit_idempotent": FRESH,
        "check_estimators_dtypes": CLASSES,
        "check_classifier_data_not_an_array": CLASSES,
        "check_classifiers_classes": CLASSES,
        "check_fit2d_1feature": CLASSES,
    },
    PrivateLinearRegression: {
        "check_fit_idempotent": FRESH,
        "check_regressor_data_not_an_array": FRESH,
        "check_supervised_y_2d": FRESH,
        "check_regressors_int": FRESH,
    },
    PrivatePoissonRegression: {
        "check_fit_idempotent": FRESH,
        "check_supervised_y_2d": FRESH,
        "check_regressors_int": FRESH,
        "check_regressor_data_not_an_array": COUNTS,
        "check_n_features_in_after_fitting": COUNTS,
        "check_n_features_in": COUNTS,
        "check_regressors_train": COUNTS,
        "check_regressors_no_decision_function": COUNTS,
        "check_fit_check_is_fitted": COUNTS,
    },
}

PUBLIC = {"bounds": (-10, 10), "epsilon": 200.0, "iterations": 200}
ESTIMATORS = [
    PrivateLogisticRegression(**PUBLIC),
    PrivateLinearRegression(label_bounds=(-100, 100), noise_sd=10.0, **PUBLIC),
    PrivatePoissonRegression(max_count=50, **PUBLIC),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_scikit_learns_own_checks(estimator):
    forbidden = FORBIDDEN[type(estimator)]
    results = check_estimator(estimator, expected_failed_checks=forbidden, on_fail=None)
    status = {}
    for r in results:
        status.setdefault(r["check_name"], set()).add(r["status"])
    failed = {name for name, found in status.items() if "failed" in found}
    assert failed == set()
    # The list says no more than it must.
    assert {name for name, found in status.items() if "xfail" in found} == set(forbidden)
    assert sum("passed" in found for found in status.values()) > 30


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_no_exception_quotes_a_cell(estimator):
    """Nor does one that it follows from."""
    X, y = np.linspace(0.0, 1.0, 60).reshape(30, 2), np.arange(30) % 2
    fitted = clone(estimator).fit(X, y)
    table = X.astype(object)
    table[7, 1] = "73.19 HIV"
    labels = y.astype(object)
    labels[7] = "73.19 HIV"
    nested = X.astype(object)
    nested[7, 1] = {"73.19": "HIV"}
    calls = [
        (lambda bad=bad: clone(estimator).fit(bad, y))
        for bad in (
            table,
            table.tolist(),
            pandas.DataFrame(table),
            nested,
            X + 73.19j,
            X[:, 0] + 73.19,
            X[:, :, None] + 73.19,
            [[73.19, 1.0], [73.19]],
            [b"73.19 HIV"] * 30,
            "73.19 HIV",
            73.19,
        )
    ]
    calls += [
        (lambda bad=bad: clone(estimator).fit(X, bad))
        for bad in (
            labels,
            labels.tolist(),
            pandas.Series(labels),
            y + 73.19j,
            "73.19 HIV",
            [{"73.19": "HIV"}] * 30,
            np.full((30, 2), 73.19),
        )
    ]
    calls += [(lambda bad=bad: fitted.predict(bad)) for bad in (table, X + 73.19j, X[:, 0] + 73.19)]
    for number, call in enumerate(calls):
        with pytest.raises(ValueError) as caught:
            call()
        link = caught.value
        while link is not None:
            assert "73.19" not in str(link) and "HIV" not in str(link), (number, str(link))
            link = link.__context__


def rows(n=4000, seed=2):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(0, 10, n), rng.uniform(-1, 1, n)])
    return rng, X, 0.5 * (X[:, 0] - 5) + X[:, 1]


BOUNDS = [(0, 10), (-1, 1)]


def covers(estimator, truth):
    low, high = estimator.intervals(0.9999).T
    assert np.all((low < truth) & (truth < high)), (low, high)
    assert np.all(high - low < 1.5)


def test_a_logistic_regression_finds_what_made_the_table():
    rng, X, z = rows()
    y = np.where(rng.random(len(z)) < 1 / (1 + np.exp(-z)), "ill", "well")
    model = PrivateLogisticRegression(bounds=BOUNDS, classes=("well", "ill"), epsilon=4.0).fit(X, y)
    covers(model, [-2.5, 0.5, 1.0])
    assert model.coef_.shape == (1, 2) and model.intercept_.shape == (1,)
    assert model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(np.ones(5))
    assert set(model.predict(X)) == {"ill", "well"} and model.score(X, y) > 0.7
    assert model.certificate_["epsilon"] == 4.0
    # Values beyond the bounds count as the bounds, as in the fit.
    beyond = model.predict_proba([[1e6, -1e6], [10, -1]])
    assert beyond[0] == pytest.approx(beyond[1])


def test_a_linear_regression_is_in_the_labels_units():
    rng, X, z = rows()
    y = 100 + 10 * z + rng.normal(0, 5, len(z))
    model = PrivateLinearRegression(
        bounds=BOUNDS, label_bounds=(50, 150), noise_sd=5.0, epsilon=4.0
    ).fit(X, y)
    assert model.coef_ == pytest.approx([5.0, 10.0], abs=0.7)
    assert model.predict([[5.0, 0.0]]) == pytest.approx([100.0], abs=1.5)
    assert model.score(X, y) > 0.8


def test_a_poisson_regression_predicts_counts():
    rng, X, z = rows()
    y = rng.poisson(np.exp(0.3 * z))
    model = PrivatePoissonRegression(bounds=BOUNDS, max_count=20, epsilon=4.0).fit(X, y)
    covers(model, [-0.75, 0.15, 0.3])
    assert model.predict([[5.0, 0.0]]) == pytest.approx([1.0], abs=0.15)


def test_without_an_intercept():
    rng, X, _ = rows()
    y = rng.random(len(X)) < 1 / (1 + np.exp(-2 * X[:, 1]))
    X = X[:, 1:]
    model = PrivateLogisticRegression(
        bounds=(-1, 1), classes=(False, True), epsilon=4.0, fit_intercept=False
    ).fit(X, y)
    assert model.intercept_[0] == 0.0 and model.coef_[0, 0] == pytest.approx(2.0, abs=0.5)


def test_what_is_not_declared_is_refused_before_anything_is_charged(tmp_path):
    rng, X, z = rows(200)
    y = (z > 0).astype(int)

    def key(model, y=y):
        with pytest.raises(dpmc.InputError) as caught:
            model.fit(X, y)
        assert not (tmp_path / "l").exists()
        return caught.value

    ledger = {"ledger": tmp_path / "l"}
    error = key(PrivateLogisticRegression(**ledger))
    assert error.key == "bounds" and "public knowledge" in str(error)
    assert key(PrivateLinearRegression(bounds=BOUNDS, noise_sd=1.0, **ledger)).key == "label_bounds"
    linear = PrivateLinearRegression(bounds=BOUNDS, label_bounds=(0, 1), **ledger)
    assert key(linear).key == "noise_sd"
    assert key(PrivatePoissonRegression(bounds=BOUNDS, **ledger)).key == "max_count"
    assert key(PrivateLogisticRegression(bounds=[(0, 1)], **ledger)).key == "bounds"
    assert key(PrivateLogisticRegression(bounds=[(0, 1), (1, 0)], **ledger)).key == "bounds[1]"
    assert key(PrivateLogisticRegression(bounds=BOUNDS, **ledger), y + 3).key == "classes"
    assert key(PrivateLogisticRegression(bounds=BOUNDS, classes=(1, 1), **ledger)).key == "classes"


def test_fits_share_a_ledger_and_clones_pay_again(tmp_path):
    _, X, z = rows(500)
    model = PrivateLogisticRegression(bounds=BOUNDS, ledger=tmp_path / "l", iterations=50)
    y = (z > 0).astype(int)
    model.fit(X, y)
    with pytest.raises(dpmc.BudgetError):
        clone(model).fit(X, y)


def test_it_stands_in_a_pipeline():
    _, X, z = rows(500)
    model = PrivateLogisticRegression(bounds=(-1, 1), epsilon=10.0, iterations=50)
    fixed = FunctionTransformer(lambda x: x / 10.0)
    y = (z > 0).astype(int)
    assert make_pipeline(fixed, model).fit(X, y).score(X, y) > 0.7
