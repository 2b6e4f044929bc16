#!/usr/bin/env bash
# The committed reference pages are what the tables of the program say.
. "$(dirname "$0")/../../support/cli.sh"

last="tools/docs --check"
tools/docs --check "$STEPSIM" >"$out" 2>"$err" || fail "run tools/docs and commit what it writes"
run docs --check docs/reference; expect_status 0
cp -r docs/reference "$scratch/pages"
echo >>"$scratch/pages/errors.md"
run docs --check "$scratch/pages"; expect_status 1; expect_err "errors.md is stale"
run docs "$scratch/pages"; expect_status 0
run docs --check "$scratch/pages"; expect_status 0
run docs "$scratch/no/such/folder"; expect_status 4; expect_err "[file_not_writable]"
