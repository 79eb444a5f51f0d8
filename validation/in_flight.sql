-- Measured over predicted (median) of calls that find all that they need in the caches, by whether another call was under way in the replay
-- when they began, of workloads with at least 100 that were beside another on each target: duckdb < validation/in_flight.sql, where residuals.parquet was
-- written by fsage validate --residuals residuals.parquet.
with warm as (
    select *, measured_ns / predicted_ns as ratio
    from 'residuals.parquet'
    where predicted_ns > 0 and measured_ns is not null and lookup_misses = 0 and coalesce(disk_bytes, 0) = 0 and not failed
        and op not in ('fsync', 'fdatasync')
)
select workload,
    round(median(ratio) filter (where in_flight = 1), 2) as alone,
    round(median(ratio) filter (where in_flight > 1), 2) as beside,
    count(*) filter (where in_flight > 1) as calls
from warm
group by workload
having calls >= 100 * count(distinct target)
order by workload;
