#!/usr/bin/env bash
# From nothing to a first result in Python: a fresh environment for each package, what its
# installation takes, and the seconds of the same regression on Adult (four coefficients), the
# second time that it is run: by the clock, and of processor time (its own and the system's). Prints
# a line a package. Needs python3 and its package index, and Rust for dpmc; takes some minutes and 8
# GB under the folder that is given.
#
#     benches/first_result/run.sh FOLDER
set -euo pipefail
TIMEFORMAT="%R s, processor %U s + %S s"
cd "$(dirname "$0")/../.."
folder="${1:?give a folder for the environments}"
mkdir -p "$folder"
for package in dpmc numpyro nutpie diffprivlib opacus; do
    case "$package" in
    dpmc) needs=(./python pandas) ;;
    numpyro) needs=(numpyro arviz pandas) ;;
    nutpie) needs=(nutpie pymc arviz pandas) ;;
    # As published it does not start with later versions of scikit-learn.
    diffprivlib) needs=(diffprivlib scikit-learn==1.5.2 pandas) ;;
    opacus) needs=(opacus pandas) ;;
    esac
    python3 -m venv "$folder/$package"
    start=$SECONDS
    "$folder/$package/bin/pip" install --quiet --disable-pip-version-check "${needs[@]}"
    installed=$((SECONDS - start))
    size="$(du -sm "$folder/$package" | cut -f1)"
    run() { DPMC_RECORDS=off PYTHONPATH=benches/first_result "$folder/$package/bin/python" "benches/first_result/by_$package.py"; }
    run >"$folder/$package.txt" 2>&1
    took="$({ time run >"$folder/$package.txt" 2>&1; } 2>&1)"
    lines="$(grep -cv '^$' "benches/first_result/by_$package.py")"
    echo "$package: installed in $installed s, $size MB; $lines lines; $took"
done
