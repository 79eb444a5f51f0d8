//! Every workload in virtual time: the same run gives the same result, byte for byte, and leaves nothing behind.

use kernel::testing::{MemVolume, Metadata};
use kernel::{Lab, Machine, Setup};
use posix::{Call, FileSystem, Mode, OpenFlags};
use workload::hotcold::{self, Skew};
use workload::{BenchResult, Parameters, Phase, Place, Repeat, TargetResult, Verdict, run_on_with_log};
use workload::{andrew, hotfiles, largefile, netnews, postmark, scan, sdet, seqfile, smallfile, ssh_build, tpcb};

const MB: u64 = 1 << 20;

/// A disk of 1993 with a simple file system, and little memory.
fn lab(metadata: Metadata, size_bytes: u64) -> Lab<MemVolume> {
    let mut machine = Machine::load("pentium-120").unwrap();
    machine.memory.buffer_cache_bytes.value = 2 * MB;
    let (target, drive, epoch_ns) = ("memory@hp-c2247a".into(), "hp-c2247a".into(), 800_000_000_000_000_000);
    let volume = MemVolume::new(size_bytes, 4096, 20_000, metadata);
    let device = device::Drive::find("hp-c2247a").unwrap().device();
    Lab::new(volume, device, Setup { machine, target, drive, epoch_ns }).unwrap()
}

fn all() -> Vec<Parameters> {
    let repeat = Repeat::once();
    let mut sizes = seqfile::Options::with_data(MB);
    (sizes.sizes_bytes, sizes.repeat) = (vec![1024, 65_536], repeat);
    vec![
        Parameters::Seqfile(sizes),
        Parameters::Smallfile(smallfile::Options { files: 200, ..smallfile::Options::quick() }),
        Parameters::Largefile(largefile::Options { size_bytes: 4 * MB, ..largefile::Options::quick() }),
        Parameters::Tpcb(tpcb::Options::quick()),
        Parameters::Hotcold(hotcold::Options { writes: 500, ..hotcold::Options::quick() }),
        Parameters::Postmark(postmark::Options { number: 100, transactions: 200, ..postmark::Options::quick() }),
        Parameters::Sdet(sdet::Options { commands: 20, ..sdet::Options::quick() }),
        Parameters::SshBuild(ssh_build::Options::quick()),
        Parameters::Netnews(netnews::Options::quick()),
        Parameters::Andrew(andrew::Options::quick()),
    ]
}

#[test]
fn a_benchmark_has_the_name_that_results_are_stored_with() {
    let trees = [Parameters::Hotfiles(hotfiles::Options::default()), Parameters::Scan(scan::Options::default())];
    for parameters in all().into_iter().chain(trees) {
        let stored = serde_json::to_value(&parameters).unwrap();
        assert_eq!(stored["benchmark"], parameters.name());
    }
}

/// Runs it on the file system itself, which then shows what is left; whoever watches a laboratory gets no duplicates.
fn run(parameters: &Parameters, metadata: Metadata) -> (BenchResult, u64) {
    let mut fs = lab(metadata, 200 * MB);
    fs.record_writes(false);
    // The root directory keeps the block that its first name takes.
    fs.call(&Call::Mkdir { at: "d".into(), mode: Mode(0o755) }).result.unwrap();
    fs.call(&Call::Rmdir { at: "d".into() }).result.unwrap();
    let before = fs.usage().unwrap();
    let result = workload::run(parameters, &mut [Place { name: "lab".into(), fs: &mut fs }], &mut |_| {}).unwrap();
    let after = fs.usage().unwrap();
    assert_eq!(after.free_inodes, before.free_inodes, "{}: files are left", parameters.name());
    assert_eq!(after.free_bytes, before.free_bytes, "{}: space is lost", parameters.name());
    (result, fs.now_ns())
}

#[test]
fn every_workload_repeats_itself() {
    for parameters in all() {
        let (first, again) = (run(&parameters, Metadata::Delayed), run(&parameters, Metadata::Delayed));
        assert_eq!(first, again, "{}", parameters.name());
        for phase in first.0.targets.iter().flat_map(|t| &t.points).flat_map(|p| &p.phases) {
            let round = &phase.rounds[0];
            assert!(round.calls > 0 && round.time_ns(true) > 0, "{}: {phase:?}", parameters.name());
            let alone = !matches!(parameters, Parameters::Sdet(_));
            assert!(!alone || round.elapsed_ns >= round.calls_ns, "{}: {round:?}", parameters.name());
        }
    }
}

/// A tree for the benchmarks that read one.
fn plant(fs: &mut Lab<MemVolume>) {
    for directory in ["a", "b"] {
        fs.call(&Call::Mkdir { at: directory.into(), mode: Mode(0o755) }).result.unwrap();
        for n in 0..5 {
            let path = format!("{directory}/{n}");
            let open = Call::Open { at: path.as_str().into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
            let fd = fs.call(&open).fd().unwrap();
            fs.call(&Call::Write { fd, offset: None, len_bytes: 9_000 * (n + 1), data: None }).result.unwrap();
            fs.call(&Call::Close { fd }).result.unwrap();
        }
    }
}

/// The points of a benchmark on so many file systems that are all alike, as text: what was measured, to the byte.
fn measured(parameters: &Parameters, seed: u64, targets: usize) -> Vec<Vec<String>> {
    let mut labs: Vec<Lab<MemVolume>> = (0..targets).map(|_| lab(Metadata::Synchronous, 100 * MB)).collect();
    labs.iter_mut().for_each(plant);
    let before: Vec<u64> = labs.iter().map(Lab::now_ns).collect();
    let mut value = serde_json::to_value(parameters).unwrap();
    value["repeat"]["seed"] = seed.into();
    let parameters: Parameters = serde_json::from_value(value).unwrap();
    let named = labs.iter_mut().enumerate();
    let mut places: Vec<Place<'_>> = named.map(|(n, fs)| Place { name: format!("{n}"), fs }).collect();
    let result = workload::run(&parameters, &mut places, &mut |_| {}).unwrap();
    assert_eq!(labs.iter().map(Lab::now_ns).collect::<Vec<_>>(), before, "{}: it ran on duplicates", parameters.name());
    let points = |target: &TargetResult| target.points.iter().map(|point| format!("{point:?}")).collect();
    result.targets.iter().map(points).collect()
}

/// In virtual time a figure depends on the file system and on nothing that is measured beside it.
#[test]
fn the_same_target_twice_is_the_same_alone_and_together_in_any_order() {
    let hot = hotfiles::Options { select: hotfiles::Select::Share(0.5), ..hotfiles::Options::default() };
    let trees = [
        Parameters::Hotfiles(hotfiles::Options { repeat: Repeat::once(), ..hot }),
        Parameters::Scan(scan::Options { repeat: Repeat::once(), ..scan::Options::default() }),
    ];
    let every: Vec<Parameters> = all().into_iter().chain(trees).collect();
    assert_eq!(every.len(), Parameters::COUNT, "every benchmark there is");
    for parameters in every {
        for seed in [1, 2] {
            let alone = measured(&parameters, seed, 1);
            for together in measured(&parameters, seed, 2) {
                assert_eq!(alone[0], together, "{}, seed {seed}", parameters.name());
            }
        }
    }
    let of = |sizes: &[u64], seed| {
        let options =
            seqfile::Options { sizes_bytes: sizes.to_vec(), repeat: Repeat::once(), ..seqfile::Options::with_data(MB) };
        measured(&Parameters::Seqfile(options), seed, 2)
    };
    let sizes = [1024, 8192, 65_536, 300_000];
    let all = of(&sizes, 1);
    for seed in 2..6 {
        assert_eq!(of(&sizes, seed), all, "seed {seed}");
    }
    for (at, size) in sizes.iter().enumerate() {
        assert_eq!(of(&[*size], 1)[0][0], all[0][at], "{size} bytes alone");
    }
}

#[test]
fn metadata_that_is_waited_for_makes_files_slow_to_create() {
    let rate = |metadata, parameters: &Parameters, phase| {
        let (result, _) = run(parameters, metadata);
        result.targets[0].points[0].phases.iter().find(|p| p.phase == phase).unwrap().rate.median
    };
    let small = Parameters::Smallfile(smallfile::Options { files: 200, ..smallfile::Options::quick() });
    let mail = Parameters::Postmark(postmark::Options { number: 100, transactions: 200, ..postmark::Options::quick() });
    for (parameters, phase) in [(&small, Phase::Create), (&mail, Phase::Transactions)] {
        let (waited, delayed) =
            (rate(Metadata::Synchronous, parameters, phase), rate(Metadata::Delayed, parameters, phase));
        assert!(delayed > 2.0 * waited, "{}: {delayed} and {waited}", parameters.name());
    }
}

#[test]
fn users_compete_for_one_processor() {
    // Computing only matters: ten times what it is on a machine whose calls take next to nothing beside.
    let shop = sdet::Options { scripts: vec![1, 4], commands: 20, cpu: 10.0, repeat: Repeat::once() };
    let mut fs = lab(Metadata::Delayed, 200 * MB);
    let result = workload::run_on(&mut fs, &shop, &mut |_| {}).unwrap();
    let rates: Vec<f64> = result.targets[0].points.iter().map(|p| p.phases[0].rate.median).collect();
    let gain = rates[1] / rates[0];
    assert!((0.6..1.6).contains(&gain), "four users get no more done than one: {rates:?}");
}

#[test]
fn the_log_waits_for_a_disk_of_its_own() {
    let run = |logged: bool| {
        let (mut fs, mut log) = (lab(Metadata::Delayed, 200 * MB), lab(Metadata::Delayed, 100 * MB));
        // The clock of the log's own disk is looked at afterwards: no duplicate of it.
        log.record_writes(false);
        let beside = logged.then_some(&mut log as &mut dyn FileSystem);
        let result = run_on_with_log(&mut fs, beside, &tpcb::Options::quick(), &mut |_| {}).unwrap();
        (result.targets[0].points[0].phases[0].rounds[0].clone(), log.now_ns())
    };
    let ((without, _), (with, log_ns)) = (run(false), run(true));
    // Every forced write waits for the log's disk to come round: 5,400 a minute.
    assert!(with.time_ns(true) > without.time_ns(true) + 250 * 5_000_000, "{with:?}");
    assert!(log_ns > 250 * 5_000_000 && with.elapsed_ns == with.calls_ns);
}

#[test]
fn cleaning_is_measured_at_the_utilisation_asked_for() {
    let mut fs = lab(Metadata::Delayed, 20 * MB);
    let options = hotcold::Options { window: 100, writes: 300, windows_max: 20, ..hotcold::Options::quick() };
    let mut files = hotcold::Files::begin(&mut fs, &options, Skew::PAPER, Some(0.8), "t").unwrap();
    let usage = fs.usage().unwrap();
    let share = 1.0 - usage.free_bytes as f64 / usage.total_bytes as f64;
    assert!((0.795..0.805).contains(&share), "{share}");
    files.warm_up(&mut fs).unwrap();
    let round = files.measure(&mut fs).unwrap();
    assert_eq!((round.files, round.bytes), (300, 300 * 4096));
    files.end(&mut fs).unwrap();
}

#[test]
fn one_round_in_virtual_time_is_a_verdict() {
    let (mut slow, mut fast) = (lab(Metadata::Synchronous, 100 * MB), lab(Metadata::Delayed, 100 * MB));
    let mut places = [Place { name: "slow".into(), fs: &mut slow }, Place { name: "fast".into(), fs: &mut fast }];
    let small = Parameters::Smallfile(smallfile::Options { files: 50, ..smallfile::Options::quick() });
    let result = workload::run(&small, &mut places, &mut |_| {}).unwrap();
    let comparison = workload::compare_targets(&result).unwrap();
    let verdict = |phase| comparison.rows.iter().find(|row| row.phase == phase).unwrap().verdict;
    assert_eq!((verdict(Phase::Create), verdict(Phase::Delete)), (Verdict::Faster, Verdict::Faster));
    assert!(comparison.cautions.is_empty(), "{:?}", comparison.cautions);
}
