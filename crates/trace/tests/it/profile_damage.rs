//! Damaged, incomplete and foreign profiles: an error that names the file, or the very same data; never a panic.

use crate::common::{Spelled, meta, plain, spell};
use columnar::FileError;
use fault::{Fault as _, Kind};
use posix::FileKind;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::fs;
use std::path::{Path, PathBuf};
use trace::profile::{Meta, Reader, Writer, WriterOptions};
use trace::schedule::{Happened, Turn};
use trace::{Batch, Op, Snapshot, SnapshotEntry};

const FILES: [&str; 4] = ["meta.json", "trace.parquet", "snapshot.parquet", "schedule.parquet"];

type Content = (Meta, Vec<Spelled>, Snapshot, Option<Vec<Turn>>);

fn turns() -> Vec<Turn> {
    let turn = |i: u64| {
        let (tid, t_ns) = (7 + (i % 3) as u32, i * 100);
        let what = match i {
            0..3 => Happened::Began { parent: 1 },
            280..290 => Happened::Recorder { own_ns: i },
            290.. => Happened::Ended,
            _ if i.is_multiple_of(2) => Happened::Waited { until_ns: t_ns + i },
            _ => {
                Happened::Slept { woken_ns: t_ns + i, until_ns: t_ns + 2 * i, waker: i.is_multiple_of(5).then_some(7) }
            }
        };
        Turn { tid, t_ns, what }
    };
    (0..300).map(turn).collect()
}

fn write_profile(path: &Path) {
    let mut batch = Batch::default();
    for seq in 0..500 {
        let mut event = plain(seq, [Op::Open, Op::Read, Op::Close][seq as usize % 3]);
        event.path = Some(batch.paths.intern(format!("/data/dir{}/file{}", seq % 7, seq / 3).as_bytes()));
        event.caller_dir = (seq % 5 == 0).then(|| batch.paths.intern(b"/data"));
        event.req_bytes = (seq % 3 == 1).then_some(4096);
        batch.events.push(event.into());
    }
    let entries = (0..80).map(|i| SnapshotEntry::implied(format!("/data/{i}").into_bytes(), FileKind::File)).collect();
    let options = WriterOptions { row_group_rows: 150, ..WriterOptions::default() };
    let mut writer = Writer::create(path, options).unwrap();
    batch.schedule = turns();
    writer.push(&batch).unwrap();
    writer.finish(meta(), &Snapshot::from_entries(entries)).unwrap();
}

fn read_profile(path: &Path) -> Result<Content, FileError> {
    let reader = Reader::open(path)?;
    let mut events = Vec::new();
    for batch in reader.batches()? {
        events.extend(spell(&batch?));
    }
    Ok((reader.meta().clone(), events, reader.snapshot()?, reader.schedule()?))
}

struct Fixture {
    _dir: tempfile::TempDir,
    path: PathBuf,
    content: Content,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("w.workload");
    write_profile(&path);
    let content = read_profile(&path).unwrap();
    Fixture { _dir: dir, path, content }
}

/// Replaces one file, reads, and puts the file back.
fn with_damage(fixture: &Fixture, file: &str, damaged: &[u8]) -> Result<Content, FileError> {
    let at = fixture.path.join(file);
    let whole = fs::read(&at).unwrap();
    fs::write(&at, damaged).unwrap();
    let result = read_profile(&fixture.path);
    fs::write(&at, whole).unwrap();
    result
}

fn assert_names_file(error: &FileError, file: &str) {
    assert!(error.to_string().contains(file), "{error} does not name {file}");
    assert_eq!(error.kind(), Kind::BadInput, "{error}");
}

#[test]
fn truncation_is_noticed_everywhere() {
    let fixture = fixture();
    for file in FILES {
        let whole = fs::read(fixture.path.join(file)).unwrap();
        let step = whole.len() / 97 + 1;
        let tail = whole.len().saturating_sub(40)..whole.len();
        for len in (0..whole.len()).step_by(step).chain(tail) {
            match with_damage(&fixture, file, &whole[..len]) {
                Err(e) => assert_names_file(&e, file),
                // A final newline more or less is the same JSON.
                Ok(content) => assert!(file == "meta.json" && content == fixture.content, "{file} cut at {len}"),
            }
        }
    }
}

#[test]
fn flipped_bytes_are_noticed_everywhere() {
    let fixture = fixture();
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    for file in FILES {
        let whole = fs::read(fixture.path.join(file)).unwrap();
        for case in 0..1000 {
            let mut damaged = whole.clone();
            let at = (rng.next_u64() % whole.len() as u64) as usize;
            damaged[at] ^= 1 << (rng.next_u64() % 8);
            match with_damage(&fixture, file, &damaged) {
                Err(FileError::Version { found, .. }) => assert!(file == "meta.json" && found != 1),
                Err(e) => assert!(e.kind() == Kind::BadInput, "seed 7, case {case}: {file} byte {at}: {e}"),
                Ok(content) => {
                    assert!(content == fixture.content, "seed 7, case {case}: {file} byte {at} went unnoticed")
                }
            }
        }
    }
}

/// The same without checksums, as for files that other tools wrote: wrong data can go unnoticed then, but nothing may
/// panic its way out, hang, or eat the memory.
#[test]
fn damage_to_unchecked_files_is_survived() {
    let fixture = fixture();
    unchecked(&fixture.path);
    assert_eq!(read_profile(&fixture.path).unwrap().1, fixture.content.1);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
    for file in ["trace.parquet", "snapshot.parquet", "schedule.parquet"] {
        let whole = fs::read(fixture.path.join(file)).unwrap();
        for _ in 0..1000 {
            let mut damaged = whole.clone();
            for _ in 0..1 + rng.next_u64() % 3 {
                let at = (rng.next_u64() % whole.len() as u64) as usize;
                damaged[at] = (rng.next_u64() & 0xff) as u8;
            }
            if let Err(e) = with_damage(&fixture, file, &damaged) {
                assert!(e.kind() == Kind::BadInput, "{e}");
            }
        }
    }
}

/// Removes the checks from `meta.json`, as its documentation tells a person to.
fn unchecked(path: &Path) {
    let at = path.join("meta.json");
    let mut meta: serde_json::Value = serde_json::from_slice(&fs::read(&at).unwrap()).unwrap();
    let object = meta.as_object_mut().unwrap();
    object.remove("meta_crc32c");
    object.remove("files");
    fs::write(&at, serde_json::to_vec_pretty(&meta).unwrap()).unwrap();
}

#[test]
fn other_versions_are_refused_by_number() {
    let fixture = fixture();
    let text = fs::read_to_string(fixture.path.join("meta.json")).unwrap();
    for (found, other) in [(7, "\"format_version\": 7,\n  \"new_field\": {},"), (1, "\"format_version\": 1,")] {
        let other = text.replace("\"format_version\": 2,", other);
        let error = with_damage(&fixture, "meta.json", other.as_bytes()).unwrap_err();
        assert!(matches!(error, FileError::Version { found: f, .. } if f == found), "{error}");
        let message = error.to_string();
        assert!(message.contains(&found.to_string()) && message.contains("reads version 2"), "{message}");
        assert_eq!(message.contains("newer fsage"), found > 2, "{message}");
    }
}

#[test]
fn missing_parts_are_named() {
    let fixture = fixture();
    for file in FILES {
        let at = fixture.path.join(file);
        let aside = fixture.path.join("aside");
        fs::rename(&at, &aside).unwrap();
        let error = read_profile(&fixture.path).unwrap_err();
        assert!(matches!(error, FileError::Missing { .. }), "{error}");
        assert_names_file(&error, file);
        fs::rename(&aside, &at).unwrap();
    }
    let error = read_profile(&fixture.path.join("nowhere")).unwrap_err();
    assert!(matches!(error, FileError::Missing { .. }), "{error}");
    let error = read_profile(&fixture.path.join("trace.parquet")).unwrap_err();
    assert_eq!(error.kind(), Kind::BadInput, "a file is no profile: {error}");
}

#[test]
fn one_file_in_place_of_another_is_a_schema_error() {
    let fixture = fixture();
    unchecked(&fixture.path);
    let snapshot = fs::read(fixture.path.join("snapshot.parquet")).unwrap();
    let error = with_damage(&fixture, "trace.parquet", &snapshot).unwrap_err();
    assert!(matches!(&error, FileError::Schema { column, .. } if column == "seq"), "{error}");
    let trace = fs::read(fixture.path.join("trace.parquet")).unwrap();
    let error = with_damage(&fixture, "snapshot.parquet", &trace).unwrap_err();
    assert!(matches!(error, FileError::Schema { .. }), "{error}");
    let error = with_damage(&fixture, "trace.parquet", b"not parquet at all, but long enough").unwrap_err();
    assert!(matches!(error, FileError::Corrupt { .. }), "{error}");
}

/// Whoever gives a profile up at the last moment finds neither it nor what it grew in; one that stays has its name
/// then, and not before.
#[test]
fn a_profile_that_is_given_up_leaves_nothing() {
    for given_up in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.workload");
        let writer = Writer::create(&path, WriterOptions::default()).unwrap();
        let mut asked = 0;
        let finished = writer.finish_unless(meta(), &Snapshot::default(), &mut || {
            asked += 1;
            assert!(!path.exists());
            given_up
        });
        assert_eq!((asked, finished.is_err(), path.exists()), (1, given_up, !given_up), "{finished:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), usize::from(!given_up));
    }
}
