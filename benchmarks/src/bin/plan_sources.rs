//! How fast a plan is made from snapshots, and how near its deletion times are to the true ones.
//!
//! A tree of many directories lives in memory for some days: files are born at random times of the day and die after
//! lifetimes of a mixture (two hours on average for most, weeks for the rest). A snapshot is taken each midnight; the
//! plan made from them is compared with what happened. `plan_sources [FILES_A_DAY] [DAYS]`.

use aging::plan::snapshots::{Deletions, SnapshotsOptions, plan, planned_for};
use aging::snapshot::{Builder, Inode, SnapshotMeta};
use aging::{DAY_NS, OpKind};
use posix::FileKind;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

const DIRECTORIES: u64 = 500;

struct File {
    directory: u64,
    born_ns: u64,
    died_ns: u64,
    inode: Inode,
}

fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().skip(1).map(|a| a.parse::<u64>());
    let births = numbers.next().transpose()?.unwrap_or(20_000);
    let days = numbers.next().transpose()?.unwrap_or(30);
    let work = tempfile::tempdir()?;
    let (paths, truth) = live(work.path(), births, days)?;
    let bytes: u64 = paths.iter().filter_map(|p| p.metadata().ok()).map(|m| m.len()).sum();
    println!("{days} snapshots, {births} births a day, {DIRECTORIES} directories, {bytes} bytes of snapshots");
    for deletions in [Deletions::Lifetimes, Deletions::Uniform] {
        let out = work.path().join("plan.aging");
        let options = SnapshotsOptions { deletions, ..SnapshotsOptions::default() };
        let start = Instant::now();
        let meta =
            aging::plan::write(&out, planned_for(&paths)?, |writer| plan(&paths, &options, writer, &mut |_| true))?;
        let seconds = start.elapsed().as_secs_f64();
        let operations = meta.counts.operations;
        println!(
            "{deletions:?}: {operations} operations in {seconds:.2} s: {:.2} million/s (two readings of the snapshots \
             included)",
            operations as f64 / seconds / 1e6
        );
        let (mut n, mut error_ns, mut bias_ns) = (0u64, 0.0, 0.0);
        let reader = aging::format::Reader::open(&out)?;
        let mut sizes = BTreeMap::new();
        for batch in reader.batches(0) {
            for op in batch? {
                if op.kind == OpKind::Create {
                    sizes.insert(op.node, op.size_bytes);
                }
                // Each file has a length of its own, by which it is known again.
                let died = sizes.get(&op.node).and_then(|size| truth.get(size)).filter(|_| op.kind == OpKind::Delete);
                if let Some(died_ns) = died {
                    n += 1;
                    error_ns += op.t_ns.abs_diff(*died_ns) as f64;
                    bias_ns += op.t_ns as f64 - *died_ns as f64;
                }
            }
        }
        let hours = |ns: f64| ns / n.max(1) as f64 / 3.6e12;
        println!(
            "{deletions:?}: {n} deletions off by {:.2} h on average, biased by {:+.2} h",
            hours(error_ns),
            hours(bias_ns)
        );
    }
    Ok(())
}

/// Lives, and answers the snapshots and when each file (known by its length) really died.
fn live(directory: &std::path::Path, births: u64, days: u64) -> anyhow::Result<(Vec<PathBuf>, BTreeMap<u64, u64>)> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut uniform = move || stats::random::unit(&mut random);
    let (mut alive, mut truth, mut paths): (Vec<File>, BTreeMap<u64, u64>, Vec<PathBuf>) = Default::default();
    let mut changed = vec![0u64; DIRECTORIES as usize];
    let mut next = 10_000;
    for day in 0..days {
        for _ in 0..births {
            let born_ns = day * DAY_NS + (uniform() * DAY_NS as f64) as u64;
            let mean_days = if uniform() < 0.7 { 1.0 / 12.0 } else { 20.0 };
            let died_ns = born_ns + (-mean_days * DAY_NS as f64 * (1.0 - uniform()).ln()) as u64;
            next += 1;
            let inode = Inode {
                kind: FileKind::File,
                size_bytes: next,
                allocated_bytes: next,
                ino: next,
                generation: Some(1),
                ctime_ns: i64::try_from(born_ns)?,
                mtime_ns: i64::try_from(born_ns)?,
                nlink: 1,
            };
            truth.insert(next, died_ns);
            alive.push(File { directory: (uniform() * DIRECTORIES as f64) as u64, born_ns, died_ns, inode });
        }
        let end_ns = (day + 1) * DAY_NS;
        for file in &alive {
            let last = if file.died_ns < end_ns { file.died_ns } else { file.born_ns };
            let slot = &mut changed[usize::try_from(file.directory)?];
            *slot = (*slot).max(last);
        }
        alive.retain(|file| file.died_ns >= end_ns);
        alive.sort_by_key(|file| (file.directory, file.inode.ino));
        let path = directory.join(format!("{day:04}.snapshot"));
        write(&path, &alive, &changed, end_ns)?;
        paths.push(path);
    }
    Ok((paths, truth))
}

fn write(path: &std::path::Path, alive: &[File], changed: &[u64], taken_ns: u64) -> anyhow::Result<()> {
    let mut builder = Builder::default();
    let of_directory = |ino: u64, at_ns: u64| -> anyhow::Result<Inode> {
        let at_ns = i64::try_from(at_ns)?;
        Ok(Inode {
            kind: FileKind::Directory,
            size_bytes: 4096,
            allocated_bytes: 4096,
            ino,
            generation: Some(1),
            ctime_ns: at_ns,
            mtime_ns: at_ns,
            nlink: 2,
        })
    };
    let mut push = |path: String, inode| builder.push(path.as_bytes(), inode).map_err(anyhow::Error::msg);
    push("/".into(), of_directory(2, 0)?)?;
    let mut rest = alive;
    for (directory, at_ns) in (0u64..).zip(changed) {
        push(format!("/{directory:04}"), of_directory(100 + directory, *at_ns)?)?;
        let n = rest.partition_point(|file| file.directory == directory);
        for file in &rest[..n] {
            push(format!("/{directory:04}/{:010}", file.inode.ino), file.inode)?;
        }
        rest = &rest[n..];
    }
    let meta = SnapshotMeta {
        taken_ns: i64::try_from(taken_ns)?,
        simulated: true,
        total_bytes: 1 << 40,
        block_bytes: 4096,
        ..SnapshotMeta::default()
    };
    let snapshot = builder.finish(meta).map_err(|(row, why)| anyhow::anyhow!("name {row}: {why}"))?;
    Ok(snapshot.write(path)?)
}
