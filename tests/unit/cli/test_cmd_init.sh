#!/usr/bin/env bash
# init: a template that the loader takes, never over an existing file.
. "$(dirname "$0")/../../support/cli.sh"

run init; expect_status 0; expect_no_err; expect_out "model:"
run init "$scratch/new.yaml"; expect_status 0; expect_no_out; expect_err "wrote"
run simulate "$scratch/new.yaml" --json; expect_status 0
run init "$scratch/new.yaml"; expect_status 4; expect_err "exists already"
run init "$scratch/no/such/folder.yaml"; expect_status 4; expect_err "[file_not_writable]"
