//! fio's logs of I/O, both ways; fio itself is the judge.

use crate::import_common::{Import, decode};
use fault::{Fault as _, Kind};
use std::path::Path;
use std::process::Command;
use trace::profile::{Meta, Reader, Writer, WriterOptions};
use trace::strace::{ImportError, ImportOptions};
use trace::{Op, Snapshot, fio, strace};

fn try_import(text: &[u8], cwd: Option<&Path>) -> Result<(Import, Meta), ImportError> {
    use std::os::unix::ffi::OsStrExt as _;
    let cwd = cwd.map(|cwd| cwd.as_os_str().as_bytes().to_vec());
    let options = ImportOptions { cwd, keep_removed: true, problems_listed: 1000, ..ImportOptions::default() };
    decode(Box::new(fio::Importer::new(options)), text, 777)
}

#[test]
fn version_2_with_waits() {
    let text = "fio version 2 iolog\n/d/x add\n/d/x open\n/d/x read 0 4096\n/d/x wait 2000 0\n/d/x write 8192 100\n\
                /d/x sync 0 0\n/d/x datasync 0 0\n/d/x trim 4096 512\n/d/x read 8192 100\n/d/x close\n/d/x unlink\n";
    let (import, meta) = try_import(text.as_bytes(), None).unwrap();
    assert_eq!(import.summary.problems, []);
    let rows: Vec<_> = import
        .rows
        .iter()
        .map(|row| (row.event.op, row.event.t_ns, row.event.offset, row.event.ret, row.path()))
        .collect();
    assert_eq!(
        rows,
        [
            (Op::Open, 0, None, 3, "/d/x"),
            (Op::Read, 0, Some(0), 4096, "/d/x"),
            (Op::Write, 2_000_000, Some(8192), 100, "/d/x"),
            (Op::Fsync, 2_000_000, None, 0, "/d/x"),
            (Op::Fdatasync, 2_000_000, None, 0, "/d/x"),
            (Op::Fallocate, 2_000_000, Some(4096), 0, "/d/x"),
            (Op::Read, 2_000_000, Some(8192), 100, "/d/x"),
            (Op::Close, 2_000_000, None, 0, "/d/x"),
            (Op::Unlink, 2_000_000, None, 0, "/d/x"),
        ]
    );
    // What was read and not written must have been there.
    let found: Vec<_> = import.implied.iter().filter(|e| e.path == b"/d/x").map(|e| e.size_bytes).collect();
    assert_eq!(found, [4096]);
    assert_eq!(meta.tracer.options, ["iolog version 2"]);
}

#[test]
fn bad_lines_are_counted_and_bad_logs_refused() {
    let text = "fio version 3 iolog\n1 /x add\n2 /x read 0 10\n3 /x open\nz /x read 0 10\n4 /x read 0\n\
                5 /x eat 0 1\n6 /x read 18446744073709551615 1\n7 /x read 0 1";
    let (import, _) = try_import(text.as_bytes(), None).unwrap();
    let problems: Vec<_> = import.summary.problems.iter().map(|p| (p.line, p.reason.as_str())).collect();
    assert_eq!(
        problems,
        [
            (3, "the file is not open"),
            (5, "the time stamp is no number"),
            (6, "a file, an action, and for I/O offset and length are expected"),
            (7, "an action that fio's logs do not have"),
            (8, "offset and length lie beyond any file's end"),
            (9, "the last line is cut short"),
        ]
    );
    assert_eq!(import.rows.len(), 1);
    for (text, part) in [
        ("fio version 1 iolog\n", "version 1"),
        ("fio version 3 iolog\n1 x add\n", "--cwd"),
        ("1 /x add\n", "first line"),
        ("fio version 3 iolog\nfio version 2 iolog\n", "different versions"),
        ("", "empty"),
    ] {
        let error = try_import(text.as_bytes(), None).err().unwrap_or_else(|| panic!("taken in: {text}"));
        assert_eq!(error.kind(), Kind::BadInput);
        assert!(error.to_string().contains(part), "{error}");
    }
}

/// Runs fio in a directory; gives what it reports of its first job. `None` where there is no fio.
fn run_fio(dir: &Path, args: &[&str]) -> Option<serde_json::Value> {
    let fio = testkit::tool(testkit::Tool::Fio)?;
    let output = Command::new(fio).args(args).arg("--output-format=json").current_dir(dir).output().expect("fio");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "fio: {text} {}", String::from_utf8_lossy(&output.stderr));
    let json = text.find('{').and_then(|at| serde_json::from_str::<serde_json::Value>(&text[at..]).ok());
    let job = json.and_then(|json| json["jobs"].get(0).cloned()).unwrap_or_else(|| panic!("no JSON of fio's: {text}"));
    assert_eq!(job["error"], 0, "{text}");
    Some(job)
}

/// Calls and bytes of one direction as fio reports them.
fn reported(job: &serde_json::Value, direction: &str) -> (u64, u64) {
    let number = |name: &str| job[direction][name].as_u64().unwrap_or_else(|| panic!("no {direction}.{name} in {job}"));
    (number("total_ios"), number("io_bytes"))
}

/// The same of what was imported.
fn counted(import: &Import, op: Op) -> (u64, u64) {
    let of_op = import.rows.iter().filter(|row| row.event.op == op);
    of_op.fold((0, 0), |(calls, bytes), row| (calls + 1, bytes + row.event.ret.unsigned_abs()))
}

#[test]
fn what_fio_wrote_is_what_fio_reports() {
    let dir = tempfile::tempdir().unwrap();
    let args =
        ["--name=j", "--rw=randrw", "--bsrange=1k-16k", "--size=512k", "--nrfiles=3", "--fsync=7", "--write_iolog=log"];
    let Some(job) = run_fio(dir.path(), &args) else { return };
    let text = std::fs::read(dir.path().join("log")).unwrap();
    let (import, meta) = try_import(&text, Some(dir.path())).unwrap();
    assert_eq!(import.summary.problems, []);
    assert_eq!(counted(&import, Op::Read), reported(&job, "read"));
    assert_eq!(counted(&import, Op::Write), reported(&job, "write"));
    assert_eq!(counted(&import, Op::Fsync).0, job["sync"]["total_ios"].as_u64().unwrap());
    assert!(meta.tracer.options[0].starts_with("iolog version"), "{meta:?}");
    // Its files were laid out before: what it says it found is no longer than they are.
    let mut files = 0;
    for entry in import.implied.iter().filter(|e| e.kind == posix::FileKind::File) {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(std::ffi::OsStr::from_bytes(&entry.path));
        assert!(entry.size_bytes <= path.metadata().unwrap().len(), "{entry:?}");
        files += 1;
    }
    assert_eq!(files, 3);
}

/// A program's calls on four files of two directories, one name twice, one with a blank, one read before it is written,
/// two descriptors of one file, and what a log cannot say.
const CALLS: &str = r#"7 1700000000.000000 openat(AT_FDCWD</d>, "a/x", O_RDWR|O_CREAT, 0644) = 3</d/a/x> <0.000001>
7 1700000000.000010 write(3</d/a/x>, ""..., 5000) = 5000 <0.000001>
7 1700000000.000020 pwrite64(3</d/a/x>, ""..., 100, 20000) = 100 <0.000001>
7 1700000000.000030 fsync(3</d/a/x>) = 0 <0.000001>
7 1700000000.000040 openat(AT_FDCWD</d>, "a/x", O_RDONLY) = 4</d/a/x> <0.000001>
7 1700000000.000050 read(4</d/a/x>, ""..., 4096) = 4096 <0.000001>
7 1700000000.000060 close(3</d/a/x>) = 0 <0.000001>
7 1700000000.000070 read(4</d/a/x>, ""..., 4096) = 4096 <0.000001>
7 1700000000.000080 close(4</d/a/x>) = 0 <0.000001>
7 1700000000.000090 openat(AT_FDCWD</d>, "b/x", O_RDONLY) = 3</d/b/x> <0.000001>
7 1700000000.000100 pread64(3</d/b/x>, ""..., 1000, 3000) = 1000 <0.000001>
7 1700000000.000110 read(3</d/b/x>, ""..., 1000) = 0 <0.000001>
7 1700000000.000120 mkdir("/d/c", 0755) = 0 <0.000001>
7 1700000000.000130 openat(AT_FDCWD</d>, "a x", O_WRONLY|O_CREAT, 0644) = 4</d/a x> <0.000001>
7 1700000000.000140 write(4</d/a x>, ""..., 77) = 77 <0.000001>
7 1700000000.000150 fdatasync(4</d/a x>) = 0 <0.000001>
7 1700000000.000160 openat(AT_FDCWD</d>, "a-x", O_WRONLY|O_CREAT, 0644) = 5</d/a-x> <0.000001>
7 1700000000.000170 write(5</d/a-x>, ""..., 33) = 33 <0.000001>
7 1700000000.000180 close(5</d/a-x>) = 0 <0.000001>
7 1700000000.000190 +++ exited with 0 +++
"#;

fn profile(dir: &Path) -> Reader {
    let path = dir.join("w.workload");
    let mut writer = Writer::create(&path, WriterOptions::default()).expect("a profile");
    let mut importer = strace::Importer::new(ImportOptions::default());
    importer.read(CALLS.as_bytes(), &mut |batch| writer.push(&batch)).expect("a trace");
    let mut imported = importer.finish(&mut |batch| writer.push(&batch)).expect("a trace");
    assert_eq!(imported.summary.problems, []);
    let snapshot = Snapshot::from_entries(imported.implied_snapshot());
    writer.finish(imported.meta(), &snapshot).expect("a whole profile");
    Reader::open(&path).expect("what was written")
}

#[test]
fn fio_replays_what_is_exported() {
    let dir = tempfile::tempdir().unwrap();
    let reader = profile(dir.path());
    let needed = fio::files_needed(&reader).unwrap();
    assert_eq!(needed, [(b"d-b-x".to_vec(), 4000)]);
    for (version, name) in [(fio::Version::V2, "v2"), (fio::Version::V3, "v3")] {
        let run = dir.path().join(name);
        std::fs::create_dir(&run).unwrap();
        let mut text = Vec::new();
        let exported = fio::write(&reader, version, &mut text).unwrap();
        assert_eq!((exported.files, exported.reads, exported.writes), (4, 3, 4));
        assert_eq!((exported.read_bytes, exported.written_bytes), (9192, 5210));
        assert_eq!((exported.syncs, exported.datasyncs), (1, 1));
        let left: Vec<_> = exported.left_out.iter().map(|left| (left.op, left.calls)).collect();
        assert_eq!(left, [("mkdir", 1), ("read", 1)]);
        // Round: our own importer reads it again.
        let (again, _) = try_import(&text, Some(&run)).unwrap();
        assert_eq!(again.summary.problems, []);
        assert_eq!((counted(&again, Op::Read), counted(&again, Op::Write)), ((3, 9192), (4, 5210)));

        std::fs::write(run.join("log"), &text).unwrap();
        for (file, bytes) in &needed {
            std::fs::write(run.join(std::str::from_utf8(file).unwrap()), vec![1; *bytes as usize]).unwrap();
        }
        let Some(job) = run_fio(&run, &["--name=r", "--read_iolog=log", "--replay_no_stall=1"]) else { return };
        assert_eq!(reported(&job, "read"), (exported.reads, exported.read_bytes));
        assert_eq!(reported(&job, "write"), (exported.writes, exported.written_bytes));
        let sizes =
            ["d-a-x", "d-b-x", "d-a-x.2", "d-a-x.3"].map(|file| run.join(file).metadata().map(|m| m.len()).ok());
        assert_eq!(sizes, [Some(20100), Some(4000), Some(77), Some(33)], "{name}");
    }
}
