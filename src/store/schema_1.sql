-- schema_1.sql - the tables of the results database, version 1.
--
-- A comment above a table, and above or behind a column, is its description in
-- docs/reference/database.md. The mark in `runs` is replaced by one column per key of the
-- scenario and per metric; such columns are also added to files that lack them.

-- Facts about the file itself.
create table meta (
    key text primary key, -- Name of the fact.
    value text not null -- The fact.
) strict, without rowid;

-- What was asked: one row per sweep or search, one for all single simulations.
create table sweeps (
    sweep_id integer primary key, -- Number of the sweep in this file.
    kind text not null check (kind in ('single', 'sweep', 'search')), -- Who asked.
    name text not null, -- Title of the sweep, or its file.
    -- XXH3-128 of definition and base: the same hash is the same sweep.
    definition_hash text not null unique,
    -- Axes, constraints, sampling and seed, as JSON.
    definition text not null check (json_valid(definition)),
    -- Resolved scenario that the points vary, as JSON.
    base text check (base is null or json_valid(base)),
    points_total integer not null -- Points of the sweep, 0 when it has no end.
) strict;

-- Every start of the program that wrote here.
create table invocations (
    invocation_id integer primary key, -- Number of the start.
    sweep_id integer not null references sweeps (sweep_id), -- What it worked on.
    command_line text not null, -- As it was typed.
    version text not null, -- Version of the program.
    git_commit text not null, -- Commit of the program, with -dirty if its tree had changes.
    schema_version integer not null, -- Version of this schema that it wrote.
    host text not null, -- Machine.
    jobs integer not null, -- Worker processes.
    shard text, -- Which part of the sweep, "2-of-8"; null: all of it.
    started_utc text not null, -- Start, ISO 8601.
    ended_utc text, -- End; null while it runs and after a kill.
    complete integer not null default 0 check (complete in (0, 1)) -- Did it finish its part.
) strict;

-- One row per simulated point. Nothing here depends on the moment, the machine or the workers.
create table runs (
    run_id integer primary key, -- sweep_id * 2^32 + point_no.
    sweep_id integer not null references sweeps (sweep_id), -- The sweep.
    point_no integer not null, -- The point in the sweep, from 0: row present means done.
    -- ok: simulated and fits. does_not_fit: simulated, memory is too small. rejected: not legal.
    -- failed: crashed, ran away or ran out of memory.
    status text not null check (status in ('ok', 'does_not_fit', 'rejected', 'failed')),
    code text, -- Error code when the status is not ok.
    message text, -- The reason in words.
    error_count integer not null, -- Mistakes found in the point; the first is shown.
    layout_no integer, -- Which entry of the sweep's layout list was best; null without a list.
    scenario_hash text, -- XXH3-128 of the resolved scenario in canonical form.
    -- What differs from sweeps.base, as a JSON merge patch; v_scenarios has the whole.
    scenario_patch text check (scenario_patch is null or json_valid(scenario_patch)),
    model_hash text, -- XXH3-64 of the resolved model.
    calibration_id text, -- XXH3-64 of every hardware number of cluster and device.
    flop_convention text, -- What MFU counts.
    version text not null, -- Version of the program.
    git_commit text not null, -- Commit of the program.
    digest text, -- Fingerprint of the canonical result.
    event_digest text, -- Fingerprint of the events of this mode of simulation.
    ranks text, -- folded or all.
    verdict text /*columns*/ -- One sentence: the largest loss.
) strict;

-- The swept keys of a point, by name.
create table run_keys (
    run_id integer not null references runs (run_id) on delete cascade, -- The point.
    key text not null, -- Key of the scenario, or a helper name of the sweep.
    value any, -- Its value: a number where it is one, in SI units.
    text text not null, -- As the sweep writes it.
    primary key (run_id, key)
) strict, without rowid;

-- Memory and load of each pipeline stage.
create table stages (
    run_id integer not null references runs (run_id) on delete cascade, -- The point.
    stage integer not null, -- Pipeline stage, from 0.
    layers integer not null, -- Layers on it.
    peak_bytes real not null, -- Peak memory; the parts below sum to it.
    weights real not null, -- Bytes of weights at the peak.
    gradients real not null, -- Bytes of gradients at the peak.
    optimizer real not null, -- Bytes of optimizer states at the peak.
    activations real not null, -- Bytes of activations at the peak.
    logits real not null, -- Bytes of logits at the peak.
    buffers real not null, -- Bytes of communication buffers at the peak.
    reserve real not null, -- Bytes that the framework keeps.
    peak_phase text not null, -- When the peak is.
    compute_busy_s real not null, -- Busy time of the compute stream.
    end_s real not null, -- When the stage is done with the step.
    primary key (run_id, stage)
) strict, without rowid;

-- Each simulated training step.
create table steps (
    run_id integer not null references runs (run_id) on delete cascade, -- The point.
    step integer not null, -- Training step, from 0.
    step_time_s real not null, -- Its time.
    mfu real not null, -- Its model FLOPs utilisation.
    tokens_per_s real not null, -- Its trained tokens per second.
    load_max_over_mean real not null, -- Routed rows of the heaviest expert rank over the mean.
    dropped_ratio real not null, -- Share of routed tokens that are dropped.
    migrations integer not null, -- Experts moved before it.
    primary key (run_id, step)
) strict, without rowid;

-- What it cost to simulate a point; differs from run to run.
create table run_costs (
    run_id integer primary key references runs (run_id) on delete cascade, -- The point.
    -- Which start of the program made it.
    invocation_id integer references invocations (invocation_id),
    wall_s real not null, -- Wall time.
    cpu_s real not null, -- Processor time.
    memory_peak_bytes integer not null -- Largest resident size of the worker so far.
) strict;
