# sweep_fixture.sh - a small sweep for the shell tests of databases and sweeps; to be sourced.
#
# 16 devices and a model of four layers: a point takes about a millisecond. `expect` counts
# failures; the test ends with `finish`.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0

cat >base.yaml <<'YAML'
title: A small model on two nodes
model: {base: moonlight_16b, layers: 8}
cluster: atlas_800t_a2
devices: 16
parallel: {tp: 2, pp: 2, ep: 8, etp: 1}
training: {seq_len: 1024, micro_batch_size: 1, global_batch_size: 64}
schedule: {kind: 1f1b, p2p: blocking}
precision: {compute: bf16, gradients: fp32, master: fp32, moments: fp32}
YAML

# sweep_yaml NAME LINE...: a sweep file over the base.
sweep_yaml() {
    local name=$1
    shift
    printf '%s\n' 'base: base.yaml' "$@" >"$name"
}

# 1,200 points, some of which are rejected (tp 3) and some of which do not fit.
sweep_yaml sweep.yaml 'title: small' 'axes:' \
    '  model.layers: {from: 8, to: 56, step: 2}' \
    '  parallel.tp: [1, 2, 3, 4]' \
    '  training.micro_batch_size: [1, 2, 4, 8]' \
    '  training.seq_len: [512, 1024, 8192]'

# expect WHAT TEST...: the test command must succeed.
expect() {
    local what=$1
    shift
    if ! "$@"; then
        echo "failed: $what ($*)" >&2
        failures=$((failures + 1))
    fi
}

# ask DB SQL: what the database says, through the program.
ask() {
    "$STEPSIM" query "$1" --sql "$2" --format csv | tail -n +2 | tr -d '\r'
}

# count DB CONDITION OPERATOR NUMBER: compares how many runs meet the condition.
count() {
    local found
    found=$(ask "$1" "select count(*) from runs where $2")
    case $3 in
    =) [ "$found" -eq "$4" ] ;;
    *) [ "$found" "$3" "$4" ] ;;
    esac
}

# content DB: everything that may not depend on the moment, the machine or the workers.
content() {
    local table
    for table in runs run_keys stages steps; do
        "$STEPSIM" export "$1" --csv --table "$table" | sort
    done
}

finish() {
    if [ "$failures" -gt 0 ]; then
        echo "$failures failures" >&2
        exit 1
    fi
    exit 0
}
