//! What a newcomer types first.

use crate::common;
use crate::common::{code, fsage, succeeds};

fn commands() -> Vec<String> {
    let help = succeeds(&fsage().arg("--help").output().unwrap());
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect()
}

#[test]
fn every_command_explains_itself() {
    let commands = commands();
    for expected in [
        "record",
        "import",
        "export",
        "inspect",
        "measure",
        "predict",
        "replay",
        "validate",
        "quickstart",
        "completions",
        "man",
    ] {
        assert!(commands.iter().any(|c| c == expected), "{expected} is not in {commands:?}");
    }
    for command in &commands {
        let help = succeeds(&fsage().args([command.as_str(), "--help"]).output().unwrap());
        assert!(
            help.contains("Usage: fsage ") && help.lines().next().is_some_and(|l| l.len() > 20),
            "{command}: {help}"
        );
        // An option stands at this depth; a line of a text can begin with one, too. Without a word of explanation it
        // ends its line.
        for line in help.lines().filter(|l| l.starts_with("      --")) {
            let (_, rest) = line.split_once("  --").unwrap_or(("", line));
            assert!(
                rest.contains("  ") || help.contains(&format!("{line}\n          ")),
                "{command}: no help on {line}"
            );
        }
    }
}

#[test]
fn usage_errors_exit_with_2() {
    for args in [&[][..], &["frobnicate"], &["predict"], &["predict", "x.workload"], &["measure", ".", "--budget", "5"]]
    {
        let output = fsage().args(args).output().unwrap();
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    let output = fsage().args(["predict", "w", "s", "--set", "rm=5"]).output().unwrap();
    assert_eq!(code(&output), 2);
    assert!(common::stderr(&output).contains("not a duration"), "{}", common::stderr(&output));
}

#[test]
fn a_target_that_means_nothing_is_a_usage_error_that_points_at_the_place() {
    let output = fsage().args(["measure", "ext4:8Q"]).output().unwrap();
    assert_eq!(code(&output), 2);
    let said = common::stderr(&output);
    assert!(said.contains("ext4:8Q") && said.contains("character"), "{said}");
}

#[test]
fn laboratory_targets_that_mean_nothing_point_at_the_place() {
    let directory = tempfile::tempdir().unwrap();
    for (target, texts) in [
        ("ffs:softdeps@st32430n", ["character 5", "'softdeps' is no option"]),
        ("ffs:size=8M@vax", ["character 13", "no drive 'vax'"]),
    ] {
        let output = common::run(directory.path(), &["measure", target]);
        assert_eq!(code(&output), 2);
        let said = common::stderr(&output);
        assert!(texts.iter().all(|text| said.contains(text)), "{said}");
    }
}

#[test]
fn completions_and_manual_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = succeeds(&fsage().args(["completions", shell]).output().unwrap());
        for command in commands() {
            assert!(script.contains(&command), "{shell} completes no {command}");
        }
    }
    let directory = tempfile::tempdir().unwrap();
    succeeds(&fsage().arg("man").arg("-o").arg(directory.path()).output().unwrap());
    let pages = common::names(directory.path());
    for command in commands() {
        assert!(pages.contains(&format!("fsage-{command}.1")), "{pages:?}");
    }
    let page = succeeds(&fsage().arg("man").output().unwrap());
    assert!(page.starts_with(".ie") || page.contains(".TH fsage"), "{}", page.lines().next().unwrap_or_default());
}

/// Two options that exclude each other were said to, and not why.
#[test]
fn a_refusal_of_two_options_says_why_and_what_to_do_instead() {
    for (line, texts) in [
        (
            "age ffs:size=64M --like home --bench scan --keep a.img",
            ["leaves traces in the aged file system", "run it twice"],
        ),
        ("age --resume state.json --seed 3", ["a run goes on as it was begun", "leave them out"]),
        ("fsck a.img --background --revert a.undo", ["takes a repair back", "run it by itself"]),
        ("plan personality --list home", ["it prints what there is", "run it by itself"]),
        ("bench --compare a.json b.json scan .", ["results that are there", "run the benchmark first"]),
        ("record --mount / -- true", ["a recording has one subject", "record each by itself"]),
    ] {
        let output = fsage().args(line.split(' ')).output().unwrap();
        assert_eq!(code(&output), 2, "{line}");
        let said = common::stderr(&output);
        assert!(said.contains("cannot be used with") && texts.iter().all(|text| said.contains(text)), "{line}: {said}");
    }
}

/// 1 after a repair that worked surprised those who do not know fsck(8).
#[test]
fn fsck_says_what_its_exit_codes_are() {
    let help = succeeds(&fsage().args(["fsck", "--help"]).output().unwrap());
    let help: Vec<&str> = help.split_whitespace().collect();
    for text in ["1 problems were found: repaired", "as fsck(8) says it", "problems that are left are 1 and not 4"] {
        assert!(help.join(" ").contains(text), "{text}: {help:?}");
    }
}

/// SIGTERM's was not among them.
#[test]
fn every_exit_code_is_in_the_help() {
    let help = succeeds(&fsage().arg("help").output().expect("the binary runs"));
    for code in
        ["0 done", "1 a comparison", "2 usage", "3 environment", "4 bad input", "130 interrupted", "143 by SIGTERM"]
    {
        assert!(help.replace('\n', " ").contains(code), "{code}: {help}");
    }
}
