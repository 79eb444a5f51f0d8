-- Measured over predicted (median), by operation and by how many calls ago one of its kind was made, of calls that find all that they need in
-- the caches: duckdb < validation/distance.sql, where residuals.parquet was written by fsage validate --residuals residuals.parquet.
with calls as (
    select *, row_number() over (partition by workload, target, replay order by seq) as number
    from 'residuals.parquet'
    where predicted_ns is not null and measured_ns is not null
),
spaced as (
    select *, number - lag(number) over (partition by workload, target, replay, op order by number) as distance
    from calls
),
warm as (
    select *, measured_ns / predicted_ns as ratio
    from spaced
    where lookup_misses = 0 and coalesce(disk_bytes, 0) = 0 and not failed
)
select op,
    round(median(ratio) filter (where distance = 1), 2) as "1",
    round(median(ratio) filter (where distance between 2 and 4), 2) as "2 to 4",
    round(median(ratio) filter (where distance between 5 and 16), 2) as "5 to 16",
    round(median(ratio) filter (where distance between 17 and 64), 2) as "17 to 64",
    round(median(ratio) filter (where distance > 64), 2) as "more",
    count(*) as calls
from warm
group by op
having calls >= 100000
order by op;
