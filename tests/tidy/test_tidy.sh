#!/usr/bin/env bash
# Each house rule of tools/tidy is broken once, in a small tree of its own; tidy must name the
# file, the line and the rule, and must accept the tree when nothing is broken.
set -u
# The interpreter itself, since a version manager in front of it costs more than the check.
tidy=("$(python3 -c 'import sys; print(sys.executable)')" "$SOURCE_DIR/tools/tidy")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# A clean tree: one header, one source, one test.
fresh() {
    rm -rf "$work/tree"
    mkdir -p "$work/tree"/{include/stepsim,src/base,src/engine,src/config,tests/unit/base}
    cd "$work/tree" || exit 1
    printf '%s\n' '/* units.h - time. */' '#ifndef U' '#define U' '#include <stdint.h>' \
        'typedef int64_t sim_time;' '#endif' >include/stepsim/units.h
    printf '%s\n' '/* units.c - time. */' '#include "stepsim/units.h"' >src/base/units.c
    printf '%s\n' '/* test_units.c - time. */' '#include "stepsim/units.h"' \
        >tests/unit/base/test_units.c
}

# expect FILE LINE TEXT: tidy ends with 1 and prints exactly one breach, this one.
expect() {
    local output status
    output=$("${tidy[@]}" --root "$work/tree")
    status=$?
    if [ $status -ne 1 ] || ! grep -qF "$1:$2: " <<<"$output" || ! grep -qF "$3" <<<"$output" ||
        ! grep -qx '1 breaches of the house rules' <<<"$output"; then
        printf 'expected only  %s:%s: ..%s..\nstatus %s, output:\n%s\n\n' \
            "$1" "$2" "$3" "$status" "$output"
        failed=1
    fi
    fresh
}

# source FILE LINE...: a source that opens as it should, with these lines from line 2 on.
source_file() {
    local file=$1
    shift
    mkdir -p "$(dirname "$file")"
    printf '%s\n' '/* What it is for. */' "$@" >"$file"
}

fresh
if ! output=$("${tidy[@]}" --root "$work/tree"); then
    printf 'the clean tree is refused:\n%s\n' "$output"
    failed=1
fi

# Includes
source_file src/engine/a.c '#include "stepsim/scenario.h"'
source_file include/stepsim/scenario.h
expect src/engine/a.c 2 'engine may not use config'
source_file src/base/a.c '#include "engine/a.h"'
source_file src/engine/a.h
expect src/base/a.c 2 'private to engine'
source_file src/engine/a.c '#include "nowhere.h"'
expect src/engine/a.c 2 'there is no nowhere.h'
source_file src/engine/a.c '#include <yaml.h>'
expect src/engine/a.c 2 'yaml.h belongs to config only'
source_file src/engine/a.c '#include <left-pad.h>'
expect src/engine/a.c 2 'left-pad.h'
source_file src/nobody/a.c
expect src/nobody/a.c 1 "the folder 'nobody' is not in the table"
source_file include/stepsim/nobody.h
expect include/stepsim/nobody.h 1 'this header is not in the table'
source_file src/engine/a.h '#ifndef A' '#define A' '#include "engine/b.h"' '#endif'
source_file src/engine/b.h '#ifndef B' '#define B' '#include "engine/a.h"' '#endif'
expect src/engine/b.h 4 'a circle of includes'
source_file include/stepsim/text.h '#ifndef T' '#define T' 'size_t text_size(void);' '#endif'
expect include/stepsim/text.h 1 'does not compile alone'
source_file include/stepsim/text.h 'struct text {int x;};'
expect include/stepsim/text.h 1 'does not compile alone'

# Calls
source_file src/config/a.c 'void f(void)' '{' '    exit(1);' '}'
expect src/config/a.c 4 'only the command line ends'
source_file src/config/a.c 'void f(void)' '{' '    printf("x");' '}'
expect src/config/a.c 4 'only the command line prints'
source_file src/config/a.c 'void f(void)' '{' '    fprintf(stderr, "x");' '}'
expect src/config/a.c 4 'only the command line prints'
source_file src/engine/a.c 'void f(void)' '{' '    free(malloc_it());' '}'
expect src/engine/a.c 4 'no allocation'
source_file src/engine/a.c 'void f(void)' '{' '    clock_gettime(1, p);' '}'
expect src/engine/a.c 4 'wall clock'
source_file src/engine/a.c '#include <assert.h>'
expect src/engine/a.c 2 'ASSERT of error.h'
source_file tests/unit/base/test_units.c 'void f(void)' '{' '    assert_float_equal(1, 1, 0);' '}'
expect tests/unit/base/test_units.c 4 'single precision'
source_file tests/unit/base/test_units.c 'void f(void)' '{' '    strcpy(a, b);' '}'
expect tests/unit/base/test_units.c 4 'strcpy is banned'

# A word in a comment or a string is no call.
source_file src/config/a.c '/* exit(1), printf() */' 'const char *s = "exit(1) \" printf(";' \
    '// time(NULL)'
if ! output=$("${tidy[@]}" --root "$work/tree"); then
    printf 'words in comments are taken for calls:\n%s\n' "$output"
    failed=1
fi
fresh

# Sizes: 70 lines and 700 lines pass, one more does not; five parameters pass, the dots are free.
body() { for ((i = 0; i < $1; i++)); do echo '    f();'; done; }
source_file src/base/a.c 'int f(int a, int (*b)(int, int), int c, int d, int e, ...)' '{' \
    "$(body 68)" '}'
if ! output=$("${tidy[@]}" --root "$work/tree"); then
    printf 'a function of 70 lines and 5 parameters is refused:\n%s\n' "$output"
    failed=1
fi
source_file src/base/a.c 'int f(int a)' '{' "$(body 69)" '}'
expect src/base/a.c 2 'f has 71 lines'
source_file src/base/a.c 'int f(int a, int b, int c,' '      int d, int e, int g)' '{' '}'
expect src/base/a.c 2 'f has 6 parameters'
source_file src/base/a.c
yes 'int x;' | head -n 700 >>src/base/a.c
expect src/base/a.c 701 '701 lines'
source_file src/base/list.def
yes 'ROW(x)' | head -n 800 >>src/base/list.def
source_file src/config/model_schema.c
yes 'int x;' | head -n 800 >>src/config/model_schema.c
if ! output=$("${tidy[@]}" --root "$work/tree"); then
    printf 'tables are refused for their length:\n%s\n' "$output"
    failed=1
fi
fresh

# Files and lines
source_file src/base/text_utils.c
expect src/base/text_utils.c 1 "'utils'"
source_file tests/unit/base/test_ghost.c
expect tests/unit/base/test_ghost.c 1 'there is no src/base/ghost.c'
printf '#include "stepsim/units.h"\n' >src/base/units.c
expect src/base/units.c 1 'does not open with a comment'
source_file src/base/a.c 'int x; '
expect src/base/a.c 2 'trailing blanks'
source_file src/base/a.c $'\tint x;'
expect src/base/a.c 2 'a tab'
source_file src/base/a.c "/* $(printf '%095d' 0) */"
expect src/base/a.c 2 '101 columns'
source_file src/base/a.c "/* $(printf '%093d' 0)é */"
if ! "${tidy[@]}" --root "$work/tree" >/dev/null; then
    echo '100 columns with a wide letter are refused'
    failed=1
fi
printf '/* What it is for. */\nint x;' >src/base/a.c
expect src/base/a.c 2 'no newline'
word=TO
source_file src/base/a.c "/* ${word}DO: later */"
expect src/base/a.c 2 'leftover'

exit $failed
