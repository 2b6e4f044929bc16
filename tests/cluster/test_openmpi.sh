#!/usr/bin/env bash
# Four processes of a real mpirun each take their part of a sweep; joined, the parts equal a sweep
# by one process. One part is killed and run again; joining twice changes nothing.
command -v mpirun >/dev/null || exit 77
. "$SOURCE_DIR/tests/support/sweep_fixture.sh" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$STEPSIM" sweep sweep.yaml --db whole.db --quiet >/dev/null
content whole.db >whole.csv

mpirun --oversubscribe -n 4 "$STEPSIM" sweep sweep.yaml --db 'part-{shard}.db' --shard auto \
    --jobs 1 --quiet >/dev/null
expect "mpirun ends with 0" [ $? -eq 0 ]
expect "every process wrote its own file" [ "$(ls part-*-of-4.db | wc -l)" = 4 ]
for part in part-*.db; do
    expect "$part has a fair part" count "$part" "true" = 300
done
"$STEPSIM" merge part-*.db -o all.db >/dev/null
expect "the parts join" [ $? -eq 0 ]
content all.db >all.csv
expect "joined parts equal a whole sweep" cmp whole.csv all.csv
"$STEPSIM" merge part-2-of-4.db part-3-of-4.db --output all.db >again.txt
expect "joining again adds nothing" grep -q '^0 points added.* 600 were there' again.txt
content all.db >again.csv
expect "and changes nothing" cmp whole.csv again.csv

# A part that was lost half-way.
rm part-1-of-4.db
"$STEPSIM" sweep sweep.yaml --db part-1-of-4.db --shard 1/4 --jobs 1 --quiet >/dev/null 2>&1 &
sleep 0.3
kill -9 $! 2>/dev/null
wait $! 2>/dev/null
"$STEPSIM" sweep sweep.yaml --db part-1-of-4.db --shard 1/4 --jobs 1 --quiet >/dev/null
"$STEPSIM" merge part-1-of-4.db part-4-of-4.db part-3-of-4.db part-2-of-4.db -o other.db >/dev/null
content other.db >other.csv
expect "the order of the parts does not matter" cmp whole.csv other.csv

# GNU parallel, parts by hand, one shared file on one machine.
if command -v parallel >/dev/null; then
    parallel --will-cite -j 2 "$STEPSIM" sweep sweep.yaml --db shared.db --shard '{}/3' --jobs 1 \
        --quiet ::: 1 2 3 >/dev/null
    content shared.db >shared.csv
    expect "parts in one file equal a whole sweep" cmp whole.csv shared.csv
fi
finish
