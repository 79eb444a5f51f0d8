//! The examples on the how-to pages are run, and print what stands there.
//!
//! A block ```` ```console ```` holds commands behind `$`, and what each prints below it: `?
//! N` first where the exit status is not 0, and `...` for lines that the page leaves out. The commands of a page run in
//! one directory, which holds the workloads that the pages name. After a change to what a command prints,
//! `FSAGE_PAGES=write cargo test -p fsage --test it pages::` writes the pages again: read what it wrote.

use crate::common::{fsage, is_of_another_run, small_workload};
use crate::documents::top;
use std::fmt::Write as _;
use std::path::Path;

/// The files that the pages name.
fn given(directory: &Path) {
    for name in ["web.workload", "mail.workload"] {
        small_workload(directory);
        std::fs::rename(directory.join("small.workload"), directory.join(name)).unwrap();
    }
}

/// A command with what the page has below it.
struct Example<'p> {
    command: &'p str,
    expected: Vec<&'p str>,
}

/// What a command prints, as a page has it: a status that is not 0 first, messages before the result.
fn printed(command: &str, directory: &Path) -> String {
    let words: Vec<&str> = command.split(' ').collect();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    match words.as_slice() {
        ["fsage", arguments @ ..] => {
            let mut command = fsage();
            command.env("COLUMNS", "100").current_dir(directory).args(arguments);
            let output = command.output().unwrap();
            let status = output.status.code().expect("it exited by itself");
            let status = if status == 0 { String::new() } else { format!("? {status}\n") };
            // How far it is tells a command that takes long, on a busy machine.
            let messages = text(&output.stderr);
            let spent = |time: &str| time.starts_with(|c: char| c.is_ascii_digit()) && !time.contains(' ');
            let of_progress = |line: &str| {
                line.rsplit_once(" %, ").is_some_and(|(_, left)| left.contains(" left") && left.len() < 30)
                    || line.rsplit_once(": for ").is_some_and(|(_, time)| spent(time))
            };
            let own = messages.lines().filter(|line| !is_of_another_run(line) && !of_progress(line));
            format!("{status}{}{}", own.flat_map(|line| [line, "\n"]).collect::<String>(), text(&output.stdout))
        }
        ["cat", file] => std::fs::read_to_string(directory.join(file)).unwrap(),
        ["head", "-n", lines, file] => {
            let whole = std::fs::read_to_string(directory.join(file)).unwrap();
            whole.lines().take(lines.parse().unwrap()).flat_map(|line| [line, "\n"]).collect()
        }
        _ => panic!("{command}: the pages run fsage, cat and head"),
    }
}

/// Whether lines are as the page says, where `...` is any number of them.
fn fits(expected: &[&str], found: &[&str]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((&"...", rest)) => (0..=found.len()).any(|skipped| fits(rest, &found[skipped..])),
        Some((line, rest)) => {
            found.split_first().is_some_and(|(first, found)| first.trim_end() == *line && fits(rest, found))
        }
    }
}

#[test]
fn examples_print_what_the_pages_say() {
    let write = std::env::var_os("FSAGE_PAGES").is_some_and(|what| what == "write");
    let (mut wrong, mut count) = (String::new(), 0);
    for entry in std::fs::read_dir(top().join("docs/how-to")).unwrap().flatten() {
        let directory = tempfile::tempdir().unwrap();
        given(directory.path());
        let page = std::fs::read_to_string(entry.path()).unwrap();
        let mut again = String::new();
        let mut rest = page.as_str();
        while let Some((before, block)) = rest.split_once("```console\n") {
            let (block, after) = block.split_once("```").expect("a block ends");
            let _ = writeln!(again, "{before}```console");
            for example in block.split("$ ").skip(1).map(|text| {
                let (command, printed) = text.split_once('\n').unwrap_or((text, ""));
                Example { command, expected: printed.trim_end().lines().map(str::trim_end).collect() }
            }) {
                count += 1;
                let found = printed(example.command, directory.path());
                let lines: Vec<&str> = found.trim_end().lines().map(str::trim_end).collect();
                if !fits(&example.expected, &lines) {
                    let _ = writeln!(wrong, "{}: {}\n{found}", entry.path().display(), example.command);
                }
                // What a page leaves out, it leaves out again: the lines behind the status.
                let kept = match example.expected.as_slice() {
                    [status, "..."] if status.starts_with("? ") => {
                        lines.iter().take(2).chain(&["..."]).copied().collect()
                    }
                    ["..."] => vec!["..."],
                    _ => lines.clone(),
                };
                let _ = writeln!(again, "$ {}\n{}\n", example.command, kept.join("\n"));
            }
            again = format!("{}\n```", again.trim_end());
            rest = after;
        }
        again.push_str(rest);
        if write {
            std::fs::write(entry.path(), again).unwrap();
        }
    }
    assert!(count >= 8, "{count} examples were found");
    assert!(wrong.is_empty() || write, "these print something else than the page says:\n{wrong}");
}
