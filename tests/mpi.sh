#!/usr/bin/env bash
# Builds the command with MPI and compares seeded runs on 2 and 3 ranks under mpirun, to the byte of
# every draw, with a run in one process; and sees that bad input ends all ranks with its exit code.
# Says so and ends well where there is no MPI to build with.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null || ! ldconfig -p | grep libclang >/dev/null; then
    echo "no MPI or no libclang: nothing is run under mpirun"
    exit 0
fi
# It is what is sent that is tested here, not how fast.
cargo build --quiet -p dpmc-cli --features mpi --config 'profile.dev.package.dpmc.opt-level=1' \
    --config 'profile.dev.package.dpmc-cli.opt-level=0'
dpmc="${CARGO_TARGET_DIR:-$PWD/target}/debug/dpmc"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
cp "$dpmc" "$folder/dpmc-mpi"

mkdir "$folder/table"
for part in 1 2 3 4; do
    awk -v part="$part" 'BEGIN { print "a,b,y,person,w"; for (i = 0; i < 3000 * part; i++) {
        a = sin(i * 1.3 + part); b = sin(i * 0.7); y = (a - b + sin(12.9898 * i) > 0.1)
        print a "," b "," y "," (i * i) % 4999 "," (i % 7 ? 0.3 : 1) } }' \
        >"$folder/table/$part.csv"
done
run_file() { # sampler, privacy
    printf '[data]\nfile = "table"\n[data.label]\ncolumn = "y"\n[[data.features]]\nintercept = true\n[[data.features]]\ncolumns = ["a", "b"]\nscale = [-1, 1]\n[model]\nkind = "logistic"\nprior = { kind = "normal", sd = 3.0 }\n[sampler]\n%b\n[run]\niterations = 200\nchains = 2\nseed = 3\nengine = "cpu"\n[privacy]\n%b\n' "$1" "$2"
}
cd "$folder"
run_file 'algorithm = "mh"\nstep = 0.01' 'not_private = true' >all.toml
run_file 'algorithm = "sgld"\ngradient = { rate = 0.01 }' 'not_private = true' >listed.toml
run_file 'algorithm = "anchored-barker"' 'epsilon = 4.0\ndelta = 1e-6' >anchored.toml
# Persons with several rows, and rows with bounds of their own.
sed 's/^\[data\]$/&\nunit = "person"\nrows_per_unit = 9/' all.toml >persons.toml
run_file 'algorithm = "tuna-mh"\nstep = 0.01' 'not_private = true' |
    sed 's/^\[model\]$/[data.bounds]\ncolumn = "w"\npublic = true\n&/' >bounds.toml

ranks() { # how many, arguments
    local n="$1" && shift
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n "$n" ./dpmc-mpi "$@"
}
draws() { cat "$1"/draws.parquet/*.parquet | sha256sum; }
for run in all listed persons bounds; do
    ./dpmc-mpi sample $run.toml --out $run-1 --quiet
    for n in 2 3; do
        ranks $n sample $run.toml --out $run-$n --quiet
        [ "$(draws $run-1)" = "$(draws $run-$n)" ] || { echo "$run: $n ranks draw otherwise" >&2 && exit 1; }
        grep -q "$n ranks" $run-$n/certificate.json
    done
done
# A private run, whose coins are fresh each time: it is made, paid for and taken up on other ranks.
ranks 3 sample anchored.toml --out anchored --quiet
ranks 2 sample --resume anchored --iterations 100 --quiet
grep -q '"status": "finished"' anchored/certificate.json
# What is wrong is said once, by rank 0, and all end.
echo "0.1,secret,1,1,1" >>table/4.csv
code=0
ranks 3 sample all.toml --out wrong --quiet 2>said || code=$?
[ $code = 2 ] && [ ! -e wrong ] && grep -q "4.csv, line 12002, column 'b'" said && ! grep -q secret said ||
    { echo "bad input under mpirun: exit code $code" >&2 && cat said >&2 && exit 1; }
echo "runs under mpirun: the same draws on 1, 2 and 3 ranks"
