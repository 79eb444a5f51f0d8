//! How fast workload profiles are written and read:
//! `cargo run --profile dist -p fsage-trace --example profile_speed [EVENTS [DIRECTORY]]`.
//!
//! Makes up a trace like a compilation's (paths that repeat, relative and absolute, reads and writes), writes it, reads
//! it three times, and prints events per second (of elapsed and of processor time), bytes per event and the peak
//! resident set. Not a test: a timing decides nothing.
#![allow(clippy::unwrap_used)]

use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::time::Instant;
use trace::profile::{Meta, Reader, Row, Writer, WriterOptions};
use trace::{Batch, FileId, OfdId, Op, Snapshot, flag};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let events: u64 = arguments.next().map_or(5_000_000, |a| a.parse().expect("a number of events"));
    let scratch = arguments.next().map_or_else(std::env::temp_dir, Into::into);
    let directory = scratch.join(format!("profile-speed-{}.workload", std::process::id()));

    let begun = Instant::now();
    let mut writer = Writer::create(&directory, WriterOptions::default()).unwrap();
    let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(1);
    let mut making = std::time::Duration::ZERO;
    let mut seq = 0;
    while seq < events {
        let made = Instant::now();
        let batch = made_up(&mut rng, seq, 8192.min(events - seq));
        making += made.elapsed();
        seq += batch.events.len() as u64;
        writer.push(&batch).unwrap();
    }
    writer.finish(Meta::default(), &Snapshot::default()).unwrap();
    let seconds = (begun.elapsed() - making).as_secs_f64();
    let bytes = std::fs::metadata(directory.join("trace.parquet")).unwrap().len();
    println!(
        "write  {:8.2} M events/s, {:.1} bytes per event",
        events as f64 / seconds / 1e6,
        bytes as f64 / events as f64
    );
    println!("peak resident set after writing {} kB", peak_kb());

    for _ in 0..3 {
        let (begun, begun_cpu) = (Instant::now(), cpu_s());
        let reader = Reader::open(&directory).unwrap();
        let mut batches = reader.batches().unwrap();
        let mut batch = Batch::default();
        let (mut n, mut sum) = (0u64, 0u64);
        while batches.next_into(&mut batch).unwrap() {
            n += batch.events.len() as u64;
            sum += batch.events.iter().map(|e| e.head.dur_ns).sum::<u64>();
        }
        assert_eq!(n, events);
        let million = events as f64 / 1e6;
        let (elapsed, cpu) = (begun.elapsed().as_secs_f64(), cpu_s() - begun_cpu);
        println!("read   {:8.2} M events/s, {:.2} per processor second (sum {sum})", million / elapsed, million / cpu);
    }
    println!("peak resident set after reading {} kB", peak_kb());
    std::fs::remove_dir_all(&directory).unwrap();
}

fn made_up(rng: &mut rand_xoshiro::Xoshiro256PlusPlus, first: u64, count: u64) -> Batch {
    let mut batch = Batch::default();
    for seq in first..first + count {
        let r = rng.next_u64();
        let file = (seq / 24) % 200_000;
        let op =
            [Op::Open, Op::Read, Op::Read, Op::Write, Op::Close, Op::Stat, Op::Fstat, Op::Access][(r % 8) as usize];
        let path = batch.paths.intern(format!("/src/project/dir{:03}/file{:06}.c", file % 331, file).as_bytes());
        let relative = r & 0x100 != 0;
        let data = matches!(op, Op::Read | Op::Write);
        let row = Row {
            seq,
            t_ns: seq * 7_000 + r % 5_000 / 1000 * 1000,
            dur_ns: (r >> 16) % 300 * 1000,
            pid: 1000 + (file % 97) as u32,
            tid: 1000 + (file % 97) as u32,
            op,
            flags: if op == Op::Open { flag::READ | flag::CLOEXEC } else { 0 },
            mode: (op == Op::Open).then_some(0o644),
            errno: if op == Op::Access { 2 } else { 0 },
            ret: if data { 4096 } else { 3 },
            ofd: (data || op == Op::Open).then_some(OfdId(seq / 24)),
            ofd2: None,
            file: (op != Op::Access).then_some(FileId(file)),
            parent: Some(FileId(file % 331)),
            path: Some(path),
            path2: None,
            caller_dir: relative.then(|| batch.paths.intern(format!("/src/project/dir{:03}", file % 331).as_bytes())),
            caller_dir2: None,
            offset: data.then_some((r >> 40) % 64 * 4096),
            offset2: None,
            req_bytes: data.then_some(if r & 0x200 == 0 { 4096 } else { 65536 }),
            size_before: data.then_some((r >> 30) % 1_000_000),
            running_ns: None,
            blocked_ns: None,
        };
        batch.events.push(row.into());
    }
    batch
}

/// Processor time of this process, seconds.
fn cpu_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// `VmHWM` of this process.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM"));
    line.and_then(|l| l.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
