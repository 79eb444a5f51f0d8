//! The comparison on drives of today runs at the quick scale, says the same twice, and counts what it says it counts.

use experiment::{Bench, Outcome, Scale};

fn run() -> Outcome {
    let mut report = |_: &str, _: u64, _: Option<u64>| {};
    let mut bench = Bench::new(Scale::Quick, 1, &mut report);
    let wanted = experiment::select(&["beyond/modern".to_owned()]).unwrap();
    experiment::run(wanted[0], &mut bench).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn file_system_times_drive_is_both() {
    let outcome = run();
    assert_eq!(outcome, run(), "threads do not show");
    let of = |part: &str, case: &str| {
        let what = format!("written by {part}: {case}");
        outcome.rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no row '{what}'")).ours
    };
    let cases: Vec<&str> = outcome.rows.iter().filter_map(|row| row.what.strip_prefix("written by both: ")).collect();
    assert!(cases.len() >= 12, "{cases:?}");
    for case in cases {
        let (file_system, drive, both) = (of("file system", case), of("drive", case), of("both", case));
        assert!((file_system * drive / both - 1.0).abs() < 1e-9, "{case}");
        assert!((0.9..20.0).contains(&file_system) && (0.95..20.0).contains(&drive), "{case}: {file_system}, {drive}");
    }
    // A file system that writes in place has the drive move what it has freed, unless it says so.
    let (told, untold) = (of("drive", "FFS, discards, uniform, 55 % full"), of("drive", "FFS, uniform, 55 % full"));
    assert!(told < untold, "{told}, {untold}");
    let aligned = of("drive", "whole segments of 8/8, nothing between them");
    assert!((aligned - 1.0).abs() < 1e-3, "{aligned}");
}
