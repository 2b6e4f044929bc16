#!/usr/bin/env bash
# Options: exact names, both forms of values, all mistakes at once.
. "$(dirname "$0")/../../support/cli.sh"

run simulate "$small" --jsn; expect_status 2; expect_no_out
expect_err "--jsn: unknown option, did you mean --json?"
run simulate "$small" --js; expect_status 2; expect_err "--js: unknown option"
run simulate "$small" -x; expect_status 2; expect_err "no short option here"
run simulate -h; expect_status 0; expect_out "Usage: stepsim simulate"
run simulate "$small" --json=yes; expect_status 2; expect_err "--json: takes no value"
run simulate "$small" --seed; expect_status 2; expect_err "--seed: needs a value"
run simulate "$small" --seed x; expect_status 2; expect_err "--seed"
run simulate "$small" --seed -1; expect_status 2; expect_err "--seed"
run simulate "$small" --steps 0; expect_status 2; expect_err "below the minimum"
run simulate "$small" --steps 1 --steps 2; expect_status 2; expect_err "given twice"
run simulate "$small" --ranks half; expect_status 2; expect_err "not one of: folded, all"
run simulate; expect_status 2; expect_err "stepsim simulate SIM.yaml"
run simulate "$small" "$small"; expect_status 2; expect_err "one argument too many"
run simulate "$small" --set parallel.tp; expect_status 2; expect_err "is not KEY=VALUE"

# several mistakes, one run
run simulate "$small" --jsn --steps 0 --ranks half
expect_status 2
expect_err "3 errors"

# help wins over mistakes
run simulate --nonsense --help; expect_status 0; expect_no_err

# the two forms of a value, and what follows --
run simulate "$small" --set=parallel.tp=2 --json; expect_status 0
python_check "assert d['world']['tp'] == 2"
run simulate --set parallel.tp=2 --json -- "$small"; expect_status 0
python_check "assert d['world']['tp'] == 2"
run simulate --json -- --set; expect_status 4
