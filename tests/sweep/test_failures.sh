#!/usr/bin/env bash
# What goes wrong around a sweep: disks, files, other programs, points that die.
. "$SOURCE_DIR/tests/support/sweep_fixture.sh" || exit 1

# fails STATUS CODE COMMAND...: ends with the status and names the code.
fails() {
    local status=$1 code=$2 got
    shift 2
    "$@" >out.txt 2>err.txt
    got=$?
    expect "$* ends with $status, not $got: $(cat err.txt)" [ "$got" -eq "$status" ]
    expect "$* says [$code]: $(cat err.txt)" grep -qF "[$code]" err.txt
}

"$STEPSIM" sweep sweep.yaml --db good.db --quiet >/dev/null
content good.db >good.csv

# A full disk: file size limits stand for it, at several sizes. Nothing committed is lost.
for blocks in 400 900 1500; do
    rm -f full.db*
    (
        ulimit -f "$blocks"
        trap '' XFSZ
        "$STEPSIM" sweep sweep.yaml --db full.db --jobs 2 --quiet >/dev/null 2>err.txt
    )
    status=$?
    expect "a full disk ends with 4, not $status" [ "$status" -eq 4 ]
    expect "and says what to do: $(cat err.txt)" grep -q 'run the same command again' err.txt
    "$STEPSIM" sweep sweep.yaml --db full.db --jobs 2 --quiet >/dev/null
    content full.db >full.csv
    expect "a full disk and a second try equal a whole sweep" cmp good.csv full.csv
done

# A real small file system, where one may be mounted.
mkdir small
if mount -t tmpfs -o size=1m none small 2>/dev/null; then
    "$STEPSIM" sweep sweep.yaml --db small/full.db --jobs 2 --quiet >/dev/null 2>err.txt
    expect "a full file system ends with 4" [ $? -eq 4 ]
    mount -o remount,size=32m small
    "$STEPSIM" sweep sweep.yaml --db small/full.db --jobs 2 --quiet >/dev/null
    content small/full.db >full.csv
    expect "with more space it completes" cmp good.csv full.csv
    umount small
fi

# Files that cannot be used.
head -c 20000 /dev/urandom >noise.db
fails 4 database "$STEPSIM" sweep sweep.yaml --db noise.db
fails 4 database "$STEPSIM" query noise.db
sqlite_db() { python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.executescript(sys.argv[2])
db.commit()' "$@"; }
sqlite_db other.db 'create table t (x)'
fails 4 database "$STEPSIM" sweep sweep.yaml --db other.db
cp good.db newer.db
sqlite_db newer.db 'pragma user_version = 99'
fails 4 database_version "$STEPSIM" sweep sweep.yaml --db newer.db
fails 4 database_version "$STEPSIM" query newer.db
cp good.db torn.db
# Overwrite pages in the middle: the file opens, its content is damaged.
dd if=/dev/urandom of=torn.db bs=4096 seek=4 count=40 conv=notrunc 2>/dev/null
fails 4 database "$STEPSIM" sweep sweep.yaml --db torn.db
fails 4 file_not_found "$STEPSIM" query nothing.db
fails 4 database "$STEPSIM" sweep sweep.yaml --db no/such/folder/x.db

# A read-only file; root may write anywhere, so the attribute must do where there is one.
cp good.db fixed.db
chmod a-w fixed.db
if [ "$(id -u)" -ne 0 ] || chattr +i fixed.db 2>/dev/null; then
    fails 4 database "$STEPSIM" sweep sweep.yaml --db fixed.db
    expect "reading goes on" [ "$(ask fixed.db 'select count(*) from runs')" = 1200 ]
    chattr -i fixed.db 2>/dev/null
fi

# An older file: version 1 had no index by status, and a metric is missing.
cp good.db older.db
sqlite_db older.db 'drop view v_exposed; drop view comm; drop view time_share;
    drop index runs_by_status;
    delete from meta; drop view v_runs; drop view v_best; drop view v_pareto; drop view v_memory;
    alter table runs drop column hfu; pragma user_version = 1'
"$STEPSIM" sweep sweep.yaml --db older.db --quiet >/dev/null
expect "an older file is brought up to date" [ $? -eq 0 ]
expect "its columns are there" count older.db "hfu is null" = 1200
expect "its views are there" [ "$(ask older.db 'select count(*) from v_best')" -ge 1 ]

# Two sweeps on one file: the same one twice, and two different ones.
sweep_yaml second.yaml 'title: second' 'axes: {training.seq_len: {from: 512, to: 8192, step: 64}}'
for file in sweep.yaml sweep.yaml second.yaml; do
    "$STEPSIM" sweep "$file" --db both.db --jobs 1 --quiet >/dev/null 2>>both.txt &
done
wait
expect "no errors: $(cat both.txt)" [ ! -s both.txt ]
done_points=$(ask both.db 'select points_done from v_sweeps order by 1 desc' | tr '\n' ' ')
expect "no duplicates, nothing lost" [ "$done_points" = "1200 121 " ]
expect "the file is sound" [ "$(python3 -c 'import sqlite3
print(sqlite3.connect("both.db").execute("pragma integrity_check").fetchone()[0])')" = ok ]

# A point that dies, one that runs away, one that needs too much memory.
sweep_yaml heavy.yaml 'set: {devices: 32, parallel.pp: 4}' \
    'axes: {training.global_batch_size: [262144, 524288]}'
"$STEPSIM" sweep heavy.yaml --db late.db --jobs 1 --quiet --point-timeout "50 ms" >/dev/null
expect "a late point does not end the sweep" [ $? -eq 0 ]
expect "late points are rows" \
    count late.db "status = 'failed' and code = 'point_timeout'" = 2
# Sanitizers reserve more address space than any limit.
if ! grep -q __asan_init "$STEPSIM"; then
    "$STEPSIM" sweep heavy.yaml --db large.db --jobs 1 --quiet --point-memory "60 MiB" >/dev/null
    expect "points that need too much memory are rows" \
        count large.db "status = 'failed' and code = 'point_out_of_memory'" = 2
fi

# Kill workers: their points are failed rows, and --retry-failed heals them.
"$STEPSIM" sweep sweep.yaml --db hurt.db --jobs 2 --quiet >/dev/null &
parent=$!
for _ in 1 2 3 4 5 6; do
    sleep 0.08
    worker=$(pgrep -P "$parent" | head -1)
    [ -n "$worker" ] && kill -SYS "$worker" 2>/dev/null
done
wait "$parent"
expect "killed workers do not end the sweep" [ $? -eq 0 ]
expect "every point has a row" [ "$(ask hurt.db 'select count(*) from runs')" = 1200 ]
expect "some failed, with the signal in the message" \
    count hurt.db "status = 'failed' \
 and code = 'point_crashed' and message like '%signal 31%'" -ge 1
"$STEPSIM" sweep sweep.yaml --db hurt.db --retry-failed --quiet >/dev/null
content hurt.db >hurt.csv
expect "retried, it equals a whole sweep" cmp good.csv hurt.csv
finish
