#!/usr/bin/env bash
# The page of `report` in a real browser: it draws, says nothing on the console, reacts to a
# person, fetches nothing, and is readable without scripts. Needs a program with the chart library
# and Debian's chromium; the suite `browser` exists only where both are there.
#
#   test_report.sh [SCREENSHOT.png]
. "$(dirname "$0")/../support/cli.sh"

cat >"$scratch/sweep.yaml" <<YAML
title: A page "with" <quotes> & </script> in its title
base: $small
axes:
  parallel.tp: [1, 2, 4, 8]
  training.micro_batch_size: [1, 2]
  training.seq_len: [1024, 2048, 4096]
  host.dispatch: [eager, graph]
YAML
run sweep "$scratch/sweep.yaml" --db "$scratch/r.db" --quiet
expect_status 0
run report "$scratch/r.db" -o "$scratch/report.html" --title 'Layouts <of> "7B" </script>'
expect_status 0
python3 "$SOURCE_DIR/tests/browser/browse.py" "$scratch/report.html" "${1:-$scratch/shot.png}" ||
    fail "the browser"
