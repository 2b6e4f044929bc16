#!/usr/bin/env bash
# simulate --trace: read by python's json and gzip, checked against the answer of simulate and
# against the rules of the viewers.
. "$(dirname "$0")/../../support/cli.sh"

# A pipeline with experts, so that most streams have ops.
cat >"$scratch/moe.yaml" <<'YAML'
title: 'Quoted "title" \ with ünïcode'
model: {base: pangu_ultra_moe_718b, layers: 8, mtp_layers: 0,
        moe: {experts: 32, first_dense_layers: 0}}
cluster: atlas_800t_a2
devices: 64
parallel: {tp: 4, pp: 4, ep: 16, etp: 1, zero: 1}
training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 32}
schedule: {kind: 1f1b}
YAML

check='
import collections, gzip, json, sys
def load(name):
    raw = (gzip.open if name.endswith(".gz") else open)(name, "rb").read()
    return raw.decode(), json.loads(raw)
text, d = load(sys.argv[1])
answer = json.load(open(sys.argv[2]))
ranks = int(sys.argv[3])
events = d["traceEvents"]
assert d["otherData"]["scenario"] == answer["stepsim"]["scenario_hash"]
assert d["otherData"]["title"] == "Quoted \"title\" \\ with ünïcode", d["otherData"]
assert text.index("traceEvents") < 1000
# one event a line, and the letters that MindStudio Insight knows
starts = sum(line.startswith("{\"ph\":") for line in text.split("\n"))
assert starts == len(events) == text.count("\"ph\"")
assert {e["ph"] for e in events} == set("MXCIsf"), {e["ph"] for e in events}
lanes = collections.defaultdict(list)
for e in events:
    if e["ph"] == "X":
        lanes[e["pid"], e["tid"]].append(e)
assert len({pid for pid, tid in lanes}) == ranks
names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
assert set(lanes) <= set(names) and len(processes) == ranks
stages = {int(name.split()[1].strip(",")) for name in processes.values()}
assert stages == set(range(4)), processes
ns = lambda us: round(us * 1000)
# ops of a lane do not overlap, and everything ends within the step
last = 0
for lane in lanes.values():
    lane.sort(key=lambda e: (e["ts"], e["dur"]))
    for a, b in zip(lane, lane[1:]):
        assert ns(a["ts"]) + ns(a["dur"]) <= ns(b["ts"]), (a, b)
    last = max(last, ns(lane[-1]["ts"]) + ns(lane[-1]["dur"]))
assert abs(last - answer["step_time_s"] * 1e9) <= 1, (last, answer["step_time_s"])
# busy time of the compute lanes is what the answer says of the stages
busy = {s["stage"]: s["compute_busy_s"] for s in answer["memory"]["stages"]}
for (pid, tid), lane in lanes.items():
    if names[pid, tid] == "compute":
        stage = int(processes[pid].split()[1].strip(","))
        assert abs(sum(e["dur"] for e in lane) / 1e6 - busy[stage]) < 1e-9 * len(lane)
# 8 microbatches over 3 borders, both ways: each message has two ends
arrows = collections.Counter((e["ph"], e["id"]) for e in events if e["ph"] in "sf")
assert set(arrows.values()) == {1}
assert {i for p, i in arrows if p == "s"} == {i for p, i in arrows if p == "f"}
assert len(arrows) == 8 * 3 * 2 * 2 * (ranks // 4), len(arrows)
start = {e["id"]: e["ts"] for e in events if e["ph"] == "s"}
assert all(start[e["id"]] <= e["ts"] for e in events if e["ph"] == "f")
inside = {(e["pid"], e["tid"], e["ts"]) for e in events if e["ph"] == "X"}
assert all((e["pid"], e["tid"], e["ts"]) in inside for e in events if e["ph"] in "sf")
# memory reaches the reported peak, and ends at its lowest
memory = collections.defaultdict(list)
for e in events:
    if e["ph"] == "C":
        assert e["ts"] > 0
        if e["name"] == "memory GiB":
            memory[e["pid"]].append((e["ts"], e["args"]["GiB"]))
for pid, series in memory.items():
    stage = int(processes[pid].split()[1].strip(","))
    peak = answer["memory"]["stages"][stage]["peak_bytes"] / 2**30
    assert series == sorted(series, key=lambda s: s[0])
    assert abs(max(v for t, v in series) - peak) < 1e-3 * peak, (stage, peak)
    assert series[-1][1] - min(v for t, v in series) < 1e-3, (stage, series[-1])
# bytes under the curves of link use are the bytes that the answer says
rates = collections.defaultdict(list)
for e in events:
    if e["name"] == "sending GB/s":
        rates[e["pid"]].append((e["ts"], e["args"]))
described = answer["time_share_stage"]
for pid, series in rates.items():
    assert all(v == 0 for v in series[-1][1].values())
    if int(processes[pid].split()[1].strip(",")) != described:
        continue
    for kind in series[0][1]:
        sent = sum((b[0] - a[0]) / 1e6 * a[1][kind] * 1e9 for a, b in zip(series, series[1:]))
        said = answer["comm"][kind]["bytes_per_device"]
        assert abs(sent - said) <= 2e-3 * said + 1e4, (kind, sent, said)
assert any("mb3" in e["name"] for e in events)
phases = "warmup steady cooldown optimizer".split()
assert all(e["args"]["phase"] in phases for e in events if e["ph"] == "X")
'

run simulate "$scratch/moe.yaml" --json --trace "$scratch/t.json"
expect_status 0
python3 -c "$check" "$scratch/t.json" "$out" 4 || fail "folded trace"
expect_err "events of 4 ranks"

run simulate "$scratch/moe.yaml" --json --ranks all --trace "$scratch/t.json.gz"
expect_status 0
[ "$(head -c 2 "$scratch/t.json.gz" | od -An -tx1 | tr -d ' ')" = 1f8b ] || fail "not compressed"
python3 -c "$check" "$scratch/t.json.gz" "$out" 64 || fail "trace of all ranks"

# A million events come out whole; one in sixteen is parsed, for time.
run simulate "$scratch/moe.yaml" --json --ranks all --trace "$scratch/t.json.gz" \
    --set devices=512 --set training.global_batch_size=512
expect_status 0
python3 -c "
import gzip, json
lines = gzip.open('$scratch/t.json.gz').read().decode().split('\n')
first, last = lines.index('{\"traceEvents\":[') + 1, lines.index('],')
assert last - first > 1000000, last - first
assert '%d events' % (last - first) in open('$err').read()
assert not lines[last - 1].endswith(',')
for line in lines[first:last - 1]:
    assert line[0] == '{' and line.endswith('},'), line
for line in lines[first:last:16]:
    json.loads(line.rstrip(','))
json.loads(''.join(lines[:first] + lines[last - 1:]))
" || fail "a million events"

# files that cannot be written
run simulate "$small" --trace "$scratch/no/such/folder.json"
expect_status 4
expect_err "file_not_writable"
if [ -e /dev/full ]; then
    run simulate "$small" --trace /dev/full
    expect_status 4
    expect_err "No space left"
fi
