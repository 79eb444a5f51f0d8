//! Results held against each other and read back from files.

use crate::fake::Fake;
use fault::{Fault as _, Kind};
use posix::Kernel;
use std::path::Path;
use workload::seqfile::Options;
use workload::{BenchResult, Parameters, Phase, Place, Repeat, SCHEMA, Verdict, compare, compare_targets, load, scan};

fn options(rounds: u32) -> Options {
    Options {
        data_bytes: 10_000,
        sizes_bytes: vec![300, 1000],
        files_per_directory: 25,
        piece_bytes: 1024,
        until: Phase::Delete,
        repeat: Repeat { rounds, warm_up: false, seed: 1 },
    }
}

fn result(slowness: u64, rounds: u32) -> BenchResult {
    workload::run_on(&mut Fake { slowness, ..Fake::default() }, &options(rounds), &mut |_| {}).unwrap()
}

/// The same with every round another few per cent off.
fn noisy(slowness: u64, rounds: u32) -> BenchResult {
    let mut noisy = result(slowness, rounds);
    let phases = noisy.targets.iter_mut().flat_map(|t| &mut t.points).flat_map(|p| &mut p.phases);
    for round in phases.flat_map(|p| &mut p.rounds) {
        round.calls_ns += round.calls_ns / 100 * u64::from(round.round % 4);
    }
    noisy
}

fn save(directory: &Path, name: &str, result: &BenchResult) -> std::path::PathBuf {
    let mut value = serde_json::json!({ "schema": SCHEMA });
    let fields = serde_json::to_value(result).unwrap();
    value.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let path = directory.join(name);
    std::fs::write(&path, value.to_string()).unwrap();
    path
}

#[test]
fn a_tie_is_a_tie_and_half_the_speed_is_slower() {
    let (fresh, aged) = (noisy(1, 6), noisy(2, 6));
    let same = compare(&fresh, &fresh, ("a", "b")).unwrap();
    assert_eq!(same.rows.len(), 8);
    assert!(same.rows.iter().all(|row| row.verdict == Verdict::Tie && row.ratio.median == 1.0));
    assert!(same.cautions.is_empty(), "{:?}", same.cautions);
    let slower = compare(&fresh, &aged, ("fresh", "aged")).unwrap();
    for row in &slower.rows {
        assert_eq!(row.verdict, Verdict::Slower, "{row:?}");
        assert!((row.ratio.median - 0.5).abs() < 0.03 && row.ratio.contains(0.5), "{row:?}");
    }
    let faster = compare(&aged, &fresh, ("aged", "fresh")).unwrap();
    assert!(faster.rows.iter().all(|row| row.verdict == Verdict::Faster));
}

/// Whoever made it that much faster.
#[test]
fn less_than_a_per_cent_is_a_tie_and_in_virtual_time_the_same() {
    let by = |thousandths: u64, kernel: Option<Kernel>| {
        let mut result = result(1, 6);
        for target in &mut result.targets {
            target.environment.kernel = kernel.clone().unwrap_or_default();
            for round in target.points.iter_mut().flat_map(|p| &mut p.phases).flat_map(|p| &mut p.rounds) {
                round.calls_ns = 1_000_000 + 1000 * thousandths;
                round.elapsed_ns = round.calls_ns;
                round.sync_ns = None;
            }
        }
        result
    };
    let verdicts = |thousandths, kernel: Option<Kernel>| {
        let comparison = compare(&by(0, kernel.clone()), &by(thousandths, kernel), ("a", "b")).expect("one benchmark");
        let verdicts: Vec<Verdict> = comparison.rows.iter().map(|row| row.verdict).collect();
        assert!(verdicts.windows(2).all(|two| two[0] == two[1]), "{comparison:?}");
        (verdicts[0], comparison.how_to_read("B"))
    };
    let (near, how) = verdicts(8, None);
    assert_eq!((near, verdicts(30, None).0), (Verdict::Tie, Verdict::Slower), "no round differs from another");
    assert!(how.contains("it is a tie"), "{how}");
    let laboratory = || Some(Kernel::laboratory("1", ""));
    let (near, how) = verdicts(8, laboratory());
    assert_eq!((near, verdicts(30, laboratory()).0), (Verdict::Same, Verdict::Slower));
    assert!(how.contains("Times are virtual"), "{how}");
}

#[test]
fn few_rounds_and_unequal_options_are_cautioned() {
    let one = compare(&result(1, 1), &result(2, 6), ("a", "b")).unwrap();
    assert!(one.rows.iter().all(|row| row.verdict == Verdict::Unknown));
    assert!(one.cautions.iter().any(|c| c.to_string().contains("with 1 round an")), "{:?}", one.cautions);
    let other = Options { files_per_directory: 100, sizes_bytes: vec![1000], ..options(6) };
    let mut unverified = Fake { unverified: true, ..Fake::default() };
    let other = workload::run_on(&mut unverified, &other, &mut |_| {}).unwrap();
    let both = compare(&result(1, 6), &other, ("a", "b")).unwrap();
    assert_eq!(both.rows.len(), 4, "the size they share");
    assert!(
        both.cautions.iter().any(|c| c.to_string() == "files in a directory: 25 in A, 100 in B"),
        "{:?}",
        both.cautions
    );
    assert!(both.cautions.iter().any(|c| c.to_string().contains("not equally cold")), "{:?}", both.cautions);
}

#[test]
fn what_has_nothing_in_common_is_refused() {
    let mut fs = Fake::default();
    fs.add("f", posix::FileKind::File, 10, 0);
    let scanned = workload::run_on(&mut fs, &scan::Options::default(), &mut |_| {}).unwrap();
    let error = compare(&result(1, 1), &scanned, ("a", "b")).unwrap_err();
    assert!(error.to_string().contains("a is of seqfile and b of scan"), "{error}");
    let other = Options { sizes_bytes: vec![7], ..options(1) };
    let other = workload::run_on(&mut Fake::default(), &other, &mut |_| {}).unwrap();
    assert!(compare(&result(1, 1), &other, ("a", "b")).unwrap_err().to_string().contains("no file size"));
    let mut two = result(1, 1);
    two.targets[0].name = "x".into();
    two.targets.push(two.targets[0].clone());
    two.targets[1].name = "y".into();
    assert!(compare(&result(1, 1), &two, ("a", "b")).unwrap_err().to_string().contains("no target's name"));
    // One target each is a pair, whatever they are called.
    two.targets.pop();
    assert_eq!(compare(&result(1, 1), &two, ("a", "b")).unwrap().rows[0].target_b, "x");
}

#[test]
fn targets_of_one_run_are_held_against_the_first() {
    let (mut a, mut b) = (Fake::default(), Fake { slowness: 3, ..Fake::default() });
    let mut places = [Place { name: "a".into(), fs: &mut a }, Place { name: "b".into(), fs: &mut b }];
    let found = workload::run(&Parameters::Seqfile(options(6)), &mut places, &mut |_| {}).unwrap();
    let comparison = compare_targets(&found).unwrap();
    assert_eq!((comparison.a.as_str(), comparison.b.as_str()), ("a", "b"));
    let read = comparison.rows.iter().find(|row| row.phase == Phase::Read).unwrap();
    assert!((read.ratio.median - 1.0 / 3.0).abs() < 1e-9);
    assert_eq!(compare_targets(&result(1, 1)), None);
}

#[test]
fn a_result_comes_back_from_its_file_and_anything_else_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let found = noisy(1, 6);
    let path = save(directory.path(), "result.json", &found);
    assert_eq!(load(&path).unwrap(), found);
    assert_eq!(load(directory.path()).unwrap(), found, "a directory that -o made");
    let text = std::fs::read_to_string(&path).unwrap();
    for (bad, says) in [
        (text[..text.len() / 2].to_owned(), "line 1"),
        (text.replace("fsage.bench/1", "fsage.bench/2"), "this version reads"),
        (text.replace("\"schema\"", "\"scheme\""), "no \"schema\""),
        (text.replace("\"calls_ns\"", "\"gone\""), "missing field `calls_ns`"),
        (text.replace("seqfile", "nonesuch"), "unknown variant"),
        (String::new(), "is not a result file"),
    ] {
        std::fs::write(&path, bad).unwrap();
        let error = load(&path).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(error.kind(), Kind::BadInput);
    }
    assert_eq!(load(&directory.path().join("missing")).unwrap_err().kind(), Kind::BadInput);
    assert_eq!(load(Path::new("/dev/null")).unwrap_err().kind(), Kind::BadInput);
}
