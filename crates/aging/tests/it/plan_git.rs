//! A plan from a git repository made here: what is checked out at the end is what git says the last commit holds.

use crate::sources::replay::Replayed;
use aging::format::{PlanMeta, Reader};
use aging::plan::git::{GitOptions, plan};
use aging::plan::{PlanError, PlannedFor, write};
use aging::{AgingOp, DAY_NS, OpKind};
use fault::{Fault as _, Kind};
use posix::FileKind;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use testkit::{Need, Tool};

fn git(repository: &Path, day: u64, args: &[&str]) -> Vec<u8> {
    let date = format!("{} +0000", 1_700_000_000 + day * 86_400);
    let out = Command::new("git")
        .arg("-C")
        .arg(repository)
        .args([
            "-c",
            "user.name=n",
            "-c",
            "user.email=e@x",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .env("GIT_AUTHOR_DATE", &date)
        .env("GIT_COMMITTER_DATE", &date)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git runs");
    assert!(out.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

/// A history with everything that happens in one: changes, removals, a file that becomes a directory and back, links, a
/// merge, odd names.
fn repository(directory: &Path) {
    git(directory, 0, &["init", "-q"]);
    let write = |path: &str, len: usize| {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, vec![b'x'; len]).expect("writing");
    };
    let commit = |day: u64| {
        git(directory, day, &["add", "-A"]);
        git(directory, day, &["commit", "-q", "--allow-empty", "-m", "m"]);
    };
    write("a/b/c.txt", 100);
    write("a/b/d with space\nand line.txt", 200);
    write("top", 5000);
    std::os::unix::fs::symlink("a/b", directory.join("link")).expect("a link");
    commit(0);
    write("a/b/c.txt", 150);
    fs::remove_file(directory.join("top")).expect("removing");
    write("top/now a directory", 10);
    commit(3);
    fs::remove_dir_all(directory.join("top")).expect("removing");
    write("top", 20);
    fs::remove_dir_all(directory.join("a/b")).expect("removing");
    fs::remove_file(directory.join("link")).expect("removing");
    write("link", 30);
    commit(5);
    git(directory, 5, &["checkout", "-q", "-b", "side"]);
    write("side/file", 40);
    commit(6);
    git(directory, 6, &["checkout", "-q", "main"]);
    write("main/file", 50);
    commit(7);
    git(directory, 8, &["merge", "-q", "--no-ff", "-m", "merge", "side"]);
    commit(9);
    for i in 0..30u64 {
        write(&format!("many/{}", i % 7), 1000 + i as usize);
        commit(10 + i);
    }
}

fn planned(path: &Path, options: &GitOptions) -> Result<(PlanMeta, Vec<AgingOp>), PlanError> {
    let out = tempfile::NamedTempFile::new().expect("a file");
    let planned_for = PlannedFor { capacity_bytes: 1 << 30, block_bytes: 4096 };
    let meta = write(out.path(), planned_for, |writer| plan(path, options, writer, &mut |_| true))?;
    let ops = Reader::open(out.path())?.batches(0).flat_map(|b| b.expect("our own file")).collect();
    Ok((meta, ops))
}

/// Files and links as git lists them.
fn listed(repository: &Path) -> BTreeMap<Vec<u8>, (FileKind, u64)> {
    let text = git(repository, 0, &["ls-tree", "-r", "-z", "-l", "HEAD"]);
    let lines = text.split(|b| *b == 0).filter(|l| !l.is_empty());
    lines
        .map(|line| {
            let tab = line.iter().position(|b| *b == b'\t').expect("a tab");
            let fields: Vec<&str> = std::str::from_utf8(&line[..tab]).expect("text").split_whitespace().collect();
            let kind = if fields[0] == "120000" { FileKind::Symlink } else { FileKind::File };
            ([b"/", &line[tab + 1..]].concat(), (kind, fields[3].parse().expect("a size")))
        })
        .collect()
}

fn checked_out(ops: &[AgingOp]) -> BTreeMap<Vec<u8>, (FileKind, u64)> {
    let mut tree = Replayed::default();
    ops.iter().for_each(|op| tree.apply(op));
    let ours = |path: &[u8]| path.starts_with(b"/.git/") || path == b"/.git";
    tree.paths().into_iter().filter(|(path, (kind, _))| !ours(path) && *kind != FileKind::Directory).collect()
}

#[test]
fn what_is_checked_out_at_the_end_is_the_last_commit() {
    if !testkit::need(Need::Tool(Tool::Git)) {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    repository(work.path());
    let expected = listed(work.path());
    assert_eq!(expected.len(), 11);
    let (meta, ops) = planned(work.path(), &GitOptions { gc_every: 20, ..GitOptions::default() }).expect("a plan");
    assert_eq!(checked_out(&ops), expected);
    assert_eq!(meta.days, 40);
    // A changed file is unlinked and made anew: no file of the work tree is written a second time.
    assert!(ops.iter().all(|op| !matches!(op.kind, OpKind::Overwrite | OpKind::Truncate)));
    // Packs were made, and loose objects went.
    let packs =
        ops.iter().filter(|op| op.kind == OpKind::Rename && op.name.as_deref().is_some_and(|n| n.ends_with(b".pack")));
    assert!(packs.count() >= 3);
    for options in [
        GitOptions { max_commits: Some(5), ..GitOptions::default() },
        GitOptions { days: Some(2), objects: false, ..GitOptions::default() },
    ] {
        let (meta, ops) = planned(work.path(), &options).expect("a plan");
        assert_eq!(checked_out(&ops), expected);
        if let Some(days) = options.days {
            assert_eq!(meta.days, days);
            assert!(ops.iter().any(|op| op.t_ns >= DAY_NS) && ops.iter().all(|op| op.name.as_deref() != Some(b".git")));
        }
    }
}

#[test]
fn what_is_no_repository_or_no_branch_is_said_so() {
    if !testkit::need(Need::Tool(Tool::Git)) {
        return;
    }
    let work = tempfile::tempdir().expect("a directory");
    let error = planned(work.path(), &GitOptions::default()).expect_err("no repository");
    assert!(error.to_string().contains("not a git repository") && error.kind() == Kind::BadInput, "{error}");
    git(work.path(), 0, &["init", "-q"]);
    let error = planned(work.path(), &GitOptions::default()).expect_err("no commits");
    assert_eq!(error.kind(), Kind::BadInput, "{error}");
    repository(work.path());
    let options = GitOptions { branch: "--output=x".into(), ..GitOptions::default() };
    let error = planned(work.path(), &options).expect_err("no such branch");
    assert!(error.kind() == Kind::BadInput && !work.path().join("x").exists(), "{error}");
    let error = planned(&work.path().join("missing"), &GitOptions::default()).expect_err("no directory");
    assert_eq!(error.kind(), Kind::BadInput, "{error}");
}
