-- views.sql - what people read. Views hold no data; they are made anew when this text changes.

-- The runs with the columns that people ask for first, in units for people.
create view v_runs as
select run_id, sweep_id, point_no, status, code, model, cluster, devices,
       parallel_tp as tp, parallel_pp as pp, parallel_vpp as vpp, parallel_cp_size as cp,
       world_dp as dp, parallel_ep as ep, parallel_etp as etp, schedule_kind as schedule,
       round(step_time_s, 4) as step_time_s, round(tokens_per_s) as tokens_per_s,
       round(tokens_per_s_per_device, 2) as tokens_per_s_per_device,
       round(100 * mfu, 2) as mfu_percent, round(100 * bubble_ratio, 2) as bubble_percent,
       round(memory_peak_bytes / 1073741824.0, 2) as peak_gib,
       round(memory_headroom_bytes / 1073741824.0, 2) as headroom_gib,
       round(params_total / 1e9, 2) as params_total_billion,
       round(params_active / 1e9, 2) as params_active_billion,
       scenario_hash, message
from runs;

-- The fastest fitting run of each model in each sweep.
create view v_best as
select * from (
    select *, row_number() over (partition by sweep_id, model
                                 order by tokens_per_s desc, point_no) as place
    from v_runs where status = 'ok')
where place = 1;

-- Runs that no other run of the sweep beats in both speed and memory.
create view v_pareto as
select sweep_id, point_no, run_id, tokens_per_s, step_time_s, mfu,
       memory_peak_bytes / 1073741824.0 as peak_gib from (
    select *, min(memory_peak_bytes) over (
        partition by sweep_id order by tokens_per_s desc, memory_peak_bytes, point_no
        rows between unbounded preceding and 1 preceding) as least_before
    from runs where status = 'ok')
where least_before is null or memory_peak_bytes < least_before;

-- Communication that nothing hides, as a share of the step.
create view v_exposed as
select r.run_id, r.sweep_id, r.point_no, c.kind, c.total_s, c.exposed_s,
       c.exposed_s / r.step_time_s as exposed_share_of_step
from runs r join comm c using (run_id)
where r.step_time_s > 0 and c.total_s > 0;

-- How far each run is from the memory limit, with its fullest stage.
create view v_memory as
select r.run_id, r.sweep_id, r.point_no, r.status, s.stage, s.layers, s.peak_phase,
       s.peak_bytes / 1073741824.0 as peak_gib,
       r.memory_headroom_bytes / 1073741824.0 as headroom_gib,
       s.weights / 1073741824.0 as weights_gib, s.gradients / 1073741824.0 as gradients_gib,
       s.optimizer / 1073741824.0 as optimizer_gib,
       s.activations / 1073741824.0 as activations_gib,
       s.logits / 1073741824.0 as logits_gib, s.buffers / 1073741824.0 as buffers_gib,
       s.reserve / 1073741824.0 as reserve_gib
from runs r join stages s on s.run_id = r.run_id and s.stage = r.memory_peak_stage;

-- Why points have no speed: counts by code, with one message as an example.
create view v_rejected as
select sweep_id, status, code, count(*) as points, min(point_no) as example_point_no,
       (select e.message from runs e where e.sweep_id = r.sweep_id and e.status = r.status
        and e.code is r.code order by e.run_id limit 1) as example
from runs r where status in ('rejected', 'failed')
group by sweep_id, status, code;

-- The resolved scenario of every run, as JSON.
create view v_scenarios as
select r.run_id, r.sweep_id, r.point_no,
       iif(s.base is null, r.scenario_patch, json_patch(s.base, r.scenario_patch)) as scenario
from runs r join sweeps s using (sweep_id) where r.scenario_patch is not null;

-- The swept keys of every run as one JSON object.
create view v_swept as
select run_id, run_id >> 32 as sweep_id, run_id & 4294967295 as point_no,
       json_group_object(key, value) as swept
from run_keys group by run_id;

-- What each sweep holds.
create view v_sweeps as
select s.sweep_id, s.kind, s.name, s.points_total,
       count(r.run_id) as points_done, sum(r.status = 'ok') as ok,
       sum(r.status = 'does_not_fit') as does_not_fit, sum(r.status = 'rejected') as rejected,
       sum(r.status = 'failed') as failed, max(case r.status when 'ok' then r.tokens_per_s end)
       as best_tokens_per_s, s.definition_hash
from sweeps s left join runs r using (sweep_id) group by s.sweep_id;
