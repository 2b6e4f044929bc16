# cli.sh - for shell tests of the command line: source it, then call run and the checks.
#
#   run ARGUMENT...        runs stepsim; leaves $status, $out and $err (file names)
#   expect_status N        the last status
#   expect_out TEXT        standard output holds the text
#   expect_err TEXT        standard error holds the text
#   expect_no_out          standard output is empty
#   expect_no_err          standard error is empty
#   python_check CODE      python3 code on the JSON of standard output, as `d`
# A failed check prints what was run and ends the test.
set -u
: "${STEPSIM:?path of the program}" "${SOURCE_DIR:?source tree}"
cd "$SOURCE_DIR"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
out=$scratch/out
err=$scratch/err
sim=sims/pangu_ultra_moe_6k/sim.yaml
last=""
status=0

fail() {
    echo "FAILED: $*"
    echo "ran: stepsim $last (status $status)"
    echo "--- stdout" && head -20 "$out"
    echo "--- stderr" && head -20 "$err"
    exit 1
}

run() {
    last="$*"
    status=0
    "$STEPSIM" "$@" >"$out" 2>"$err" </dev/null || status=$?
}

expect_status() { [ "$status" -eq "$1" ] || fail "status is $status, not $1"; }
expect_out() { grep -qF -e "$1" "$out" || fail "standard output lacks: $1"; }
expect_err() { grep -qF -e "$1" "$err" || fail "standard error lacks: $1"; }
expect_no_out() { [ ! -s "$out" ] || fail "standard output is not empty"; }
expect_no_err() { [ ! -s "$err" ] || fail "standard error is not empty"; }

python_check() {
    python3 -c "
import json, sys
d = json.load(open('$out'), parse_constant=lambda name: sys.exit('not JSON: ' + name))
$1" || fail "python: $1"
}

# A small scenario that runs in a few milliseconds.
small=$scratch/small.yaml
cat >"$small" <<'YAML'
model: {base: llama2_7b, layers: 4}
cluster: atlas_800t_a2
devices: 16
parallel: {tp: 4, pp: 2, zero: 1}
training: {seq_len: 1024, micro_batch_size: 1, global_batch_size: 8}
schedule: {kind: 1f1b}
YAML
