#!/usr/bin/env bash
# list: every kind, as text and as JSON.
. "$(dirname "$0")/../../support/cli.sh"

run list; expect_status 0
for kind in models devices clusters schedules collectives compute networks errors metrics; do
    expect_out "$kind"
done
for kind in models devices clusters schedules collectives compute networks errors metrics; do
    run list "$kind"; expect_status 0; expect_no_err; expect_out "NAME"
    run list "$kind" --json; expect_status 0
    python_check "
assert len(d) > 0
for row in d:
    assert row['name'] and row['title'], row"
done
run list models; expect_out "pangu_ultra_moe_718b"
run list modls; expect_status 2; expect_err "did you mean models"
