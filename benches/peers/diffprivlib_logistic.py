"""diffprivlib's logistic regression on a table that `examples/tables` wrote.

    pip install "diffprivlib==0.6.*" "scikit-learn==1.5.2"
    python diffprivlib_logistic.py X.npy y.npy ROW_NORM EPSILONS SEED
    python diffprivlib_logistic.py --check

Prints one line of JSON an epsilon: the coefficients (the first column of X is the intercept) and
the seconds of the fit. Fails with one line where the packages are missing.
"""

import json
import sys
import time
import warnings

try:
    import numpy as np
    from diffprivlib.models import LogisticRegression
except ImportError as error:
    sys.exit(f"{error} (pip install diffprivlib scikit-learn==1.5.2)")

if sys.argv[1:] == ["--check"]:
    sys.exit()

x, y = np.load(sys.argv[1]).astype(float), np.load(sys.argv[2])
row_norm, seed = float(sys.argv[3]), int(sys.argv[5])
warnings.simplefilter("ignore")
for epsilon in sys.argv[4].split(","):
    start = time.perf_counter()
    model = LogisticRegression(
        epsilon=float(epsilon),
        data_norm=row_norm,
        C=1.0,
        fit_intercept=False,
        max_iter=2000,
        random_state=seed,
    ).fit(x, y)
    seconds = time.perf_counter() - start
    print(json.dumps({"theta": model.coef_[0].tolist(), "seconds": seconds}))
