#!/usr/bin/env bash
# Measures the GPU engine on this machine's adapter: ratio, gradient and anchor passes of 1, 8 and
# 64 chains over tables of half a gigabyte to two, as shares of what the card copies and of what it
# multiplies and adds; whole iterations over small tables; row gradients and ratios a second of a
# convolutional network. Then, where Python has JAX, its peers on the same card (benches/peers.py).
# Needs a Vulkan, Metal or DirectX 12 driver, 8 GiB of memory and a minute or two.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet
./target/release/dpmc devices
./target/release/dpmc bench --engine gpu
if python3 -c "import jax" 2>/dev/null; then
    python3 benches/peers.py --engine gpu
fi
