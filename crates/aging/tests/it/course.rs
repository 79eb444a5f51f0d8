//! The structure of aging reports: which sections, tables and plots there are for what is known.

use aging::present::course::{Input, compare, document};
use aging::verify::{DayPair, compare_scores};
use document::{Block, Document};
use layout::series::{ClockPoint, UsedPoint};
use layout::{Available, Series, SeriesHeader, SeriesPoint, Survey, SurveyOptions};
use stats::Estimate;
use std::sync::LazyLock;
use workload::{Compared, Comparison, Phase, Verdict};

/// A survey of a directory with one file, taken once.
static SURVEY: LazyLock<Survey> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), vec![1; 100_000]).unwrap();
    layout::survey(directory.path(), &SurveyOptions::default(), &mut |_| true).unwrap()
});

/// A survey with known figures, whatever the file system under the test.
fn survey(broken: u64) -> Survey {
    let mut survey = SURVEY.clone();
    // A map as a file would hold it: 64 cells of 1 KiB, half of the first free.
    let map = serde_json::json!({ "known": {
        "order": 3, "start_bytes": 0, "span_bytes": 65536,
        "file_bytes": (0..64).map(|i| if i < broken { 1024 } else { 0 }).collect::<Vec<u64>>(),
        "free_bytes": { "known": (0..64).map(|i| if i < broken { 0 } else { 1024 }).collect::<Vec<u64>>() },
        "written_unix_ns": (0..64).map(|i| (i < broken).then_some(1_500)).collect::<Vec<_>>(),
        "unallocated_bytes": 0, "unplaced_bytes": 5000, "shared_again_bytes": 0, "excess_bytes": 0,
    }});
    survey.map = Some(serde_json::from_value(map).unwrap());
    survey.source.notes = vec!["a note".to_owned()];
    survey.files = Available::Known(serde_json::from_value(files(broken)).unwrap());
    survey
}

fn files(broken: u64) -> serde_json::Value {
    let row = |low: u64, high: u64| {
        serde_json::json!({ "low": low, "high": high, "files": 10, "bytes": 40960, "scored_files": 10, "blocks": 100,
            "extents": 10 + broken, "broken_files": broken.min(10), "score": { "following": 90 - broken, "pairs": 90 },
            "layout_score": (90 - broken) as f64 / 90.0, "extents_per_file": 1.0, "placed_files": 10 })
    };
    let tally = serde_json::json!({ "files": 0, "extents": 0, "bytes": 0 });
    let distances = serde_json::json!({ "count": 0, "sum_bytes": 0, "max_bytes": 0, "forward": 0, "buckets": [0] });
    serde_json::json!({
        "all": row(0, u64::MAX), "score": { "following": 90 - broken, "pairs": 90 },
        "layout_score": (90 - broken) as f64 / 90.0, "records": 10, "extents_per_mib": 2.0 + broken as f64,
        "xfs_factor": { "actual": 10, "ideal": 10 }, "xfs_fragmentation": 0.0,
        "kinds": { "inline": tally, "encoded": tally, "shared": tally, "unwritten": tally, "delayed": tally,
            "unknown": tally },
        "by_size": [row(2049, 4096), row(4097, 8192)], "by_blocks": [], "hot": null,
        "split": { "unavailable": "no groups" }, "locality": distances,
        "scan": { "files": 0, "seeks": 0, "seeks_inside_files": 0, "distance_bytes": 0,
            "distance_inside_files_bytes": 0,
                  "read_bytes": 0 },
        "worst": [],
    })
}

fn series(name: &str, workload: &str) -> Series {
    let point = |day: f64, broken| SeriesPoint {
        day,
        t_unix_ns: 1_000 + day as i64,
        operations: 100 * day as u64,
        survey: survey(broken),
    };
    Series {
        header: SeriesHeader { name: name.into(), workload: workload.into(), ..SeriesHeader::default() },
        points: vec![point(0.0, 1), point(5.0, 5), point(10.0, 20)],
        clock: vec![
            ClockPoint { unix_ns: 1_000, simulated_ns: 0 },
            ClockPoint { unix_ns: 2_000, simulated_ns: 864_000_000_000_000 },
        ],
        used: vec![
            UsedPoint { day: 1.0, planned_share: Some(0.5), actual_share: 0.512 },
            UsedPoint { day: 2.0, planned_share: Some(0.5), actual_share: 0.49 },
        ],
        torn_bytes: 12,
    }
}

fn comparison() -> Comparison {
    let estimate = |median: f64| Estimate { median, low: median * 0.9, high: median * 1.1 };
    let row = |size: u64, verdict| Compared {
        target_a: "t".into(),
        target_b: "t".into(),
        label: units::show::bytes(size as f64),
        size_bytes: Some(size),
        phase: Phase::Read,
        unit: Phase::Read.unit(),
        a: estimate(2e6),
        b: estimate(1e6),
        ratio: estimate(0.5),
        verdict,
    };
    Comparison {
        benchmark: "seqfile".into(),
        a: "A".into(),
        b: "B".into(),
        in_virtual_time: false,
        cautions: Vec::new(),
        rows: vec![row(4096, Verdict::Slower), row(8192, Verdict::Tie)],
    }
}

/// One line a block: what it is and what it is called.
fn structure(document: &Document) -> Vec<String> {
    let line = |block: &Block| match block {
        Block::Heading(text) => format!("# {text}"),
        Block::Paragraph(_) => "paragraph".to_owned(),
        Block::List(items) => format!("list of {}", items.len()),
        Block::Code(_) => "code".to_owned(),
        Block::Table(table) => format!("table {}: {} rows", table.name, table.rows.len()),
        Block::Plot(plot) => format!("plot {}", plot.title.split([':', ',', ';', '.']).next().unwrap_or_default()),
        Block::TextOnly(text) => format!("text of {} lines", text.lines().count()),
    };
    document.blocks.iter().map(line).collect()
}

#[test]
fn one_aging_with_everything() {
    let (series, comparison) = (series("ext4", "home"), comparison());
    let day = |day, original, replayed| DayPair { day, original, replayed };
    let days = vec![day(1.0, Some(0.99), Some(0.98)), day(2.0, Some(0.95), None)];
    let check = compare_scores("ext4", days);
    let mut no_free = series.clone();
    no_free.points.iter_mut().for_each(|p| p.survey.free = Available::Unavailable("because".into()));
    let input = Input { series: &no_free, throughput: Some(&comparison), check: Some(&check) };
    let document = document(&input);
    let found = structure(&document);
    let figures = found[3..].iter().position(|line| line == "# Layout over time").unwrap() + 3;
    assert_eq!(found[..2], ["paragraph", "list of 3"], "{found:#?}");
    // The map first: it came after ten thousand pixels of other figures.
    let map =
        ["# The disk", "paragraph", "table map: 2 rows", "plot Light grey is free", "text of 8 lines", "list of 2"];
    assert!(found[2..figures].windows(map.len()).any(|lines| lines == map), "{found:#?}");
    assert_eq!(
        found[figures..],
        [
            "# Layout over time",
            "table by_day: 3 rows",
            "plot Aggregate layout score",
            "plot Extents for each MiB of data",
            "plot Files of two blocks or more in more than one piece",
            "# Layout score by file size",
            "table by_size: 2 rows",
            "plot Aggregate layout score of files by size",
            "# Free space over time",
            "# Utilisation",
            "paragraph",
            "table utilisation: 2 rows",
            "plot Share of the file system in use",
            "# Throughput, fresh and aged",
            "paragraph",
            "table throughput: 2 rows",
            "plot Rate of read by file size",
            "# Original and replay",
            "paragraph",
            "table self_check: 1 rows",
            "plot Aggregate layout score by day",
        ]
    );
    let text = document.to_text(None);
    // The result of the run, on the same page, has other figures: of all readings.
    let use_was = "At the first reading of each day, use was at most 1.20 points over the plan (day 1), at most 1.00 \
        points under the plan (day 2).";
    assert!(text.contains(use_was), "{text}");
    assert!(text.contains("an incomplete record of 12 bytes"), "{text}");
    assert!(text.contains("not available: because"), "{text}");
    assert!(text.contains('█') && text.contains('┌'), "no map in characters: {text}");
    assert!(!document.to_html().contains('█'));
}

#[test]
fn ages_are_in_simulated_days() {
    let series = series("ext4", "home");
    let document = document(&Input::new(&series));
    let plot = document.blocks.iter().find_map(|block| match block {
        Block::Plot(plot) if plot.title.starts_with("Light grey") => Some(&plot.spec),
        _ => None,
    });
    let csv = plot.unwrap()["concat"][1]["data"]["values"].as_str().unwrap();
    // Twenty cells are full of files; 1500 ns is halfway between 0 and ten days.
    assert_eq!(csv.lines().filter(|line| line.ends_with(",100,0,5.00")).count(), 20, "{csv}");
    assert_eq!(csv.lines().count(), 21, "{csv}");
}

#[test]
fn several_agings_and_their_labels() {
    let all: Vec<Series> =
        [("ext4", "home"), ("xfs", "home"), ("ext4", "mail"), ("xfs", "mail")].map(|(n, w)| series(n, w)).to_vec();
    let comparison = comparison();
    let inputs: Vec<Input<'_>> = all.iter().map(|s| Input { throughput: Some(&comparison), ..Input::new(s) }).collect();
    let document = compare(&inputs);
    let table = |name: &str| document.tables().find(|t| t.name == name).unwrap_or_else(|| panic!("no table {name}"));
    assert_eq!(table("agings").rows.len(), 4);
    let titles: Vec<&str> = table("scores_by_day").columns.iter().map(|c| c.title.as_str()).collect();
    assert_eq!(titles, ["Day", "ext4, home", "xfs, home", "ext4, mail", "xfs, mail"]);
    let shown: Vec<String> = table("throughput_ratios").rows.iter().map(|row| row[2].shown()).collect();
    assert_eq!(shown, ["0.50x", "(0.50)"]);
    assert_eq!(table("map").rows.len(), 4);
    let plots = document.blocks.iter().filter(|block| matches!(block, Block::Plot(_))).count();
    let faceted = document.blocks.iter().filter(|b| matches!(b, Block::Plot(p) if p.spec.get("facet").is_some()));
    // All but the maps have a panel for each workload.
    assert_eq!(faceted.count(), plots - 1);
    // Two of the same are told apart.
    let twice = compare(&[Input::new(&all[0]), Input::new(&all[0])]);
    let titles: Vec<String> =
        twice.tables().find(|t| t.name == "scores_by_day").unwrap().columns.iter().map(|c| c.title.clone()).collect();
    assert_eq!(titles, ["Day", "ext4", "ext4 (2)"]);
}

#[test]
fn nothing_known_is_said_and_nothing_panics() {
    let empty = Series::default();
    let text = document(&Input::new(&empty)).to_text(None);
    assert!(text.contains("There is no survey yet."), "{text}");
    drop(compare(&[Input::new(&empty), Input::new(&empty)]).to_html());
    let mut blind = series("tmpfs", "home");
    for point in &mut blind.points {
        point.survey.files = Available::Unavailable("no FIEMAP".into());
        point.survey.free = Available::Unavailable("no GETFSMAP".into());
        point.survey.map = Some(Available::Unavailable("no FIEMAP".into()));
    }
    let text = document(&Input::new(&blind)).to_text(None);
    assert!(text.contains("There is no map: no FIEMAP"), "{text}");
    drop(compare(&[Input::new(&blind), Input::new(&empty)]).to_html());
}
