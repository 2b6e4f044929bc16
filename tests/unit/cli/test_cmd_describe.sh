#!/usr/bin/env bash
# describe: one entry of each family, keys, suggestions.
. "$(dirname "$0")/../../support/cli.sh"

for name in pangu_ultra_moe_718b ascend_910b3 atlas_800t_a2 1f1b ring matmul closed_form \
    does_not_fit tokens_per_s parallel.tp; do
    run describe "$name"; expect_status 0; expect_no_err; expect_out "$name"
    run describe "$name" --json; expect_status 0
    python_check "assert d[0]['name'] == '$name', d"
done

# published figures of the headline model
run describe pangu_ultra_moe_718b --json
python_check "
assert abs(d[0]['params_total'] / 717.9e9 - 1) < 0.002
assert abs(d[0]['params_active'] / 39.19e9 - 1) < 0.002"

# every fact has a grade and a source
run describe ascend_910b3 --json
python_check "
facts = d[0]['facts']
assert len(facts) > 20
for fact in facts:
    assert fact['grade'] in ('measured', 'vendor', 'fitted', 'assumed') and fact['source'], fact"

run describe pangu_ultra_moe_718; expect_status 2; expect_err "did you mean pangu_ultra_moe_718b"
run describe parallel.tpp; expect_status 2; expect_err "did you mean parallel.tp"
