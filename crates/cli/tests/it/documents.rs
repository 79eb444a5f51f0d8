//! The pages lead where they say, and the commands on them are fsage's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// The top of the repository.
pub fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The pages of the repository, with their text.
fn pages() -> BTreeMap<PathBuf, String> {
    let of = |directory: PathBuf| std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let paths = of(top())
        .chain(of(top().join("docs")))
        .chain(of(top().join("docs/how-to")))
        .filter(|path| path.extension().is_some_and(|e| e == "md"));
    paths.map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// The lines of a page that are prose (`true`), and those of blocks between fences.
fn lines(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut fenced = false;
    text.lines().filter_map(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fence).then_some((!fenced, line))
    })
}

/// The anchor that a browser makes of a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The path without `.` and `..`, as text of a page has them.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn links_lead_to_files_and_headings_that_are_there() {
    let pages = pages();
    let headings: BTreeMap<&Path, BTreeSet<String>> = pages
        .iter()
        .map(|(path, text)| {
            let headings = lines(text).filter(|(prose, line)| *prose && line.starts_with('#'));
            (path.as_path(), headings.map(|(_, line)| anchor(line)).collect())
        })
        .collect();
    let (mut wrong, mut links) = (Vec::new(), 0);
    for (page, text) in &pages {
        let prose: String = lines(text).filter(|(prose, _)| *prose).flat_map(|(_, line)| [line, "\n"]).collect();
        for link in prose.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(link, _)| link)) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            links += 1;
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let to = if file.is_empty() { page.clone() } else { plain(&page.with_file_name(file)) };
            let leads = to.exists() && (heading.is_empty() || headings.get(&*to).is_none_or(|h| h.contains(heading)));
            if !leads {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(links > 150, "{links} links were found");
    assert!(wrong.is_empty(), "these links lead nowhere:\n{}", wrong.join("\n"));
}

/// What `fsage WORDS --help` prints, if there is such a command.
fn help(words: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_fsage")).args(words).arg("--help").output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

#[test]
fn commands_on_the_pages_are_those_of_the_program() {
    let mut wrong = BTreeSet::new();
    let mut known: BTreeMap<Vec<&str>, Option<String>> = BTreeMap::new();
    let (pages, mut commands) = (pages(), 0);
    for (page, text) in pages.iter().filter(|(page, _)| !page.ends_with("CHANGELOG.md")) {
        for (prose, line) in lines(text).filter(|(prose, line)| !prose || line.starts_with("    ")) {
            let line = line.trim().trim_start_matches("$ ");
            let Some(rest) = line.strip_prefix("fsage ").filter(|_| !line.starts_with("fsage: ")) else { continue };
            let rest = rest.split(['#', ';', '|']).next().unwrap_or_default();
            // Where columns of text follow a command, they are two blanks away.
            let rest = if prose { rest.split("   ").next().unwrap_or_default() } else { rest };
            let words: Vec<&str> = rest.split_whitespace().collect();
            let Some(command) = words.first().filter(|word| word.chars().all(|c| c.is_ascii_lowercase())) else {
                continue;
            };
            commands += 1;
            let mut helps = vec![vec![*command]];
            if matches!(*command, "plan" | "bench" | "mkfs" | "drive") {
                helps.extend(words.get(1).filter(|word| !word.starts_with('-')).map(|word| vec![*command, *word]));
            }
            let mut text = String::new();
            for words in helps {
                match known.entry(words.clone()).or_insert_with(|| help(&words)) {
                    Some(help) => text += help,
                    None => drop(wrong.insert(format!("{}: fsage {}", page.display(), words.join(" ")))),
                }
            }
            // What follows the program to be recorded is that program's.
            let own = words.iter().skip(1).take_while(|word| *command != "record" || word.starts_with('-'));
            for option in own.filter(|word| word.starts_with("--")) {
                let name = option.split(['=', ',', '[']).next().unwrap_or_default();
                if !text.contains(&format!("{name} "))
                    && !text.contains(&format!("{name}\n"))
                    && !text.contains(&format!("{name}["))
                {
                    wrong.insert(format!("{}: fsage {command}: {name}", page.display()));
                }
            }
        }
    }
    assert!(commands > 150, "{commands} commands were found");
    assert!(wrong.is_empty(), "these are not of the program:\n{}", Vec::from_iter(wrong).join("\n"));
}

/// The sources below a directory, in folders below as well.
pub fn sources(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.insert(path, text);
        }
    }
    found
}

/// The schemas that the crates write.
pub fn schemas_of_the_sources() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for room in std::fs::read_dir(top().join("crates")).unwrap() {
        for text in sources(&room.unwrap().path().join("src")).values() {
            let strings = text.split('"').filter_map(|text| text.strip_prefix("fsage."));
            let named = strings
                .filter_map(|text| text.split_once('/'))
                .filter(|(_, version)| version.starts_with(|c: char| c.is_ascii_digit()));
            found.extend(named.map(|(name, version)| {
                let digits = version.trim_end_matches(|c: char| !c.is_ascii_digit());
                format!("fsage.{name}/{digits}")
            }));
        }
    }
    found
}

#[test]
fn each_schema_is_on_a_page() {
    let mut found = schemas_of_the_sources();
    assert!(found.len() > 40 && found.contains("fsage.predict/1"), "{found:?}");
    let pages = pages();
    found.retain(|schema| !pages.values().any(|page| page.contains(&format!("`{schema}`"))));
    assert!(found.is_empty(), "on no page (docs/formats.md has a table of them): {found:?}");
}
