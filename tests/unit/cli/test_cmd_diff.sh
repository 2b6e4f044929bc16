#!/usr/bin/env bash
# diff: keys that differ, and waterfalls whose digits add up.
. "$(dirname "$0")/../../support/cli.sh"

run diff "$small" "$sim" --json
expect_status 0
python_check "
from decimal import Decimal
for name, whole in (('time_ps', 'step_time_ps'), ('memory_bytes', 'peak_bytes')):
    for side in ('a', 'b', 'change'):
        assert sum(int(t[side]) for t in d[name].values()) == int(d[whole][side]), (name, side)
        assert all(t[side] == int(t[side]) for t in d[name].values()), 'whole units'
assert d['metrics']['step_time_s']['b'] == d['step_time_ps']['b'] / 1e12
assert d['metrics']['memory.peak_bytes']['a'] == d['peak_bytes']['a']
keys = {k['key']: (k['a'], k['b']) for k in d['keys']}
assert keys['devices'] == (16, 6144), keys
assert keys['parallel.tp'] == (4, 8)
assert keys['schedule.kind'] == ('1f1b', 'overlapped_1f1b')
assert keys['model.moe.experts'][0] in (None, 0) and keys['model.moe.experts'][1] == 256, keys
assert 'seed' not in keys"

# one file and what is set: only that differs
run diff "$small" --set host.dispatch=graph --json
expect_status 0
python_check "
assert d['keys'] == [{'key': 'host.dispatch', 'a': 'eager', 'b': 'graph'}], d['keys']
assert d['time_ps']['host']['change'] < 0 and d['peak_bytes']['change'] == 0"

# the printed digits add up by hand
run diff "$small" "$sim"
expect_status 0
expect_out "Keys that differ"
python3 -c "
import re
from decimal import Decimal
text = open('$out').read()
for heading in ('Where the step goes', 'Peak memory'):
    table = text.split(heading)[1].split('\n\n')[0]
    rows = re.findall(r'^  (\w+) +([\d.]+) +([\d.]+) +([+-][\d.]+)', table, re.M)
    assert rows[-1][0] == 'sum' and len(rows) > 4, rows
    for column in (1, 2, 3):
        assert sum(Decimal(r[column]) for r in rows[:-1]) == Decimal(rows[-1][column]), heading
    for r in rows:
        assert Decimal(r[2]) - Decimal(r[1]) == Decimal(r[3]), r
" || fail "the digits"

run diff "$small" "$small"
expect_out "The scenarios are the same."
run diff "$small"; expect_status 2; expect_err "second scenario"
run diff "$small" "$scratch/gone.yaml"; expect_status 4; expect_no_out
run diff "$small" --set parallel.tp=3; expect_status 2
