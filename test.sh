#!/usr/bin/env bash
# Passes every test of library and command: format, lints, documentation, unit tests, promises,
# doctests, GPU tests on any adapter. With --studies it runs the studies instead: the tests marked
# `#[ignore = "study"]`, which show the same at more length or for another family, runs under MPI,
# and the tests of the laboratory.
# On Debian, with root or sudo, it first installs what is missing: Mesa's software Vulkan driver, and
# for the studies Open MPI with what builds against it. DPMC_REQUIRE_GPU=1 makes a missing adapter a
# failure instead of a skip.
set -euo pipefail
cd "$(dirname "$0")"

case "${1:-}" in
"" | --studies) ;;
*) echo "usage: ./test.sh [--studies]" >&2 && exit 2 ;;
esac

have_vulkan() {
    ldconfig -p | grep libvulkan.so.1 &&
        { compgen -G '/usr/share/vulkan/icd.d/*.json' || compgen -G '/etc/vulkan/icd.d/*.json'; }
} >/dev/null 2>&1

have_mpi() { command -v mpirun && command -v mpicc && ldconfig -p | grep libclang; } >/dev/null

missing=()
if [ "$(uname -s)" = Linux ] && command -v apt-get >/dev/null; then
    if ! have_vulkan && [ -z "${VK_DRIVER_FILES:-}" ]; then missing+=(mesa-vulkan-drivers libvulkan1); fi
    if [ "${1:-}" = --studies ] && ! have_mpi; then missing+=(libopenmpi-dev openmpi-bin libclang-dev); fi
fi
if [ ${#missing[@]} -gt 0 ]; then
    if [ "$(id -u)" = 0 ]; then as_root=; elif sudo -n true 2>/dev/null; then as_root=sudo; else as_root=none; fi
    if [ "$as_root" != none ]; then
        echo "installing ${missing[*]}"
        $as_root apt-get update -qq
        DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends "${missing[@]}"
    else
        echo "no right to install ${missing[*]}: tests that need a GPU or MPI will be skipped" >&2
    fi
fi

# Mesa complains on standard error without one.
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-$(mktemp -d)}"

# No test may write to the data folder of whoever runs it; those that need records name their own.
export DPMC_RECORDS=off

if [ "${1:-}" = --studies ]; then
    # What a change seldom breaks: the library without its features, and the laboratory.
    cargo clippy --no-default-features -p dpmc --lib -- -D warnings
    if have_mpi; then cargo clippy -p dpmc-cli --features mpi -- -D warnings; fi
    ./benches/instructions.sh
    # By the workspace, whose dependencies are built already: a package alone has other features.
    cargo test --workspace --bins --test laboratory
    # (One of the two writes what benches/instructions.sh reads, the other is run by a test.)
    cargo test --lib -- --ignored --skip passes_to_count_instructions_of --skip one_that_panics
    cargo test --workspace --no-fail-fast --test promises --test command --test processes \
        --test laboratory -- --ignored
    exec ./tests/mpi.sh
fi

cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
# (Lints have compiled the examples.)
cargo test --lib --bins --tests
cargo test --doc
