//! What commands print as JSON, held against the schemas in docs/schemas (`testkit::schema` says who judges).
//!
//! With `FSAGE_JSON_INTO=DIR` the tests leave every document in DIR, for `scripts/schemas`, which drafts the schemas of
//! new fields.

use crate::common::{run, small_system, small_workload, succeeds, trace_text};
use crate::documents::{schemas_of_the_sources, top};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use testkit::schema;

/// A document that no quick run makes: a quickstart takes two minutes. Its type is held in src/commands/quickstart.rs.
const NOT_RUN: [&str; 1] = ["fsage.quickstart/2"];
/// Formats whose files are no JSON documents: theirs are frames or records.
const NO_DOCUMENTS: [&str; 4] = ["fsage.series/1", "fsage.spool/1", "fsage.spool/2", "fsage.sweep-journal/1"];

/// Documents of some commands.
struct Documents {
    directory: tempfile::TempDir,
    found: Vec<Value>,
}

impl Documents {
    fn new() -> Documents {
        let directory = tempfile::tempdir().unwrap();
        Documents { directory, found: Vec::new() }
    }

    fn at(&self) -> &Path {
        self.directory.path()
    }

    /// Runs a command whose standard output is a document; it may end with 1, which says that a check failed.
    fn of(&mut self, args: &[&str]) -> &Value {
        let output = run(self.directory.path(), &[args, &["--json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{args:?}: {said}");
        let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {said}"));
        self.found.push(value);
        self.found.last().unwrap()
    }

    /// The same of a line whose words are set apart by spaces.
    fn line(&mut self, line: &str) -> &Value {
        self.of(&line.split(' ').collect::<Vec<_>>())
    }

    /// A command whose document is a file.
    fn file(&mut self, name: &str) {
        let text = std::fs::read_to_string(self.at().join(name)).unwrap();
        self.found.push(serde_json::from_str(&text).unwrap());
    }

    /// Holds every document against its schema; which were expected.
    fn hold(self, expected: &[&str]) {
        let names: BTreeSet<&str> =
            self.found.iter().map(|value| value["schema"].as_str().expect("a schema")).collect();
        let missing: Vec<&&str> = expected.iter().filter(|name| !names.contains(**name)).collect();
        assert!(missing.is_empty(), "not made: {missing:?}; made: {names:?}");
        keep(&self.found);
        schema::hold(&self.found);
    }
}

/// Leaves the documents where they are wanted.
fn keep(documents: &[Value]) {
    let Some(into) = std::env::var_os("FSAGE_JSON_INTO").map(PathBuf::from) else { return };
    std::fs::create_dir_all(&into).unwrap();
    for value in documents {
        let name = value["schema"].as_str().unwrap_or_default().replace('/', "-");
        let free = (0..).map(|n| into.join(format!("{name}.{n}.json"))).find(|path| !path.exists()).unwrap();
        std::fs::write(free, value.to_string()).unwrap();
    }
}

#[test]
fn predictions_and_replays_are_as_their_schemas_say() {
    let mut d = Documents::new();
    small_workload(d.at());
    small_system(d.at(), "a", 2_000.0);
    small_system(d.at(), "b", 20_000.0);
    d.line(
        "predict small.workload a.system b.system --min-coverage 0 --explain a b --cache-sizes 1M,64M --set rm=5us \
        --cache 1G",
    );
    d.line("predict small.workload ext4 xfs --min-coverage 0 --check ffs:size=64M --repeats 2");
    d.line("predict small.workload small.workload a.system b.system --min-coverage 0");
    d.line("replay small.workload ffs:size=64M");
    d.line("replay small.workload . --repeats 2");
    d.line("inspect small.workload a.system");
    d.line("inspect small.workload --rows");
    d.hold(&["fsage.predict/1", "fsage.predictions/1", "fsage.replay/1", "fsage.inspect/1"]);
}

#[test]
fn recordings_and_validations_are_as_their_schemas_say() {
    let mut d = Documents::new();
    small_workload(d.at());
    small_system(d.at(), "a", 2_000.0);
    let trace = trace_text();
    d.of(&["import", trace.to_str().unwrap(), "-o", "again.workload"]);
    d.line(
        "validate small.workload --on ffs:size=64M --system ffs:size=64M=a.system --repeats 3 --max-repeats 3 \
        --min-coverage 0",
    );
    let may_record = testkit::need(testkit::Need::Tool(testkit::Tool::Strace));
    if may_record {
        // `--json` is given again behind it, and is the command's there.
        d.line("record --json --with strace -o true.workload true");
    }
    std::fs::create_dir(d.at().join("tree")).unwrap();
    std::fs::write(d.at().join("tree/file"), vec![7; 50_000]).unwrap();
    d.line("snapshot tree -o tree.snapshot");
    d.line("snapshot tree --blocks -o listed.snapshot");
    d.line("layout listed.snapshot");
    d.line("layout --series listed.snapshot");
    d.line("inspect tree.snapshot listed.snapshot");
    d.line("inspect small.workload --against tree");
    d.line("bench scan tree --rounds 2");
    let mut expected = vec![
        "fsage.import/1",
        "fsage.validate/1",
        "fsage.snapshot/1",
        "fsage.inspect/1",
        "fsage.verification/1",
        "fsage.bench/1",
    ];
    expected.extend(may_record.then_some("fsage.record/1"));
    d.hold(&expected);
}

#[test]
fn a_measurement_is_as_its_schema_says() {
    let mut d = Documents::new();
    d.line("measure ffs:size=1G --budget 10m -o lab.system");
    d.hold(&["fsage.measure/1"]);
}

#[test]
fn results_of_the_laboratory_are_as_their_schemas_say() {
    let mut d = Documents::new();
    d.line("bench seqfile ffs:size=64M lfs:size=64M --sizes 16K,64K --data 256K -o bench");
    d.line("bench --compare bench bench");
    d.line("crash ffs:softdep,size=1M --states 20");
    let ops = "create a; write a 0 9000; fsync a; unlink a";
    d.of(&["crash", "ffs:softdep,root,size=1M", "--ops", ops, "--state", "3.1", "--image", "crashed.img"]);
    d.line("fsck crashed.img --background");
    d.line("fsck ffs:softdep,image=crashed.img --background");
    d.line("fsck ffs:size=16M@st32430n");
    d.line("reproduce --list");
    d.line("reproduce lfs92/write-cost --quick");
    d.hold(&[
        "fsage.bench/1",
        "fsage.bench-comparison/1",
        "fsage.crash/1",
        "fsage.crash-state/1",
        "fsage.fsck-background/1",
        "fsage.fsck-target/1",
        "fsage.experiments/2",
        "fsage.reproduction/2",
    ]);
}

#[test]
fn drives_are_as_their_schemas_say() {
    let mut d = Documents::new();
    let lines: String = (0..60u64).map(|n| format!("R Miss {} 8 15000.0 10000.0\n", n * 7919 % 2_000_000)).collect();
    std::fs::write(d.at().join("small.trace"), lines).unwrap();
    d.line("drive list");
    d.line("drive describe hp-c2247a");
    d.line("drive describe ssd-nvme");
    d.line("drive validate hp-c2247a small.trace");
    d.line("drive extract small.trace --from hp-c2247a --models 20 --starts 1");
    d.line("drive measure model:hp-c2247a");
    d.hold(&[
        "fsage.drives/1",
        "fsage.drive/1",
        "fsage.drive-validation/1",
        "fsage.drive-extraction/1",
        "fsage.drive-measurement/1",
    ]);
}

#[test]
fn images_are_as_their_schemas_say() {
    let mut d = Documents::new();
    std::fs::create_dir(d.at().join("tree")).unwrap();
    std::fs::write(d.at().join("tree/file"), vec![7; 50_000]).unwrap();
    d.line("mkfs ffs ffs.img --size 8M --populate tree");
    d.line("mkfs lfs lfs.img --size 8M --populate tree");
    for image in ["ffs.img", "lfs.img"] {
        let parts: &[&str] = match image {
            "ffs.img" => &["superblock", "groups", "group 0", "inode 2", "directory /", "free", "free-maps"],
            _ => &["superblock", "segments", "segment 0", "inode 2", "directory /", "ifile"],
        };
        for part in parts {
            d.line(&format!("dump {image} {part}"));
        }
        d.line(&format!("fsck {image}"));
        d.line(&format!("cp {image}:/file out-{image}"));
        d.line(&format!("cp --in-place tree/file {image}:/again"));
        d.line(&format!("layout {image}"));
    }
    d.line("clean lfs.img --in-place");
    d.line("layout --compare ffs.img ffs.img");
    let maps = succeeds(&run(d.at(), &["dump", "ffs.img", "free-maps", "--json"]));
    std::fs::write(d.at().join("maps.json"), maps).unwrap();
    d.line("mkfs free-maps again.img maps.json");
    // A damaged map of inodes: repaired, and taken back.
    let mut image = std::fs::read(d.at().join("ffs.img")).unwrap();
    let count =
        image.windows(4).position(|bytes| bytes == [0x55, 0x02, 0x09, 0x00]).expect("the magic of a cylinder group");
    image[count + 28] ^= 0x5a;
    std::fs::write(d.at().join("ffs.img"), image).unwrap();
    d.line("fsck ffs.img");
    d.line("fsck ffs.img --repair --in-place --undo ffs.undo");
    d.line("fsck ffs.img --revert ffs.undo");
    d.hold(&[
        "fsage.mkfs-ffs/1",
        "fsage.mkfs-lfs/1",
        "fsage.mkfs-free-maps/1",
        "fsage.ffs-superblock/1",
        "fsage.ffs-groups/1",
        "fsage.ffs-group/1",
        "fsage.ffs-inode/1",
        "fsage.ffs-directory/1",
        "fsage.ffs-free/1",
        "fsage.ffs-free-maps/1",
        "fsage.lfs-superblock/1",
        "fsage.lfs-segments/1",
        "fsage.lfs-segment/1",
        "fsage.lfs-inode/1",
        "fsage.lfs-directory/1",
        "fsage.lfs-ifile/1",
        "fsage.fsck-ffs/1",
        "fsage.fsck-lfs/1",
        "fsage.fsck-reverted/1",
        "fsage.cp-ffs/1",
        "fsage.cp-into-ffs/1",
        "fsage.cp-into-lfs/1",
        "fsage.layout/1",
        "fsage.layout-comparison/1",
        "fsage.clean/1",
    ]);
}

#[test]
fn aging_is_as_its_schemas_say() {
    let mut d = Documents::new();
    d.line("plan personality home --capacity 64M --days 3 -o home.aging");
    d.line("inspect home.aging");
    d.line("age ffs:size=64M --plan home.aging -o aged --image aged.img.zst");
    d.file("aged/manifest.json");
    d.file("aged.img.zst.json");
    d.line("layout --series aged/surveys.series");
    std::fs::create_dir(d.at().join("tree")).unwrap();
    d.line("age tree --plan home.aging --keep");
    let kept = std::fs::read_dir(d.at().join("tree")).unwrap().next().expect("what is kept").unwrap().file_name();
    d.file(&format!("tree/{}/.fsage-aged", kept.to_str().unwrap()));
    d.hold(&[
        "fsage.plan/1",
        "fsage.age/1",
        "fsage.age-manifest/1",
        "fsage.aged/1",
        "fsage.aged-image/1",
        "fsage.layout-series/1",
        "fsage.inspect/1",
    ]);
}

#[test]
fn sweeps_and_libraries_are_as_their_schemas_say() {
    let mut d = Documents::new();
    let spec = r#"format = "fsage.sweep/1"
run = ["bench", "smallfile", "ffs:{mode},size=8M@st32430n", "--files", "2"]
[axes]
mode = ["conventional", "softdep"]
"#;
    std::fs::write(d.at().join("mine.toml"), spec).unwrap();
    d.line("sweep mine.toml --list");
    d.line("sweep mine.toml -o swept --jobs 1");
    d.line("sweep mine.toml -o swept --status");
    d.file("swept/sweep.json");
    small_workload(d.at());
    d.line("library ours --add small.workload --on ffs:size=1G --budget 10m");
    let replays = d.at().join("ours/replays/small");
    let replay = crate::common::names(&replays).into_iter().next().expect("a replay is kept");
    d.file(&format!("ours/replays/small/{replay}"));
    d.hold(&[
        "fsage.sweep/1",
        "fsage.sweep-tasks/1",
        "fsage.sweep-status/1",
        "fsage.sweep-folder/1",
        "fsage.library/1",
        "fsage.library-replay/1",
    ]);
}

/// Every schema that a program may meet is a file, and is exercised above.
#[test]
fn each_result_has_its_schema() {
    let mut names = schemas_of_the_sources();
    names.retain(|name| !NO_DOCUMENTS.contains(&name.as_str()));
    let without: Vec<&String> = names.iter().filter(|name| schema::of(name).is_none()).collect();
    assert!(without.is_empty(), "without a file in docs/schemas: {without:?}");
    let source = include_str!("schemas.rs");
    let unchecked: Vec<&String> = names
        .iter()
        .filter(|name| !NOT_RUN.contains(&name.as_str()) && !source.contains(&format!("\"{name}\"")))
        .collect();
    assert!(unchecked.is_empty(), "held against nothing: {unchecked:?}");
    for entry in std::fs::read_dir(top().join("docs/schemas")).unwrap().flatten() {
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(entry.path()).unwrap()).unwrap();
        let name = schema["properties"]["schema"]["const"].as_str().expect("a schema says which it is");
        assert_eq!(schema::file_of(name), entry.path(), "its file's name");
        assert!(names.contains(name), "{name} is of no command");
    }
}
