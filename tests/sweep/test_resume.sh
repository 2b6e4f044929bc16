#!/usr/bin/env bash
# A sweep that is killed again and again holds in the end what one that ran through holds, row for
# row; so does one with another number of workers; running it once more changes nothing.
. "$SOURCE_DIR/tests/support/sweep_fixture.sh" || exit 1

"$STEPSIM" sweep sweep.yaml --db whole.db --jobs 2 --quiet >whole.txt
expect "a whole sweep ends with 0" [ $? -eq 0 ]
expect "every point has a row" [ "$(ask whole.db 'select count(*) from runs')" = 1200 ]
expect "some points are rejected, and say why" \
    count whole.db "status = 'rejected' and code = 'world_not_multiple'" -gt 0
expect "some points are ok" \
    count whole.db "status = 'ok' and step_time_s > 0 and mfu > 0 and length(digest) = 16" -gt 0
expect "some do not fit" count whole.db "status = 'does_not_fit' and step_time_s > 0" -gt 0
expect "swept keys by name" \
    [ "$(ask whole.db "select count(*) from run_keys where key = 'model.layers'
        and typeof(value) = 'integer'")" = 1200 ]
expect "one plain file stays" [ ! -e whole.db-wal ]
content whole.db >whole.csv

"$STEPSIM" sweep sweep.yaml --db one.db --jobs 1 --quiet >/dev/null
content one.db >one.csv
expect "workers do not matter" cmp whole.csv one.csv

# kill -9 of the parent at several moments; workers must die with it.
kills=0
for moment in 0.1 0.3 0.2 0.5 0.4 0.3; do
    "$STEPSIM" sweep sweep.yaml --db killed.db --jobs 2 --quiet >/dev/null 2>&1 &
    parent=$!
    sleep "$moment"
    workers=$(pgrep -P "$parent" | tr '\n' ' ')
    kill -9 "$parent" 2>/dev/null && kills=$((kills + 1))
    wait "$parent" 2>/dev/null
    sleep 0.1
    for worker in $workers; do
        # A dead child of nobody may stay a zombie where process 1 does not reap.
        expect "worker $worker died with its parent" \
            [ "$(cut -d' ' -f3 "/proc/$worker/stat" 2>/dev/null | tr -d Z)" = "" ]
    done
done
expect "the sweep was killed at least once" [ "$kills" -ge 1 ]
"$STEPSIM" sweep sweep.yaml --db killed.db --jobs 2 --quiet >/dev/null
expect "the killed sweep completes" [ $? -eq 0 ]
content killed.db >killed.csv
expect "killed and resumed equals whole, row for row" cmp whole.csv killed.csv

"$STEPSIM" sweep sweep.yaml --db killed.db --jobs 2 --quiet >again.txt
expect "nothing is left to do" grep -q 'now: 0 points' again.txt
content killed.db >again.csv
expect "running again changes nothing" cmp whole.csv again.csv

# Ctrl-C: what runs is finished and committed, exit 130, and the way to resume is told.
"$STEPSIM" sweep sweep.yaml --db stopped.db --jobs 1 --quiet >/dev/null 2>stopped.txt &
parent=$!
sleep 0.4
kill -INT "$parent"
wait "$parent"
expect "an interrupted sweep ends with 130" [ $? -eq 130 ]
expect "and says how to resume" grep -q 'run the same command again' stopped.txt
expect "and leaves one plain file" [ ! -e stopped.db-wal ]
expect "and its invocation has an end" \
    [ "$(ask stopped.db 'select count(*) from invocations where ended_utc is not null
        and not complete')" = 1 ]
"$STEPSIM" sweep sweep.yaml --db stopped.db --quiet >/dev/null
content stopped.db >stopped.csv
expect "interrupted and resumed equals whole" cmp whole.csv stopped.csv
finish
