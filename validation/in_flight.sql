-- Measured over predicted (quarter, median, three quarters) of calls that find all that they need in the caches, by how many calls were under
-- way in the replay, of workloads where any two were: duckdb < validation/in_flight.sql, where residuals.parquet was written by
-- fsage validate --residuals residuals.parquet.
with warm as (
    select *, measured_ns / predicted_ns as ratio
    from 'residuals.parquet'
    where predicted_ns > 0 and measured_ns is not null and lookup_misses = 0 and coalesce(disk_bytes, 0) = 0 and not failed
        and op not in ('fsync', 'fdatasync')
        and workload in (select distinct workload from 'residuals.parquet' where in_flight > 1)
)
select target, in_flight > 1 as beside,
    round(quantile_cont(ratio, 0.25), 2) as quarter,
    round(median(ratio), 2) as median,
    round(quantile_cont(ratio, 0.75), 2) as "three quarters",
    count(*) as calls
from warm
group by target, beside
order by target, beside;
