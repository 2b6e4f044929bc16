#!/usr/bin/env bash
# Sweeps that search a layout for every point, and those where only the best points matter.
. "$SOURCE_DIR/tests/support/sweep_fixture.sh" || exit 1

space='{parallel.tp: [1, 2, 4], parallel.pp: [1, 2, 4], training.micro_batch_size: [1, 2]}'
axes='axes: {model.layers: {from: 8, to: 24, step: 2}, training.seq_len: [512, 1024, 2048, 4096],
  model.moe.top_k: [2, 4, 6]}'
sweep_yaml all.yaml 'title: all' "$axes" "layout: {search: $space}"
sweep_yaml top.yaml 'title: top' "$axes" "layout: {search: $space, top: 5}"

"$STEPSIM" sweep all.yaml --db all.db --jobs 2 --quiet >/dev/null
expect "a search for every point" [ $? -eq 0 ]
"$STEPSIM" sweep top.yaml --db top.db --jobs 2 --quiet >/dev/null
expect "only the best" [ $? -eq 0 ]
expect "every point has a row" [ "$(ask top.db 'select count(*) from runs')" = 108 ]
expect "hopeless variants stop early" count top.db "code = 'not_among_best'" -ge 30

# The best five are those of the whole search, with the same layouts and steps.
best="select point_no, step_time_s, parallel_tp, parallel_pp, digest from runs
    where status = 'ok' order by tokens_per_s desc, point_no limit 5"
ask all.db "$best" >all.txt
ask top.db "$best" >top.txt
expect "the same best five" cmp all.txt top.txt
expect "five of them" [ "$(wc -l <top.txt)" -eq 5 ]

# One point by hand: the best of its layouts is what `simulate` says of each of them.
least=999
for tp in 1 2 4; do for pp in 1 2 4; do for batch in 1 2; do
    step=$("$STEPSIM" simulate base.yaml --set model.layers=8 --set training.seq_len=512 \
        --set model.moe.top_k=2 --set parallel.tp=$tp --set parallel.pp=$pp \
        --set training.micro_batch_size=$batch --json 2>/dev/null |
        python3 -c 'import json, sys
run = json.load(sys.stdin)
print(run["step_time_s"] if run["memory"]["fits"] else 999)' 2>/dev/null)
    least=$(python3 -c "print(min($least, ${step:-999}))")
done; done; done
point=$(ask all.db "select step_time_s from runs where point_no = 0")
expect "the best layout of a point: $point and $least" \
    python3 -c "assert abs($point - $least) < 1e-9 * $least"

# Neither workers nor interruptions change a row.
content top.db >top.csv
"$STEPSIM" sweep top.yaml --db one.db --jobs 1 --quiet >/dev/null
content one.db >one.csv
expect "one worker gives the same rows" cmp top.csv one.csv
for _ in 1 2 3; do
    timeout -s KILL 0.6 "$STEPSIM" sweep top.yaml --db killed.db --jobs 2 --quiet >/dev/null 2>&1
done
"$STEPSIM" sweep top.yaml --db killed.db --jobs 2 --quiet >/dev/null
content killed.db >killed.csv
expect "killed and resumed, the same rows" cmp top.csv killed.csv

# Mistakes are named.
sweep_yaml wrong.yaml "$axes" 'layout: {search: some}'
"$STEPSIM" sweep wrong.yaml --dry-run >/dev/null 2>err.txt
expect "a wrong layout is refused" grep -q 'search: all' err.txt
finish
