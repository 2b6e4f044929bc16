#!/usr/bin/env bash
# simulate --gantt and --gantt-file: the drawing agrees with the layout, and mistakes are told.
. "$(dirname "$0")/../../support/cli.sh"

run simulate "$small" --gantt --gantt-file "$scratch/g.svg"
expect_status 0
sed -n '/^STAGE/,$p' "$out" >"$scratch/drawing"
[ "$(wc -l <"$scratch/drawing")" -eq 3 ] || fail "two rows"
grep -q '^    0  [Ff].*o$' "$scratch/drawing" || fail "stage 0 begins with a forward"
grep -q '^    1  \..*o$' "$scratch/drawing" || fail "stage 1 waits"
python3 -c "
import xml.etree.ElementTree as tree
root = tree.parse('$scratch/g.svg').getroot()
assert root.tag == '{http://www.w3.org/2000/svg}svg'
titles = [t.text for t in root.iter('{http://www.w3.org/2000/svg}title')]
for stage in range(2):
    for m in range(2):
        for word in ('forward', 'backward'):
            assert any(t.startswith('stage %d: %s of microbatch %d,' % (stage, word, m))
                       for t in titles), (stage, word, m)
" || fail "the picture"

run simulate "$small" --gantt-file "$scratch/g.png"
expect_status 2
expect_err "does not end in .svg"
run simulate "$small" --gantt --json
expect_status 2
expect_err "--gantt"
run simulate "$small" --gantt-file "$scratch/no/g.svg"
expect_status 4
