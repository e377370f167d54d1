-- Views of a recording of drawpoint (run.pftrace), for the SQL of Perfetto's trace processor and its UI. Times `ts` are
-- those of the trace, durations are in nanoseconds, fields as in docs/formats.md; what was not recorded is NULL.
drop view if exists drawpoint_worker;
drop view if exists drawpoint_stage;
drop view if exists drawpoint_sample;
drop view if exists drawpoint_batch;
drop view if exists drawpoint_draw;
drop view if exists drawpoint_piece;
drop view if exists drawpoint_step;
drop view if exists drawpoint_setting;

-- Options and other named facts of the run.
create view drawpoint_setting as
select extract_arg(arg_set_id, 'fact.key') as name, extract_arg(arg_set_id, 'fact.value') as value
from slice where name = 'fact';

-- A step: its draw, then its batch.
create view drawpoint_step as
select id as slice_id, ts, dur,
  extract_arg(arg_set_id, 'step.step') as step,
  extract_arg(arg_set_id, 'step.epoch') as epoch,
  extract_arg(arg_set_id, 'step.batch') as batch,
  lower(extract_arg(arg_set_id, 'step.phase')) as phase,
  lower(ifnull(extract_arg(arg_set_id, 'step.status'), 'COMPLETE')) as status,
  ifnull(extract_arg(arg_set_id, 'step.size'), 0) as size,
  extract_arg(arg_set_id, 'step.loss') as loss,
  extract_arg(arg_set_id, 'step.spans[0]') as draw_ns,
  extract_arg(arg_set_id, 'step.spans[1]') as batch_ns,
  extract_arg(arg_set_id, 'step.cpu_ns') as cpu_ns,
  extract_arg(arg_set_id, 'step.run_queue_ns') as run_queue_ns
from slice where name = 'step' and extract_arg(arg_set_id, 'step.spans[0]') is not null;

-- A piece of a step's time: what the loop did, as in the report.
create view drawpoint_piece as
with entry as (
  select slice.id as slice_id, cast(substr(args.key, 12) as integer) as place, args.int_value as value
  from slice join args using (arg_set_id) where slice.name = 'step' and args.flat_key = 'step.spans'),
name as (
  select cast(substr(args.key, 11) as integer) as number, args.string_value as piece
  from slice join args using (arg_set_id) where slice.name = 'run' and args.flat_key = 'run.spans')
select step.slice_id, step.step, name.piece, length.value as ns
from entry as kind join entry as length on length.slice_id = kind.slice_id and length.place = kind.place + 1
  join name on name.number = kind.value join drawpoint_step as step on step.slice_id = kind.slice_id
where kind.place >= 2 and kind.place % 2 = 0;

-- A draw: how long the loop waited, and for what.
create view drawpoint_draw as
select step.slice_id, step.ts, step.draw_ns as dur, step.step, step.epoch, step.batch, step.phase, step.size,
  sum(iif(piece.piece = 'starved', piece.ns, 0)) as starved_ns,
  sum(iif(piece.piece = 'handoff', piece.ns, 0)) as handoff_ns,
  sum(iif(piece.piece = 'transfer', piece.ns, 0)) as transfer_ns,
  step.draw_ns - sum(iif(piece.piece in ('starved', 'handoff', 'transfer'), piece.ns, 0)) as callbacks_ns
from drawpoint_step as step left join drawpoint_piece as piece using (slice_id) group by step.slice_id;

-- A batch from its admission on: durations since then until it was complete, offered to the loop and taken.
create view drawpoint_batch as
select id as slice_id, ts, dur,
  extract_arg(arg_set_id, 'batch.epoch') as epoch,
  extract_arg(arg_set_id, 'batch.batch') as batch,
  extract_arg(arg_set_id, 'batch.pipeline') as pipeline,
  extract_arg(arg_set_id, 'batch.slot') as slot,
  lower(ifnull(extract_arg(arg_set_id, 'batch.status'), 'TAKEN')) as status,
  ifnull(extract_arg(arg_set_id, 'batch.size'), 0) as size,
  ifnull(extract_arg(arg_set_id, 'batch.bytes'), 0) as bytes,
  ifnull(extract_arg(arg_set_id, 'batch.ready_batches'), 0) as ready_batches,
  nullif(extract_arg(arg_set_id, 'batch.stamps[1]'), 0) - 1 as made_ns,
  nullif(extract_arg(arg_set_id, 'batch.stamps[6]'), 0) - 1 as offered_ns,
  nullif(extract_arg(arg_set_id, 'batch.stamps[7]'), 0) - 1 as taken_ns
from slice where name = 'in flight' and extract_arg(arg_set_id, 'batch.batch') is not null;

-- A sample, or a run of samples made by one call.
create view drawpoint_sample as
select id as slice_id, ts, dur,
  ifnull(extract_arg(arg_set_id, 'sample.index'), 0) as sample,
  extract_arg(arg_set_id, 'sample.epoch') as epoch,
  extract_arg(arg_set_id, 'sample.batch') as batch,
  extract_arg(arg_set_id, 'sample.slot') as slot,
  extract_arg(arg_set_id, 'sample.worker') as worker,
  extract_arg(arg_set_id, 'sample.pipeline') as pipeline,
  lower(ifnull(extract_arg(arg_set_id, 'sample.status'), 'COMPLETE')) as status,
  ifnull(extract_arg(arg_set_id, 'sample.samples'), 1) as samples,
  ifnull(extract_arg(arg_set_id, 'sample.bytes'), 0) as bytes,
  extract_arg(arg_set_id, 'sample.run_queue_ns') as run_queue_ns
from slice where name = 'sample' and extract_arg(arg_set_id, 'sample.batch') is not null;

-- The time of a sample in a stage of its loader.
create view drawpoint_stage as
with stage as (
  select ifnull(extract_arg(slice.arg_set_id, 'pipeline.number'), 0) as pipeline,
    cast(substr(args.key, 17) as integer) as place, args.string_value as name
  from slice join args using (arg_set_id) where slice.name = 'pipeline' and args.flat_key = 'pipeline.stages')
select sample.slice_id, sample.ts, sample.sample, sample.epoch, sample.batch, sample.worker, stage.name as stage,
  args.int_value as ns
from drawpoint_sample as sample join slice on slice.id = sample.slice_id join args using (arg_set_id)
  join stage on stage.pipeline = sample.pipeline and stage.place = cast(substr(args.key, 17) as integer)
where args.flat_key = 'sample.stage_ns';

-- A worker: how many samples it made, and its share of the time from the first draw to the end of the last step.
create view drawpoint_worker as
select worker, sum(samples) as samples, sum(dur) as busy_ns,
  round(1.0 * sum(dur) / (select max(ts + dur) - min(ts) from drawpoint_step), 4) as busy_share
from drawpoint_sample group by worker order by worker;
