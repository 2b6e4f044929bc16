#!/usr/bin/env bash
# The predictions of the studies in sims/ are what was last accepted, to a millionth. A change
# that moves them on purpose says so: stepsim check sims/baseline.json --update, and a line in
# CHANGELOG.md under "Numbers that moved".
. "$(dirname "$0")/../support/cli.sh"

run check sims/baseline.json
cat "$out"
expect_status 0
expect_out "0 out of tolerance"
