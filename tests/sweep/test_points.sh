#!/usr/bin/env bash
# Which points there are: axes, ranges, zips, derived keys, constraints, samples, parts, layouts.
. "$SOURCE_DIR/tests/support/sweep_fixture.sh" || exit 1

points() { "$STEPSIM" sweep "$1" --dry-run | sed -n 's/ points of .*//p'; }
# refused FILE CODE WORDS: the sweep file is refused with a status, the code and a position.
refused() {
    "$STEPSIM" sweep "$1" --dry-run >out.txt 2>err.txt
    local status=$?
    expect "$1 ends with 2 or 3: $(cat err.txt out.txt)" [ "$status" -ge 2 ]
    expect "$1 says [$2]: $(cat err.txt)" grep -qF "[$2]" err.txt
    expect "$1 says $3: $(cat err.txt)" grep -qF -- "$3" err.txt
}

expect "25 layers x 4 tp x 4 batches x 3 lengths" [ "$(points sweep.yaml)" = 1200 ]
# 2, 4, 8 ... 64 in equal ratios; whole-number keys are whole.
sweep_yaml log.yaml 'axes: {parallel.tp: {from: 2, to: 64, count: 6, scale: log}}'
"$STEPSIM" sweep log.yaml --db log.db --quiet >/dev/null
degrees=$(ask log.db 'select value from run_keys order by run_id' | tr '\n' ' ')
expect "a log range" [ "$degrees" = "2 4 8 16 32 64 " ]
sweep_yaml zip.yaml 'axes: {model.layers: [8, 16]}' 'zip:' \
    '  - {parallel.tp: [2, 4], parallel.ep: [8, 4]}'
expect "zipped axes move together" [ "$(points zip.yaml)" = 4 ]
sweep_yaml where.yaml 'axes:' '  model.layers: [8, 16, 24, 32]' '  parallel.tp: [1, 2, 4]' \
    'derived:' '  training.seq_len: 512 * tp' '  twice: seq_len * 2' \
    'where: [layers % 16 = 0, twice < 4096 and hidden_size = 2048]'
expect "constraints over axes, derived values and keys of the base" [ "$(points where.yaml)" = 4 ]
"$STEPSIM" sweep where.yaml --db where.db --quiet >/dev/null
expect "a derived key is set" count where.db "training_seq_len = 512 * parallel_tp" = 4
expect "a helper is kept by name" [ "$(ask where.db \
    "select count(*) from run_keys where key = 'twice' and value in (1024, 2048)")" = 4 ]
# Parameters grow by one layer at a time, so a window of them is a window of layers.
sweep_yaml params.yaml 'axes: {model.layers: {from: 8, to: 56, step: 1}}' \
    'derived: {parameters: params_total}' 'where: params_total between 5e9 and 10e9'
"$STEPSIM" sweep params.yaml --db params.db --quiet >/dev/null
expect "parameter counts in constraints" count params.db "params_total between 5e9 and 10e9" -gt 3
expect "they are those of the simulation" [ "$(ask params.db "select count(*) from runs join
    run_keys using (run_id) where key = 'parameters'
    and abs(value / params_total - 1) > 1e-12")" = 0 ]
sweep_yaml noop.yaml 'set: {parallel.vpp: 2, schedule.kind: interleaved}' \
    'axes: {model.layers: [9, 10, 11]}' "derived: {
    parallel.stages: \"printf('{split: noop, noop_layers: %s}', noop_slots(layers, 4))\"}"
"$STEPSIM" sweep noop.yaml --db noop.db --quiet >/dev/null
expect "noop_slots: last chunk first, then from the first" [ "$(ask noop.db \
    "select parallel_stages_noop_layers from runs order by 1" | tr -d '"' | tr '\n' ' ')" = \
    "[11] [2, 11] [2, 5, 11] " ]

# Samples: the same file has the same points, another seed others, and no point comes twice.
for seed in 1 1 2; do
    sweep_yaml random.yaml 'axes: {model.layers: {from: 8, to: 56, step: 1},
        training.seq_len: {from: 512, to: 8192, step: 512}}' \
        "sample: {kind: random, points: 100, seed: $seed}"
    "$STEPSIM" sweep random.yaml --dry-run >>random.txt
done
expect "a sample has its size" [ "$(points random.yaml)" = 100 ]
expect "seeds decide" [ "$(sort random.txt | uniq -c | awk '$1 == 2' | wc -l)" -ge 4 ]
sweep_yaml cube.yaml 'axes: {model.layers: {from: 11, to: 20, step: 1},
    training.seq_len: {from: 512, to: 5120, step: 512}}' \
    'sample: {kind: latin_hypercube, points: 10, seed: 3}'
"$STEPSIM" sweep cube.yaml --db cube.db --quiet >/dev/null
expect "a hypercube meets every value of every axis once" [ "$(ask cube.db "select
    count(distinct model_layers) * 100 + count(distinct training_seq_len) from runs")" = 1010 ]

# Layouts: each point has the best of the list.
sweep_yaml fixed.yaml 'axes: {training.seq_len: [512, 2048]}' 'set: {parallel.tp: 4}'
sweep_yaml list.yaml 'axes: {training.seq_len: [512, 2048]}' \
    'layout: [{parallel.tp: 3}, {parallel.tp: 4}, {parallel.tp: 1, parallel.ep: 4}]'
sweep_yaml search.yaml 'axes: {training.seq_len: [512, 2048]}' 'layout: search'
for name in fixed list search; do
    "$STEPSIM" sweep "$name.yaml" --db layouts.db --quiet >/dev/null
done
best() { ask layouts.db "select max(tokens_per_s) from runs where sweep_id = $1 group by \
    training_seq_len order by training_seq_len" | tr '\n' ' '; }
faster() { awk -v a="$1" -v b="$2" 'BEGIN { n = split(a, x, " "); split(b, y, " ")
    for (i = 1; i <= n; i++) if (x[i] < y[i]) exit 1; exit n == 2 ? 0 : 1 }'; }
expect "a list is at least as fast as one of it" faster "$(best 2)" "$(best 1)"
expect "the search is at least as fast as a list" faster "$(best 3)" "$(best 2)"
expect "the row says which" count layouts.db "sweep_id = 2 and layout_no in (1, 2)" = 2

# Mistakes, each with what would work.
sweep_yaml typo.yaml 'axis: {parallel.tp: [1]}'
refused typo.yaml unknown_key 'did you mean "axes"?'
sweep_yaml key.yaml 'axes: {parallel.tq: [1]}'
refused key.yaml unknown_key 'did you mean "parallel.tp"?'
sweep_yaml file.yaml 'axes: {model.layers: [8]}' \
    'where: "layers = (select rootpage from sqlite_master)"'
refused file.yaml bad_expression 'prohibited'
sweep_yaml load.yaml 'axes: {model.layers: [8]}' "where: load_extension('x') = 1"
refused load.yaml bad_expression 'not authorized'
sweep_yaml loop.yaml 'axes: {model.layers: [8]}' \
    'where: "layers in (with recursive a(x) as (select 1 union all select x from a)
    select x from a)"'
refused loop.yaml bad_expression ''
sweep_yaml two.yaml 'axes: {model.layers: [8]}' 'where: "1), (2"'
refused two.yaml bad_expression 'syntax error'
sweep_yaml name.yaml 'axes: {model.layers: [8]}' 'where: intermediate_size > 3'
refused name.yaml bad_expression 'write more of it'
sweep_yaml none.yaml 'axes: {model.layers: [8]}' 'where: layers > 100'
refused none.yaml no_points 'none of the 1 combinations'
sweep_yaml huge.yaml 'axes: {model.layers: {from: 1, to: 99999, step: 1},
    training.seq_len: {from: 1, to: 99999, step: 1}}'
refused huge.yaml out_of_range 'latin_hypercube'
sweep_yaml equal.yaml 'zip: [{parallel.tp: [1, 2], parallel.pp: [1]}]'
refused equal.yaml conflicting_keys 'move together'
finish
