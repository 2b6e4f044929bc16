#!/usr/bin/env bash
# Scenarios from standard input and overrides from the command line.
. "$(dirname "$0")/../../support/cli.sh"

printf 'model: [\n' | "$STEPSIM" simulate - >"$out" 2>"$err" && fail "broken YAML was taken"
expect_err "stdin:"
printf 'model: llama2_7b\0\n' | "$STEPSIM" simulate - >"$out" 2>"$err" && fail "NUL was taken"
expect_err "[yaml_syntax]"
run simulate "$small" --set =8; expect_status 2; expect_err "is not KEY=VALUE"
run simulate "$small" --set parallel.tp=2 --set parallel.pp=4 --json; expect_status 0
python_check "assert d['world']['tp'] == 2 and d['world']['pp'] == 4 and d['world']['dp'] == 2"
