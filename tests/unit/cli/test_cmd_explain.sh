#!/usr/bin/env bash
# explain: ops with costs, one op with its inputs, filters and suggestions.
. "$(dirname "$0")/../../support/cli.sh"

run explain "$sim"; expect_status 0; expect_no_err
for words in "Where the step goes" "Longest ops" "moe, forward" "dense, backward" "dispatch"; do
    expect_out "$words"
done

# totals agree with the formula that is shown: a matmul is 2 m n k FLOP
run explain "$sim" --op q_up --block moe --pass forward --json; expect_status 0
python_check "
op, = d['ops']
v = {row['name']: row['value'] for row in op['inputs']}
assert abs(op['flop'] / (2 * v['m'] * v['n'] * v['k']) - 1) < 1e-12, v
assert op['time_s'] > 0 and op['formula'] and op['bound']
for row in op['inputs']:
    assert (row['key'] == '') == (row['grade'] == ''), row"

# Bytes of one flat dispatch, in two stages. A rank holds 8 copies of its 2,048 tokens, 31.5 MB
# each: 7/8 of them go over the mesh to the rank of the node that has the right number, then 3/4 to
# another of the 4 nodes: 7 + 6 times 31.5 MB.
run explain "$sim" --op dispatch --block moe --pass forward --json --set moe.exchange=flat \
    --set schedule.kind=interleaved
python_check "
op, = d['ops']
copy = 2048 * 7680 * 2
assert abs(op['bytes'] / (13 * copy) - 1) < 1e-9, op['bytes'] / copy"

# an assumed input shows how far it may be off
run explain "$sim" --op expert_up --block moe --pass forward
expect_out "INTERVAL"
run explain "$sim" --op expert_up --block moe --pass forward --json
python_check "
row, = [r for r in d['ops'][0]['inputs'] if r['key'] == 'cluster.device.grouped_matmul_ratio']
assert row['grade'] == 'assumed' and row['low'] < row['value'] < row['high'], row"

run explain "$sim" --block head; expect_status 0; expect_out "head, forward"
grep -q "moe, forward" "$out" && fail "--block lets others pass"
run explain "$sim" --op atention; expect_status 2; expect_err "did you mean attention"
run explain "$sim" --op dispatch --block dense; expect_status 2; expect_err "[unknown_name]"
run explain "$sim" --recompute; expect_status 0; expect_out "SAVES GiB"; expect_out "mla_kv_up_proj"
run explain "$sim" --recompute --json; expect_status 0
python_check "
modules = {m['module']: m for m in d['modules']}
assert len(modules) == 10
assert modules['layer']['saved_bytes'] > 0 and modules['layer']['added_s'] > 0"
run explain "$scratch/nothing.yaml"; expect_status 4
