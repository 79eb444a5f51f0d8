//! Maps of scratch file systems: against the survey they were made in, and against `filefrag`, `dumpe2fs` and
//! `e2freefrag`.

use crate::common::{Scratch, can_run, filefrag, files_below, fragment, number_after, run};
use layout::{Available, Map, MapOrder, Survey, SurveyOptions, survey};
use std::path::Path;
use testkit::Tool;

fn taken(path: &Path) -> Survey {
    let options = SurveyOptions { map: MapOrder::new(5), taken_unix_s: Some(0), ..SurveyOptions::default() };
    survey(path, &options, &mut |_| true).unwrap_or_else(|e| panic!("{e}"))
}

fn map(survey: &Survey) -> &Map {
    survey.map.as_ref().and_then(Available::known).unwrap_or_else(|| panic!("{:?}", survey.map))
}

/// Over all cells, the map holds what the survey's sums hold; nothing is lost and nothing is in two places.
fn sums_are_the_surveys(survey: &Survey) {
    let (map, totals) = (map(survey), map(survey).totals());
    let files = survey.files.known().unwrap();
    let placed = files.all.blocks * survey.source.block_bytes;
    assert_eq!(totals.file_bytes + map.shared_again_bytes + map.excess_bytes, placed);
    let free = survey.free.known().unwrap();
    assert_eq!(totals.free_bytes, Some(free.free_bytes + map.unallocated_bytes));
    assert_eq!(map.unallocated_bytes, free.unallocated_bytes.unwrap_or(0));
    assert_eq!(map.excess_bytes, 0);
    let other: u64 = (0..map.order.cells()).map(|cell| map.other_in(cell)).sum();
    assert_eq!(totals.file_bytes + free.free_bytes + map.unallocated_bytes + other, totals.span_bytes);
}

/// The bytes of ranges that lie in each cell.
fn in_cells(map: &Map, ranges: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
    let mut cells = vec![0; map.order.cells()];
    for (start, end) in ranges {
        for (cell, bytes) in cells.iter_mut().enumerate() {
            let (from, to) = map.bounds(cell);
            *bytes += to.min(end).saturating_sub(from.max(start));
        }
    }
    cells
}

#[test]
fn ext4_cell_by_cell() {
    if !can_run(&[Tool::MkfsExt4, Tool::Dumpe2fs, Tool::E2freefrag, Tool::Filefrag]) {
        return;
    }
    let mut scratch = Scratch::make(300 << 20, &["mkfs.ext4", "-q", "-F", "-b", "4096", "-g", "8192"]);
    fragment(&scratch.mount(""), 21);
    scratch.unmount();
    let point = scratch.mount("ro");
    let mounted = taken(&point);
    sums_are_the_surveys(&mounted);
    let extents: Vec<_> = files_below(&point)
        .iter()
        .filter(|path| path.to_str().is_some())
        .flat_map(|path| filefrag(path, 4096))
        .filter(|e| !e.flags.inline)
        .map(|e| (e.physical_bytes, e.physical_bytes + e.len_bytes))
        .collect();
    // Files whose names filefrag cannot be given have a block each at most.
    let unnamed = files_below(&point).iter().filter(|path| path.to_str().is_none()).count() as u64 * 4096;
    let theirs = in_cells(map(&mounted), extents.into_iter());
    let differing: u64 = map(&mounted).file_bytes.iter().zip(&theirs).map(|(a, b)| a.checked_sub(*b).unwrap()).sum();
    assert!(differing <= unnamed, "{differing} bytes more than filefrag has, {unnamed} at most were expected");
    scratch.unmount();

    let image = scratch.image();
    let offline = taken(&image);
    sums_are_the_surveys(&offline);
    assert_eq!(map(&offline).file_bytes, map(&mounted).file_bytes);
    assert_eq!(map(&offline).written_unix_ns, map(&mounted).written_unix_ns);
    let text = run("dumpe2fs", &[image.to_str().unwrap()]);
    assert_eq!(map(&offline).span_bytes, number_after(&text, "Block count:") as u64 * 4096);
    let listed = text.lines().filter_map(|line| line.strip_prefix("  Free blocks: "));
    let ranges = listed.flat_map(|list| list.split(", ")).filter(|range| !range.is_empty()).map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        (first.parse::<u64>().unwrap() * 4096, (last.parse::<u64>().unwrap() + 1) * 4096)
    });
    assert_eq!(map(&offline).free_bytes.known().unwrap(), &in_cells(map(&offline), ranges));
    let free = number_after(&run("e2freefrag", &[image.to_str().unwrap()]), "Free blocks:") as u64 * 4096;
    assert_eq!(map(&offline).totals().free_bytes, Some(free));
    assert_eq!(map(&mounted).totals().free_bytes, Some(free));
}

#[test]
fn ages_are_those_of_the_files() {
    if !can_run(&[Tool::MkfsExt4]) {
        return;
    }
    let mut scratch = Scratch::make(64 << 20, &["mkfs.ext4", "-q", "-F"]);
    let point = scratch.mount("");
    for (name, second) in [("old", 1_000_000_000), ("new", 1_600_000_000)] {
        let file = std::fs::File::create(point.join(name)).unwrap();
        std::io::Write::write_all(&mut &file, &vec![7; 10 << 20]).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(second)).unwrap();
    }
    let survey = taken(&point);
    let map = map(&survey);
    let full = |cell: &usize| map.file_bytes.get(*cell) == Some(&map.covered_bytes(*cell));
    let mut ages: Vec<i64> =
        (0..map.order.cells()).filter(full).filter_map(|cell| map.written_unix_ns.get(cell).copied()?).collect();
    ages.sort_unstable();
    // One cell at most holds the end of one file and the beginning of the other.
    let of = |second: i64| ages.iter().filter(|ns| **ns == second * 1_000_000_000).count();
    assert!(of(1_000_000_000) > 10 && of(1_600_000_000) > 10, "{ages:?}");
    assert!(ages.len() - of(1_000_000_000) - of(1_600_000_000) <= 4, "{ages:?}");
    assert!(
        (0..map.order.cells())
            .all(|i| (map.file_bytes.get(i) == Some(&0)) == map.written_unix_ns.get(i).unwrap().is_none())
    );
}

#[test]
fn xfs_and_what_is_shared() {
    if !can_run(&[Tool::MkfsXfs]) {
        return;
    }
    let mut scratch = Scratch::make(400 << 20, &["mkfs.xfs", "-q", "-f", "-m", "reflink=1"]);
    let point = scratch.mount("");
    fragment(&point, 23);
    let (late, copy) = (point.join("d1/late"), point.join("d2/copy"));
    run("cp", &["--reflink=always", late.to_str().unwrap(), copy.to_str().unwrap()]);
    scratch.unmount();
    let point = scratch.mount("ro");
    let survey = taken(&point);
    sums_are_the_surveys(&survey);
    assert_eq!(map(&survey).shared_again_bytes, 900_000u64.next_multiple_of(4096));
    assert_eq!(map(&survey).span_bytes, 400 << 20);
}

#[test]
fn btrfs_with_space_in_no_chunk() {
    if !can_run(&[Tool::MkfsBtrfs, Tool::Btrfs]) {
        return;
    }
    let mut scratch = Scratch::make(600 << 20, &["mkfs.btrfs", "-q", "-f"]);
    let point = scratch.mount("");
    fragment(&point, 25);
    run("btrfs", &["filesystem", "sync", point.to_str().unwrap()]);
    let survey = taken(&point);
    sums_are_the_surveys(&survey);
    assert_eq!(map(&survey).span_bytes, 600 << 20);
    assert!(map(&survey).unallocated_bytes > 0);
}

#[test]
fn without_fiemap_there_is_no_map() {
    if !testkit::need(testkit::Need::Shm) {
        return;
    }
    let shm = Path::new("/dev/shm");
    let directory = tempfile::tempdir_in(shm).unwrap();
    std::fs::write(directory.path().join("file"), "content").unwrap();
    let survey = taken(directory.path());
    let why = survey.map.as_ref().and_then(Available::why).unwrap();
    assert!(why.contains("not available"), "{why}");
}
