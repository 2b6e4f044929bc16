#!/usr/bin/env bash
# version: text and JSON.
. "$(dirname "$0")/../../support/cli.sh"

run version; expect_status 0; expect_out "stepsim "
run version --json; expect_status 0
python_check "
assert d['version'].count('.') == 2
assert d['commit'] and d['compiler'] and d['cjson']"
run version extra; expect_status 2
