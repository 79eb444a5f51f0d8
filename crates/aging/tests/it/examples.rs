//! The example runs, and leaves what it says.

#[path = "../../examples/age.rs"]
#[allow(dead_code)] // Its `main` reads the arguments of the process.
mod example;

use crate::common::walked;
use posix::FileKind;

#[test]
fn aging_a_directory_leaves_the_files_it_counts() {
    let scratch = tempfile::tempdir().unwrap();
    let (plan, tree) = (scratch.path().join("home.aging"), scratch.path().join("tree"));
    std::fs::create_dir(&tree).unwrap();
    let meta = example::planned(&plan).unwrap();
    let result = example::aged(&plan, &tree).unwrap();
    let files = walked(&tree).into_values().filter(|(kind, _)| *kind == FileKind::File).count();
    assert!(files > 20, "{files}");
    assert_eq!((result.files, result.meta.days), (files as u64, meta.days));
}
