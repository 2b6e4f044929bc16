#!/usr/bin/env bash
# A real Slurm of one node, started here: an array job, and srun with two tasks, each take their
# part of a sweep; joined, the parts equal a sweep by one process.
for program in slurmctld slurmd munged sbatch srun; do
    command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || exit 77
done
[ "$(id -u)" -eq 0 ] || exit 77 # daemons that start jobs for others must be root
. "$SOURCE_DIR/tests/support/sweep_fixture.sh" || exit 1
PATH=$PATH:/usr/sbin
chmod 755 "$work"
node=$(hostname -s)

stop_slurm() {
    local pid
    for pid in $slurmd_pid $slurmctld_pid $munged_pid; do
        kill "$pid" 2>/dev/null
    done
    wait 2>/dev/null
    rm -rf "$work"
}
slurmd_pid= slurmctld_pid= munged_pid=
trap stop_slurm EXIT

mkdir -m 755 munge
mkdir -m 700 state spool key
head -c 1024 /dev/urandom >key/munge.key
chmod 400 key/munge.key
munged --foreground --force --key-file="$work/key/munge.key" --socket="$work/munge/socket" \
    --pid-file="$work/munge/pid" --log-file="$work/key/log" --seed-file="$work/key/seed" \
    >/dev/null 2>&1 &
munged_pid=$!

export SLURM_CONF=$work/slurm.conf
cat >slurm.conf <<CONF
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
CryptoType=crypto/munge
AuthInfo=socket=$work/munge/socket
SlurmctldPort=$((20000 + $$ % 20000))
SlurmdPort=$((40001 + $$ % 20000))
SlurmctldPidFile=$work/state/slurmctld.pid
SlurmdPidFile=$work/spool/slurmd.pid
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
MpiDefault=none
SchedulerParameters=sched_interval=1,bf_interval=1
SchedulerTimeSlice=5
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
CONF
slurmctld -D -f slurm.conf >/dev/null 2>&1 &
slurmctld_pid=$!
slurmd -D -f slurm.conf -N "$node" >/dev/null 2>&1 &
slurmd_pid=$!
for _ in $(seq 60); do
    state=$(sinfo -h -o %T 2>/dev/null)
    [ "$state" = idle ] && break
    sleep 0.5
done
if [ "$state" != idle ]; then
    echo "Slurm does not come up here (node is '$state'):" >&2
    tail -5 slurmctld.log slurmd.log >&2
    exit 77
fi

"$STEPSIM" sweep sweep.yaml --db whole.db --quiet >/dev/null
content whole.db >whole.csv

cat >array.sh <<JOB
#!/bin/bash
#SBATCH --array=1-3
#SBATCH --ntasks=1
cd "$work"
"$STEPSIM" sweep sweep.yaml --db "array-{shard}.db" --shard auto --jobs 1 --quiet
JOB
sbatch --wait -o "$work/array-%a.txt" array.sh >/dev/null
expect "the array ends with 0: $(cat array-*.txt)" [ $? -eq 0 ]
expect "each task wrote its part" [ "$(ls array-*-of-3.db | wc -l)" = 3 ]
"$STEPSIM" merge array-*.db -o array.db >/dev/null
content array.db >array.csv
expect "the array's parts equal a whole sweep" cmp whole.csv array.csv

srun --ntasks=2 --overlap --chdir="$work" "$STEPSIM" sweep sweep.yaml --db 'step-{shard}.db' \
    --shard auto --jobs 1 --quiet >step.txt 2>&1
expect "srun ends with 0: $(cat step.txt)" [ $? -eq 0 ]
expect "each rank wrote its part" [ "$(ls step-*-of-2.db | wc -l)" = 2 ]
"$STEPSIM" merge step-*.db -o step.db >/dev/null
content step.db >step.csv
expect "the ranks' parts equal a whole sweep" cmp whole.csv step.csv

# Both at once: two array tasks, each a job of two ranks, are four parts.
cat >both.sh <<JOB
#!/bin/bash
#SBATCH --array=0-2:2
#SBATCH --ntasks=2
cd "$work"
srun "$STEPSIM" sweep sweep.yaml --db "both-{shard}.db" --shard auto --jobs 1 --quiet
JOB
sbatch --wait -o "$work/both-%a.txt" both.sh >/dev/null
expect "array and step together: $(cat both-*.txt)" [ "$(ls both-*-of-4.db | wc -l)" = 4 ]
"$STEPSIM" merge both-*.db -o both.db >/dev/null
content both.db >both.csv
expect "all four parts equal a whole sweep" cmp whole.csv both.csv
finish
