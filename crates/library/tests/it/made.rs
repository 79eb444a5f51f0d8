//! A library is made of files that anybody can put there, and its page shows them.

use library::{Library, matrix, page};
use predict::pipeline::PredictOptions;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use trace::Snapshot;
use trace::analysis::Decode;
use trace::profile::{Writer, WriterOptions};
use trace::strace::{ImportOptions, Importer};

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// One with the bundled profiles, and workloads of the names given, each an import of the same text of strace.
fn filled(directory: &Path, workloads: &[&str]) -> Library {
    let library = Library::open(&directory.join("ours")).unwrap();
    for name in ["ext4", "xfs"] {
        std::fs::copy(top().join(format!("profiles/{name}.system")), library.system(name)).unwrap();
    }
    let text = std::fs::read(top().join("crates/cli/tests/data/small.strace")).unwrap();
    for name in workloads {
        let mut writer = Writer::create(&library.workload(name), WriterOptions::default()).unwrap();
        let mut decoder: Box<dyn Decode> = Box::new(Importer::new(ImportOptions::default()));
        let mut push = |batch: trace::Batch| writer.push(&batch);
        decoder.bytes(&text, &mut push).unwrap();
        let mut imported = decoder.finish(&mut push).unwrap();
        let names = Snapshot::from_entries(imported.implied_snapshot());
        writer.finish(imported.meta(), &names).unwrap();
    }
    library
}

fn replay(total_ns: u64) -> Value {
    json!({ "schema": "fsage.replay/1", "environment": { "target": "/mnt" }, "total_ns": total_ns, "calls": 5,
            "differences": { "total": 0 }, "per_op": [{ "op": "open", "count": 5, "total_ns": total_ns }] })
}

#[test]
fn every_workload_is_predicted_on_every_system_and_replays_stand_beside() {
    let directory = tempfile::tempdir().unwrap();
    let library = filled(directory.path(), &["b", "a"]);
    library.keep_replay("a", "xfs", &replay(7)).unwrap();
    let options = PredictOptions { min_coverage: 0.0, ..PredictOptions::default() };
    let found = matrix(&library, &options, &mut |_, _| {}).unwrap();
    let names: Vec<&str> = found.workloads.iter().chain(&found.systems).map(|listed| listed.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "ext4", "xfs"]);
    for pair in found.cells.chunks(2) {
        let [ext4, xfs] = pair else { panic!("two systems") };
        let (ext4, xfs) = (ext4.predicted.as_ref().unwrap(), xfs.predicted.as_ref().unwrap());
        assert_eq!(ext4.total_ns < xfs.total_ns, ext4.place == 1);
        assert_eq!(ext4.place + xfs.place, 3);
        for predicted in [ext4, xfs] {
            let by_op: f64 = predicted.by_op.iter().map(|op| op.ns).sum();
            assert!((by_op / predicted.total_ns - 1.0).abs() < 1e-9, "{by_op} of {}", predicted.total_ns);
        }
    }
    let replayed: Vec<Option<f64>> =
        found.cells.iter().map(|cell| cell.replayed.as_ref().map(|r| r.total_ns)).collect();
    assert_eq!(replayed, [None, Some(7.0), None, None]);
}

#[test]
fn no_name_is_markup_on_the_page() {
    let directory = tempfile::tempdir().unwrap();
    let library = filled(directory.path(), &["<script>alert(1)<!--"]);
    let options = PredictOptions { min_coverage: 0.0, ..PredictOptions::default() };
    let text = page(&matrix(&library, &options, &mut |_, _| {}).unwrap()).unwrap();
    assert_eq!(text.matches("<script>").count(), 1, "the page's own");
    assert_eq!(text.matches("</script>").count(), 2, "its data's and its own");
    assert!(!text.contains("src=") && text.contains("default-src 'none'"));
}

#[test]
fn what_is_missing_or_damaged_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let library = Library::open(&directory.path().join("ours")).unwrap();
    let message =
        |library: &Library| matrix(library, &PredictOptions::default(), &mut |_, _| {}).unwrap_err().to_string();
    assert!(message(&library).contains("--add"));
    let library = filled(directory.path(), &["a"]);
    assert!(library.keep_replay("a", "xfs", &json!({ "schema": "fsage.other" })).is_err());
    library.keep_replay("a", "xfs", &replay(7)).unwrap();
    std::fs::write(library.folder().join("replays/a/xfs.json"), "{").unwrap();
    assert!(message(&library).contains("xfs.json"), "{}", message(&library));
}
