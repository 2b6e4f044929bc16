#!/usr/bin/env bash
# simulate: JSON names and sums, exit statuses, anchors, both ways of folding.
. "$(dirname "$0")/../../support/cli.sh"

run simulate "$small" --json
expect_status 0
expect_no_err
python_check "
for name in ('stepsim scenario params world step_time_s tokens_per_s tokens_per_s_per_device '
             'days_for_tokens mfu hfu mfu_convention peak_flop_per_s_per_device '
             'model_flop_per_token model_flop_per_s_per_device time_share comm memory moe engine '
             'steps notes').split():
    assert name in d, name
assert abs(sum(d['time_share'].values()) - 1) < 1e-12
assert d['mfu'] == d['tokens_per_s'] * d['model_flop_per_token'] / (
    d['world']['devices'] * d['peak_flop_per_s_per_device'])
assert d['mfu'] <= d['hfu'] <= 1
for kind, comm in d['comm'].items():
    assert abs(comm['exposed_s'] - d['time_share'][kind] * d['step_time_s']) < 1e-9, kind
    assert comm['exposed_s'] <= comm['total_s']
parts = 'weights gradients optimizer activations logits buffers reserve'.split()
for stage in d['memory']['stages']:
    assert abs(sum(stage[p] for p in parts) - stage['peak_bytes']) < 1
    assert stage['peak_phase'] in 'load warmup steady cooldown optimizer'.split()
assert d['memory']['peak_bytes'] == max(s['peak_bytes'] for s in d['memory']['stages'])
assert d['scenario']['parallel']['tp']['origin'] == 'file'
assert d['days_for_tokens'] is None
assert d['engine']['ranks'] == 'folded'
"
digest=$(python3 -c "import json; print(json.load(open('$out'))['stepsim']['digest'])")

# the same answer again, with all ranks, and from standard input
run simulate "$small" --json
python_check "assert d['stepsim']['digest'] == '$digest'"
run simulate "$small" --json --ranks all
python_check "
assert d['stepsim']['digest'] == '$digest'
assert d['engine']['ranks'] == 'all' and d['engine']['simulated_ranks'] == 16"
"$STEPSIM" simulate - --json <"$small" >"$out" 2>"$err" || fail "standard input"
python_check "assert d['stepsim']['digest'] == '$digest'"

# tables for people
run simulate "$small"
expect_status 0
for words in "MFU " "tokens/s" "Where the step goes" "Peak memory of each stage" "Verdict" "Notes" \
    "Defaults in use"; do
    expect_out "$words"
done
run simulate "$small" --set training.tokens=1T --set moe.exchange=flat
expect_out "days for 1 T tokens"
expect_out "Set on the command line"

# a file of hosts: nodes of a two-level cluster are alike, so their order makes no difference
printf 'node1 slots=8\nnode0 slots=8 # the other way round\n' >"$scratch/it's hosts"
run simulate "$small" --hostfile "$scratch/it's hosts" --json
expect_status 0
python_check "assert d['stepsim']['digest'] == '$digest'
assert d['scenario']['parallel']['hosts']['origin'] == 'set'"
printf 'node1 slots=8\nnode1 slots=8\n' >"$scratch/hosts"
run simulate "$small" --hostfile "$scratch/hosts"
expect_status 2
expect_err "hosts:2:1: error: parallel.hosts: host node1 stands on line 1 already"

# steps
run simulate "$small" --steps 3 --json
python_check "assert [s['step'] for s in d['steps']] == [1, 2, 3]"

# a seed is a key like any other
run simulate "$small" --seed 0 --json
python_check "assert d['scenario']['seed'] == {'value': 0, 'origin': 'set'}, d['scenario']['seed']"

# too large for the device: an answer, or status 3 when a fit is asked for
run simulate "$small" --set memory.reserve='60 GiB'
expect_status 0
expect_out "Does not fit"
run simulate "$small" --set memory.reserve='60 GiB' --require-fit
expect_status 3
expect_out "Does not fit"
expect_err "[does_not_fit]"
run simulate "$small" --require-fit
expect_status 0

# an anchor scales: the measured step is twice the predicted one
run simulate "$small" --json
twice=$(python3 -c "import json; print(2 * json.load(open('$out'))['step_time_s'])")
run simulate "$small" --json --anchor "$twice s"
python_check "
assert abs(d['anchored']['ratio'] - 2) < 1e-9
assert abs(d['anchored']['mfu'] * 2 / d['mfu'] - 1) < 1e-9"
run simulate "$small" --anchor "$twice s" --set overlap.matmul_collective=mc2
expect_out "anchored to the measured run"
run simulate "$small" --anchor 12; expect_status 2; expect_err "--anchor"
run simulate "$small" --anchor "0 s"; expect_status 2; expect_err "[out_of_range]"
run simulate "$small" --anchor "1 us"; expect_status 2; expect_err "[mfu_above_one]"
run simulate - --anchor "1 s"; expect_status 2; expect_err "read twice"


# the range: in tables where it is quick, in JSON where it is asked for
run simulate "$small" --set cluster=h100_dgx
expect_out "  Range "
expect_out "Assumed inputs that move the answer"
expect_out "were off by"
run simulate "$small" --set cluster=h100_dgx --no-range
grep -q "Range \|inputs" "$out" && fail "--no-range prints a range"
run simulate "$small" --json
python_check "assert 'range' not in d"
run simulate "$small" --set cluster=h100_dgx --json --range
expect_no_err
python_check "
r = d['range']
assert r['step_time_s']['low'] <= d['step_time_s'] <= r['step_time_s']['high']
assert r['mfu']['low'] <= d['mfu'] <= r['mfu']['high']
assert r['tokens_per_s']['low'] <= d['tokens_per_s'] <= r['tokens_per_s']['high']
assert r['peak_bytes']['low'] <= d['memory']['peak_bytes'] <= r['peak_bytes']['high']
assert r['inputs'] and r['held'] == [] and r['model_error']['runs'] > 0
for i in r['inputs']:
    assert i['low'] <= i['value'] <= i['high'] and i['grade'] == 'assumed', i
    moved = [i['step_time_low_s'] / d['step_time_s'], i['step_time_high_s'] / d['step_time_s']]
    assert max(abs(m - 1) for m in moved) > 0.001, i
"
run simulate "$small"
expect_out "None of the 8 assumed inputs moves the step"
run simulate "$small" --range --set cluster.host_bandwidth='500 GB/s'
expect_out "so held where a range is asked for: cluster.host_bandwidth"
run simulate "$small" --range --no-range; expect_status 2; expect_err "--no-range"

# mistakes in the scenario, and files that are not there
run simulate "$small" --set parallel.tp=3; expect_status 2; expect_err "error: "
run simulate "$small" --set parallel.tq=3; expect_status 2; expect_err "[unknown_key]"
run simulate "$small" --set schedule.kind=1f1c; expect_status 2; expect_err "schedule.kind"
run simulate "$scratch/nothing.yaml"; expect_status 4; expect_err "[file_not_found]"
run simulate "$scratch"; expect_status 4
