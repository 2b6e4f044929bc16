#!/usr/bin/env bash
# Where facts come from: option, then variable, then beside the program, then the source tree.
. "$(dirname "$0")/../../support/cli.sh"

mkdir -p "$scratch/facts/models" "$scratch/root/bin" "$scratch/root/share/stepsim"
cp configs/models/llama2_7b.yaml "$scratch/facts/models/only_here.yaml"
run list models --config-dir "$scratch/facts"; expect_status 0; expect_out "only_here"
STEPSIM_CONFIG_DIR=$scratch/facts run list models; expect_out "only_here"
STEPSIM_CONFIG_DIR=/nonexistent run list models --config-dir "$scratch/facts"
expect_out "only_here"
cp "$STEPSIM" "$scratch/root/bin/stepsim"
cp -r "$scratch/facts" "$scratch/root/share/stepsim/configs"
STEPSIM=$scratch/root/bin/stepsim run list models; expect_out "only_here"
run list models; expect_out "pangu_ultra_moe_718b"
