#!/usr/bin/env bash
# Dispatch: help of every command, suggestions, exit statuses.
. "$(dirname "$0")/../../support/cli.sh"

run; expect_status 2; expect_no_out; expect_err "Usage: stepsim COMMAND"
run --help; expect_status 0; expect_no_err; expect_out "Exit status: 0 done"
run -h; expect_status 0; expect_out "simulate"
run --version; expect_status 0; expect_out "stepsim "

for command in simulate explain list describe init schema version help; do
    run "$command" --help
    expect_status 0
    expect_no_err
    expect_out "Usage: stepsim $command"
    expect_out "Examples:"
    expect_out "  stepsim $command"
    run help "$command"
    expect_out "Usage: stepsim $command"
done

run simulte; expect_status 2; expect_no_out; expect_err "did you mean simulate?"
run nonsense; expect_status 2; expect_err "stepsim --help"
run sweep; expect_status 2; expect_err "[usage]"
run help simulte; expect_status 2; expect_err "did you mean simulate?"
