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
    let name = "<script>alert(1)<!--\n\"'\u{2028}{}";
    let library = filled(directory.path(), &[name]);
    let options = PredictOptions { min_coverage: 0.0, ..PredictOptions::default() };
    let text = page(&matrix(&library, &options, &mut |_, _| {}).unwrap()).unwrap();
    assert_eq!(text.matches("<script>").count(), 1, "the page's own");
    assert_eq!(text.matches("</script>").count(), 2, "its data's and its own");
    assert!(!text.contains("src=") && text.contains("default-src 'none'"));
    let data = text.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["workloads"][0]["name"], name);
}

/// `fsage library .` in a folder with a page of the user's own wrote over it.
#[test]
fn a_folder_of_somebody_elses_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |name: &str, files: &[(&str, &str)]| {
        let folder = directory.path().join(name);
        for (file, text) in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let before = std::fs::read_dir(&folder).unwrap().count();
        let message = Library::open(&folder).map(drop).unwrap_err().to_string();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), before, "{name}");
        for (file, text) in files {
            assert_eq!(std::fs::read_to_string(folder.join(file)).unwrap(), *text, "{name}");
        }
        message
    };
    assert!(refused("letters", &[("letter", "dear")]).contains("no library"));
    let their_page = [("index.html", "<!doctype html>\n<p>mine"), ("workloads/a", "b")];
    assert!(refused("page", &their_page).contains("index.html: is there and was not made by fsage library"));
    let their_matrix = [("matrix.json", "{\"schema\": \"theirs/1\"}")];
    assert!(refused("matrix", &their_matrix).contains("matrix.json: is there"));
    // One under git, one of ours that git has copied without its empty folders, and one with a page made before.
    std::fs::create_dir_all(directory.path().join("new/.git")).unwrap();
    Library::open(&directory.path().join("new")).unwrap();
    let library = filled(directory.path(), &["a"]);
    let options = PredictOptions { min_coverage: 0.0, ..PredictOptions::default() };
    let found = matrix(&library, &options, &mut |_, _| {}).unwrap();
    let json = document::json_text(&document::envelope(library::SCHEMA, &found).unwrap());
    let place = library.publish(&json, &page(&found).unwrap()).unwrap();
    assert!(place.ends_with("ours/index.html"));
    std::fs::remove_dir(library.folder().join("replays")).unwrap();
    let again = Library::open(library.folder()).unwrap();
    again.publish(&json, &page(&found).unwrap()).unwrap();
}

/// A recording that was replaced stood beside replays of the one before it.
#[test]
fn replays_of_a_recording_that_is_gone_are_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let library = filled(directory.path(), &["a"]);
    library.keep_replay("a", "xfs", &replay(7)).unwrap();
    library.keep_replay("b", "xfs", &replay(8)).unwrap();
    assert_eq!(library.forget_replays("a").unwrap(), 1);
    assert_eq!(library.forget_replays("a").unwrap(), 0);
    assert_eq!(library.replayed("a", "xfs").unwrap(), None);
    assert!(library.replayed("b", "xfs").unwrap().is_some());
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

/// A damaged recording was a cell that cannot be predicted, and so were all that followed when the command was
/// interrupted.
#[test]
fn damage_is_no_cell_and_no_name_is_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let library = filled(directory.path(), &["a"]);
    let options = PredictOptions { min_coverage: 0.0, ..PredictOptions::default() };
    let message = || matrix(&library, &options, &mut |_, _| {}).map(drop).unwrap_err().to_string();
    let path = library.workload("a").join("trace.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 0x55;
    std::fs::write(&path, bytes).unwrap();
    assert!(message().contains("trace.parquet"), "{}", message());
    let name = std::os::unix::ffi::OsStrExt::from_bytes(b"caf\xe9.workload");
    std::fs::create_dir(library.folder().join("workloads").join::<&std::ffi::OsStr>(name)).unwrap();
    assert!(message().contains("not UTF-8"), "{}", message());
}
