#!/usr/bin/env bash
# schema: JSON Schema of the four kinds of files.
. "$(dirname "$0")/../../support/cli.sh"

for kind in "" scenario model cluster device; do
    # shellcheck disable=SC2086
    run schema $kind; expect_status 0; expect_no_err
    python_check "assert 'draft-07' in d['\$schema'] and 'properties' in json.dumps(d)"
done
run schema nothing; expect_status 2; expect_err "scenario, model, cluster, device"
