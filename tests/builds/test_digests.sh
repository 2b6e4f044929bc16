#!/usr/bin/env bash
# One digest on every compiler and optimisation level: gcc and clang, -O0 and -O3, folded and
# with all ranks, for a 512-rank job. The program under test gives the digest to compare with.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/job.yaml" <<'YAML'
model: {base: deepseek_v3, layers: 29}
cluster: atlas_800t_a2
devices: 512
parallel: {tp: 4, sequence_parallel: true, pp: 4, vpp: 2, ep: 32, etp: 1, zero: 1}
training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 512}
schedule: {kind: overlapped_1f1b, p2p: overlapped}
moe: {exchange: hierarchical, overlap: {shared_expert: true}}
recompute: {modules: [norm, permute]}
swap: {activations: [attention]}
overlap: {grad_reduce: true, param_gather: true, matmul_collective: mc2}
YAML

digest_of() { # PROGRAM [OPTION...]
    STEPSIM_CONFIG_DIR="$SOURCE_DIR/configs" "$1" simulate "$work/job.yaml" --json "${@:2}" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["stepsim"]["digest"])'
}

expected=$(digest_of "$STEPSIM")
[[ $expected =~ ^[0-9a-f]{16}$ ]] || { echo "no digest: $expected"; exit 1; }
failed=0
compare() { # NAME DIGEST
    echo "$1: $2"
    [ "$2" = "$expected" ] || failed=1
}
compare "twice" "$(digest_of "$STEPSIM")"
compare "all ranks" "$(digest_of "$STEPSIM" --ranks all)"
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || { echo "no $compiler here"; failed=1; continue; }
    for level in -O0 -O3; do
        build=$work/$compiler$level
        cmake -S "$SOURCE_DIR" -B "$build" -G Ninja -DCMAKE_C_COMPILER="$compiler" \
            -DCMAKE_BUILD_TYPE= -DCMAKE_C_FLAGS="$level" -DSTEPSIM_TESTS=OFF >"$work/log" 2>&1 &&
            cmake --build "$build" --target stepsim >>"$work/log" 2>&1 ||
            { tail -20 "$work/log"; failed=1; continue; }
        compare "$compiler $level" "$(digest_of "$build/stepsim")"
    done
done
[ "$failed" -eq 0 ] || { echo "the digests differ"; exit 1; }
