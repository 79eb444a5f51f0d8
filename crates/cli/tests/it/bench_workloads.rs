//! The workloads of `fsage bench` as people and scripts call them: on directories and in the laboratory.

use crate::common;
use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

/// A small run of each, and its phases.
const WORKLOADS: [(&[&str], &[&str]); 10] = [
    (&["smallfile", "--files", "50"], &["create", "read", "delete"]),
    (&["largefile", "--size", "1M"], &["write", "read", "random-write", "random-read", "reread"]),
    (&["tpcb", "--accounts", "4M", "--pool", "128K", "--transactions", "50", "--quick"], &["transactions"]),
    (&["hotcold", "--files", "50", "--writes", "100", "--quick"], &["overwrite"]),
    (&["postmark", "--number", "50", "--transactions", "60"], &["create", "transactions", "delete"]),
    (&["sdet", "--scripts", "2", "--commands", "5", "--cpu", "0"], &["scripts"]),
    (&["ssh-build", "--cpu", "0"], &["unpack", "configure", "build"]),
    (&["netnews", "--articles", "60", "--arrivals", "30", "--expired", "40", "--groups", "5"], &["unbatch", "expire"]),
    (&["andrew", "--copies", "1", "--cpu", "0"], &["mkdir", "copy", "stat", "read", "compile"]),
    (&["andrew", "--copies", "1", "--cpu", "0", "--users", "1,3"], &["scripts"]),
];

fn bench() -> Command {
    let mut command = common::fsage();
    command.arg("bench");
    command
}

fn output(args: &[&str], target: &Path, more: &[&str]) -> Vec<u8> {
    bench().args(args).arg(target).args(more).assert().success().get_output().stdout.clone()
}

#[test]
fn every_workload_runs_in_a_directory_and_leaves_it_empty() {
    let directory = tempfile::tempdir().unwrap();
    for (args, phases) in WORKLOADS {
        let found: Value =
            serde_json::from_slice(&output(args, directory.path(), &["--rounds", "1", "--no-warm-up", "--json"]))
                .unwrap();
        assert_eq!(
            (found["schema"].as_str(), found["parameters"]["benchmark"].as_str()),
            (Some("fsage.bench/1"), Some(args[0]))
        );
        for point in found["targets"][0]["points"].as_array().unwrap() {
            let names: Vec<&str> =
                point["phases"].as_array().unwrap().iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
            assert_eq!(names, phases, "{args:?}");
            for phase in point["phases"].as_array().unwrap() {
                let round = &phase["rounds"][0];
                assert!(round["calls"].as_u64().unwrap() > 0, "{args:?}: {round}");
                assert!(round["elapsed_ns"].as_u64().unwrap() > 0 && phase["rate"]["median"].as_f64().unwrap() >= 0.0);
            }
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "{args:?}");
    }
}

#[test]
fn in_the_laboratory_one_round_is_enough_and_the_next_run_is_the_same() {
    let target = Path::new("ffs:size=100M@st32430n");
    for (args, _) in WORKLOADS {
        let first = output(args, target, &["--json"]);
        assert_eq!(first, output(args, target, &["--json"]), "{args:?}");
        let found: Value = serde_json::from_slice(&first).unwrap();
        assert_eq!(found["parameters"]["repeat"]["rounds"], 1);
        assert_eq!(found["targets"][0]["caches"]["data"], "cold");
    }
}

#[test]
fn targets_side_by_side_and_a_report_as_the_program_prints_it() {
    let directory = tempfile::tempdir().unwrap();
    let html = directory.path().join("report.html");
    let args = [
        "postmark",
        "ffs:size=100M@st32430n",
        "ffs:noorder,size=100M@st32430n",
        "--number",
        "50",
        "--transactions",
        "60",
    ];
    let text = bench().args(args).arg("--html").arg(&html).assert().success().get_output().stdout.clone();
    let text = String::from_utf8(text).unwrap();
    for wanted in ["As PostMark reports it", "Creation alone: 50 files", "Against ffs:size=100M", "faster", "One round"]
    {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(std::fs::read_to_string(html).unwrap().contains("As PostMark reports it"));
}

#[test]
fn two_runs_with_other_parameters_are_cautioned() {
    let directory = tempfile::tempdir().unwrap();
    let result = |name: &str, files: &str| {
        let out = output(&["smallfile", "--files", files], Path::new("ffs:size=100M@st32430n"), &["--json"]);
        let path = directory.path().join(name);
        std::fs::write(&path, out).unwrap();
        path
    };
    let (a, b) = (result("a.json", "20"), result("b.json", "40"));
    let compared = bench().arg("--compare").args([&a, &b]).assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(compared).unwrap().contains("files: 20 in A, 40 in B"));
}

#[test]
fn wrong_arguments_are_refused_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], says: &str| {
        let run = bench().args(args).arg(directory.path()).assert().code(2);
        let text = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(text.contains(says), "{args:?}: {text}");
    };
    refused(&["tpcb", "--quick", "--log", "/tmp", "--log", "/tmp"], "name one for each target");
    refused(&["tpcb", "--pool", "1K"], "more than its inner pages");
    refused(&["postmark", "--size", "5", "2"], "lower bound is not above the upper");
    refused(&["sdet", "--scripts", "0"], "at least 1");
    refused(&["netnews", "--quick", "--expired", "100000"], "no more articles can expire");
    refused(&["andrew", "--cpu", "-1"], "");
    refused(&["andrew", "--users", "0"], "at least 1");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
