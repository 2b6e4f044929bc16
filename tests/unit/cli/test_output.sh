#!/usr/bin/env bash
# Where output goes: colours, full disks, closed descriptors, readers that go away.
. "$(dirname "$0")/../../support/cli.sh"

# no colour in a pipe, with or without the variables
run simulate "$small"; expect_status 0; expect_no_err
if grep -q $'\033' "$out"; then
    fail "escape sequences in a pipe"
fi

# colour on a terminal, switched off by NO_COLOR, TERM=dumb and --no-color
on_terminal() { script -qec "$1" /dev/null </dev/null 2>/dev/null; }
if command -v script >/dev/null; then
    unset NO_COLOR
    export TERM=xterm
    on_terminal "$STEPSIM simulate $small" | grep -q $'\033' || fail "no colour on a terminal"
    on_terminal "NO_COLOR=1 $STEPSIM simulate $small" | grep -q $'\033' && fail "NO_COLOR"
    on_terminal "TERM=dumb $STEPSIM simulate $small" | grep -q $'\033' && fail "TERM=dumb"
    on_terminal "$STEPSIM simulate $small --no-color" | grep -q $'\033' && fail "--no-color"
fi

# a full disk is an error
last="list models, stdout full"
status=0
"$STEPSIM" list models >/dev/full 2>"$err" || status=$?
expect_status 4
expect_err "standard output"
status=0
"$STEPSIM" simulate "$small" --json >/dev/full 2>"$err" || status=$?
expect_status 4

# so is a closed standard output
status=0
"$STEPSIM" list models >&- 2>"$err" || status=$?
expect_status 4

# a closed standard error or input changes nothing
status=0
"$STEPSIM" list models 2>&- <&- >"$out" || status=$?
expect_status 0
expect_out "pangu_ultra_moe_718b"

# a reader that goes away ends the program without a word
"$STEPSIM" simulate "$small" --json 2>"$err" | true
expect_no_err

# where SIGPIPE is ignored the write fails, still without a word
status=0
(trap '' PIPE; "$STEPSIM" describe ascend_910b3 --json 2>"$err"; echo $? >"$scratch/rc") | true
expect_no_err

# LC_ALL=C has no block characters, and numbers keep their point in any locale
LC_ALL=C run simulate "$small"
if LC_ALL=C grep -q '[^ -~]' "$out"; then
    fail "more than ASCII in the C locale"
fi
