#!/usr/bin/env bash
# check: a baseline is filled, holds, and fails with the term that moved; what CI systems read.
. "$(dirname "$0")/../../support/cli.sh"
base=$scratch/baseline.json

# nothing to check yet
echo '{"scenarios": [{"file": "small.yaml"}, {"file": "small.yaml", "set": {"parallel.tp": "2"},
      "metrics": {"mfu": {"rel": 0.01}, "memory.fits": {"value": true, "abs": 0}}}]}' >"$base"
run check "$base"
expect_status 2
expect_err "--update"

# filled by an update, valid JSON, and then it holds; an update of it changes no byte
run check "$base" --update
expect_status 0
expect_out "new"
python3 -c "
import json
d = json.load(open('$base'))['scenarios']
assert list(d[0]['metrics']) == ['step_time_s', 'tokens_per_s', 'mfu', 'memory.peak_bytes']
assert d[1]['set'] == {'parallel.tp': '2'} and d[1]['metrics']['mfu']['rel'] == 0.01
assert d[1]['metrics']['memory.fits'] == {'value': 1, 'abs': 0}
step = d[0]['metrics']['step_time_s']['value']
assert abs(sum(d[0]['terms']['time_s'].values()) - step) < 1e-12 * 20
peak = d[0]['metrics']['memory.peak_bytes']['value']
assert sum(d[0]['terms']['memory_bytes'].values()) == peak
" || fail "the file"
cp "$base" "$scratch/first.json"
run check "$base"
expect_status 0
expect_out "6 metrics of 2 scenarios: 0 moved, 0 out of tolerance"
run check "$base" --update
cmp -s "$base" "$scratch/first.json" || fail "an update without a change changed the file"

# a slower host moves the step, the term is named, and memory is left alone
sed -i 's/^devices: 16/devices: 16\nhost: {dispatch: graph}/' "$small"
run check "$base" --junit "$scratch/junit.xml"
expect_status 1
expect_out "MOVED"
grep -q 'small.yaml: time: host -' "$out" || fail "the term that moved most stands first"
grep -q 'memory.peak_bytes' "$out" && fail "memory did not move"
python3 -c "
import xml.etree.ElementTree as tree
root = tree.parse('$scratch/junit.xml').getroot()
cases = root.findall('./testsuite/testcase')
assert root.tag == 'testsuites' and len(cases) == int(root.get('tests')) == 6
failed = [c.get('name') for c in cases if c.find('failure') is not None]
assert len(failed) == int(root.get('failures')) and int(root.get('errors')) == 0
assert failed[:3] == ['step_time_s', 'tokens_per_s', 'mfu'], failed
assert 'host -' in cases[0].find('failure').text
assert len({c.get('classname') for c in cases}) == 2
" || fail "JUnit"
run check "$base" --json
expect_status 1
python_check "
assert d['passed'] is False and d['failed_scenarios'] >= 1
first = d['scenarios'][0]
changes = first['time_change_s']
assert min(changes, key=changes.get) == 'host'
step = next(m for m in first['metrics'] if m['name'] == 'step_time_s')
assert abs(sum(changes.values()) - step['change']) < 1e-9 and not step['within']
assert all(v == 0 for v in first['memory_change_bytes'].values())"

# tolerances: the same move within a wide one, relative or absolute
python3 - "$base" <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
d['scenarios'] = d['scenarios'][:1]
for metric in d['scenarios'][0]['metrics'].values():
    metric['rel'] = 10
step = d['scenarios'][0]['metrics']['step_time_s']
del step['rel']
step['abs'] = 100
json.dump(d, open(sys.argv[1], 'w'))
PY
run check "$base"
expect_status 0
expect_out "within"
sed -i 's/"abs": 100/"abs": 1e-6/' "$base"
run check "$base"
expect_status 1

# a scenario that is refused now, or gone, is a failed check that says why
echo '{"scenarios": [{"file": "small.yaml", "set": {"parallel.tp": 3},
      "metrics": {"mfu": {"value": 0.1, "rel": 1}}},
      {"file": "gone.yaml", "metrics": {"mfu": {"value": 0.1, "rel": 1}}}]}' >"$base"
run check "$base" --junit "$scratch/junit.xml"
expect_status 1
expect_out "small.yaml parallel.tp=3"
expect_out "file_not_found"
python3 -c "
import xml.etree.ElementTree as tree
root = tree.parse('$scratch/junit.xml').getroot()
assert len(root.findall('.//error')) == 2 == int(root.get('errors'))" || fail "JUnit of errors"
cp "$base" "$scratch/before.json"
run check "$base" --update
expect_status 1

# mistakes in the file, with positions
refuse() {
    echo "$1" >"$base"
    run check "$base"
    expect_status 2
    expect_err "$base:1:"
    expect_err "$2"
}
refuse '{"scenarios": []}' "at least one"
refuse '{"scenarios": [{"metrics": {"mfu": {"value": 1, "rel": 1}}}]}' "missing_key"
refuse '{"scenarios": [{"file": "a", "metrics": {"mfv": {"value": 1, "rel": 1}}}]}' \
    "did you mean mfu"
refuse '{"scenarios": [{"file": "a", "metrics": {"mfu": {"value": 1}}}]}' "exactly one"
refuse '{"scenarios": [{"file": "a", "metrics": {"mfu": {"value": 1, "rel": 1, "abs": 1}}}]}' \
    "exactly one"
refuse '{"scenarios": [{"file": "a", "metrics": {"mfu": {"value": "x", "rel": 1}}}]}' "bad_number"
refuse '{"scenarios": [{"file": "a", "metrics": {"mfu": {"value": 1, "rel": -1}}}]}' "not negative"
refuse '{"scenarios": [{"file": "a", "metric": {}}]}' "unknown_key"
echo '{"scenarios": [' >"$base"
run check "$base"
expect_status 2
expect_err "yaml_syntax"
run check "$scratch/nothing.json"
expect_status 4
