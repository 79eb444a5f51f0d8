//! Damaged and unsuitable input files: each is named with the place, exits with 4, and stays as it was.

use crate::common;
use crate::common::{fails, fsage, names, run, small_system, small_workload, succeeds};
use std::fs;
use std::path::Path;

fn bytes_below(directory: &Path) -> Vec<(String, Vec<u8>)> {
    names(directory).into_iter().map(|name| (name.clone(), fs::read(directory.join(&name)).unwrap())).collect()
}

/// Every command that reads a workload refuses it, names the file, and leaves it and the target alone.
#[track_caller]
fn refused_everywhere(d: &Path, texts: &[&str]) {
    let before = bytes_below(&d.join("small.workload"));
    for args in [
        &["inspect", "small.workload"][..],
        &["inspect", "small.workload", "--rows"],
        &["predict", "small.workload", "a.system", "--min-coverage", "0"],
        &["replay", "small.workload", "target"],
        &["export", "small.workload", "-o", "out.csv"],
    ] {
        // Rows at the front may be fine where the end is damaged.
        let output = run(d, args);
        if output.status.success() && args.contains(&"--rows") {
            continue;
        }
        fails(&output, 4, texts);
    }
    assert_eq!(bytes_below(&d.join("small.workload")), before, "no input was lost");
    assert_eq!(names(&d.join("target")), [""; 0], "nothing is left in the target");
    assert!(!d.join("out.csv").exists(), "half an export was left");
}

fn prepared() -> tempfile::TempDir {
    let d = tempfile::tempdir().unwrap();
    small_workload(d.path());
    small_system(d.path(), "a", 2_000.0);
    fs::create_dir(d.path().join("target")).unwrap();
    d
}

#[test]
fn truncated_parquet() {
    let d = prepared();
    let path = d.path().join("small.workload/trace.parquet");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() * 2 / 3]).unwrap();
    refused_everywhere(d.path(), &["trace.parquet", "byte"]);
}

#[test]
fn corrupt_parquet() {
    let d = prepared();
    let path = d.path().join("small.workload/trace.parquet");
    let mut bytes = fs::read(&path).unwrap();
    for byte in bytes.iter_mut().skip(200).take(64) {
        *byte ^= 0x5a;
    }
    fs::write(&path, &bytes).unwrap();
    refused_everywhere(d.path(), &["trace.parquet", "row group"]);
}

#[test]
fn a_missing_snapshot() {
    let d = prepared();
    fs::remove_file(d.path().join("small.workload/snapshot.parquet")).unwrap();
    refused_everywhere(d.path(), &["snapshot.parquet"]);
}

#[test]
fn a_workload_of_a_newer_version() {
    let d = prepared();
    let path = d.path().join("small.workload/meta.json");
    let text = fs::read_to_string(&path).unwrap().replace("\"format_version\": 2", "\"format_version\": 3");
    fs::write(&path, text).unwrap();
    refused_everywhere(d.path(), &["meta.json", "version 3", "newer fsage"]);
}

#[test]
fn meta_that_is_not_json() {
    let d = prepared();
    let path = d.path().join("small.workload/meta.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() / 2]).unwrap();
    refused_everywhere(d.path(), &["meta.json", "line"]);
}

#[test]
fn a_workload_that_is_not_there() {
    let d = tempfile::tempdir().unwrap();
    let system = small_system(d.path(), "a", 2_000.0);
    let output = fsage().current_dir(d.path()).args(["predict", "no.workload"]).arg(system).output().unwrap();
    fails(&output, 4, &["no.workload"]);
}

#[test]
fn damaged_system_profiles() {
    let d = prepared();
    let good = fs::read_to_string(d.path().join("a.system")).unwrap();
    let truncated = good.find("open = ").unwrap() + 6;
    for (name, text, expected) in [
        ("cut.system", good[..truncated].to_owned(), "cut.system:"),
        ("newer.system", good.replace("format_version = 1", "format_version = 9"), "version 9"),
        ("typo.system", good.replace("\nopen = ", "\nopne = "), "did you mean"),
        ("negative.system", good.replace("\nopen = \"2000ns\"", "\nopen = \"-5ns\""), "negative.system:"),
        ("unit.system", good.replace("\nopen = \"2000ns\"", "\nopen = \"5 parsecs\""), "parsecs"),
        ("empty.system", String::new(), "empty.system:"),
    ] {
        fs::write(d.path().join(name), &text).unwrap();
        fails(&run(d.path(), &["predict", "small.workload", name]), 4, &[name, expected]);
        fails(&run(d.path(), &["inspect", name]), 4, &[name, expected]);
        assert_eq!(fs::read_to_string(d.path().join(name)).unwrap(), text);
    }
    fs::write(d.path().join("binary.system"), [0xff, 0xfe, 0x00, 0x41]).unwrap();
    fails(&run(d.path(), &["inspect", "binary.system"]), 4, &["binary.system:1:1", "UTF-8"]);
    fails(&run(d.path(), &["inspect", "absent.system"]), 4, &["absent.system"]);
}

#[test]
fn traces_that_are_no_use() {
    let d = tempfile::tempdir().unwrap();
    for (name, text, expected) in [
        ("empty.txt", "", "empty"),
        ("poem.txt", "It was many and many a year ago,\nIn a kingdom by the sea\n", "strace"),
        ("times.txt", "12:00:00 open(\"/etc/passwd\", O_RDONLY) = 3 <0.000010>\n", "-ttt"),
    ] {
        fs::write(d.path().join(name), text).unwrap();
        let output = run(d.path(), &["import", name, "-o", "out.workload"]);
        fails(&output, 4, &[name, expected]);
        assert!(!d.path().join("out.workload").exists(), "{name}: a refused import left a profile");
        assert_eq!(names(d.path()).iter().filter(|n| n.contains("out")).count(), 0, "{:?}", names(d.path()));
        assert_eq!(fs::read_to_string(d.path().join(name)).unwrap(), text, "the input is as it was");
    }
    fails(&run(d.path(), &["import", "absent.txt", "-o", "out.workload"]), 4, &["absent.txt"]);
}

#[test]
fn lines_that_are_not_understood_are_counted_with_their_numbers() {
    let d = tempfile::tempdir().unwrap();
    let mut lines: Vec<String> = fs::read_to_string(common::trace_text()).unwrap().lines().map(str::to_owned).collect();
    lines.insert(10, "what is this line doing here?".to_owned());
    fs::write(d.path().join("t.strace"), lines.join("\n") + "\n").unwrap();
    let output = run(d.path(), &["import", "t.strace", "-o", "t.workload"]);
    assert!(output.status.success(), "{}", common::stderr(&output));
    assert!(common::stderr(&output).contains("11"), "{}", common::stderr(&output));
    let value: serde_json::Value =
        serde_json::from_str(&succeeds(&run(d.path(), &["inspect", "t.workload", "--json"]))).unwrap();
    assert_eq!(value["files"][0]["meta"]["unparsed"]["lines"], 1);
    assert_eq!(value["files"][0]["meta"]["unparsed"]["first_line_numbers"][0], 11);
}

#[test]
fn an_import_never_overwrites() {
    let d = prepared();
    let before = bytes_below(&d.path().join("small.workload"));
    let output = fsage()
        .current_dir(d.path())
        .arg("import")
        .arg(common::trace_text())
        .args(["-o", "small.workload"])
        .output()
        .unwrap();
    fails(&output, 2, &["small.workload"]);
    assert_eq!(bytes_below(&d.path().join("small.workload")), before);
}

/// A trace as strace would write it, of a process that opens what it is told.
fn trace_of(calls: &[String]) -> String {
    let mut text =
        String::from("100 1700000000.000000 execve(\"/bin/x\", [\"x\"], 0x7ffe /* 1 var */) = 0 <0.000100>\n");
    for (i, call) in calls.iter().enumerate() {
        text.push_str(&format!("100 1700000000.{:06} {call}\n", 100 + i * 10));
    }
    text.push_str("100 1700000001.500000 exit_group(0) = ?\n100 1700000001.500001 +++ exited with 0 +++\n");
    text
}

#[track_caller]
fn survives(name: &str, calls: &[String]) -> tempfile::TempDir {
    let d = tempfile::tempdir().unwrap();
    fs::write(d.path().join("t.strace"), trace_of(calls)).unwrap();
    fs::create_dir(d.path().join("target")).unwrap();
    small_system(d.path(), "a", 2_000.0);
    succeeds(&run(d.path(), &["import", "t.strace", "-o", "t.workload"]));
    succeeds(&run(d.path(), &["inspect", "t.workload"]));
    // Other sizes of the cache take twelve predictions more, and name nothing.
    let predict = ["predict", "t.workload", "a.system", "--min-coverage", "0", "--html", "r.html"];
    let predicted = succeeds(&run(d.path(), &[&predict[..], &["--cache-sizes", "none"]].concat()));
    assert!(!predicted.contains('\u{1b}'), "{name}: an escape sequence reached the terminal");
    let replayed = run(d.path(), &["replay", "t.workload", "target"]);
    succeeds(&replayed);
    assert_eq!(names(&d.path().join("target")), [""; 0], "{name}: the target is as it was");
    d
}

#[test]
fn paths_with_newlines_and_invalid_utf8() {
    // strace prints such bytes escaped, octal by default.
    let calls: Vec<String> = [r"/tmp/fx/a\nb", r"/tmp/fx/\377\376", r"/tmp/fx/\33[31mred"]
        .iter()
        .flat_map(|path| {
            [
                format!("openat(AT_FDCWD</tmp/fx>, \"{path}\", O_WRONLY|O_CREAT, 0644) = 3<{path}> <0.000010>"),
                format!("write(3<{path}>, \"\"..., 512) = 512 <0.000010>"),
                format!("close(3<{path}>) = 0 <0.000010>"),
            ]
        })
        .collect();
    let d = survives("strange names", &calls);
    let csv = succeeds(&run(d.path(), &["export", "t.workload"]));
    assert!(csv.lines().count() > 9, "{csv}");
    assert!(csv.lines().skip(1).all(|line| line.chars().next().is_some_and(|c| c.is_ascii_digit())), "one line a row");
}

#[test]
fn ten_thousand_open_descriptors() {
    let mut calls: Vec<String> = (0..10_000)
        .map(|i| {
            format!("openat(AT_FDCWD</tmp/fx>, \"f{i}\", O_RDWR|O_CREAT, 0644) = {}</tmp/fx/f{i}> <0.000010>", i + 3)
        })
        .collect();
    calls.extend((0..10_000).map(|i| format!("write({}</tmp/fx/f{i}>, \"\"..., 10) = 10 <0.000010>", i + 3)));
    survives("many descriptors", &calls);
}

#[test]
fn a_path_of_a_thousand_components() {
    // Longer than PATH_MAX as a whole: made and walked step by step.
    let mut calls = Vec::new();
    let mut at = "/tmp/fx".to_owned();
    for _ in 0..1000 {
        calls.push("mkdir(\"component\", 0755) = 0 <0.000010>".to_owned());
        calls.push("chdir(\"component\") = 0 <0.000010>".to_owned());
        at.push_str("/component");
    }
    let open = format!("openat(AT_FDCWD<{at}>, \"file\", O_WRONLY|O_CREAT, 0644) = 3<{at}/file> <0.000010>");
    calls.insert(0, "chdir(\"/tmp/fx\") = 0 <0.000010>".to_owned());
    calls.push(open);
    calls.push(format!("write(3<{at}/file>, \"\"..., 100) = 100 <0.000010>"));
    survives("a deep path", &calls);
}

/// Names of systems reached the terminal by the heads of columns, all names by JSON's second set of control characters,
/// and a spreadsheet as formulas.
#[test]
fn names_are_shown_and_do_nothing() {
    const EVIL: &str = "=evil\u{1b}[31m\u{9b}2J\u{202e}";
    let d = tempfile::tempdir().unwrap();
    let toml = EVIL.replace('\u{1b}', "\\u001B").replace('\u{9b}', "\\u009B");
    for (name, cost_ns) in [("a", 2_000.0), ("b", 3_000.0)] {
        let path = small_system(d.path(), name, cost_ns);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(path, text.replace(&format!("name = \"{name}\""), &format!("name = \"{toml}{name}\""))).unwrap();
    }
    let calls: Vec<String> = [r"/tmp/fx/=a\33[31m\302\2332J", r"/tmp/fx/@b"]
        .iter()
        .flat_map(|path| {
            [
                format!("openat(AT_FDCWD</tmp/fx>, \"{path}\", O_WRONLY|O_CREAT, 0644) = 3<{path}> <0.000010>"),
                format!("symlink(\"=1+1\", \"{path}.link\") = 0 <0.000010>"),
                format!("close(3<{path}>) = 0 <0.000010>"),
            ]
        })
        .collect();
    fs::write(d.path().join("t.strace"), trace_of(&calls)).unwrap();
    let workload = format!("{EVIL}.workload");
    succeeds(&run(d.path(), &["import", "t.strace", "-o", &workload]));
    fs::create_dir(d.path().join("target")).unwrap();
    let systems = [format!("{EVIL}a"), format!("{EVIL}b")];
    for args in [
        &["inspect", &workload][..],
        &["inspect", &workload, "--json"],
        &["inspect", &workload, "--rows", "--json"],
        &["inspect", "a.system"],
        &["export", &workload],
        &["predict", &workload, "a.system", "b.system", "--min-coverage", "0", "-o", "out"],
        &["predict", &workload, "a.system", "b.system", "--min-coverage", "0", "--json"],
        &["predict", &workload, "a.system", "b.system", "--min-coverage", "0", "--explain", &systems[0], &systems[1]],
        &["replay", &workload, "target", "--json"],
        &["replay", "/nowhere", EVIL],
        &["inspect", EVIL],
        &["layout", EVIL],
        &["cp", EVIL, "x"],
        &["mkfs", EVIL],
        &[EVIL],
    ] {
        let output = run(d.path(), args);
        assert!(matches!(output.status.code(), Some(0 | 2 | 4)), "{args:?}: {}", common::stderr(&output));
        assert_eq!(output.status.success(), !args.last().is_some_and(|last| *last == EVIL || *last == "x"), "{args:?}");
        for text in [&output.stdout, &output.stderr] {
            let text = String::from_utf8(text.clone()).unwrap();
            let shown = |c: char| c == '\n' || !units::text::is_hidden(c);
            assert!(text.chars().all(shown), "{args:?}: {}", text.escape_debug());
            assert!(!text.contains("\"=1+1\"") || args.contains(&"--json"), "{args:?}: {text}");
        }
    }
    let mut cells = 0;
    // Parquet is no text: whoever shows a name from there escapes it.
    for name in names(&d.path().join("out")).into_iter().filter(|name| !name.ends_with(".parquet")) {
        let text = fs::read_to_string(d.path().join("out").join(&name)).unwrap();
        assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{name}");
        if name.ends_with(".csv") {
            cells += text.matches("'=evil").count();
            let begins = |cell: &str| cell.trim_start_matches('"').starts_with(['=', '@']);
            assert!(!text.lines().any(|line| line.split(',').any(begins)), "{name}: {text}");
        }
    }
    assert!(cells > 0, "no table names the systems");
}

/// `fsck IMG --html IMG` put the report in the place of the image.
#[test]
fn a_report_replaces_nothing_but_a_report() {
    let d = tempfile::tempdir().unwrap();
    std::fs::write(d.path().join("mine"), "not to be lost").unwrap();
    std::fs::write(d.path().join("empty"), "").unwrap();
    let drive = |html| run(d.path(), &["drive", "describe", "st32430n", "--html", html]);
    fails(&drive("mine"), 2, &["mine: is there and is no report of fsage's"]);
    assert_eq!(std::fs::read_to_string(d.path().join("mine")).unwrap(), "not to be lost");
    for html in ["new.html", "new.html", "empty"] {
        succeeds(&drive(html));
        assert!(std::fs::read_to_string(d.path().join(html)).unwrap().trim_end().ends_with("</html>"));
    }
}
