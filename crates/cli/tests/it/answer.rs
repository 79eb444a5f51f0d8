//! The answer first, many things at once, names as people write them, and what is said of what is misspelt or missing.

use crate::common::{self, code, fails, run, small_system, small_workload, stderr, succeeds};
use serde_json::Value;
use std::path::Path;

/// A workload and two systems, of which one is much faster.
fn two_systems() -> tempfile::TempDir {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "slow", 20_000.0);
    small_system(d.path(), "fast", 1_000.0);
    d
}

const COVERAGE: [&str; 2] = ["--min-coverage", "0"];

fn predict(directory: &Path, args: &[&str]) -> String {
    succeeds(&run(directory, &[&["predict"], args, &COVERAGE].concat()))
}

fn json(directory: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&predict(directory, &[args, &["--json"]].concat())).expect("one JSON document")
}

/// It was about a hundred lines, of which the first twelve were the answer.
#[test]
fn five_lines_answer_and_details_have_the_rest() {
    let d = two_systems();
    let said = predict(d.path(), &["small.workload", "slow.system", "fast.system"]);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).skip(1).collect();
    let begins: Vec<&str> = lines.iter().map(|line| line.split(':').next().unwrap_or_default().trim()).collect();
    assert_eq!(begins, ["* Fastest", "* By how much", "* Why", "* How sure", "* Next"], "{said}");
    assert!(lines[0].contains("fast, with") && lines[1].contains("slow takes 18.3 times"), "{said}");
    assert!(lines[4].contains("fsage replay small.workload TARGET") && lines[4].contains("--details"), "{said}");
    let jargon = ["lur_", "wra_", "Entry", "count_times"];
    assert!(jargon.iter().all(|word| !said.contains(word)), "{said}");
    let details = predict(d.path(), &["small.workload", "slow.system", "fast.system", "--details"]);
    assert!(details.contains("What would change it") && details.contains("Beside simpler methods"), "{details}");
    let one = predict(d.path(), &["small.workload", "fast.system"]);
    assert!(one.contains("* Time: ") && !one.contains("By how much"), "{one}");
}

/// A workload without a call of a file system had a winner, with a probability of 100 %.
#[test]
fn where_nothing_is_asked_of_a_file_system_nobody_wins() {
    let d = two_systems();
    for (calls, said) in [
        ("1 1700000000.0 exit_group(0) = ?\n", "no call of the workload"),
        (
            "1 1700000000.0 openat(AT_FDCWD</w>, \"/proc/self/maps\", O_RDONLY) = 3</proc/self/maps> <0.000001>\n\
             1 1700000000.5 close(3</proc/self/maps>) = 0 <0.000001>\n",
            "none of 2 calls of the workload",
        ),
    ] {
        std::fs::write(d.path().join("nothing.txt"), calls).unwrap();
        succeeds(&run(d.path(), &["import", "nothing.txt", "-o", "nothing.workload", "--overwrite"]));
        let found = predict(d.path(), &["nothing.workload", "slow.system", "fast.system"]);
        assert!(found.contains("Nothing to predict") && found.contains(said), "{found}");
        assert!(!found.contains("Fastest"), "{found}");
    }
}

#[test]
fn several_workloads_make_a_matrix() {
    let d = two_systems();
    succeeds(&run(d.path(), &["import", common::trace_text().to_str().unwrap(), "-o", "again.workload"]));
    let args = ["small.workload", "again.workload", "slow.system", "fast.system"];
    let said = predict(d.path(), &args);
    assert!(said.contains("fast for 2 of 2") && said.contains("again.workload"), "{said}");
    let value = json(d.path(), &[&args[..], &["-o", "out"]].concat());
    assert_eq!(value["schema"], "fsage.predictions/1");
    let totals = |workload: &Value| workload["prediction"]["systems"][1]["total_ns"].clone();
    let workloads = value["workloads"].as_array().unwrap();
    let alone = json(d.path(), &["again.workload", "slow.system", "fast.system"]);
    assert_eq!(workloads.len(), 2);
    assert_eq!(totals(&workloads[1]), totals(&alone), "the same as by itself");
    let written = common::names(&d.path().join("out"));
    for file in ["matrix.csv", "workload-1-ranking.csv", "workload-2-ranking.csv", "long.csv", "long.parquet"] {
        assert!(written.iter().any(|name| name == file), "{file} is not in {written:?}");
    }
    let refused = run(d.path(), &[&["predict"], &args[..], &["--explain", "slow", "fast"]].concat());
    fails(&refused, 2, &["--explain is about one workload, and 2 are named"]);
}

#[test]
fn bundled_profiles_and_short_names_are_understood() {
    let d = two_systems();
    let said = json(d.path(), &["small.workload", "ext4", "bundled:xfs", "slow.system", "--explain", "slo", "xf"]);
    assert_eq!(
        (said["explanation"]["a"].as_str(), said["explanation"]["b"].as_str()),
        (Some("slow"), Some("xfs (bundled)"))
    );
    let all = json(d.path(), &["small.workload", "bundled"]);
    assert_eq!(all["prediction"]["systems"].as_array().map(Vec::len), Some(3));
    // The stem of a file is a name, whatever is in it.
    std::fs::rename(d.path().join("slow.system"), d.path().join("disk.system")).unwrap();
    let said = json(d.path(), &["small.workload", "disk.system", "fast.system", "--explain", "disk", "fast"]);
    assert_eq!(said["explanation"]["a"], "slow");
}

#[test]
fn a_prediction_is_held_against_replays() {
    let d = two_systems();
    let target = "ffs:size=64M";
    let args =
        ["predict", "small.workload", "slow.system", "fast.system", "--check", target, "--repeats", "2", "--json"];
    let output = run(d.path(), &[&args[..], &COVERAGE].concat());
    let value: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let check = &value["check"];
    assert_eq!((check["system"].as_str(), check["target"].as_str()), (Some("fast"), Some(target)), "of the fastest");
    assert_eq!(check["replays_ns"].as_array().map(Vec::len), Some(2));
    let ns = |field: &str| check[field].as_f64().unwrap();
    assert!((ns("predicted_ns") / ns("replayed_ns") - 1.0 - ns("error")).abs() < 1e-12, "{check}");
    let within = ns("predicted_low_ns") <= ns("replayed_ns") && ns("replayed_ns") <= ns("predicted_high_ns");
    assert_eq!((check["is_within"].as_bool(), code(&output)), (Some(within), if within { 0 } else { 1 }));
    let of_other = run(
        d.path(),
        &[&["predict", "small.workload", "slow.system", "fast.system", "--check", "slow=ffs:size=64M"], &COVERAGE[..]]
            .concat(),
    );
    let said = String::from_utf8_lossy(&of_other.stdout);
    assert!(said.contains("Held against a replay") && said.contains("3 replays on ffs:size=64M"), "{said}");
}

#[test]
fn replays_can_be_repeated() {
    let d = two_systems();
    let said = succeeds(&run(d.path(), &["replay", "small.workload", "ffs:size=64M", "--repeats", "3", "--json"]));
    let value: Value = serde_json::from_str(&said).expect("one JSON document");
    let totals = value["repeats"]["totals_ns"].as_array().unwrap();
    assert_eq!(totals.len(), 3);
    assert!(totals.contains(&value["total_ns"]), "what is shown is one of them");
    assert_eq!(
        value["repeats"]["total_ns"]["median"].as_f64(),
        value["total_ns"].as_f64(),
        "virtual time repeats itself"
    );
    let refused = run(d.path(), &["replay", "small.workload", "ffs:size=64M", "--repeats", "2", "--keep"]);
    fails(&refused, 2, &["none is the one to keep"]);
}

#[test]
fn what_is_misspelt_is_answered_by_what_was_meant() {
    let d = two_systems();
    for (line, meant) in [
        ("predct", "predict"),
        ("help predct", "'predict'"),
        ("mkfs fffs x.img", "'ffs'"),
        ("completions zhs", "'zsh'"),
        ("measure etx4:8G", "'ext4'"),
        ("measure ext4:8G,mnt=noatime", "'mount'"),
        ("measure ffs:reallok", "'realloc'"),
        ("measure ffs:sise=8M", "'size='"),
        ("measure ffs:machine=pentium-12", "'pentium-120'"),
        ("bench seqfile ffs:realloc@st3243n", "'st32430n'"),
        ("drive describe st3243n", "'st32430n'"),
        ("plan personality hme --capacity 1G -o x.aging", "'home'"),
        ("reproduce alloc96/agregate", "'alloc96/aggregate'"),
        ("predict small.workload etx4", "'ext4'"),
        ("predict small.workload slow.system fast.system --explain slwo fast --min-coverage 0", "'slow'"),
        ("predict small.workload slow.system --set unlink=5us --min-coverage 0", "\"rm\""),
    ] {
        let output = run(d.path(), &line.split(' ').collect::<Vec<_>>());
        let said = stderr(&output);
        assert!(!output.status.success() && said.contains(meant), "{line}: {said}");
    }
}

#[test]
fn age_without_a_plan_says_how_to_have_one_made() {
    let d = tempfile::tempdir().unwrap();
    let said = stderr(&run(d.path(), &["age", "ext4:1G"]));
    assert!(said.contains("--like home has a plan made"), "{said}");
}

/// 4 in one command, and 2 in another.
#[test]
fn a_file_that_is_missing_is_a_bad_input_everywhere() {
    let d = two_systems();
    for line in [
        "predict small.workload none.system",
        "predict none.workload slow.system",
        "inspect none",
        "replay none.workload .",
        "validate none.workload --on .",
        "fsck none.img",
        "layout none",
        "layout --compare none.json none.json",
        "bench --compare none.json none.json",
        "import none",
        "export none.workload",
        "dump none.img superblock",
        "cp none.img:/x y",
        "clean none.img",
        "mount none.img .",
        "age ffs:size=64M --plan none.aging",
        "drive describe none.toml",
    ] {
        let output = run(d.path(), &line.split(' ').collect::<Vec<_>>());
        assert_eq!(code(&output), 4, "{line}: {}", stderr(&output));
    }
    let two = run(d.path(), &["predict", "small.workload", "small.workload"]);
    fails(&two, 2, &["name at least one system"]);
}

#[test]
fn what_is_there_is_replaced_only_where_that_was_asked_for() {
    let d = two_systems();
    let there = run(d.path(), &["record", "-o", "small.workload", "true"]);
    fails(&there, 2, &["--overwrite"]);
    let other = run(d.path(), &["record", "-o", "x.system", "true"]);
    fails(&other, 2, &["x.system", "a directory NAME.workload"]);
    let before = std::fs::read(d.path().join("slow.system")).unwrap();
    let measured = run(d.path(), &["measure", "ffs:size=64M", "-o", "slow.system"]);
    fails(&measured, 2, &["slow.system: is already there", "--overwrite"]);
    std::fs::write(d.path().join("notes.txt"), "mine").unwrap();
    let notes = run(d.path(), &["measure", "ffs:size=64M", "-o", "notes.txt", "--overwrite"]);
    fails(&notes, 2, &["notes.txt", "no system profile"]);
    assert_eq!(std::fs::read(d.path().join("slow.system")).unwrap(), before);
}

/// Files of an older run stayed beside those of a new one.
#[test]
fn a_directory_of_results_holds_the_files_of_one_run() {
    let d = two_systems();
    predict(d.path(), &["small.workload", "slow.system", "fast.system", "--explain", "slow", "fast", "-o", "out"]);
    let out = d.path().join("out");
    let has = |name: &str| out.join(name).exists();
    assert!(has("explain_by_class.csv") && has("tipping.csv") && has("by_directory.csv"));
    std::fs::write(out.join("mine.txt"), "mine").unwrap();
    std::fs::write(out.join("tipping.csv"), "changed by hand").unwrap();
    let again = run(d.path(), &[&["predict", "small.workload", "fast.system", "-o", "out"], &COVERAGE[..]].concat());
    succeeds(&again);
    assert!(!has("explain_by_class.csv"), "of the run before");
    assert!(has("by_directory.csv") && has("mine.txt"));
    assert!(has("tipping.csv") && stderr(&again).contains("changed since"), "{}", stderr(&again));
    std::fs::create_dir(d.path().join("foreign")).unwrap();
    std::fs::write(d.path().join("foreign/ranking.csv"), "mine").unwrap();
    let foreign =
        run(d.path(), &[&["predict", "small.workload", "fast.system", "-o", "foreign"], &COVERAGE[..]].concat());
    fails(&foreign, 2, &["ranking.csv", "would be overwritten"]);
}

#[test]
fn every_figure_is_a_row_of_one_long_table() {
    let d = two_systems();
    let value = json(d.path(), &["small.workload", "slow.system", "fast.system", "-o", "out"]);
    let csv = std::fs::read_to_string(d.path().join("out/long.csv")).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("table,workload,system,call,item,metric,value,low,high,unit"));
    let total = value["ranking"]["systems"][0]["total_ns"].as_f64().unwrap();
    let row =
        csv.lines().find(|line| line.starts_with("ranking,small.workload,fast,") && line.contains(",total,")).unwrap();
    let cells: Vec<&str> = row.split(',').collect();
    assert_eq!((cells[6].parse::<f64>().ok(), cells[9]), (Some(total), "ns"), "{row}");
    let by_call = lines.filter(|line| line.starts_with("by_op,small.workload,slow,")).count();
    assert!(by_call > 5, "{csv}");
    let file = std::fs::File::open(d.path().join("out/long.parquet")).unwrap();
    let reader = parquet::file::serialized_reader::SerializedFileReader::new(file).unwrap();
    let metadata = parquet::file::reader::FileReader::metadata(&reader).file_metadata().clone();
    assert_eq!(metadata.num_rows() as usize, csv.lines().count() - 1);
    let columns: Vec<String> =
        metadata.schema_descr().columns().iter().map(|column| column.name().to_owned()).collect();
    assert_eq!(columns, ["table", "workload", "system", "call", "item", "metric", "value", "low", "high", "unit"]);
    let footer = metadata.key_value_metadata().unwrap();
    assert!(footer.iter().any(|pair| pair.key == "fsage.schema" && pair.value.as_deref() == Some("fsage.predict/1")));
}

#[test]
fn a_result_says_where_it_comes_from() {
    let d = two_systems();
    let value = json(d.path(), &["small.workload", "slow.system", "--html", "r.html"]);
    let run = &value["run"];
    assert_eq!(run["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["command"], "fsage predict small.workload slow.system --html r.html --json --min-coverage 0");
    assert_eq!((run["time"].as_str(), run["seed"].as_u64()), (Some("2023-11-14T22:13:20Z"), Some(1)));
    let html = std::fs::read_to_string(d.path().join("r.html")).unwrap();
    let footer = html.split("<footer>").nth(1).expect("a page ends with where it comes from");
    for part in ["<dt>command</dt><dd>fsage predict", "<dt>machine</dt>", "2023-11-14", "<dt>seed</dt><dd>1</dd>"] {
        assert!(footer.contains(part), "{part}: {footer}");
    }
}

/// The widest line of `--explain` was 140 columns at 80, and its last column one word a line.
#[test]
fn the_longest_page_fits_eighty_columns() {
    let d = two_systems();
    let mut command = common::fsage();
    command.current_dir(d.path()).env("COLUMNS", "80").args(["predict", "small.workload", "ext4", "xfs", "btrfs"]);
    let said = succeeds(&command.args(["--details", "--explain", "ext4", "xfs"]).args(COVERAGE).output().unwrap());
    let too_wide: Vec<&str> = said.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(too_wide.is_empty(), "{too_wide:#?}");
    assert!(said.contains("Meaning:") && said.lines().count() < 400, "{} lines", said.lines().count());
}
