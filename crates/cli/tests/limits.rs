//! Small inputs that ask for much: each is refused, by name and in time, or costs no more than it is worth.
//!
//! Every command runs with 2 GiB of address space, and is given up after a time that it never comes near.

mod common;

use common::{fails, small_workload};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

/// In KiB, for the shell's `ulimit -v`.
const ADDRESS_SPACE_KIB: u64 = 2 << 20;
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs the binary in a directory, within the limits.
fn limited(directory: &Path, args: &[&str]) -> Output {
    let mut command = assert_cmd::Command::new("sh");
    command.args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB} && exec \"$0\" \"$@\"")]);
    command.arg(env!("CARGO_BIN_EXE_fsage")).args(args).env_remove("RUST_BACKTRACE");
    command.current_dir(directory).timeout(PATIENCE).output().expect("the shell runs")
}

/// `machine=/dev/zero` was read until memory ended, a FIFO was waited for.
#[test]
fn descriptions_are_regular_files() {
    let d = tempfile::tempdir().expect("a directory");
    let at = |name: &str| d.path().join(name);
    fs::create_dir(at("target")).expect("a directory");
    fs::create_dir(at("geriatrix")).expect("a directory");
    small_workload(d.path());
    for (kind, named) in [("zero", "a character device"), ("fifo", "a FIFO"), ("directory", "a directory")] {
        let make = |name: &str| {
            let _ = fs::remove_file(at(name)).or_else(|_| fs::remove_dir(at(name)));
            match kind {
                "zero" => symlink("/dev/zero", at(name)).expect("a link"),
                "fifo" => mkfifoat(CWD, at(name), Mode::RWXU).expect("a FIFO"),
                _ => fs::create_dir(at(name)).expect("a directory"),
            }
        };
        for name in ["x.toml", "x.img", "x.aging", "x.system", "x.snapshot", "x.series", "x.json", "x.trace"] {
            make(name);
        }
        for name in ["age_distribution.txt", "size_distribution.txt", "dir_distribution.txt"] {
            make(&format!("geriatrix/{name}"));
        }
        make("small.workload/meta.json");
        let mut commands = vec![
            vec!["bench", "seqfile", "ffs:machine=./x.toml"],
            vec!["bench", "seqfile", "ffs@./x.toml"],
            vec!["bench", "seqfile", "ffs:image=x.img"],
            vec!["drive", "describe", "./x.toml"],
            vec!["drive", "validate", "st32430n", "x.trace"],
            vec!["plan", "personality", "./x.toml", "-o", "p.aging"],
            vec!["plan", "geriatrix", "geriatrix", "--capacity", "1G", "-o", "p.aging"],
            vec!["plan", "snapshots", "x.snapshot", "x.snapshot", "-o", "p.aging"],
            vec!["age", "target", "--plan", "x.aging"],
            vec!["inspect", "x.aging"],
            vec!["inspect", "x.system"],
            vec!["inspect", "x.snapshot"],
            vec!["inspect", "small.workload"],
            vec!["replay", "small.workload", "target"],
            vec!["layout", "--series", "x.series"],
            vec!["mkfs", "free-maps", "new.img", "x.json"],
            vec!["dump", "x.img", "superblock"],
            vec!["fsck", "x.img"],
            vec!["clean", "x.img"],
        ];
        if kind != "directory" {
            // A directory may be what `bench -o` made, and has no files to copy out of it.
            commands.push(vec!["cp", "x.img:/", "out"]);
            commands.push(vec!["bench", "--compare", "x.json", "x.json"]);
        }
        for args in commands {
            let output = limited(d.path(), &args);
            assert_eq!(output.status.code(), Some(4), "{kind}: {args:?}: {}", common::stderr(&output));
            assert!(common::stderr(&output).contains(named), "{kind}: {args:?}: {}", common::stderr(&output));
        }
    }
}

/// A processor was 8 bytes of memory, and 2^31 of them 17 GB.
#[test]
fn a_machine_has_a_number_of_processors() {
    let d = tempfile::tempdir().expect("a directory");
    let machine = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/pentium-120.toml"));
    let machine = machine.expect("a machine");
    let many = machine.replace("count = 1\n", "count = 2147483648\n");
    assert_ne!(many, machine);
    fs::write(d.path().join("many.toml"), many).expect("a file");
    let output = limited(d.path(), &["bench", "seqfile", "ffs:size=16M,machine=./many.toml"]);
    fails(&output, 4, &["many.toml", "cpu.count", "4096 processors"]);
}

/// Arrays of two, 5,000 levels deep, were made one by one.
#[test]
fn arrays_have_a_number_of_drives() {
    let d = tempfile::tempdir().expect("a directory");
    let target = format!("ffs@{}st32430n", "raid0:2x".repeat(5000));
    let output = limited(d.path(), &["bench", "seqfile", &target]);
    assert_eq!(common::code(&output), 2, "{}", common::stderr(&output));
    assert!(common::stderr(&output).contains("nested at most 4 deep"), "{}", common::stderr(&output));
}
