//! Nothing is lost silently: what the ring has no room for is counted, and stands in the description with its place.

use crate::common;
use crate::common::{import, may_record, record_with};
use capture::Options;

#[test]
fn a_ring_too_small_shows_the_gap() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    // A ring of one page holds some twenty records; nobody drains it while the program makes thousands of calls.
    let script = "i=0; while [ $i -lt 3000 ]; do echo $i >> file; i=$((i+1)); done";
    let recorded =
        record_with(&Options { buffer_bytes: 4096 }, &["sh".into(), "-c".into(), script.into()], directory.path());
    assert!(recorded.totals.lost > 0, "{:?}", recorded.totals);
    let summary = &recorded.imported.summary;
    assert_eq!(summary.lost_events, recorded.totals.lost, "each loss is told of once");
    assert_eq!(summary.problems, [], "what is there is whole");
    let meta = recorded.imported.meta();
    assert_eq!(meta.lost_events, recorded.totals.lost);
    let in_gaps: u64 = meta.gaps.iter().map(|gap| gap.events).sum();
    assert!(!meta.gaps.is_empty());
    assert!(in_gaps == meta.lost_events || meta.gaps.len() == trace::profile::GAPS_MAX, "{:?}", meta.gaps.len());
    // Calls come from what is whole: none is made up.
    let text = std::fs::read_to_string(directory.path().join("file")).expect("the file");
    let written: u64 = recorded
        .rows
        .iter()
        .filter(|r| r.event.op == trace::Op::Write && r.path().ends_with(b"/file"))
        .map(|r| u64::try_from(r.event.ret).expect("a length"))
        .sum();
    assert!(written < text.len() as u64, "{written} of {}", text.len());
    // The program noticed nothing.
    assert!(recorded.status.success());
    assert_eq!(text.lines().count(), 3000);
}

#[test]
fn records_in_any_chunks_are_the_same() {
    if !may_record() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let script = "mkdir d; echo x > d/f; (cat d/f; mv d e) & cat d/f; wait; rm -r e";
    let recorded = record_with(&Options::default(), &["sh".into(), "-c".into(), script.into()], directory.path());
    assert_eq!(recorded.totals.lost, 0);
    assert_eq!(recorded.imported.summary.gaps, []);
    let mut importer = trace::kernel::Importer::new(trace::strace::ImportOptions::default());
    let mut rows = Vec::new();
    let mut rest = &recorded.records[..];
    while !rest.is_empty() {
        let before = rest;
        trace::kernel::wire::next(&mut rest).expect("a record");
        let one = &before[..before.len() - rest.len()];
        importer.bytes(one, &mut |batch| common::collect(&mut rows, &batch)).expect("a record");
    }
    importer.finish(&mut |batch| common::collect(&mut rows, &batch)).expect("the end");
    assert_eq!(rows, recorded.rows);
    // Without its first half a recording is still of use.
    let mut half = &recorded.records[..];
    while half.len() > recorded.records.len() / 2 {
        trace::kernel::wire::next(&mut half).expect("a record");
    }
    let (rows, _) = import(half);
    assert!(!rows.is_empty());
}
