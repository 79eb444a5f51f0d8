//! The experiments on policies and free space at a quick scale: they run, say something about each comparison, and give
//! the same again. What must hold at any scale, because the allocator or the order of writes alone makes it so, is
//! looked at.

use experiment::{Bench, Outcome, Scale, run, select};

/// No experiment has more bytes, operations or anything else.
const FIGURE_MAX: f64 = 1e13;

fn outcomes(keys: &[&str]) -> Vec<Outcome> {
    let mut report = |_: &str, _: u64, _: Option<u64>| {};
    let mut bench = Bench::new(Scale::Quick, 1, &mut report);
    let names: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
    select(&names).unwrap().into_iter().map(|experiment| run(experiment, &mut bench).unwrap()).collect()
}

fn holds(outcome: &Outcome, what: &str) {
    let claim = outcome.claims.iter().find(|claim| claim.what.contains(what));
    let claim = claim.unwrap_or_else(|| panic!("{}: nothing is said of '{what}'", outcome.key));
    assert!(claim.holds, "{}: {}: {}", outcome.key, claim.what, claim.seen);
}

/// For `--nocapture`.
fn print(outcome: &Outcome) {
    println!("{}", outcome.key);
    outcome.rows.iter().for_each(|row| println!("{:>14.3}  {}", row.ours, row.what));
    outcome.claims.iter().for_each(|claim| println!("{:>14}  {}: {}", claim.holds, claim.what, claim.seen));
}

fn complete(outcome: &Outcome) {
    assert!(!outcome.rows.is_empty() && !outcome.claims.is_empty() && !outcome.figures.is_empty(), "{}", outcome.key);
    // Found so: the ratio of split files to none was 1.3e305.
    for row in &outcome.rows {
        assert!((0.0..FIGURE_MAX).contains(&row.ours), "{}: {} is {}", outcome.key, row.what, row.ours);
    }
    let points = outcome.figures.iter().flat_map(|figure| &figure.series).flat_map(|series| &series.points);
    assert!(points.clone().count() > 0 && points.clone().all(|point| point.y.abs() < FIGURE_MAX), "{}", outcome.key);
}

#[test]
fn order_of_writes_and_gaps() {
    let found = outcomes(&["softdep99/noorder", "lfs95/m8r0-m8r2"]);
    found.iter().for_each(complete);
    for what in ["at every size", "several disk writes more", "drops much when the first indirect block"] {
        holds(&found[1], what);
    }
    for what in ["writing faster", "reading slower", "a sudden drop"] {
        holds(&found[0], what);
    }
    assert_eq!(found[..1], outcomes(&["lfs95/m8r0-m8r2"]), "the same, every run");
}

#[test]
fn soft_updates_and_logs() {
    let found = outcomes(&["softdep99/softdep"]);
    print(&found[0]);
    complete(&found[0]);
    for what in [
        "(95 %), the calls alone",
        "faster than conventional",
        "several disk writes more",
        "at least as fast as No Order",
    ] {
        holds(&found[0], what);
    }
}

#[test]
fn journaling_against_soft_updates() {
    let found = outcomes(&["jvsu00/*"]);
    found.iter().for_each(print);
    found.iter().for_each(complete);
    assert_eq!(found.len(), 4);
    for outcome in &found {
        holds(outcome, "faster than conventional updates");
        let ours = |what: &str| outcome.rows.iter().find(|row| row.what == what).unwrap().ours;
        let sync = ours("throughput, Soft Updates over log on its own drive, sync");
        let alone = ours("throughput, Soft Updates over log on its own drive, async");
        assert!(sync > alone, "{}: a log that nobody waits for is faster", outcome.key);
    }
    assert_eq!(found, outcomes(&["jvsu00/*"]), "threads do not show");
}

#[test]
fn free_space_and_allocator() {
    let keys =
        ["lfs95/fragmentation", "lfs95/by-date", "hbench01/fragments", "hbench01/noswitch", "hbench01/empty-aged"];
    let found = outcomes(&keys);
    found.iter().for_each(print);
    found.iter().for_each(complete);
    let of = |key: &str| found.iter().find(|outcome| outcome.key == key).unwrap_or_else(|| panic!("no {key}"));
    let fragmentation = of("lfs95/fragmentation");
    let lie = |what: &str| {
        let what = format!("homes, 20 days, 75 % full: {what}, behind the block before");
        fragmentation.rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no {what}")).ours
    };
    // A new file of two blocks has one free block to find, and one of sixteen changes its group at the thirteenth.
    assert!(
        lie("new files of 2 blocks") > 0.5 && lie("new files of 16 blocks") < 15.0 / 15.0,
        "{:?}",
        fragmentation.rows
    );
    for what in ["laid out better with smart fragments", "a saw-tooth"] {
        holds(of("hbench01/fragments"), what);
    }
    let fragments = |what: &str| {
        of("hbench01/fragments").rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no {what}")).ours
    };
    // Where the next block is simply the next, fragments have it; rotational positions send some elsewhere.
    let one = "written on an empty one with one rotational position, sizes that end in a fragment: layout score, smart \
        fragments";
    assert!(fragments(one) > 0.97, "{}", fragments(one));
    // A block and half a block of fragments: one request each, or one for both where they are neighbours and are
    // gathered.
    holds(of("hbench01/fragments"), "by a request of their own");
    let writes = "disk writes for each 12 KB file, metadata late, smart fragments";
    assert!(fragments(&format!("late blocks gathered: {writes}")) < fragments(writes) - 0.5);
    for on in ["empty", "aged"] {
        let jump = format!("create, original fragments, {on}, 64 KB over 56 KB files");
        let gathered = fragments(&format!("late blocks gathered: {jump}"));
        assert!(fragments(&jump) > gathered + 0.1, "a full cluster is one request either way, {on}");
    }
    let noswitch = of("hbench01/noswitch");
    let split =
        |what: &str| noswitch.rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no {what}")).ours;
    let (ours, theirs) =
        ("split files at the end, of all, noswitch", "the set-up of alloc96: split files of all, noswitch");
    assert_ne!(split(ours), split(theirs), "another file system");
    holds(of("hbench01/noswitch"), "noswitch splits more files");
    let aged = |what: &str| {
        let row = of("hbench01/empty-aged").rows.iter().find(|row| row.what == what);
        row.unwrap_or_else(|| panic!("no {what}")).ours
    };
    let score = |name: &str| aged(&format!("layout score of files of the benchmark's sizes, mean, {name}, aged"));
    assert!(score("realloc") > score("original") + 0.01, "{} and {}", score("realloc"), score("original"));
    assert!(aged("with the set-up of alloc96: read, realloc over original, aged, 64 KB files") > 1.0);
}

#[test]
fn free_space_in_fragments_only() {
    let found = outcomes(&["lfs95/fragments-only"]);
    print(&found[0]);
    found.iter().for_each(complete);
    let ours = |what: &str| {
        let what = format!("articles of 2.2 KB, reserve of 10 %: {what}");
        found[0].rows.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no {what}")).ours
    };
    // The last article that is taken goes below it.
    assert!((0.098..0.101).contains(&ours("free when full")), "the reserve is kept");
    assert!(ours("of that, in whole blocks") < 1.0 && ours("of what is free then, in whole blocks") < 1.0);
    assert_eq!(ours("files of 1 KB made before one is refused, of those that df shows room for"), 1.0);
    assert_eq!(found, outcomes(&["lfs95/fragments-only"]), "threads do not show");
}

#[test]
fn predictions_against_replays() {
    let found = outcomes(&["hbench01/validation"]);
    print(&found[0]);
    let validation = found[0].validation.as_ref().unwrap();
    assert_eq!(validation.cells.len(), 2, "one workload on two systems");
    for cell in &validation.cells {
        // Every call that the benchmark made is in its trace, and does there what it did then: a wrong path, offset or
        // flag would show.
        assert_eq!((cell.differences, cell.predicted_calls), (0, cell.measured_calls), "{}", cell.target);
        assert!(cell.measured_calls > 500 && cell.error.abs() < 10.0, "{}: {}", cell.target, cell.error);
        assert_eq!(cell.spread, 0.0, "virtual time has no noise");
    }
    let (ordered, late) = (&validation.cells[0], &validation.cells[1]);
    let traced_ns = ordered.predicted.same_as_traced_ns.unwrap();
    assert!(late.measured_ns < ordered.measured_ns, "No Order waits for no metadata");
    assert!((traced_ns / ordered.measured_ns - 1.0).abs() < 0.2, "the trace is of that system: {traced_ns}");
    // What the machine has is not told to those who measure it.
    let ours = |what: &str| found[0].rows.iter().find(|row| row.what == what).map(|row| row.ours);
    let data = ours("data cache, measured over the machine's, slow, No Order").unwrap();
    assert!((0.9..1.05).contains(&data), "the data cache is found {data} times as large as it is");
    assert_eq!(found, outcomes(&["hbench01/validation"]), "the same, every run");
}

#[test]
fn crashes_during_a_benchmark() {
    let found = outcomes(&["softdep99/crash"]);
    found.iter().for_each(complete);
    for what in ["fsck repairs whatever", "no check can resolve", "no crash leaves an error", "its replay mends"] {
        holds(&found[0], what);
    }
    let ours = |what: &str| found[0].rows.iter().find(|row| row.what == what).unwrap().ours;
    assert!(ours("conventional: fsck has something to repair") > 0.9, "free maps are written late");
    let classes =
        |mode: &str| -> f64 { crash::Class::ALL.iter().map(|c| ours(&format!("{mode}: {}", c.title()))).sum() };
    assert!(
        ["conventional", "No Order", "Soft Updates", "log, async"]
            .iter()
            .all(|mode| (classes(mode) - 1.0).abs() < 1e-9)
    );
    assert_eq!(found, outcomes(&["softdep99/crash"]), "threads do not show");
}

#[test]
fn checks_in_virtual_time() {
    let found = outcomes(&["softdep99/fsck"]);
    found.iter().for_each(complete);
    for what in ["the fuller it is", "grows with the size", "since the checkpoint", "needs no check of the whole disk"]
    {
        holds(&found[0], what);
    }
    assert_eq!(found, outcomes(&["softdep99/fsck"]), "threads do not show");
}
