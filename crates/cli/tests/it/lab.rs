//! Targets of the laboratory in every command: the same commands as elsewhere, and the same result every time.

use crate::common;
use crate::common::{code, fails, names, run, small_system, small_workload, stderr, succeeds};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use testkit::process::Running;

/// Runs a command twice; both must print the same. What it printed, as JSON.
#[track_caller]
fn twice(directory: &Path, args: &[&str]) -> Value {
    let first = succeeds(&run(directory, args));
    assert!(first == succeeds(&run(directory, args)), "{args:?} gives the same every time");
    serde_json::from_str(&first).unwrap()
}

#[test]
fn bench_runs_once_on_several_targets_and_leaves_nothing() {
    let d = tempfile::tempdir().unwrap();
    let small = "ffs:realloc,size=16M,cache=1M";
    let args =
        ["bench", "seqfile", "--data", "512K", "--sizes", "1K,104K", "--json", small, "ffs:noorder,size=16M,cache=1M"];
    let result = twice(d.path(), &args);
    assert_eq!(result["parameters"]["repeat"]["rounds"], 1);
    let targets = result["targets"].as_array().unwrap();
    let environment = &targets[0]["environment"];
    assert_eq!(environment["device"], "st32430n");
    assert_eq!(environment["cpu"], "Pentium 120 MHz");
    assert!(environment["kernel"].as_str().unwrap().ends_with("machine pentium-120"));
    assert!(environment["mkfs"].as_str().unwrap().starts_with("ufs1,size=16777216,bsize=8192,fsize=1024,"));
    assert_eq!(targets[0]["caches"]["data"], "cold");
    let create = |target: &Value| target["points"][0]["phases"][0]["rate"]["median"].as_f64().unwrap();
    assert!(create(&targets[1]) > 2.0 * create(&targets[0]), "metadata that nobody waits for makes small files faster");
    assert_eq!(names(d.path()), [""; 0]);
}

/// Blocks that a small buffer cache had lost were read again for each new file: 2.25 ms instead of 0.25 (seed 1).
#[test]
fn a_new_file_is_priced_without_what_a_small_cache_had_lost() {
    let d = tempfile::tempdir().unwrap();
    let args = ["measure", "ffs:noorder,size=1G,cache=2M@st39102lw", "--quick", "--name", "t", "--json"];
    let profile: Value = serde_json::from_str(&succeeds(&run(d.path(), &args))).unwrap();
    let create_ns = profile["entries"]["cr"]["mean_ns"].as_f64().unwrap();
    assert!(create_ns < 1e6, "{create_ns} ns, of which most are reads of the disk");
}

#[test]
fn measure_gives_a_profile_with_the_machine_s_caches() {
    let d = tempfile::tempdir().unwrap();
    let args = ["measure", "ffs:size=480M,cache=2M", "--budget", "20m", "--name", "hawk", "--overwrite", "--json"];
    let profile = twice(d.path(), &args);
    // Both are measured; the laboratory was made with 2 MiB and, by its machine, 778 names.
    for (what, made_with) in [("data_cache_bytes", 2_097_152.0), ("name_cache_entries", 778.0)] {
        let found = profile["parameters"][what].as_f64().unwrap();
        assert!((found / made_with - 1.0).abs() < 0.05, "{what}: {found}");
    }
    assert_eq!(profile["environment"]["fs_type"], "ffs");
    assert_eq!(names(d.path()), ["hawk.system"]);
    fails(&run(d.path(), &["measure", "ffs:size=16M"]), 3, &["ffs:size=16M", "free"]);
}

/// Twice as dear and half as dear, pooled: between the two, and the same in either order.
#[test]
fn profiles_of_one_target_are_pooled() {
    let d = tempfile::tempdir().unwrap();
    let workload = small_workload(d.path());
    let target = "ffs:size=32M@st39102lw";
    small_system(d.path(), "one", 1e6);
    small_system(d.path(), "three", 3e6);
    let total = |files: &[&str]| {
        let systems: Vec<String> = files.iter().map(|file| format!("--system={target}={file}.system")).collect();
        let mut args = vec!["validate", workload.to_str().unwrap(), "--on", target, "--min-coverage", "0%", "--json"];
        args.extend(systems.iter().map(String::as_str));
        let said: Value = serde_json::from_str(&succeeds(&run(d.path(), &args))).unwrap();
        said["cells"][0]["predicted"]["prediction_ns"].as_f64().unwrap()
    };
    let (one, three) = (total(&["one"]), total(&["three"]));
    let both = total(&["one", "three"]);
    assert!(one < both && both < three, "{one} {both} {three}");
    assert_eq!(both, total(&["three", "one"]));
}

/// What was measured for a validation is in its directory.
#[test]
fn a_validation_keeps_what_it_measured() {
    let d = tempfile::tempdir().unwrap();
    let workload = small_workload(d.path());
    let target = "ffs:size=480M,cache=2M";
    let args = ["validate", workload.to_str().unwrap(), "--on", target, "-o", "results"];
    succeeds(&run(d.path(), &[&args[..], &["--rounds", "2"]].concat()));
    let profile = system::SystemProfile::load(&d.path().join("results/ffs-size-480M-cache-2M.system")).unwrap();
    assert_eq!(profile.environment.target, target);
    fails(&run(d.path(), &[&args[..], &["--rounds", "9"]].concat()), 2, &["9 rounds", "3"]);
}

#[test]
fn replay_and_validate_a_recorded_workload() {
    let d = tempfile::tempdir().unwrap();
    let workload = small_workload(d.path());
    let workload = workload.to_str().unwrap();
    let target = "ffs:size=32M@st39102lw";
    let replayed = twice(d.path(), &["replay", workload, target, "--json"]);
    assert!(replayed["calls"].as_u64().unwrap() > 20 && replayed["total_ns"].as_u64().unwrap() > 1_000_000);
    assert_eq!(replayed["cache_state"], "cold");
    let said = succeeds(&run(d.path(), &["replay", workload, target]));
    assert!(said.contains("All times are virtual.") && !said.contains("wall-clock"), "{said}");
    // Only user attributes are missing.
    assert_eq!(replayed["differences"]["total"], 10);
    // Both the target and the file's name may have a `=`.
    let file = d.path().join("a=b.system");
    std::fs::rename(small_system(d.path(), "flat", 1e6), &file).unwrap();
    let system = format!("{target}={}", file.display());
    let args = ["validate", workload, "--on", target, "--system", &system, "--json"];
    let validated = twice(d.path(), &args);
    let cell = &validated["cells"][0];
    assert_eq!(cell["spread"], 0.0);
    assert_eq!(cell["measured_ns"].as_f64(), replayed["total_ns"].as_f64(), "validation replays what replay does");
}

#[test]
fn an_aged_file_system_is_kept_checked_surveyed_and_read() {
    let d = tempfile::tempdir().unwrap();
    let at = d.path();
    succeeds(&run(at, &["plan", "personality", "home", "--capacity", "24M", "--days", "4", "-o", "p.aging"]));
    let target = "ffs:size=26M,groups=4,cache=1M";
    let aged = twice(at, &["age", target, "--plan", "p.aging", "--survey-every", "1", "--json"]);
    assert_eq!(aged["days_done"], 4);
    succeeds(&run(at, &["age", target, "--plan", "p.aging", "--keep", "aged.img", "-o", "results"]));
    assert!(!at.join("results/state.json").exists(), "there is nothing to go on from");
    let said = succeeds(&run(at, &["age", target, "--plan", "p.aging"]));
    assert!(said.contains("All times are virtual."), "{said}");
    fails(&run(at, &["age", target, "--plan", "p.aging", "--keep", "aged.img"]), 2, &["aged.img"]);
    fails(
        &run(at, &["age", target, "--plan", "p.aging", "--checkpoint-every", "1d", "--keep", "b.img", "-o", "r"]),
        2,
        &["memory"],
    );
    succeeds(&run(at, &["fsck", "aged.img"]));

    let survey = twice(at, &["layout", "aged.img", "--json"]);
    assert!(
        survey["source"]["options"].as_str().unwrap().starts_with("not known"),
        "an image has no policies: {survey}"
    );
    assert_eq!((&survey["source"]["method"], &survey["source"]["block_bytes"]), (&"laboratory".into(), &8192.into()));
    assert_eq!(survey["source"]["groups"]["count"], 4);
    let files = survey["walked"]["files"].as_u64().unwrap();
    assert!(files > 20, "{survey}");
    let score = survey["files"]["known"]["layout_score"].as_f64().unwrap();
    assert!(score > 0.5 && score < 1.0, "{score}");
    let in_laboratory = twice(at, &["layout", "ffs:image=aged.img", "--json"]);
    assert_eq!(in_laboratory["files"], survey["files"]);
    assert_eq!(in_laboratory["free"], survey["free"]);

    let snapshot = succeeds(&run(at, &["snapshot", "aged.img", "-o", "s.snapshot", "--json"]));
    let snapshot: Value = serde_json::from_str(&snapshot).unwrap();
    assert_eq!(snapshot["files"].as_u64(), Some(files), "{snapshot}");
    // The plan has four days: everything was modified in the last 30, and some of it on the last one.
    let said = succeeds(&run(at, &["layout", "ffs:image=aged.img"]));
    let hot: Vec<&str> = said.lines().filter(|line| line.contains("modified in the last 30 days")).collect();
    assert!(
        matches!(hot[..], [line] if line.contains("files modified") && line.contains("all: they have no figures")),
        "{hot:?}"
    );
    let said = succeeds(&run(at, &["bench", "hotfiles", "ffs:image=aged.img"]));
    assert!(said.contains("so every file is hot") && said.contains("--share 10%"), "{said}");
    let last_day = twice(at, &["bench", "hotfiles", "ffs:image=aged.img", "--newer-days", "1", "--json"]);
    let hot = last_day["targets"][0]["points"][0]["phases"][0]["rounds"][0]["files"].as_u64().unwrap();
    assert!(hot > 0 && hot < files * 9 / 10, "{hot} of {files} files are as new as the plan's last day");
    let scanned = twice(at, &["bench", "scan", "ffs:image=aged.img", "--json"]);
    assert_eq!(scanned["targets"][0]["points"][0]["phases"][0]["rounds"][0]["files"].as_u64(), Some(files));
    twice(at, &["bench", "hotfiles", "ffs:image=aged.img", "--share", "10%", "--json"]);
    // A run works beside what is in an image, and changes nothing.
    let before = std::fs::read(at.join("aged.img")).unwrap();
    twice(at, &["bench", "seqfile", "ffs:image=aged.img", "--data", "64K", "--sizes", "8K", "--json"]);
    assert!(before == std::fs::read(at.join("aged.img")).unwrap());
    fails(&run(at, &["layout", "ffs:size=16M"]), 2, &["ffs:image=FILE"]);
}

#[test]
fn a_compressed_image_and_benchmarks_of_fresh_and_aged() {
    let d = tempfile::tempdir().unwrap();
    let at = d.path();
    succeeds(&run(at, &["plan", "personality", "home", "--capacity", "24M", "--days", "2", "-o", "p.aging"]));
    let target = "ffs:size=26M,cache=1M";
    succeeds(&run(at, &["age", target, "--plan", "p.aging", "--image", "a.img.zst"]));
    assert_eq!(names(at), ["a.img.zst", "a.img.zst.json", "p.aging"]);
    let args = ["age", target, "--plan", "p.aging", "--bench", "hotfiles,scan", "--json"];
    let aged = twice(at, &args);
    assert_eq!(aged["benchmarks"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_kept_is_written_into_an_image() {
    let d = tempfile::tempdir().unwrap();
    let workload = small_workload(d.path());
    let workload = workload.to_str().unwrap();
    for n in 1..=2 {
        let output = run(d.path(), &["replay", workload, "ffs:ufs2,size=32M,data=full", "--keep"]);
        succeeds(&output);
        let image = format!("ffs-{n}.img");
        assert!(stderr(&output).contains(&image), "{}", stderr(&output));
        succeeds(&run(d.path(), &["fsck", &image]));
    }
    assert!(std::fs::read(d.path().join("ffs-1.img")).unwrap() == std::fs::read(d.path().join("ffs-2.img")).unwrap());
}

#[test]
fn a_log_that_is_kept_has_every_byte_and_is_clean() {
    let d = tempfile::tempdir().unwrap();
    let workload = small_workload(d.path());
    let output = run(d.path(), &["replay", workload.to_str().unwrap(), "lfs:size=32M,segment=256K", "--keep"]);
    succeeds(&output);
    assert!(stderr(&output).contains("lfs-1.img"), "{}", stderr(&output));
    assert!(succeeds(&run(d.path(), &["fsck", "lfs-1.img"])).contains("Clean."));
}

#[test]
fn a_signal_ends_a_run_in_virtual_time() {
    let d = tempfile::tempdir().unwrap();
    let args = ["bench", "seqfile", "ffs:size=64M", "--data", "4M", "--sizes", "1K", "--rounds", "100000"];
    let mut command = testkit::process::with_default_signals(env!("CARGO_BIN_EXE_fsage"));
    let run = Running::start(command.args(args).current_dir(d.path()).stdout(Stdio::null()).stderr(Stdio::piped()));
    std::thread::sleep(Duration::from_millis(1500));
    run.signal("INT");
    let output = run.output();
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    assert_eq!(names(d.path()), [""; 0]);
}

#[test]
fn plans_are_made_for_a_laboratory_s_size() {
    let d = tempfile::tempdir().unwrap();
    let args = ["plan", "personality", "home", "--for", "ffs:size=26M", "--days", "2", "-o", "p.aging", "--json"];
    let plan: Value = serde_json::from_str(&succeeds(&run(d.path(), &args))).unwrap();
    let capacity = plan["capacity_bytes"].as_u64().unwrap();
    assert!(capacity > 24 << 20 && capacity < 26 << 20, "{capacity}");
}

/// Blocks of 8 KiB of an image that a command reads, as strace sees it.
fn blocks_read(directory: &Path, image: &str, args: &[&str]) -> std::collections::BTreeSet<u64> {
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-y", "-e", "trace=pread64", "-o", "reads.txt"]).arg(common::fsage().get_program()).args(args);
    let output = command.current_dir(directory).output().expect("strace, which tests need (apt-get install strace)");
    succeeds(&output);
    let text = std::fs::read_to_string(directory.join("reads.txt")).unwrap();
    let mut blocks = std::collections::BTreeSet::new();
    for line in text.lines().filter(|line| line.contains(image) && !line.contains(" = 0")) {
        let (call, result) = line.rsplit_once(") = ").unwrap_or_else(|| panic!("{line}"));
        let at: u64 = call.rsplit_once(", ").and_then(|(_, at)| at.parse().ok()).unwrap_or_else(|| panic!("{line}"));
        let len: u64 = result.trim().parse().unwrap_or_else(|_| panic!("{line}"));
        blocks.extend(at / 8192..(at + len).div_ceil(8192));
    }
    blocks
}

#[test]
fn a_check_in_virtual_time_reads_what_a_check_reads_and_repairs_alike() {
    let d = tempfile::tempdir().unwrap();
    std::fs::create_dir(d.path().join("t")).unwrap();
    for number in 0..60 {
        let directory = d.path().join(format!("t/d{}", number % 7));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("f{number}")), vec![number as u8; 300 * number * number]).unwrap();
    }
    let make = ["mkfs", "ffs", "a.img", "--size", "48M", "--time", "1700000000", "--populate", "t"];
    succeeds(&run(d.path(), &make));
    let target = "ffs:image=a.img,machine=pentium3-500@st39102lw-uw";
    let found = twice(d.path(), &["fsck", target, "--json"]);
    assert_eq!(
        (found["check"]["contents"]["files"].as_u64(), found["check"]["problem_count"].as_u64()),
        (Some(60), Some(0))
    );
    let time = |name: &str| found["virtual_time"][name].as_u64().unwrap();
    let read = time("read_bytes").div_ceil(8192);
    let needed = blocks_read(d.path(), "a.img", &["fsck", "a.img"]).len() as u64;
    // What the command looks at before it checks is not of the check; what is read ahead is.
    assert!(needed > 200 && read + 8 >= needed && read <= 2 * needed, "{read} blocks, {needed} of them asked for");
    assert_eq!((time("writes"), time("reads") <= read), (0, true));
    // No drive of the time moves more than 20 MB a second, nor takes two seeks and turns for a request.
    let ns = time("elapsed_ns") - time("processor_ns");
    assert!(ns > time("read_bytes") * 50 && ns < time("reads") * 40_000_000, "{found}");

    // A name that leads nowhere: the first group's inodes begin behind its descriptor, and inode 4 is in use.
    let dump: Value =
        serde_json::from_str(&succeeds(&run(d.path(), &["dump", "a.img", "inode", "4", "--json"]))).unwrap();
    let at = dump["at_byte"].as_u64().unwrap() as usize;
    let mut image = std::fs::read(d.path().join("a.img")).unwrap();
    image[at..at + 128].fill(0);
    std::fs::write(d.path().join("a.img"), image).unwrap();
    assert_eq!(code(&run(d.path(), &["fsck", target])), 1);
    assert_eq!(code(&run(d.path(), &["fsck", "a.img", "--repair", "--copy", "one.img"])), 1);
    let repair = run(d.path(), &["fsck", target, "--repair", "--copy", "other.img", "--json"]);
    assert_eq!(code(&repair), 1, "{}", stderr(&repair));
    let bytes = |name: &str| std::fs::read(d.path().join(name)).unwrap();
    assert!(bytes("one.img") == bytes("other.img"), "the same repair");
    let found: Value = serde_json::from_slice(&repair.stdout).unwrap();
    assert!(found["virtual_time"]["writes"].as_u64() > Some(0));
    fails(&run(d.path(), &["fsck", target, "--repair"]), 2, &["--copy FILE"]);
    fails(&run(d.path(), &["fsck", target, "--repair", "--in-place"]), 2, &["stays as it is"]);
    fails(&run(d.path(), &["fsck", "ffs:image=none.img"]), 3, &["none.img"]);
    fails(&run(d.path(), &["fsck", "ffs:size=48M@nothing"]), 2, &["there is no drive 'nothing'"]);
    assert_eq!(names(d.path()), ["a.img", "one.img", "other.img", "reads.txt", "t"]);
}
