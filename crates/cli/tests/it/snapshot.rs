//! `fsage snapshot` and the plans made from what is on this machine.

use crate::common::{fails, fsage, run, stderr, succeeds};
use aging::snapshot::{Blocks, Snapshot};
use posix::FileKind;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// What a command prints as JSON.
fn json(at: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&succeeds(&run(at, &[args, &["--json"]].concat()))).unwrap()
}

#[test]
fn two_snapshots_make_a_plan() {
    let work = tempfile::tempdir().unwrap();
    let path = |name: &str| work.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir_all(work.path().join("tree/d")).unwrap();
    fs::write(work.path().join("tree/d/file"), vec![0; 3000]).unwrap();
    fsage().args(["snapshot", &path("tree"), "--quiet", "-o", &path("%Y.snapshot")]).assert().success().stdout("");
    let year = fs::read_dir(work.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let first = year.into_iter().find(|n| n.ends_with(".snapshot")).unwrap();
    assert!(first.len() == "2026.snapshot".len() && first.starts_with("20"), "{first}");
    fs::write(work.path().join("tree/new"), vec![0; 5000]).unwrap();
    fs::remove_file(work.path().join("tree/d/file")).unwrap();
    let out = fsage().args(["snapshot", &path("tree"), "--json", "-o", &path("second.snapshot")]).output().unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((value["schema"].as_str(), value["files"].as_u64()), (Some("fsage.snapshot/1"), Some(1)));
    let plan = ["plan", "snapshots", &path(&first), &path("second.snapshot"), "-o", &path("p.aging"), "--json"];
    let out = fsage().args(plan).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let value: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (value["counts"]["files_at_end"].as_u64(), value["counts"]["bytes_at_end"].as_u64()),
        (Some(1), Some(5000))
    );
    fsage().args(["inspect", &path("second.snapshot")]).assert().success();
}

#[test]
fn mistakes_are_named_with_their_exit_codes() {
    let work = tempfile::tempdir().unwrap();
    let path = |name: &str| work.path().join(name).to_str().unwrap().to_owned();
    let fails = |args: &[&str], code: i32, part: &str| {
        let out = fsage().args(args).output().unwrap();
        let text = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {text}");
    };
    fs::write(work.path().join("there.snapshot"), b"no snapshot").unwrap();
    fails(&["snapshot", &path(""), "-o", &path("there.snapshot")], 2, "already there");
    fails(&["snapshot", &path(""), "-o", &path("%Q")], 2, "percent sign");
    fails(&["snapshot", &path("missing"), "-o", &path("a")], 3, "missing");
    // An image of another system's, as `fsage layout` takes it.
    fs::write(work.path().join("ext4.img"), vec![0; 100_000]).unwrap();
    let mount_it = "ext4.img: is neither a directory nor an image of UFS or LFS; mount the file system that is in it";
    fails(&["snapshot", &path("ext4.img"), "-o", &path("a")], 4, mount_it);
    fails(&["plan", "snapshots", &path("there.snapshot"), "-o", &path("p.aging")], 4, "there.snapshot");
    fails(
        &["plan", "snapshots", &path("there.snapshot"), "--groups", "3", "-o", &path("p.aging")],
        2,
        "--place groups",
    );
    fails(&["plan", "git", &path(""), "--capacity", "1G", "-o", &path("p.aging")], 4, "git repository");
    fails(&["plan", "profile", &path("none.workload"), "--capacity", "1G", "-o", &path("p.aging")], 4, "none.workload");
    assert!(!work.path().join("p.aging").exists());
}

/// A host's name of a megabyte took eight seconds, and one of five some minutes.
#[test]
fn a_text_of_megabytes_in_a_footer_is_shown_in_part() {
    let work = tempfile::tempdir().unwrap();
    let at = work.path();
    fs::create_dir(at.join("tree")).unwrap();
    succeeds(&run(at, &["snapshot", "tree", "-o", "a.snapshot"]));
    let mut snapshot = Snapshot::read(&at.join("a.snapshot")).unwrap();
    (snapshot.meta.host, snapshot.meta.root) = ("x".repeat(5 << 20), "a word ".repeat(1 << 20));
    snapshot.meta.first_unreadable = vec![format!("/{}: EACCES", "y".repeat(1 << 20)); 30];
    snapshot.write(&at.join("long.snapshot")).unwrap();
    let text = succeeds(&run(at, &["inspect", "long.snapshot"]));
    let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.matches("characters left out").count() >= 22 && said.contains("and 10 more"), "{} bytes", text.len());
    assert!(text.len() < 500_000, "{} bytes", text.len());
    // For programs it is whole.
    let value = json(at, &["inspect", "long.snapshot"]);
    assert_eq!(value["files"][0]["summary"]["meta"]["host"].as_str().map(str::len), Some(5 << 20));
}

/// Lists of an image lead to the bytes of its files, and their layout is that of the image.
#[test]
fn block_lists_of_images_lead_to_the_bytes_of_their_files() {
    let work = tempfile::tempdir().unwrap();
    let at = work.path();
    fs::create_dir_all(at.join("tree/d")).unwrap();
    // Beyond the direct blocks, of one fragment, of nothing; each byte says of which file it is and where in it.
    let content = |name: &str, bytes: usize| -> Vec<u8> {
        (0..bytes).map(|i| (i / 512 * 7 + i % 512 + name.len() * 31) as u8).collect()
    };
    for (name, bytes) in [("d/long", 300_000), ("a", 700), ("bb", 20_000), ("empty", 0)] {
        fs::write(at.join("tree").join(name), content(name, bytes)).unwrap();
    }
    for kind in ["ffs", "lfs"] {
        let (image, snapshot) = (format!("{kind}.img"), format!("{kind}.snapshot"));
        succeeds(&run(at, &["mkfs", kind, &image, "--size", "16M", "--populate", "tree"]));
        let taken = json(at, &["snapshot", &image, "--blocks", "-o", &snapshot]);
        assert_eq!(taken["blocks"]["files"], 4, "{taken}");
        let bytes = fs::read(at.join(&image)).unwrap();
        let read = Snapshot::read_with_blocks(&at.join(&snapshot)).unwrap();
        let mut files = 0;
        for (index, entry) in read.entries().iter().enumerate().filter(|(_, e)| e.inode.kind == FileKind::File) {
            let Some(Blocks::Known(extents)) = read.blocks(index) else { panic!("{kind}: row {index}") };
            let mut found = vec![0; entry.inode.size_bytes as usize];
            for extent in extents {
                let from = extent.logical_bytes as usize;
                let len = (extent.len_bytes as usize).min(found.len() - from);
                let place = extent.physical_bytes as usize;
                found[from..from + len].copy_from_slice(&bytes[place..place + len]);
            }
            let name = String::from_utf8(read.path(index)).unwrap();
            let name = name.trim_start_matches('/');
            assert!(found == content(name, found.len()), "{kind}: {name} is not where its list says");
            files += 1;
        }
        assert_eq!(files, 4);
        let (of_image, of_list) = (json(at, &["layout", &image]), json(at, &["layout", &snapshot]));
        assert_eq!(of_list["source"]["method"], "snapshot");
        for part in ["files", "walked"] {
            assert_eq!(of_list[part], of_image[part], "{kind}: {part}");
        }
        assert!(of_list["free"]["unavailable"].as_str().unwrap().contains("which space is free"));
    }
}

/// A laboratory that is aged keeps where its files lay each day: the layout by day is that of the surveys that were
/// taken meanwhile.
#[test]
fn the_layout_by_day_of_snapshots_is_that_of_the_surveys() {
    let work = tempfile::tempdir().unwrap();
    let at = work.path();
    succeeds(&run(at, &["plan", "personality", "home", "--capacity", "24M", "--days", "4", "-o", "p.aging"]));
    let often = ["--survey-every", "1", "--snapshots-every", "1", "--snapshots-into", "days", "--snapshots-blocks"];
    let target = "ffs:size=26M,groups=4,cache=1M";
    let age = ["age", target, "--plan", "p.aging", "--keep", "aged.img", "-o", "results"];
    succeeds(&run(at, &[&age[..], &often].concat()));
    let mut days: Vec<String> =
        fs::read_dir(at.join("days")).unwrap().map(|e| format!("days/{}", e.unwrap().file_name().display())).collect();
    days.sort();
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let of_surveys = json(at, &["layout", "--series", "results/surveys.series"]);
    let of_snapshots = json(at, &[&["layout", "--series"], days.as_slice()].concat());
    let points = |series: &Value| series["series"][0]["points"].as_array().unwrap().clone();
    let (surveys, snapshots) = (points(&of_surveys), points(&of_snapshots));
    assert!(snapshots.len() >= 4 && snapshots.len() == surveys.len(), "{} {}", snapshots.len(), surveys.len());
    for (survey, snapshot) in surveys.iter().zip(&snapshots) {
        let same =
            ["day", "files", "layout_score", "extents_per_mib", "extents_per_file", "broken_share", "split_share"];
        for figure in same {
            assert_eq!(snapshot[figure], survey[figure], "{figure} of day {}", survey["day"]);
        }
        assert!(snapshot["free_extents"].is_null() && snapshot["layout_score"].as_f64().unwrap() < 1.0);
    }
    // What was kept is in pieces too, and a snapshot of it has the layout of the image.
    succeeds(&run(at, &["snapshot", "aged.img", "--blocks", "-o", "aged.snapshot"]));
    let kept = [json(at, &["layout", "aged.img"]), json(at, &["layout", "aged.snapshot"])];
    assert_eq!(kept[1]["files"], kept[0]["files"]);
    assert!(kept[0]["files"]["known"]["all"]["broken_files"].as_u64().unwrap() > 10);
    // In the wrong order, twice, and beside a series.
    fails(&run(at, &["layout", "--series", days[1], days[0]]), 4, &[days[0], "name the snapshots in order of time"]);
    let both = json(at, &["layout", "--series", days[0], "results/surveys.series", days[1]]);
    assert_eq!(both["series"].as_array().map(Vec::len), Some(2));
    let said = succeeds(&run(at, &["layout", "--compare", days[0], days[2]]));
    assert!(said.contains("aggregate layout score"), "{said}");
    let out = run(at, &["age", target, "--plan", "p.aging", "--snapshots-blocks"]);
    assert!(out.status.code() == Some(2) && stderr(&out).contains("--snapshots-every"), "{}", stderr(&out));
}

#[test]
fn a_snapshot_without_block_lists_has_no_layout() {
    let work = tempfile::tempdir().unwrap();
    let at = work.path();
    fs::create_dir(at.join("tree")).unwrap();
    fs::write(at.join("tree/a"), vec![1; 9000]).unwrap();
    succeeds(&run(at, &["snapshot", "tree", "-o", "plain.snapshot"]));
    for args in [&["layout", "plain.snapshot"][..], &["layout", "--series", "plain.snapshot"]] {
        fails(&run(at, args), 4, &["plain.snapshot", "fsage snapshot --blocks"]);
    }
    // Something else in Parquet.
    fs::write(at.join("other.snapshot"), b"PAR1 and no more").unwrap();
    fails(&run(at, &["layout", "other.snapshot"]), 4, &["other.snapshot", "Parquet"]);
    // A file system that does not tell says so, and has no score; one that does has one.
    let taken = json(at, &["snapshot", "tree", "--blocks", "-o", "listed.snapshot"]);
    let inspected = json(at, &["inspect", "listed.snapshot"]);
    assert_eq!(inspected["files"][0]["summary"]["blocks"], taken["blocks"]);
    let (survey, list) = (json(at, &["layout", "tree"]), json(at, &["layout", "listed.snapshot"]));
    assert_eq!(survey["files"]["unavailable"], list["files"]["unavailable"]);
    let known = u64::from(survey["files"]["known"].is_object());
    assert_eq!(taken["blocks"]["files"].as_u64(), Some(known));
    assert_eq!(list["files"]["known"]["layout_score"], survey["files"]["known"]["layout_score"]);
}
