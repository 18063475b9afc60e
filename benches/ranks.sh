#!/usr/bin/env bash
# Time of a step by two ranks of one thread each beside one process of two threads: a full pass over
# 4,000,000 rows of 20 features, and over 1,000 rows, where what is left is the exchange of messages.
#
#     cargo build --release -p dpmc-cli --features mpi && benches/ranks.sh
#
# Needs Open MPI and two idle cores; prints five pairs of each, microseconds a step. DPMC names
# another build of the command.
set -euo pipefail
dpmc="$(realpath "${DPMC:-$(dirname "$0")/../target/release/dpmc}")"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 DPMC_RECORDS=off RAYON_NUM_THREADS=2
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cd "$folder"

table() { # rows
    awk -v rows="$1" 'BEGIN { srand(1); printf "y"; for (j = 0; j < 20; j++) printf ",x%d", j; print ""
        for (i = 0; i < rows; i++) { printf "%d", rand() < 0.5; for (j = 0; j < 20; j++) printf ",%.3f", 2 * rand() - 1; print "" } }' >"$1.csv"
}
run_file() { # rows, iterations
    printf '[data]\nfile = "%s.csv"\n[data.label]\ncolumn = "y"\n[[data.features]]\ncolumns = [%s]\nscale = [-1, 1]\n[model]\nkind = "logistic"\nprior = { kind = "normal", sd = 3.0 }\n[sampler]\nalgorithm = "mh"\nstep = 0.001\n[run]\niterations = %d\nchains = 1\nseed = 3\nengine = "cpu"\n[privacy]\nnot_private = true\n' \
        "$1" "$(printf '"x%d",' $(seq 0 19))" "$2" >"$1-$2.toml"
}
seconds() { # command …
    local start
    start="$(date +%s.%N)"
    "$@" --out "out-$RANDOM$RANDOM" --quiet
    echo "$(date +%s.%N) - $start" | bc
}
pairs() { # rows, few iterations, many
    table "$1" && run_file "$1" "$2" && run_file "$1" "$3"
    for _ in 1 2 3 4 5; do
        local of=()
        for by in "" "env RAYON_NUM_THREADS=1 mpirun -n 2"; do
            few="$(seconds $by "$dpmc" sample "$1-$2.toml")"
            many="$(seconds $by "$dpmc" sample "$1-$3.toml")"
            of+=("$(echo "($many - $few) * 1000000 / ($3 - $2)" | bc)")
        done
        echo "$1 rows: two threads ${of[0]} µs, two ranks ${of[1]} µs a step"
    done
}
pairs 1000 1000 61000
pairs 4000000 50 350
