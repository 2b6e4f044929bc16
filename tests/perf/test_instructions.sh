#!/usr/bin/env bash
# How many instructions the headline scenario needs, which other processes do not change; wall time
# is too noisy to guard. The bounds stand in instructions.txt. Needs valgrind and a release build.
set -euo pipefail
program=${STEPSIM:?}
cd "${SOURCE_DIR:?}"
command -v valgrind >/dev/null || exit 77
grep -q '^CMAKE_BUILD_TYPE:STRING=Release' "$(dirname "$program")/CMakeCache.txt" || exit 77
grep -q '^STEPSIM_\(SANITIZE\|COVERAGE\):BOOL=ON' "$(dirname "$program")/CMakeCache.txt" && exit 77

status=0
while read -r name bound arguments; do
    # shellcheck disable=SC2086 # arguments are words
    counted=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$program" simulate \
        $arguments 2>&1 >/dev/null | sed -n 's/.*Collected : *//p')
    printf '%-12s %6.1f M instructions, bound %s M\n' "$name" "$((counted / 100000))e-1" "$bound"
    if [ "$counted" -gt "$((bound * 1000000))" ]; then
        echo "$name passes its bound" >&2
        status=1
    fi
done < <(grep -v '^#' tests/perf/instructions.txt)
exit $status
