-- Measured over predicted (median) of each target's syncs, by which sync of the replay it is, in replays with more than three:
-- duckdb < validation/first_sync.sql, where residuals.parquet was written by fsage validate --residuals residuals.parquet.
with syncs as (
    select *,
        row_number() over (partition by workload, target, replay order by seq) as number,
        count(*) over (partition by workload, target, replay) as syncs
    from 'residuals.parquet'
    where op in ('fsync', 'fdatasync') and entry not in ('fsync_clean', 'fsync_dir_clean') and predicted_ns is not null and measured_ns is not null
)
select target,
    round(median(measured_ns / predicted_ns) filter (where number = 1), 2) as first,
    round(median(measured_ns / predicted_ns) filter (where number in (2, 3)), 2) as "second and third",
    round(median(measured_ns / predicted_ns) filter (where number > 3), 2) as later,
    count(*) filter (where number = 1) as replays
from syncs
where syncs > 3
group by target
order by target;
