//! Recording for real: a command under this machine's strace.

use fault::{Fault as _, Kind};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use trace::profile::Reader;
use trace::record::{RecordError, RecordOptions, RecordSummary, Strace, Subject, record};
use trace::verify::{VerifyOptions, verify};
use trace::{Op, Provenance};

/// Records a shell script in a directory; `None` where strace is missing or may not trace.
fn record_script(script: &str, output: &Path) -> Option<RecordSummary> {
    let command: Vec<OsString> = ["sh", "-c", script].iter().map(OsString::from).collect();
    let mut options = RecordOptions::command(command, output.to_owned());
    options.snapshot_working_directory = false;
    match record(&options) {
        Ok(summary) => Some(summary),
        Err(e @ (RecordError::StraceMissing | RecordError::CannotTrace { .. })) => {
            testkit::skip(e);
            None
        }
        Err(e) => panic!("{e}"),
    }
}

fn real_tempdir() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = std::fs::canonicalize(dir.path()).expect("its path");
    (dir, path)
}

#[test]
fn names_are_as_they_were_before_the_command_ran() {
    let (_dir, root) = real_tempdir();
    let at = |name: &str| root.join(name);
    std::fs::create_dir_all(at("w/sub")).expect("directories");
    for (name, text) in
        [("keep", "abc"), ("grown", "12345"), ("gone", "abcdef"), ("over", "xy"), ("sub/y", "yyyy"), ("never", "n")]
    {
        std::fs::write(at("w").join(name), text).expect("a file");
    }
    std::os::unix::fs::symlink("sub", at("w/link")).expect("a link");
    // Files must be older than the run by more than a clock tick.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let script = format!(
        "cd {} && cat keep > new && stat gone over >/dev/null && rm gone && echo more >> grown && mv sub sub2 && \
         echo z > sub2/made && mv new over && cat link/y 2>/dev/null; mkdir d && touch d/e && ls . >/dev/null; exit 3",
        at("w").display()
    );
    let output = at("out.workload");
    let Some(summary) = record_script(&script, &output) else { return };
    assert_eq!((summary.exit_status, summary.signal, summary.tracer_lost), (Some(3), None, false));
    assert_eq!(summary.import.problems, []);
    let reader = Reader::open(&output).expect("the profile");
    let snapshot = reader.snapshot().expect("the snapshot");
    let below = format!("{}/", at("w").display());
    let found: BTreeMap<String, u64> = snapshot
        .entries
        .iter()
        .filter_map(|e| Some((std::str::from_utf8(&e.path).ok()?.strip_prefix(&below)?.to_owned(), e.size_bytes)))
        .collect();
    let directory = std::fs::metadata(at("w/sub2")).expect("sub2").len();
    let want = [
        ("gone", 6),
        ("grown", 5),
        ("keep", 3),
        ("link", 3),
        ("never", 1),
        ("over", 2),
        ("sub", directory),
        ("sub/y", 4),
    ];
    assert_eq!(found, want.map(|(name, size)| (name.to_owned(), size)).into());
    let gone = snapshot.get(at("w/gone").to_str().expect("UTF-8").as_bytes()).expect("gone");
    assert_eq!(gone.provenance, Provenance::Trace);
    let meta = reader.meta();
    assert_eq!(meta.tracer.name, "strace");
    assert!(!meta.file_systems.is_empty() && !meta.host.kernel.is_empty());
    assert!(meta.wall_ns >= meta.idle_ns && meta.coverage_share.is_some());
}

#[test]
fn a_tree_read_before_the_run_is_exact() {
    let (_dir, root) = real_tempdir();
    std::fs::create_dir_all(root.join("w/untouched")).expect("directories");
    std::fs::write(root.join("w/a"), "12345678").expect("a file");
    std::fs::write(root.join("w/untouched/deep"), "1").expect("a file");
    std::fs::create_dir_all(root.join("w/far/away/from")).expect("directories");
    std::fs::write(root.join("w/far/away/from/all"), "1").expect("a file");
    let script =
        format!("cd {}/w; cat far/away/from/all; echo longer than before > a; rm -f b; echo b > b", root.display());
    let mut options =
        RecordOptions::command(["sh", "-c", &script].iter().map(OsString::from).collect(), root.join("out.workload"));
    options.snapshot_working_directory = false;
    options.roots = vec![root.join("w")];
    match record(&options) {
        Err(e @ (RecordError::StraceMissing | RecordError::CannotTrace { .. })) => {
            testkit::skip(e);
            return;
        }
        other => drop(other.expect("a recording")),
    }
    let snapshot = Reader::open(&root.join("out.workload")).and_then(|r| r.snapshot()).expect("the snapshot");
    let get = |name: &str| snapshot.get(root.join("w").join(name).to_str().expect("UTF-8").as_bytes());
    let a = get("a").expect("a");
    assert_eq!((a.size_bytes, a.provenance), (8, Provenance::Before));
    assert_eq!(get("b"), None);
    assert!(get("untouched").is_some(), "a name in a touched directory");
    assert!(get("far/away").is_some(), "a directory on the way to one the command touched");
    assert!(
        get("far/away/from").is_some() && get("far/away/from/all").is_some(),
        "a touched directory and a name in it"
    );
    assert_eq!(get("untouched/deep"), None, "a name in a directory the command did not touch");
}

/// Found by recording javac, which is `/usr/bin/javac`, a link to a link to a program elsewhere: the snapshot had the
/// first link only, so that a replay knew nothing of the program.
#[test]
fn what_a_used_link_leads_to_is_in_the_snapshot() {
    let (_dir, root) = real_tempdir();
    let at = |name: &str| root.join(name);
    for dir in ["bin", "alternatives", "lib/tool/bin"] {
        std::fs::create_dir_all(at(dir)).expect("directories");
    }
    std::fs::write(at("lib/tool/bin/program"), "#!/bin/true").expect("a file");
    std::fs::write(at("lib/tool/bin/other"), "").expect("a file");
    std::os::unix::fs::symlink(at("alternatives/tool"), at("bin/tool")).expect("a link");
    std::os::unix::fs::symlink("../lib/tool/bin/program", at("alternatives/tool")).expect("a link");
    std::os::unix::fs::symlink("../lib/tool/bin/other", at("bin/unused")).expect("a link");
    std::os::unix::fs::symlink("/proc/self/mounts", at("bin/mounts")).expect("a link");
    let script = format!("test -x {0}/bin/tool; test -f {0}/bin/tool; test -f {0}/bin/mounts", root.display());
    let Some(_) = record_script(&script, &at("out.workload")) else { return };
    let snapshot = Reader::open(&at("out.workload")).and_then(|r| r.snapshot()).expect("the snapshot");
    let get = |name: &str| snapshot.get(at(name).to_str().expect("UTF-8").as_bytes());
    let links = ["bin/tool", "alternatives/tool"].map(|name| get(name).and_then(|link| link.target.clone()));
    assert_eq!(links[0].as_deref(), Some(at("alternatives/tool").to_str().expect("UTF-8").as_bytes()));
    assert_eq!(links[1].as_deref(), Some(&b"../lib/tool/bin/program"[..]));
    assert_eq!(get("lib/tool/bin/program").map(|program| program.size_bytes), Some(11));
    assert!(get("bin/unused").is_some(), "a name in a touched directory");
    let foreign: Vec<_> = snapshot.entries.iter().filter(|entry| entry.path.starts_with(b"/proc")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert_eq!(get("lib/tool/bin/other"), None, "where a link leads that nobody used");
}

#[test]
fn a_command_that_kills_itself_is_told_from_one_that_exits() {
    let (_dir, root) = real_tempdir();
    let Some(summary) = record_script("kill -USR1 $$", &root.join("out.workload")) else { return };
    assert_eq!((summary.exit_status, summary.signal), (None, Some(10)));
}

#[test]
fn concurrent_children_keep_their_own_tables() {
    let (_dir, root) = real_tempdir();
    let script = format!(
        "cd {}; for i in 1 2 3 4 5 6; do (for j in 1 2 3; do echo $i$j >> f$i; cat f$i > /dev/null; done) & done; wait",
        root.display()
    );
    let Some(summary) = record_script(&script, &root.join("out.workload")) else { return };
    assert_eq!(summary.import.problems, []);
    assert_eq!(summary.import.coverage.resynchronised_descriptors, 0);
    let reader = Reader::open(&root.join("out.workload")).expect("the profile");
    let mut appended = BTreeMap::new();
    for batch in reader.batches().expect("batches") {
        let batch = batch.expect("a batch");
        for event in &batch.events {
            let path = event.path().map(|id| batch.paths.get(id)).unwrap_or_default();
            if event.op() == Op::Write && path.starts_with(root.to_str().expect("UTF-8").as_bytes()) {
                *appended.entry(path.to_vec()).or_insert(0) += event.head.ret;
            }
        }
    }
    assert_eq!(appended.values().copied().collect::<Vec<_>>(), [9; 6]);
}

#[test]
fn what_cannot_be_recorded_is_refused_and_leaves_nothing() {
    let (_dir, root) = real_tempdir();
    let output = root.join("out.workload");
    let attempt = |command: &[&str]| {
        record(&RecordOptions::command(command.iter().map(OsString::from).collect(), output.clone()))
    };
    assert!(matches!(attempt(&[]), Err(RecordError::NoCommand)));
    for command in ["no-such-program-anywhere", "/", "/no/such/file"] {
        let error = attempt(&[command]).expect_err("a refusal");
        assert_eq!(error.kind(), Kind::Usage, "{error}");
    }
    let error = Strace::find(Some("/no/such/strace".into())).expect_err("a refusal");
    assert!(matches!(error, RecordError::StraceMissing), "{error}");
    assert_eq!(error.kind(), Kind::Environment);
    let mut options = RecordOptions::command(vec!["true".into()], output.clone());
    options.subject = Subject::Processes(vec![u32::MAX]);
    assert!(matches!(record(&options), Err(RecordError::NoProcess { .. })));
    assert_eq!(std::fs::read_dir(&root).expect("a directory").count(), 0);
}

/// The snapshot holds what is in the directories that a run used, wherever they were when it began; the trace leads
/// from there to the tree on disk.
#[test]
fn a_recording_leads_to_the_tree_on_disk() {
    let scripts = [
        // mv: directories that are used after they were moved had their names elsewhere.
        "mv a/b moved && echo x >> moved/f && mv moved c && rm c/g",
        "mv a/b d && mv a d/a && echo x > d/a/n && mv d a && ls a/a >/dev/null",
        // npm: a directory in which the run did nothing but make directories.
        "mkdir a/new",
        "rmdir a/empty",
        // npm: a directory far below those that were used.
        "cat a/deep/er/down >/dev/null",
        "ln a/b/f a/h && rm a/b/f && echo more >> a/h",
        "cp -al a b && rm -r a && echo y >> b/b/f",
        "cd a/b && mv ../../a ../../z && echo here > here && cd -P .. && echo there > there",
        "ln -s a l && echo x > l/viax && mv l/b l/bb && ln -sfn a/bb l && echo z >> l/f",
        "ln -s made dangling && echo through > dangling",
        "exec 3>a/open && rm a/open && echo unseen >&3 && echo again > a/open",
    ];
    for script in scripts {
        let (_dir, root) = real_tempdir();
        let tree = root.join("tree");
        for dir in ["a/b", "a/empty", "a/other", "a/deep/er"] {
            std::fs::create_dir_all(tree.join(dir)).expect("directories");
        }
        for name in ["a/b/f", "a/b/g", "a/other/x", "a/y", "a/deep/er/down"] {
            std::fs::write(tree.join(name), name).expect("a file");
        }
        let command: Vec<OsString> = ["sh", "-c", script].iter().map(OsString::from).collect();
        let command: Vec<OsString> =
            ["env", "-C"].iter().map(OsString::from).chain([tree.clone().into_os_string()]).chain(command).collect();
        let output = root.join("out.workload");
        let mut options = RecordOptions::command(command, output.clone());
        options.snapshot_working_directory = false;
        options.roots = vec![tree.clone()];
        match record(&options) {
            Ok(summary) => {
                assert_eq!((summary.exit_status, &summary.import.problems[..]), (Some(0), &[][..]), "{script}")
            }
            Err(e @ (RecordError::StraceMissing | RecordError::CannotTrace { .. })) => {
                testkit::skip(e);
                return;
            }
            Err(e) => panic!("{script}: {e}"),
        }
        let reader = Reader::open(&output).expect("the profile");
        // A replay makes each name in its directory, which must be there.
        let names: BTreeSet<Vec<u8>> =
            reader.snapshot().expect("the names").entries.into_iter().map(|entry| entry.path).collect();
        for name in names.iter().filter(|name| name.starts_with(tree.as_os_str().as_bytes())) {
            let parent = trace::snapshot::parent_of(name).expect("an absolute path");
            let above_the_trees = !parent.starts_with(tree.as_os_str().as_bytes());
            assert!(above_the_trees || names.contains(parent), "{script}: {} has no directory", name.escape_ascii());
        }
        let verification = verify(&reader, &tree, &VerifyOptions::default()).expect("a comparison");
        assert_eq!(verification.listed, [], "{script}");
        assert_eq!((verification.sizes_unknown, verification.links_unknown), (0, 0), "{script}");
    }
}
