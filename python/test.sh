#!/usr/bin/env bash
# Builds the Python package and runs its tests, in an environment of its own under target/: a wheel
# (optimised as the library's tests are), then pytest. With --lint it runs clippy on its Rust
# instead. Says so and ends well where Python 3.10 or its packages are not to be had; with
# DPMC_REQUIRE_PYTHON=1 that is a failure.
set -euo pipefail
cd "$(dirname "$0")"

skip() {
    echo "the Python package is not tested: $1"
    [ "${DPMC_REQUIRE_PYTHON:-}" = 1 ] && exit 1
    exit 0
}

cargo fmt --check
if [ "${1:-}" = --lint ]; then
    exec cargo clippy --all-targets -- -D warnings
fi

target="${CARGO_TARGET_DIR:-$(cd .. && pwd)/target}"
python="${PYTHON:-python3}"
command -v "$python" >/dev/null || skip "there is no $python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "$python is older than 3.10"
environment="$target/python"
"$python" -m venv "$environment" || skip "no virtual environment can be made"
"$environment/bin/pip" install --quiet --disable-pip-version-check --timeout 20 --retries 1 \
    maturin pytest numpy pandas polars pyarrow matplotlib arviz scikit-learn nbclient ipykernel ||
    skip "its packages cannot be installed"

rm -rf "$target/wheels"
"$environment/bin/maturin" build --quiet --profile dev --strip --target-dir "$target" \
    --interpreter "$environment/bin/python" --out "$target/wheels"
"$environment/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps \
    "$target"/wheels/dpmc-*.whl
# Not as `python -m pytest`, which would find this folder's package in place of the wheel's.
"$environment/bin/pytest" --quiet
