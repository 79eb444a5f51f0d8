//! The judge judged: a tree that a trace leads to, and what is said when one thing in it is damaged.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trace::Snapshot;
use trace::profile::{Reader, Writer, WriterOptions};
use trace::snapshot::WalkLimits;
use trace::strace::{ImportOptions, Importer};
use trace::verify::{Differs, Verification, VerifyOptions, verify};

/// A tree, and a profile of what was done to it.
struct Recorded {
    home: TempDir,
}

impl Recorded {
    fn new() -> Recorded {
        Recorded::with(true)
    }

    /// `read_before`: the names were read before the run; else the trace alone tells of them.
    fn with(read_before: bool) -> Recorded {
        let home = tempfile::tempdir().expect("a temporary directory");
        let tree = home.path().join("tree");
        for dir in ["tree/a/b", "tree/untouched"] {
            fs::create_dir_all(home.path().join(dir)).expect("set up");
        }
        fs::write(tree.join("a/b/f"), b"hi\n").expect("set up");
        fs::hard_link(tree.join("a/b/f"), tree.join("a/g")).expect("set up");
        fs::write(tree.join("a/big"), vec![0; 5000]).expect("set up");
        fs::write(tree.join("untouched/x"), b"x").expect("set up");
        let before = Snapshot::of_tree(&[&tree], &WalkLimits::default()).expect("a walk").snapshot;

        // What is done below, as strace prints it.
        fs::rename(tree.join("a/b"), tree.join("a/c")).expect("the run");
        fs::create_dir(tree.join("d")).expect("the run");
        fs::write(tree.join("d/h"), b"12345").expect("the run");
        fs::hard_link(tree.join("d/h"), tree.join("a/i")).expect("the run");
        symlink("h", tree.join("d/j")).expect("the run");
        fs::remove_file(tree.join("a/g")).expect("the run");
        let mut text = String::new();
        for call in [
            r#"rename("TREE/a/b", "TREE/a/c") = 0"#,
            r#"mkdir("TREE/d", 0777) = 0"#,
            r#"openat(AT_FDCWD</>, "TREE/d/h", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3<TREE/d/h>"#,
            r#"write(3<TREE/d/h>, ""..., 5) = 5"#,
            r#"close(3<TREE/d/h>) = 0"#,
            r#"link("TREE/d/h", "TREE/a/i") = 0"#,
            r#"symlink("h", "TREE/d/j") = 0"#,
            r#"unlink("TREE/a/g") = 0"#,
            r#"newfstatat(AT_FDCWD</>, "TREE/nothing", 0x7ffda15c92d0, 0) = -1 ENOENT (No such file or directory)"#,
        ] {
            let call = call.replace("TREE", tree.to_str().expect("a path in UTF-8"));
            text.push_str(&format!("7 1700000000.000001 {call} <0.000001>\n"));
        }
        let options = WriterOptions::default();
        let mut writer = Writer::create(&home.path().join("w.workload"), options).expect("a new profile");
        let mut importer = Importer::new(ImportOptions { keep_removed: true, ..ImportOptions::default() });
        importer.read(text.as_bytes(), &mut |batch| writer.push(&batch)).expect("a trace");
        let mut imported = importer.finish(&mut |batch| writer.push(&batch)).expect("a trace");
        let snapshot = if read_before { before } else { Snapshot::from_entries(imported.implied_snapshot()) };
        writer.finish(imported.meta(), &snapshot).expect("a profile");
        Recorded { home }
    }

    fn tree(&self) -> PathBuf {
        self.home.path().join("tree")
    }

    fn verify(&self) -> Verification {
        let reader = Reader::open(&self.home.path().join("w.workload")).expect("a profile");
        verify(&reader, &self.tree(), &VerifyOptions::default()).expect("a comparison")
    }

    /// The differences after some damage: in what, and where below the tree.
    fn after(&self, damage: impl FnOnce(&Path)) -> Vec<(Differs, String)> {
        assert_eq!(self.verify().listed, [], "sound before the damage");
        let tree = self.tree();
        damage(&tree);
        let prefix = format!("{}/", tree.canonicalize().expect("the tree").display());
        let place = |path: &str| path.strip_prefix(&prefix).expect("below the tree").to_owned();
        self.verify().listed.iter().map(|d| (d.differs, place(&d.path))).collect()
    }
}

fn at(differs: Differs, path: &str) -> (Differs, String) {
    (differs, path.to_owned())
}

#[test]
fn a_sound_tree_has_no_differences() {
    let verification = Recorded::new().verify();
    assert_eq!((verification.differences, &verification.listed[..]), (0, &[][..]));
    // a, a/big, a/c, a/c/f, a/i, d, d/h, d/j, untouched, and x in it, which the snapshot of this test holds.
    assert_eq!((verification.names, verification.sizes, verification.links), (10, 6, 6));
    assert_eq!((verification.sizes_unknown, verification.links_unknown, verification.not_compared), (0, 0, 0));
}

#[test]
fn each_damage_is_seen() {
    use Differs::{Identity, Links, Missing, Size, Target, Type, Unexpected};
    let write = |path: PathBuf, bytes: &[u8]| fs::write(path, bytes).expect("damage");
    let remove = |path: PathBuf| fs::remove_file(path).expect("damage");
    type Damage<'d> = &'d dyn Fn(&Path);
    let cases: &[(Damage<'_>, &[(Differs, &str)])] = &[
        (&|t| write(t.join("a/big"), &[0; 4999]), &[(Size, "a/big")]),
        (&|t| write(t.join("d/h"), b"123456"), &[(Size, "a/i"), (Size, "d/h")]),
        (
            &|t| fs::rename(t.join("a/big"), t.join("a/bog")).expect("damage"),
            &[(Missing, "a/big"), (Unexpected, "a/bog")],
        ),
        (
            &|t| fs::rename(t.join("a/c"), t.join("a/b")).expect("damage"),
            &[(Unexpected, "a/b"), (Missing, "a/c"), (Missing, "a/c/f")],
        ),
        (&|t| remove(t.join("a/big")), &[(Missing, "a/big")]),
        (&|t| write(t.join("d/new"), b""), &[(Unexpected, "d/new")]),
        (&|t| write(t.join("new"), b""), &[(Unexpected, "new")]),
        (&|t| fs::hard_link(t.join("a/big"), t.join("untouched/big")).expect("damage"), &[(Links, "a/big")]),
        (
            &|t| {
                remove(t.join("d/j"));
                symlink("i", t.join("d/j")).expect("damage")
            },
            &[(Target, "d/j")],
        ),
        (
            &|t| {
                remove(t.join("d/j"));
                write(t.join("d/j"), b"h")
            },
            &[(Type, "d/j")],
        ),
        (
            &|t| {
                remove(t.join("a/big"));
                fs::create_dir(t.join("a/big")).expect("damage")
            },
            &[(Type, "a/big")],
        ),
        (
            &|t| {
                remove(t.join("d/h"));
                write(t.join("d/h"), b"12345")
            },
            &[(Links, "a/i"), (Identity, "d/h"), (Links, "d/h")],
        ),
    ];
    for (i, (damage, want)) in cases.iter().enumerate() {
        let want: Vec<_> = want.iter().map(|&(differs, path)| at(differs, path)).collect();
        assert_eq!(Recorded::new().after(damage), want, "damage {i}");
    }
}

#[test]
fn what_was_never_touched_is_counted_and_not_judged() {
    let recorded = Recorded::new();
    assert_eq!(recorded.after(|tree| fs::write(tree.join("untouched/y"), b"y").expect("damage")), []);
    assert_eq!(recorded.verify().not_compared, 1);
}

#[test]
fn what_the_trace_alone_implies_leaves_the_rest_unknown() {
    let recorded = Recorded::with(false);
    let verification = recorded.verify();
    assert_eq!(verification.listed, []);
    // Of `a` only the names in the trace are known: `big` is not, nor what is in `untouched`; nor that directory.
    assert_eq!(verification.not_compared, 4);
    assert_eq!(
        recorded.after(|tree| fs::write(tree.join("d/new"), b"").expect("damage")),
        [at(Differs::Unexpected, "d/new")]
    );
}

#[test]
fn a_profile_inside_the_tree_is_not_the_programs() {
    let recorded = Recorded::new();
    let (home, tree) = (recorded.home.path(), recorded.tree());
    fs::rename(home.join("w.workload"), tree.join("a/w.workload")).expect("a move");
    let reader = Reader::open(&tree.join("a/w.workload")).expect("a profile");
    assert_eq!(verify(&reader, &tree, &VerifyOptions::default()).expect("a comparison").listed, []);
}
