#!/usr/bin/env bash
# Measures the GPU engine on this machine's adapter: ratio, gradient and anchor passes at N = 1e7,
# d = 50 as a share of the device's own copy bandwidth, a whole `mh` iteration against its pass, and
# row gradients and ratios a second of a convolutional network; then a logistic likelihood that is
# an expression beside the one written by hand.
# Needs a Vulkan, Metal or DirectX 12 driver and about 6 GiB of memory. Writes bench.json.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet
./target/release/dpmc devices
./target/release/dpmc bench --json > bench.json
./target/release/dpmc bench
cargo bench --quiet --bench passes -- 'declared logistic passes, gpu'
