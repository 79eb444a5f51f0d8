//! The cleaning workload: which files are written, how full the file system is, and what is measured.

use crate::fake::{CLOSE_NS, Fake, OPEN_NS, SYNC_NS};
use std::collections::BTreeMap;
use workload::hotcold::{Files, Options, Skew};
use workload::{Phase, Repeat, Unit, WorkloadError};

fn options() -> Options {
    Options {
        files: 50,
        window: 20,
        writes: 400,
        repeat: Repeat::once(),
        files_per_directory: 10,
        ..Options::default()
    }
}

#[test]
fn whole_files_are_written_over_and_the_hot_ones_more_often() {
    let mut fs = Fake::default();
    let result = workload::run_on(&mut fs, &options(), &mut |_| {}).unwrap();
    let labels: Vec<&str> = result.targets[0].points.iter().map(|p| p.point.label.as_str()).collect();
    assert_eq!(labels, ["uniform", "hot and cold 10/90"]);
    for point in &result.targets[0].points {
        let phase = &point.phases[0];
        let round = &phase.rounds[0];
        assert_eq!((phase.phase, phase.unit), (Phase::Overwrite, Unit::BytesPerSecond));
        assert_eq!((round.files, round.bytes, round.calls), (400, 400 * 4096, 1200));
        assert_eq!(round.calls_ns, 400 * (OPEN_NS + 4096 + CLOSE_NS));
        assert_eq!(round.sync_ns, Some(SYNC_NS + 2 * 400 * 4096), "what was dirty before is written before");
    }
    let mut writes: BTreeMap<&str, usize> = BTreeMap::new();
    for line in fs.logged("rewrite").into_iter().filter(|line| line.contains("hotcold.0-1")) {
        *writes.entry(line).or_default() += 1;
    }
    let hot: usize = writes
        .iter()
        .filter(|(file, _)| **file < "rewrite fsage-bench-hotcold.0-1/d000000/f00000005")
        .map(|(_, n)| n)
        .sum();
    let all: usize = writes.values().sum();
    assert!((0.85..0.95).contains(&(hot as f64 / all as f64)), "{hot} of {all}");
    assert!(fs.nodes().is_empty() && fs.descriptors() == 0);
}

#[test]
fn files_are_made_until_the_file_system_is_as_full_as_asked_for() {
    let mut fs = Fake::of_capacity(16 << 20);
    let mut files = Files::begin(&mut fs, &options(), Skew::Uniform, Some(0.75), "t").unwrap();
    assert_eq!(files.count(), 3072, "12 MiB of 16 in files of 4 KiB");
    let warm_up = files.warm_up(&mut fs).unwrap();
    assert!(warm_up.steady);
    assert_eq!(warm_up.writes, 8 * 20);
    let round = files.measure(&mut fs).unwrap();
    assert_eq!(round.count("file system in use at the start, permille"), Some(750));
    assert_eq!(round.count("writes before measuring"), Some(160));
    files.end(&mut fs).unwrap();
    assert!(fs.nodes().is_empty());
    // 250 files were made before the first look: of a megabyte each, they filled the file system.
    let large = Options { file_bytes: 1 << 20, ..options() };
    let files = Files::begin(&mut fs, &large, Skew::Uniform, Some(0.5), "t").unwrap();
    assert_eq!(files.count(), 8);
    files.end(&mut fs).unwrap();
    // A turnover of two: 8 MiB, 2048 writes.
    let turned = Options { turnover: 2.0, ..options() };
    let mut files = Files::begin(&mut fs, &turned, Skew::PAPER, Some(0.75), "t").unwrap();
    assert!((2048..2068).contains(&files.warm_up(&mut fs).unwrap().writes));
    files.end(&mut fs).unwrap();
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let mut fs = Fake::of_capacity(1 << 20);
    fs.add("there", posix::FileKind::File, 900_000, 0);
    let full = Files::begin(&mut fs, &options(), Skew::Uniform, Some(0.5), "t").unwrap_err();
    assert!(full.to_string().contains("full already"), "{full}");
    let no_space = Files::begin(&mut fs, &options(), Skew::Uniform, None, "t").unwrap_err();
    assert!(matches!(no_space, WorkloadError::NoSpace { .. }), "{no_space}");
    assert_eq!(fs.nodes().len(), 1);
    // Found with a log of 16 MiB at 98 %, whose files take metadata: the message said nothing of the share.
    let mut fs = Fake::of_capacity(100 * 4096 - 1);
    let asked = Files::begin(&mut fs, &options(), Skew::Uniform, Some(0.999), "t").unwrap_err();
    assert!(asked.to_string().contains("99.9 % in use were asked for and 99.0 % are"), "{asked}");
    assert!(fs.nodes().is_empty());
    let odd = Options { skews: vec![Skew::HotCold { hot_files: 0.0, hot_writes: 0.9 }], ..options() };
    assert!(matches!(workload::run_on(&mut fs, &odd, &mut |_| {}), Err(WorkloadError::Options(_))));
}
