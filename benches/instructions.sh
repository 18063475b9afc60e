#!/usr/bin/env bash
# Counts the instructions, branches and registers that Mesa's compiler makes of the compute passes
# for an AMD GPU of the RDNA 2 generation, without one, and holds them to their ceilings. Needs
# Mesa's Vulkan drivers (Debian: mesa-vulkan-drivers); where they lack it says so and ends.
# ratio_sum-4x50-i16 is the ratio pass at 4 chains and 50 features over rows in 16 bits, and so on;
# gradient_sum-8x50by2 takes two quads of rows a turn of its second loop.
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
DPMC_PASSES="$passes" cargo test --quiet --lib -- --ignored passes_to_count_instructions_of >/dev/null
cargo build --quiet --manifest-path benches/instructions/Cargo.toml --target-dir target/instructions
VK_DRIVER_FILES="$driver" RADV_FORCE_FAMILY=NAVI21 target/instructions/debug/instructions "$passes" | tee "$passes/found"
# What a turn of the loop over eight features costs.
awk '
    { instructions[$1] = $2; registers[$1] = $4; spilled[$1] = $5 }
    function hold(what, found, most) {
        printf "%s: %.2f, at most %.2f\n", what, found, most
        if (found > most || found < 0) { over = 1 }
    }
    function turn(pass, more, less, size) {
        if (!((pass more) in instructions) || !((pass less) in instructions)) {
            print pass more " or " pass less " is missing"
            over = 1
        }
        return (instructions[pass more] - instructions[pass less]) / size
    }
    END {
        split("f32 i16", kinds)
        split("3.3 3.6", four); split("4.5 6.4", one)
        split("3.8 3.9", gradient_eight); split("7.2 11", gradient_one)
        for (k = 1; k <= 2; k++) {
            rows = "-" kinds[k]
            each = turn("ratio_sum-4x", "14" rows, "06" rows, 8 * 4 * 4)
            hold("ratio, 4 chains, " kinds[k] ", instructions a row, chain and feature", each, four[k])
            each = turn("ratio_sum-1x", "14" rows, "06" rows, 8 * 4)
            hold("ratio, 1 chain, " kinds[k] ", instructions a row and feature", each, one[k])
            each = turn("gradient_sum-8x", "14by1" rows, "06by1" rows, 8 * 4 * 8)
            each += turn("gradient_sum-8x", "50by2" rows, "50by1" rows, 4 * 4 * 8)
            hold("gradient, 8 chains, " kinds[k] ", instructions a row, chain and feature", each, gradient_eight[k])
            each = turn("gradient_sum-1x", "14by1" rows, "06by1" rows, 8 * 4)
            each += turn("gradient_sum-1x", "50by2" rows, "50by1" rows, 4 * 4)
            hold("gradient, 1 chain, " kinds[k] ", instructions a row and feature", each, gradient_one[k])
        }
        for (pass in registers) {
            # The heading, and what no run takes but to count what a turn costs.
            if (pass == "pass" || pass ~ /8x50by4/) { continue }
            hold(pass ", vector registers", registers[pass] + 0, 128)
            hold(pass ", spilled registers", spilled[pass] + 0, 0)
        }
        exit over
    }' "$passes/found"
