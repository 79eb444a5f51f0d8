//! A quick measurement of a real directory: every class is measured, or its absence explained.

use measure::{MeasureOptions, measure};
use posix::{CacheState, Target, Workspace, WorkspaceOptions};
use std::path::Path;
use std::time::{Duration, Instant};
use system::vector::Class;

fn check(directory: &Path, root: bool) {
    let options = MeasureOptions { budget: Some(Duration::from_secs(15)), ..MeasureOptions::quick(3) };
    let target = Target::Directory(directory.to_owned());
    let room = WorkspaceOptions {
        need_bytes: options.need_bytes(),
        need_inodes: options.need_inodes(),
        ..WorkspaceOptions::default()
    };
    let Some(workspace) = testkit::have(Workspace::open(&target, &room)) else { return };
    let began = Instant::now();
    let profile = measure(&workspace, &options, &mut |_| {}).expect("measured");
    println!("measured in {:?}", began.elapsed());
    workspace.close().expect("cleaned up");
    assert_eq!(std::fs::read_dir(directory).expect("listed").count(), 0, "nothing is left behind");
    let text = profile.to_text().expect("valid");
    assert_eq!(system::SystemProfile::parse(&text, Path::new("x")).expect("read back"), profile);
    for &class in Class::ALL {
        let measured =
            profile.entries.keys().any(|name| system::vector::parse_entry_name(name).is_some_and(|p| p.0 == class));
        let explained = profile.missing.get(class.name());
        assert!(measured != explained.is_some(), "{}: measured {measured}, {explained:?}", class.name());
    }
    let cold = [Class::LookupSeqMiss, Class::LookupRandMiss, Class::NegativeCold].map(Class::name);
    if !root {
        assert!(cold.iter().all(|name| !profile.entries.contains_key(*name)), "only root can drop names");
    }
    for (name, entry) in &profile.entries {
        assert!(entry.samples > 0, "{name}");
        if !root && name.starts_with("rmu") {
            assert_eq!(entry.cache, Some(CacheState::Unverified), "{name}");
        }
    }
}

#[test]
fn as_whoever_runs_the_tests() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    check(directory.path(), is_root());
}

/// Root measures once more as nobody.
#[test]
fn as_an_ordinary_user() {
    if testkit::as_ordinary_user("measure_real::as_an_ordinary_user") {
        let directory = tempfile::tempdir().expect("a temporary directory");
        check(directory.path(), false);
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0)
}
