//! The drivers of the house run here as they are: benchmarks, micro-benchmarks, replay.

use aging::age::{AgeOptions, Begin, Observer, Room, age, identity};
use aging::format::{PlanMeta, Reader};
use aging::{AgingOp, NodeId, OpKind};
use kernel::testing::{MemVolume, Metadata};
use kernel::{Lab, Machine, Setup};
use measure::{Host, MeasureOptions};
use posix::FileSystem;
use replay::{ReplayOptions, Source, replay_on};
use std::time::Duration;
use trace::Snapshot;
use trace::snapshot::WalkLimits;
use trace::strace::{ImportOptions, Importer};
use workload::seqfile;

const MB: u64 = 1 << 20;
/// In 2001.
const EPOCH_NS: i64 = 1_000_000_000_000_000_000;

/// A laboratory on a real drive's model.
fn lab(machine: &str, size_bytes: u64, metadata: Metadata) -> Lab<MemVolume> {
    let drive = device::Drive::find("hp-c2247a").unwrap().device();
    let volume = MemVolume::new(size_bytes, 8192, 100_000, metadata);
    let machine = Machine::load(machine).unwrap();
    let setup = Setup { machine, target: "memory@hp-c2247a".into(), drive: "hp-c2247a".into(), epoch_ns: EPOCH_NS };
    Lab::new(volume, drive, setup).unwrap()
}

#[test]
fn the_sequential_benchmark_runs_and_repeats_itself() {
    let run = |metadata| {
        let mut lab = lab("pentium-120", 400 * MB, metadata);
        let before = lab.usage().unwrap().free_inodes;
        // Whoever watches gets no duplicates: the benchmark runs on this one.
        lab.record_writes(false);
        let mut options = seqfile::Options::with_data(4 * MB);
        options.sizes_bytes = vec![1024, 65_536, 1 << 20];
        let result = workload::run_on(&mut lab, &options, &mut |_| {}).unwrap();
        assert_eq!(lab.usage().unwrap().free_inodes, before, "it has left something behind");
        (serde_json::to_value(&result).unwrap(), lab.now_ns())
    };
    let (delayed, synchronous) = (run(Metadata::Delayed), run(Metadata::Synchronous));
    assert_eq!(delayed.1, run(Metadata::Delayed).1);
    assert!(synchronous.1 > delayed.1, "waiting for metadata takes time");
}

#[test]
fn micro_benchmarks_measure_it() {
    let measure = || {
        let mut lab = lab("pentium3-500", 900 * MB, Metadata::Delayed);
        let machine = Machine::load("pentium3-500").unwrap();
        let host = Host {
            memory_available_bytes: machine.memory.bytes.value,
            dirty_background_bytes: 100 * MB,
            dirty_limit_bytes: 200 * MB,
            dirty_expire_ns: 30_000_000_000,
            timer_overhead_ns: 0.0,
        };
        let options = MeasureOptions { budget: Some(Duration::from_secs(60)), ..MeasureOptions::quick(7) };
        let profile = measure::measure_on(&mut lab, &host, &options, &|| false, &mut |_| {}).unwrap();
        assert!(profile.entries.len() > 20, "{} classes; missing {:?}", profile.entries.len(), profile.missing);
        serde_json::to_value(&profile.entries).unwrap()
    };
    assert_eq!(measure(), measure());
}

const STRACE: &str = r#"100 1700000000.000000 mkdir("/w/d", 0755) = 0 <0.000010>
100 1700000000.001000 openat(AT_FDCWD, "/w/d/f", O_RDWR|O_CREAT|O_TRUNC, 0644) = 3</w/d/f> <0.000020>
100 1700000000.002000 write(3</w/d/f>, ""..., 10000) = 10000 <0.000020>
101 1700000000.002500 openat(AT_FDCWD, "/w/d/g", O_WRONLY|O_CREAT|O_EXCL, 0644) = 4</w/d/g> <0.000020>
101 1700000000.002600 write(4</w/d/g>, ""..., 300) = 300 <0.000020>
100 1700000000.003000 pread64(3</w/d/f>, ""..., 4096, 8192) = 1808 <0.000020>
101 1700000000.003500 close(4</w/d/g>) = 0 <0.000010>
100 1700000000.004000 rename("/w/d/g", "/w/d/h") = 0 <0.000010>
101 1700000000.004500 unlink("/w/d/g") = -1 ENOENT (No such file or directory) <0.000010>
100 1700000000.005000 fsync(3</w/d/f>) = 0 <0.010000>
100 1700000000.020000 close(3</w/d/f>) = 0 <0.000010>
101 1700000000.021000 unlink("/w/d/f") = 0 <0.000010>
101 1700000000.022000 stat("/w/d/h", {st_mode=S_IFREG|0644, st_size=300, ...}) = 0 <0.000010>
"#;

#[test]
fn a_trace_is_replayed_with_the_traced_answers() {
    let mut batches = Vec::new();
    let mut importer = Importer::new(ImportOptions::default());
    let mut keep = |batch: trace::Batch| {
        batches.push(batch);
        Ok(())
    };
    importer.read(STRACE.as_bytes(), &mut keep).unwrap();
    importer.finish(&mut keep).unwrap();
    let empty = tempfile::tempdir().unwrap();
    let snapshot = Snapshot::of_tree(&[empty.path()], &WalkLimits::default()).unwrap().snapshot;
    let replay = || {
        let mut lab = lab("pentium-120", 100 * MB, Metadata::Synchronous);
        let open = || -> Result<Source<'_>, _> { Ok(Box::new(batches.iter().cloned().map(Ok))) };
        let options = ReplayOptions { differences_max: 100, ..ReplayOptions::default() };
        replay_on(&mut lab, &snapshot, &open, &options, &mut |_| {}).unwrap()
    };
    let result = replay();
    assert_eq!(result.calls, 13, "{result:?}");
    assert_eq!(result.differences, replay::Differences::default(), "{:?}", result.differences);
    assert!(result.total_ns > 50_000_000, "synchronous metadata wait for the disk: {}", result.total_ns);
    assert_eq!(result.total_ns, replay().total_ns);
}

struct Nobody;
impl<F> Observer<F> for Nobody {}

/// Plans had no reads. The device says whether they are made.
#[test]
fn what_a_plan_reads_is_read() {
    let scratch = tempfile::tempdir().unwrap();
    // Several times what the computer can keep in memory.
    let (size_bytes, capacity_bytes) = (64 * MB, 400 * MB);
    let aged = |name: &str, reads: bool| {
        let path = scratch.path().join(name);
        let mut writer = aging::format::Writer::create(&path, capacity_bytes, 8192).unwrap();
        let op = |t_ns, kind| AgingOp { size_bytes, ..AgingOp::new(t_ns, kind, NodeId(1)) };
        writer.push(op(0, OpKind::Create)).unwrap();
        if reads {
            writer.push(op(1, OpKind::Read)).unwrap();
            // Written after it was read, and read beyond a piece.
            writer.push(AgingOp { size_bytes: 10, ..op(2, OpKind::Append) }).unwrap();
            writer.push(AgingOp { offset_bytes: size_bytes, size_bytes: 10, ..op(3, OpKind::Read) }).unwrap();
        }
        let beyond = AgingOp { offset_bytes: size_bytes, size_bytes: 11, ..op(4, OpKind::Read) };
        assert!(writer.push(beyond).is_err(), "it ends before");
        writer.finish(PlanMeta { days: 1, ..PlanMeta::default() }).unwrap();
        let mut lab = lab("pentium-120", capacity_bytes, Metadata::Delayed);
        let options = AgeOptions { room: Room::Beside { bytes: capacity_bytes }, ..AgeOptions::default() };
        let begin = Begin { plan: identity(&path).unwrap(), groups: Err("not asked".into()), resume: None };
        let result = age(&mut lab, &Reader::open(&path).unwrap(), &options, begin, &mut Nobody).unwrap();
        (result.counters.performed["read"], result.counters.written_bytes, lab.counters().device.read_bytes)
    };
    let (times, written, read) = aged("with.aging", true);
    let (none, written_without, read_without) = aged("without.aging", false);
    assert_eq!((times, none, written), (2, 0, written_without + 10));
    assert!(read > size_bytes / 2 && read_without < size_bytes / 8, "{read} bytes, {read_without} without");
}
