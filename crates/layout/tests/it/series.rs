//! The series file: what is written is read, what was cut off is said, what was damaged is found.

use fault::{Fault as _, Kind};
use layout::series::{ClockPoint, UsedPoint, day_of};
use layout::{
    AddressSpace, Available, LayoutError, Method, Series, SeriesHeader, SeriesPoint, SeriesWriter, Survey,
    SurveyOptions,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::{Path, PathBuf};

const DAY_NS: u64 = 86_400_000_000_000;

fn survey() -> Survey {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), vec![1; 50_000]).unwrap();
    let options = SurveyOptions { map: layout::MapOrder::new(3), ..SurveyOptions::default() };
    layout::survey(directory.path(), &options, &mut |_| true).unwrap()
}

fn point(day: u64, survey: &Survey) -> SeriesPoint {
    SeriesPoint {
        day: day_of(day * DAY_NS),
        t_unix_ns: 1_000 + i64::try_from(day).unwrap(),
        operations: day * 100,
        survey: survey.clone(),
    }
}

fn written(path: &Path, days: std::ops::RangeInclusive<u64>, survey: &Survey) -> SeriesHeader {
    let header = SeriesHeader {
        name: "scratch \u{1b}[31m".into(),
        workload: "a test".into(),
        notes: vec!["a note".into()],
        ..SeriesHeader::default()
    };
    let mut writer = SeriesWriter::create(path, &header).unwrap();
    append(&mut writer, days, survey);
    header
}

fn append(writer: &mut SeriesWriter, days: std::ops::RangeInclusive<u64>, survey: &Survey) {
    for day in days {
        writer.clock(1_000 + i64::try_from(day).unwrap(), day * DAY_NS).unwrap();
        writer.used(day_of(day * DAY_NS), Some(0.1 * day as f64), 0.1 * day as f64 + 0.001).unwrap();
        writer.point(&point(day, survey)).unwrap();
    }
}

fn file(directory: &tempfile::TempDir) -> PathBuf {
    directory.path().join("run.series")
}

#[test]
fn what_is_written_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let survey = survey();
    let header = written(&file(&directory), 1..=3, &survey);
    let series = Series::load(&file(&directory)).unwrap();
    assert_eq!((&series.header, series.torn_bytes), (&header, 0));
    assert_eq!(series.points, (1..=3).map(|day| point(day, &survey)).collect::<Vec<_>>());
    assert_eq!(series.clock.get(1), Some(&ClockPoint { unix_ns: 1002, simulated_ns: 2 * DAY_NS }));
    let second = UsedPoint { day: 2.0, planned_share: Some(0.2), actual_share: 0.201 };
    assert_eq!(series.used.get(1), Some(&second));
    let again = SeriesWriter::create(&file(&directory), &header).map(drop);
    assert!(matches!(again, Err(LayoutError::Io { .. })), "a series was overwritten: {again:?}");
}

#[test]
fn a_resumed_series_is_that_of_one_run() {
    let directory = tempfile::tempdir().unwrap();
    let survey = survey();
    let whole = directory.path().join("whole.series");
    written(&whole, 1..=5, &survey);
    // Killed on the fourth day, in the middle of a record; the checkpoint is of day 2.
    written(&file(&directory), 1..=4, &survey);
    let bytes = std::fs::read(file(&directory)).unwrap();
    std::fs::write(file(&directory), &bytes[..bytes.len() - 7]).unwrap();
    let resumed = SeriesWriter::resume(&file(&directory), day_of(2 * DAY_NS)).unwrap();
    assert_eq!(resumed.points, 2);
    assert!(resumed.dropped_bytes > 0);
    let mut writer = resumed.writer;
    append(&mut writer, 3..=5, &survey);
    assert_eq!(std::fs::read(file(&directory)).unwrap(), std::fs::read(whole).unwrap());
}

#[test]
fn every_cut_leaves_the_records_before_it() {
    let directory = tempfile::tempdir().unwrap();
    let survey = survey();
    written(&file(&directory), 1..=2, &survey);
    let bytes = std::fs::read(file(&directory)).unwrap();
    let whole = Series::load(&file(&directory)).unwrap();
    let mut kept = 0;
    for cut in (0..bytes.len()).step_by(7).chain(bytes.len() - 12..bytes.len()) {
        std::fs::write(file(&directory), &bytes[..cut]).unwrap();
        match Series::load(&file(&directory)) {
            Ok(series) => {
                assert!(whole.points.starts_with(&series.points) && whole.clock.starts_with(&series.clock), "{cut}");
                assert!(series.points.len() >= kept, "{cut}");
                kept = series.points.len();
                let resumed = SeriesWriter::resume(&file(&directory), f64::MAX).unwrap();
                assert_eq!(resumed.dropped_bytes, series.torn_bytes, "{cut}");
            }
            Err(error) => {
                assert_eq!((kept, error.kind()), (0, Kind::BadInput), "{cut}: {error}");
                assert!(error.to_string().contains("run.series"), "{error}");
            }
        }
    }
    assert_eq!(kept, 1);
    // A machine that went down may leave zeros.
    std::fs::write(file(&directory), [&bytes[..], &[0; 40]].concat()).unwrap();
    assert_eq!(Series::load(&file(&directory)).unwrap(), Series { torn_bytes: 40, ..whole });
}

#[test]
fn damage_is_found_wherever_it_is() {
    let directory = tempfile::tempdir().unwrap();
    written(&file(&directory), 1..=2, &survey());
    let bytes = std::fs::read(file(&directory)).unwrap();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    for round in 0..400 {
        let mut damaged = bytes.clone();
        let at = (random.next_u64() % bytes.len() as u64) as usize;
        damaged[at] ^= 1 << (random.next_u64() % 8);
        std::fs::write(file(&directory), damaged).unwrap();
        let error = Series::load(&file(&directory)).expect_err(&format!("round {round}: byte {at} was changed"));
        assert_eq!(error.kind(), Kind::BadInput, "{error}");
        assert!(at < 15 || error.to_string().contains("byte"), "round {round}: {error}");
    }
}

#[test]
fn other_files_and_other_versions_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    for (text, what) in
        [("{}", "is not a series"), ("", "is not a series"), ("fsage.series/2\n....", "another version")]
    {
        std::fs::write(file(&directory), text).unwrap();
        let error = Series::load(&file(&directory)).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
    let missing = Series::load(&directory.path().join("missing")).unwrap_err();
    assert_eq!(missing.kind(), Kind::BadInput);
}

#[test]
fn surveys_without_anything_to_show_are_kept_too() {
    let directory = tempfile::tempdir().unwrap();
    let mut survey = survey();
    survey.files = Available::Unavailable("no FIEMAP".into());
    survey.free = Available::Unavailable("no GETFSMAP".into());
    survey.map = Some(Available::Unavailable("neither".into()));
    (survey.source.method, survey.source.addresses) = (Method::Ext4Image, AddressSpace::BtrfsLogical);
    written(&file(&directory), 0..=0, &survey);
    assert_eq!(Series::load(&file(&directory)).unwrap().points.first().map(|p| &p.survey), Some(&survey));
}
