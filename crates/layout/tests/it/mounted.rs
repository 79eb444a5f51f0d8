//! Surveys of mounted XFS, btrfs and tmpfs against `filefrag`, `xfs_db` and `btrfs`, and what is said where a figure
//! cannot be had.

use crate::common::{Scratch, can_run, filefrag, files_below, fragment, number_after, run, score_by_blocks};
use layout::{AddressSpace, LayoutError, Survey, SurveyOptions, compare, load, save, survey, survey_handle};
use posix::{Target, Workspace, WorkspaceOptions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use testkit::Tool;
use testkit::process::until;

fn taken(path: &Path) -> Survey {
    survey(path, &SurveyOptions::default(), &mut |_| true).unwrap_or_else(|e| panic!("{e}"))
}

fn against_filefrag(point: &Path, survey: &Survey) {
    let block = survey.source.block_bytes;
    let (mut following, mut pairs, mut actual) = (0, 0, 0);
    for path in files_below(point) {
        if path.to_str().is_none() {
            continue; // One block at most: no score.
        }
        let extents = filefrag(&path, block);
        let (f, p) = score_by_blocks(&extents, block);
        following += f;
        pairs += p;
        actual += extents.len() as u64;
    }
    let files = survey.files.known().unwrap();
    assert_eq!((files.score.following, files.score.pairs), (following, pairs));
    assert!(files.records >= actual, "{} records, and filefrag has {actual}", files.records);
}

#[test]
fn xfs_against_xfs_db() {
    if !can_run(&[Tool::MkfsXfs, Tool::XfsDb, Tool::Filefrag]) {
        return;
    }
    let mut scratch = Scratch::make(400 << 20, &["mkfs.xfs", "-q", "-f", "-d", "agcount=4"]);
    fragment(&scratch.mount(""), 11);
    // Mounted anew, so that nothing is preallocated beyond the ends of files.
    scratch.unmount();
    let point = scratch.mount("ro");
    let survey = taken(&point);
    against_filefrag(&point, &survey);
    scratch.unmount();
    let image = scratch.image();
    let db = |commands: &[&str]| {
        let mut args = vec!["-r"];
        commands.iter().for_each(|c| args.extend(["-c", c]));
        args.push(image.to_str().unwrap());
        run("xfs_db", &args)
    };
    assert_eq!(survey.source.addresses, AddressSpace::Device);
    assert_eq!(survey.source.groups.map(|g| g.count), Some(4));
    let files = survey.files.known().unwrap();
    assert_eq!(files.split.known().map(|s| s.files), Some(files.scan.files));

    // "actual 60, ideal 47, fragmentation factor 21.67%"
    let frag = db(&["frag -f"]);
    assert_eq!(number_after(&frag, "actual ") as u64, files.xfs_factor.actual, "{frag}");
    assert_eq!(number_after(&frag, "ideal ") as u64, files.xfs_factor.ideal, "{frag}");
    let shown = format!("{:.2}%", files.xfs_fragmentation * 100.0);
    assert!(frag.contains(&format!("factor {shown}")), "{shown}: {frag}");

    // freesp also lists each block of the free lists (AGFL) as an extent of its own; those are not free to files.
    let reserve: u64 =
        (0..4).map(|i| number_after(&db(&[&format!("agf {i}"), "print flcount"]), "flcount = ") as u64).sum();
    let text = db(&["freesp -s"]);
    let free = survey.free.known().unwrap();
    assert_eq!(number_after(&text, "total free extents") as u64 - reserve, free.extents, "{text}");
    assert_eq!((number_after(&text, "total free blocks") as u64 - reserve) * 4096, free.free_bytes, "{text}");
    let rows = text.lines().skip(1).map_while(|line| {
        let row: Vec<u64> = line.split_whitespace().take(4).filter_map(|n| n.parse().ok()).collect();
        (row.len() == 4).then(|| (row[0] * 4096, row[2], row[3] * 4096))
    });
    let ours: Vec<(u64, u64, u64)> = free
        .histogram
        .iter()
        .filter(|b| b.extents > 0)
        .map(|b| {
            if b.low_bytes == 4096 {
                (4096, b.extents + reserve, b.bytes + reserve * 4096)
            } else {
                (b.low_bytes, b.extents, b.bytes)
            }
        })
        .collect();
    let theirs: Vec<(u64, u64, u64)> = rows.collect();
    // One-block extents may be all from the free lists.
    let theirs: Vec<_> = if ours.first().is_some_and(|b| b.0 == 4096) {
        theirs
    } else {
        theirs.into_iter().filter(|b| b.0 != 4096).collect()
    };
    assert_eq!(ours, theirs, "{text}");
}

#[test]
fn btrfs_space_and_addresses() {
    if !can_run(&[Tool::MkfsBtrfs, Tool::Btrfs, Tool::Filefrag]) {
        return;
    }
    for mkfs in [
        &["mkfs.btrfs", "-q", "-f", "-R", "free-space-tree"][..],
        &["mkfs.btrfs", "-q", "-f", "-R", "^free-space-tree"],
    ] {
        let mut scratch = Scratch::make(400 << 20, mkfs);
        let point = scratch.mount("");
        fragment(&point, 13);
        std::fs::write(point.join("compressed"), vec![0; 1]).unwrap();
        // The free space tree holds what the last commit left.
        run("btrfs", &["filesystem", "sync", point.to_str().unwrap()]);
        // The kernel gives back empty chunks in the background: what it says has to be the same before and after.
        let usage_of = || run("btrfs", &["filesystem", "usage", "-b", point.to_str().unwrap()]);
        let (mut usage, mut survey) = (usage_of(), taken(&point));
        until("btrfs is at rest", || {
            let before = std::mem::replace(&mut usage, usage_of());
            if before != usage {
                survey = taken(&point);
            }
            before == usage
        });
        assert_eq!(survey.source.addresses, AddressSpace::BtrfsTranslated, "{:?}", survey.source.notes);
        let files = survey.files.known().unwrap();
        // One chunk: what is contiguous in btrfs's addresses is so on the device.
        against_filefrag(&point, &survey);
        assert!(files.kinds.inline.files > 0 && files.kinds.unwritten.files == 1, "{:?}", files.kinds);
        assert!(files.split.why().is_some_and(|why| why.contains("btrfs inodes belong to no")));
        let data = usage.split("Data,single:").nth(1).unwrap();
        let unused = number_after(data, "Size:") as u64 - number_after(data, "Used:") as u64;
        let free = survey.free.known().unwrap();
        assert_eq!(free.free_bytes, unused, "{mkfs:?}: {usage}");
        let unallocated = number_after(&usage, "Device unallocated:") as u64;
        // btrfs counts the megabyte it reserves at the start of the device as unallocated.
        assert_eq!(free.unallocated_bytes.map(|b| b + (1 << 20)), Some(unallocated), "{usage}");
    }
}

#[test]
fn compressed_data_is_counted_apart() {
    if !can_run(&[Tool::MkfsBtrfs, Tool::Btrfs]) {
        return;
    }
    let mut scratch = Scratch::make(300 << 20, &["mkfs.btrfs", "-q", "-f"]);
    let point = scratch.mount("compress-force=zstd");
    std::fs::write(point.join("zeros"), vec![7; 1 << 20]).unwrap();
    std::fs::copy(point.join("zeros"), point.join("shared")).unwrap();
    let survey = taken(&point);
    let files = survey.files.known().unwrap();
    assert!(files.kinds.encoded.files == 2 && files.kinds.encoded.bytes == 2 << 20, "{:?}", files.kinds);
    assert_eq!((files.layout_score, files.all.blocks), (None, 0));
}

#[test]
fn without_fiemap_the_reason_is_given() {
    if !testkit::need(testkit::Need::Shm) {
        return;
    }
    let shm = Path::new("/dev/shm");
    let directory = tempfile::Builder::new().prefix("fsage-layout-").tempdir_in(shm).unwrap();
    std::fs::write(directory.path().join("file"), b"x").unwrap();
    std::fs::write(directory.path().join("another"), b"x").unwrap();
    let survey = taken(directory.path());
    assert_eq!(survey.walked.files, 2);
    assert!(survey.files.why().is_some_and(|why| why.contains("FIEMAP")), "{:?}", survey.files);
    assert!(survey.free.why().is_some_and(|why| why.contains("GETFSMAP")), "{:?}", survey.free);
}

/// Any directory will do: the walk must see what is there, once, and go on past what it may not read.
#[test]
fn the_walk_sees_everything_once() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let mut deep = root.to_owned();
    for _ in 0..200 {
        deep.push("d");
        std::fs::create_dir(&deep).unwrap();
        std::fs::write(deep.join("a file"), b"x").unwrap();
        std::fs::write(deep.join("z file"), b"x").unwrap();
    }
    std::fs::hard_link(root.join("d/a file"), deep.join("linked")).unwrap();
    std::os::unix::fs::symlink("/", root.join("everything")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let survey = taken(root);
    let walked = &survey.walked;
    assert_eq!((walked.files, walked.further_links, walked.directories, walked.others), (400, 1, 201, 2), "{walked:?}");
    assert!(walked.unreadable.is_empty());
}

#[test]
fn what_cannot_be_read_is_recorded() {
    if !testkit::as_ordinary_user("mounted::what_cannot_be_read_is_recorded") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let locked = directory.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o000)).unwrap();
    let survey = taken(directory.path());
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(survey.walked.unreadable.get("EACCES"), Some(&1));
    assert_eq!(survey.walked.unreadable_examples, ["locked: EACCES"]);
}

#[test]
fn a_survey_file_comes_back_and_compares_equal() {
    let directory = tempfile::tempdir().unwrap();
    let content = directory.path().join("content");
    std::fs::create_dir(&content).unwrap();
    std::fs::write(content.join("file"), vec![1; 50_000]).unwrap();
    let survey = taken(&content);
    let file = directory.path().join("a.json");
    save(&survey, &file).unwrap();
    let back = load(&file).unwrap();
    assert_eq!(back.walked, survey.walked);
    let comparison = compare(&survey, &back);
    assert!(comparison.cautions.is_empty(), "{:?}", comparison.cautions);
    for figure in &comparison.figures {
        assert!(figure.difference.is_none_or(|d| d.abs() < 1e-9), "{figure:?}");
    }
    for (text, problem) in [
        ("{", "line 1 column 1"),
        ("{}", "no \"schema\""),
        (r#"{"schema": "fsage.layout/2"}"#, "fsage.layout/2"),
        (r#"{"schema": "fsage.layout/1"}"#, "missing field"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = load(&file).unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains("a.json"), "{text}: {error}");
    }
}

#[test]
fn what_is_no_target_is_refused_and_a_survey_can_be_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, vec![0; 10_000]).unwrap();
    let options = SurveyOptions::default();
    let error = survey(&file, &options, &mut |_| true).unwrap_err();
    assert!(matches!(&error, LayoutError::NotAnImage { .. }), "{error}");
    let error = survey(&directory.path().join("none"), &options, &mut |_| true).unwrap_err();
    assert!(matches!(&error, LayoutError::Io { .. }), "{error}");
    let error = survey(directory.path(), &options, &mut |_| false).unwrap_err();
    assert!(matches!(&error, LayoutError::Interrupted(_)), "{error}");
}

/// What aging does after every simulated day: a survey of its own workspace, attached to no directory.
#[test]
fn a_workspace_is_surveyed_by_its_handle() {
    for (target, kind) in [("ext4:64M", "ext4"), ("xfs:400M", "xfs"), ("btrfs:256M", "btrfs")] {
        let opened = Workspace::open(&Target::parse(target).unwrap(), &WorkspaceOptions::default());
        let Some(workspace) = testkit::have(opened.map_err(|why| format!("no {target}: {why}"))) else { continue };
        fragment(workspace.path(), 5);
        let survey = survey_handle(&mut workspace.fs(), &SurveyOptions::default(), &mut |_| true).unwrap();
        assert_eq!((survey.source.target.as_str(), survey.source.fs_type.name()), (target, kind));
        assert!(survey.source.groups.is_some_and(|g| g.count > 0), "{target}: no groups");
        assert!(survey.files.known().is_some_and(|f| f.layout_score.is_some()), "{target}: no score");
        assert!(survey.free.known().is_some_and(|f| f.free_bytes > 0), "{target}: no free space");
        let notes = &survey.source.notes;
        assert!(notes.is_empty(), "{target}: {notes:?}");
    }
}
