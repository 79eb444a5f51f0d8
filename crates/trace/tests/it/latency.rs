//! `inspect`'s latencies against DuckDB's over the same Parquet file, and against sorted values.

use crate::common::meta;
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use trace::inspect::{Latencies, latencies};
use trace::profile::{Durations, Reader, Row, Writer, WriterOptions};
use trace::{Batch, Op, Snapshot, flag};

/// Calls of three operations with durations over six decades, some of them left out for a reason each.
fn profile(directory: &Path, tracer: &str) -> Reader {
    let path = directory.join("w.workload");
    let mut writer = Writer::create(&path, WriterOptions::default()).expect("a profile");
    let mut dice = Xoshiro256PlusPlus::seed_from_u64(17);
    let mut batch = Batch::default();
    for seq in 0..5000 {
        let op = [Op::Read, Op::Write, Op::Fsync, Op::Clone, Op::Exit][(dice.next_u64() % 5) as usize];
        let dur_ns = 10u64.pow(2 + (dice.next_u64() % 6) as u32) + dice.next_u64() % 1000;
        let mut event = Row { dur_ns, ..Row::new(seq, seq * 1000, op) };
        event.flags = match dice.next_u64() % 20 {
            0 => flag::FOREIGN,
            1 => flag::UNFINISHED,
            2 => flag::IMPLIED,
            _ => 0,
        };
        event.errno = if dice.next_u64() % 10 == 0 { 5 } else { 0 };
        if op == Op::Fsync {
            let running = dice.next_u64() % dur_ns;
            (event.running_ns, event.blocked_ns) = (Some(running), Some((dur_ns - running) / 2));
        }
        batch.events.push(event.into());
    }
    writer.push(&batch).expect("room on the disk");
    let mut meta = meta();
    meta.tracer.name = tracer.to_owned();
    writer.finish(meta, &Snapshot::default()).expect("a whole profile");
    Reader::open(&path).expect("what was written")
}

/// The same by DuckDB: a row per operation and one for all.
fn duckdb(reader: &Reader) -> Option<Vec<Value>> {
    const SCRIPT: &str = r"
import sys, json
import duckdb
rows = duckdb.execute('''
    with calls as (select * from read_parquet(?)
        where op not in (''clone'', ''exit'') and (flags & (1 << 23)) = 0 and (flags & (1 << 22)) = 0
            and (flags & (1 << 5)) = 0),
    rows as (select op, * exclude op from calls union all select ''all'', * exclude op from calls)
    select op, count(*), count(*) filter (errno <> 0), sum(dur_ns)::bigint, avg(dur_ns),
        quantile_disc(dur_ns, [0.5, 0.9, 0.99, 0.999]), max(dur_ns), count(running_ns), sum(running_ns)::bigint,
        sum(blocked_ns)::bigint, sum(dur_ns - running_ns - blocked_ns)::bigint
    from rows group by op'''.replace(chr(39)*2, chr(39)), [sys.argv[1]]).fetchall()
for row in rows:
    print(json.dumps(row))
";
    let file = reader.directory().join("trace.parquet");
    let python = testkit::python_with("duckdb")?;
    let output = Command::new(python).args(["-c", SCRIPT]).arg(file).output().expect("python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).lines().map(|l| serde_json::from_str(l).expect("JSON")).collect())
}

fn row<'a>(found: &'a Latencies, op: &str) -> &'a trace::inspect::Latency {
    found.operations.iter().chain([&found.all]).find(|row| row.op == op).unwrap_or_else(|| panic!("no row of {op}"))
}

/// Quantiles are upper bounds within 1/1024.
fn close(got: u64, want: u64) -> bool {
    got >= want && got - want <= want / 1024
}

#[test]
fn duckdb_finds_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let reader = profile(dir.path(), "ebpf");
    let found = latencies(&reader).unwrap();
    assert_eq!(found.durations, Durations::InKernel);
    let Some(rows) = duckdb(&reader) else { return };
    assert_eq!(rows.len(), 4);
    for theirs in rows {
        let ours = row(&found, theirs[0].as_str().unwrap());
        let exact = (ours.calls, ours.errors, ours.total_ns, ours.max_ns);
        let number = |i: usize| theirs[i].as_u64().unwrap_or(0);
        assert_eq!(exact, (number(1), number(2), u128::from(number(3)), number(6)), "{theirs}");
        assert!((ours.mean_ns - theirs[4].as_f64().unwrap()).abs() < 1e-6 * ours.mean_ns, "{theirs}");
        for (i, got) in [ours.p50_ns, ours.p90_ns, ours.p99_ns, ours.p999_ns].into_iter().enumerate() {
            let want = theirs[5][i].as_u64().unwrap();
            assert!(close(got, want), "{} for {want} of {theirs}", got);
        }
        let spent = ours.spent.map_or((0, 0, 0, 0), |s| (s.calls, s.running_ns, s.blocked_ns, s.waiting_ns));
        let wide = |i| u128::from(number(i));
        assert_eq!(spent, (number(7), wide(8), wide(9), wide(10)), "{theirs}");
    }
}

#[test]
fn sorted_values_give_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let reader = profile(dir.path(), "strace");
    let found = latencies(&reader).unwrap();
    assert_eq!(found.durations, Durations::Inflated);
    assert!(found.foreign_calls > 50 && found.unfinished_calls > 50, "{found:?}");
    let mut batch = Batch::default();
    assert!(reader.batches().unwrap().next_into(&mut batch).unwrap());
    for op in [Op::Read, Op::Write, Op::Fsync] {
        let left_out = flag::FOREIGN | flag::UNFINISHED | flag::IMPLIED;
        let counted = batch.events.iter().filter(|e| e.op() == op && e.head.flags & left_out == 0);
        let mut durations: Vec<u64> = counted.map(|e| e.head.dur_ns).collect();
        durations.sort_unstable();
        let ours = row(&found, op.name());
        assert_eq!((ours.calls, ours.max_ns), (durations.len() as u64, *durations.last().unwrap()));
        for (share, got) in [(0.5, ours.p50_ns), (0.9, ours.p90_ns), (0.99, ours.p99_ns), (0.999, ours.p999_ns)] {
            let want = durations[((durations.len() as f64 * share).ceil() as usize).max(1) - 1];
            assert!(close(got, want), "{share} of {}: {got} for {want}", op.name());
        }
    }
    assert_eq!(row(&found, "read").spent, None);
}
