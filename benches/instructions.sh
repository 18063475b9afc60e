#!/usr/bin/env bash
# Counts the instructions, branches and registers that Mesa's compiler makes of the compute passes
# for an AMD GPU of the RDNA 2 generation, without one, and holds them to their ceilings. Needs
# Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers); where they lack it says so and ends.
# ratio_sum-8x50 is the ratio pass at 8 chains and 50 features, and so on; gradient_sum-8x50by2
# takes two quads of rows a turn of its second loop.
set -euo pipefail
cd "$(dirname "$0")/.."
driver="$(ls /usr/share/vulkan/icd.d/radeon_icd*.json 2>/dev/null | head -n 1 || true)"
if [ -z "$driver" ]; then
    echo "no Mesa driver for AMD GPUs here: instructions are not counted"
    exit 0
fi
passes="$(mktemp -d)"
trap 'rm -rf "$passes"' EXIT
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-$passes}"
DPMC_PASSES="$passes" cargo test --quiet -p dpmc --lib -- --ignored passes_to_count_instructions_of >/dev/null
cargo build --quiet --manifest-path benches/instructions/Cargo.toml --target-dir target/instructions
VK_DRIVER_FILES="$driver" RADV_FORCE_FAMILY=NAVI21 target/instructions/debug/instructions "$passes" | tee "$passes/found"
# What a turn of the loop over features costs: 8 of them for one chain, 4 for eight.
awk '
    { instructions[$1] = $2; registers[$1] = $4; spilled[$1] = $5 }
    function hold(what, found, most) {
        printf "%s: %.2f, at most %.2f\n", what, found, most
        if (found > most) { over = 1 }
    }
    END {
        each = (instructions["ratio_sum-8x07"] - instructions["ratio_sum-8x03"]) / (4 * 4 * 8)
        hold("ratio, 8 chains, instructions a row, chain and feature", each + 0, 3.3)
        each = (instructions["ratio_sum-1x15"] - instructions["ratio_sum-1x07"]) / (8 * 4)
        hold("ratio, 1 chain, instructions a row and feature", each + 0, 4.5)
        each = (instructions["gradient_sum-8x07by1"] - instructions["gradient_sum-8x03by1"]) / (4 * 4 * 8)
        each += (instructions["gradient_sum-8x50by2"] - instructions["gradient_sum-8x50by1"]) / (2 * 4 * 8)
        hold("gradient, 8 chains, instructions a row, chain and feature", each + 0, 3.9)
        each = (instructions["gradient_sum-1x15by1"] - instructions["gradient_sum-1x07by1"]) / (8 * 4)
        each += (instructions["gradient_sum-1x50by2"] - instructions["gradient_sum-1x50by1"]) / (2 * 4)
        hold("gradient, 1 chain, instructions a row and feature", each + 0, 7.2)
        for (pass in registers) {
            if (pass == "pass") { continue }
            hold(pass ", vector registers", registers[pass] + 0, 128)
            hold(pass ", spilled registers", spilled[pass] + 0, 0)
        }
        exit over
    }' "$passes/found"
