#!/usr/bin/env bash
# Plants known defects, one at a time, in a checkout of HEAD of its own (a git worktree under the
# target folder) and runs the tests that must find them. Each named test must fail; an edit that
# does not apply, a build that fails and a test that passes are failures of this script.
#
#   tests/planted_defects.sh [-t TARGET] [NUMBER...]     all of them, or those of these numbers
#
# TARGET (default target/planted) is the folder that is built in; dependencies are built once.
# A defect takes half a minute to four minutes, most of which is the build. Not part of ./test.sh.
# What came of it before and after tests were shortened: docs/results/reliability.md.
set -euo pipefail
cd "$(dirname "$0")/.."

target="$PWD/target/planted"
if [ "${1:-}" = -t ]; then target=$(realpath -m "$2") && shift 2; fi
wanted=("$@")
tree="$target/checkout"
report="$target/report"
failures=0
export CARGO_TARGET_DIR="$target" DPMC_RECORDS=off DPMC_REQUIRE_GPU=1
export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-$(mktemp -d)}"

mkdir -p "$target"
remove_tree() { git worktree remove --force "$tree" 2>/dev/null || git worktree prune; }
remove_tree
trap remove_tree EXIT
git worktree add --quiet --detach "$tree" HEAD
: >"$report"

verdict() { # number, words
    printf '%-3s %s\n' "$1" "$2" | tee -a "$report"
}

# The tests of one binary that must fail: `build` and `binary` are cargo's arguments.
run_tests() { # number, lib|promises, test...
    local number=$1 binary=$2 log="$target/log" start seconds
    shift 2
    case "$binary" in
    lib) local arguments=(-p dpmc --lib) ;;
    *) local arguments=(-p dpmc-cli --test "$binary") ;;
    esac
    if ! (cd "$tree" && cargo test --quiet "${arguments[@]}" --no-run) >"$log" 2>&1; then
        tail -40 "$log"
        verdict "$number" "BUILD FAILED: no catch" && failures=$((failures + 1))
        return
    fi
    start=$(date +%s)
    (cd "$tree" && cargo test "${arguments[@]}" -- "$@") >"$log" 2>&1 || true
    seconds=$(($(date +%s) - start))
    for test in "$@"; do
        if grep -q "^test .*$test.* FAILED" "$log"; then
            verdict "$number" "    caught by $binary $test ($seconds s)"
        else
            grep '^test ' "$log" || tail -5 "$log"
            verdict "$number" "    NOT CAUGHT by $binary $test" && failures=$((failures + 1))
        fi
    done
}

# defect NUMBER TITLE FILE PATTERN REPLACEMENT {BINARY TEST...} [-- {BINARY TEST...}]
# FILE is the end of a path; PATTERN a Perl expression that must match once there.
defect() {
    local number=$1 title=$2 file=$3 pattern=$4 replacement=$5 path
    shift 5
    if [ "${#wanted[@]}" -gt 0 ] && [[ ! " ${wanted[*]} " == *" $number "* ]]; then return; fi
    verdict "$number" "$title"
    git -C "$tree" reset --quiet --hard
    path=$(git -C "$tree" ls-files | grep -E "(^|/)$file\$" || true)
    if [ "$(printf '%s\n' "$path" | grep -c .)" != 1 ]; then
        verdict "$number" "NO SINGLE FILE $file: '$path'" && failures=$((failures + 1)) && return
    fi
    if ! PATTERN=$pattern REPLACEMENT=$replacement perl -0777 -i -pe '
        my $n = s/$ENV{PATTERN}/$ENV{REPLACEMENT}/g; $bad = $n != 1; END { exit($bad ? 1 : 0) }' \
        "$tree/$path"; then
        verdict "$number" "THE EDIT DOES NOT APPLY ONCE in $path" && failures=$((failures + 1))
        return
    fi
    local binary=$1 tests=()
    shift
    while [ $# -gt 0 ]; do
        if [ "$1" = -- ]; then
            run_tests "$number" "$binary" "${tests[@]}"
            binary=$2 tests=()
            shift 2
        else
            tests+=("$1") && shift
        fi
    done
    run_tests "$number" "$binary" "${tests[@]}"
}

defect 1 "penalty σ²/4 in place of σ²/2" mechanism/decide.rs \
    'variance_steps as f64 \* grid\.step\(\) / 2\.0' 'variance_steps as f64 * grid.step() / 4.0' \
    lib weighted_noise_and_penalty_keep_detailed_balance

defect 2 "proposal spread 1 − r in place of √(1 − r²)" anchored/moves.rs \
    '\(1\.0 - correlation \* correlation\)\.sqrt\(\)' '1.0 - correlation' \
    promises anchored_chains_match_quadrature

defect 3 "Barker charged η = c, not 2c" curator/cost.rs \
    'let eta = 2\.0 \* grid' 'let eta = grid' \
    promises privacy_audit::barker_never_exceeds_its_bounded_range the_charge_is_made_before_the_answer

defect 4 "Poisson-Barker charged half of its clip" curator/cost.rs \
    'let clip = grid\.clip_bound\(\) \* population' 'let clip = 0.5 * grid.clip_bound() * population' \
    promises poisson_barker_never_exceeds_its_bounded_range a_step_costs_what_its_widest_row

defect 5 "gradient sensitivity b, not 2b" curator/gradient.rs \
    'let sensitivity = 2\.0 \* grid' 'let sensitivity = grid' \
    promises gradients_and_the_samplers_that_follow_them

defect 6 "Gaussian-DP filter without its reserve" privacy/ledger.rs \
    'false => self\.limit\.minus\(self\.reserve\),' 'false => self.limit,' \
    lib the_reserve_is_left_after_bits_alone

defect 7 "rows past the end counted on the GPU" shaders/ratio_sum.wgsl \
    'let live = 4u \* quad \+ r < params\.rows;' 'let live = true;' \
    lib gpu_rows_match_the_oracle_and_sum_to_the_sums

defect 8 "curvature noise left out of intervals" diagnostics/noise_aware.rs \
    'anchor\.curvature_sd\.powi\(2\) / 2\.0' '0.0' \
    lib one_parameter_by_hand

defect 9 "variance between chains without n in R-hat" diagnostics/rhat.rs \
    'let between = n \* variance' 'let between = variance' \
    lib autocorrelated_chains four_and_five_draws

defect 10 "sign of Poisson's score on the GPU" shaders/model/poisson_score.wgsl \
    'return label - exp_accurate\(eta\);' 'return exp_accurate(eta) - label;' \
    lib gradient_gpu_tests::gpu_rows_match_the_oracle

defect 11 "penalty's noise of half its standard deviation" mechanism/decide.rs \
    'let variance = u128::from\(variance_steps\) << \(-grid\.exponent\(\)\)\.max\(0\);' \
    'let variance = (u128::from(variance_steps) << (-grid.exponent()).max(0)) / 4;' \
    promises penalty_never_exceeds_its_gaussian_trade_off known_posteriors::logistic_regression

defect 12 "an anchor's noise of half its standard deviation" mechanism/expansion.rs \
    'discrete_gaussian\(rng, v\)' 'discrete_gaussian(rng, v / 4)' \
    promises an_anchor_never_exceeds_its_gaussian_trade_off

defect 13 "a gradient's noise of half its standard deviation" mechanism/gradient.rs \
    'discrete_gaussian\(rng, variance\)' 'discrete_gaussian(rng, variance / 4)' \
    promises gradients_and_the_samplers_that_follow_them other_gradients_stay_under_their_claims

defect 14 "no row of a Poisson batch left out" mechanism/gradient.rs \
    'while taken != 0 \{' 'taken = u64::MAX; while taken != 0 {' \
    promises gradients_and_the_samplers_that_follow_them other_gradients_stay_under_their_claims

defect 15 "momenta of twice their variance" hamiltonian/mass.rs \
    '\*z \*= m\.sqrt\(\)\),\n(?=.*times)' '*z *= (2.0 * m).sqrt()),
' \
    promises gradient_posteriors::logistic_regression gradient_posteriors::the_banana

defect 16 "a Langevin step of twice its drift" langevin/dynamics.rs \
    '\(0\.5 \* a \* f\)' '(a * f)' \
    promises langevin_dynamics_on_poisson_batches_have_their_variance

defect 17 "weighted rows drawn uniformly" mechanism/decide.rs \
    'Some\(shares\) => listed\.extend\(\(0\.\.count\)\.map\(\|_\| shares\.draw\(rng\)\)\)' \
    'Some(_) => listed.extend((0..count).map(|_| rng.below(rows as u64)))' \
    promises weighted_minibatches_sample rows_with_bounds_of_their_own_stay_under

defect 18 "no allowance for a model that does not hold" anchored/norms.rs \
    'const OFF: f64 = 0\.3;' 'const OFF: f64 = 0.0;' \
    promises a_model_that_does_not_hold

defect 19 "an anchored network's remainders halved" cpu/network_remainder.rs \
    'multiply_add::<FMA>\(score, more, -quadratic\) - rest;' \
    '0.5 * (multiply_add::<FMA>(score, more, -quadratic) - rest);' \
    promises anchored_network_chains_match

defect 20 "a network's ratios doubled" cpu/network.rs \
    'ratios\[i\] = -softplus_difference' 'ratios[i] = -2.0 * softplus_difference' \
    promises network_posteriors::a_binary_head

defect 21 "moments' densities halved" model/moments.rs \
    'self\.model\.tempering\(\) \* value' '0.5 * self.model.tempering() * value' \
    promises moments::mixtures_on_minibatches moments::gaussian_means moments::bananas

defect 22 "weights of a Poisson minibatch halved" mechanism/decide.rs \
    '\(2\.0 \* \(q\.abs' '(1.0 * (q.abs' \
    promises known_posteriors::gaussian_mean known_posteriors::the_mixture

if [ "$failures" -gt 0 ]; then
    echo "$failures of the above were not caught or not planted" >&2
    exit 1
fi
