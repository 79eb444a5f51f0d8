//! Files of a crate use each other in one direction, so that one can be read, and changed, without all the others.
//!
//! What a file uses is in its `use` lines and in paths that begin with `crate` or `super`. A module's root (`mod.rs`,
//! `lib.rs`, `main.rs`) is left out: it names its children, and they may use what it says for all of them.

use crate::documents::{sources, top};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module's place in its crate: `["fsck", "report"]`.
type Module = Vec<String>;

fn is_root(file: &Path) -> bool {
    file.ends_with("mod.rs") || file.ends_with("lib.rs") || file.ends_with("main.rs")
}

/// The module that a file of `src` is.
fn module_of(file: &Path) -> Module {
    let mut parts: Module = file.with_extension("").iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if is_root(file) {
        parts.pop();
    }
    parts
}

/// The paths of a `use` tree: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths_of(tree: &str, above: &[String], found: &mut Vec<Module>) {
    let tree = tree.trim();
    let Some((head, inner)) = tree.split_once('{') else {
        let names = tree.split("::").map(|name| name.split(" as ").next().unwrap().trim().to_owned());
        found.push(above.iter().cloned().chain(names).collect());
        return;
    };
    let head = head.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let above: Module = above.iter().cloned().chain(head).collect();
    let (mut depth, mut from) = (0, 0);
    let inner = inner.strip_suffix('}').unwrap();
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                paths_of(&inner[from..at], &above, found);
                from = at + 1;
            }
            _ => {}
        }
    }
    if !inner[from..].trim().is_empty() {
        paths_of(&inner[from..], &above, found);
    }
}

/// What a file names of its crate. Tests below it may use anything.
fn named(text: &str) -> Vec<Module> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    let code: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut found = Vec::new();
    let mut open: Option<String> = None;
    for line in code {
        let item = line.trim_start();
        let visible = item.strip_prefix("pub").map_or(item, |rest| rest.trim_start_matches(|c| c != ' ').trim_start());
        if open.is_none() && visible.starts_with("use ") {
            open = Some(String::new());
        }
        if let Some(tree) = &mut open {
            tree.push_str(visible.strip_prefix("use ").unwrap_or(item));
            if let Some((tree, _)) = tree.split_once(';') {
                paths_of(tree, &[], &mut found);
                open = None;
            }
            continue;
        }
        for start in ["crate::", "super::"] {
            // `(crate::` of `pub(crate)` has no colons; `super::super::` is found at its first.
            let begins = line.match_indices(start).map(|(at, _)| at).filter(|at| !line[..*at].ends_with("::"));
            for at in begins.filter(|at| !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_')) {
                let end = line[at..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
                paths_of(line[at..end.map_or(line.len(), |end| at + end)].trim_end_matches(':'), &[], &mut found);
            }
        }
    }
    found
}

/// Which files a file uses, by the files of its crate, whose paths begin at `src`.
fn uses(files: &BTreeMap<PathBuf, String>) -> BTreeMap<&Path, BTreeSet<&Path>> {
    let modules: BTreeMap<Module, &Path> = files.keys().map(|file| (module_of(file), file.as_path())).collect();
    let of = |file: &Path, text: &str| -> BTreeSet<&Path> {
        let own = module_of(file);
        let absolute = |path: Module| -> Option<Module> {
            let supers = path.iter().take_while(|name| *name == "super").count();
            match path.first()?.as_str() {
                "crate" => Some(path[1..].to_vec()),
                "super" => Some([&own[..own.len().checked_sub(supers)?], &path[supers..]].concat()),
                "self" => Some([&own, &path[1..]].concat()),
                child => modules
                    .contains_key(&[&own[..], &[child.to_owned()]].concat())
                    .then(|| [own.clone(), path].concat()),
            }
        };
        let file_of = |path: Module| (0..=path.len()).rev().find_map(|n| modules.get(&path[..n]).copied());
        let all = named(text).into_iter().filter_map(absolute).filter_map(file_of);
        all.filter(|other| *other != file && !is_root(other)).collect()
    };
    let files = files.iter().filter(|(file, _)| !is_root(file));
    files.map(|(file, text)| (file.as_path(), of(file, text))).collect()
}

/// What a file uses, directly or by way of others.
fn reached<'a>(uses: &BTreeMap<&'a Path, BTreeSet<&'a Path>>, from: &'a Path) -> BTreeSet<&'a Path> {
    let (mut known, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(file) = todo.pop() {
        todo.extend(uses[file].iter().filter(|other| known.insert(**other)));
    }
    known
}

/// Files that are on a circle, each with those that it uses and that lead back to it.
fn circles(uses: &BTreeMap<&Path, BTreeSet<&Path>>) -> Vec<String> {
    let all: BTreeMap<&Path, BTreeSet<&Path>> = uses.keys().map(|file| (*file, reached(uses, file))).collect();
    let back = |file: &Path| uses[file].iter().filter(|other| all[**other].contains(file)).collect::<Vec<_>>();
    uses.keys().filter(|file| !back(file).is_empty()).map(|file| format!("{file:?} uses {:?}", back(file))).collect()
}

#[test]
fn files_of_a_crate_use_each_other_in_one_direction() {
    let (mut files, mut arrows, mut found) = (0, 0, Vec::new());
    for room in std::fs::read_dir(top().join("crates")).unwrap().map(|room| room.unwrap().path()) {
        let src = room.join("src");
        let relative = |(file, text): (PathBuf, String)| (file.strip_prefix(&src).unwrap().to_owned(), text);
        let texts: BTreeMap<PathBuf, String> = sources(&src).into_iter().map(relative).collect();
        let uses = uses(&texts);
        files += uses.len();
        arrows += uses.values().map(BTreeSet::len).sum::<usize>();
        found.extend(circles(&uses).into_iter().map(|circle| format!("{}: {circle}", room.display())));
    }
    assert!(files > 500 && arrows > files, "{files} files and {arrows} arrows: the sources were not understood");
    assert!(found.is_empty(), "files on circles:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_found_whatever_way_its_files_name_each_other() {
    let files = |texts: [&str; 3]| -> BTreeMap<PathBuf, String> {
        let names = ["a.rs", "a/b.rs", "c.rs"].map(PathBuf::from);
        names.into_iter().zip(texts.map(str::to_owned)).collect()
    };
    let on_circles = |texts| {
        let files = files(texts);
        circles(&uses(&files)).len()
    };
    assert_eq!(on_circles(["mod b;\nuse b::X;", "use crate::c::Y;", "pub struct Y;"]), 0);
    assert_eq!(on_circles(["mod b;\nuse b::X;", "use super::Z;", ""]), 2);
    assert_eq!(on_circles(["use crate::{\n    c::{self, Y},\n    d,\n};", "", "fn f() { crate::a::b::g() }"]), 0);
    assert_eq!(on_circles(["use crate::{\n    d,\n    c::{self, Y},\n};", "", "fn f() { crate::a::g() }"]), 2);
    assert_eq!(on_circles(["pub(crate) use crate::c::Y;", "use super::super::c;", "pub use super::a::b as z;"]), 2);
    assert_eq!(on_circles(["use crate::a::b::X;", "fn f() -> super::super::c::Y {}", "use super::a;"]), 3);
    assert_eq!(on_circles(["// use b::X;\nuse self::b::X;", "/// [`crate::a::Z`]\nfn f() {}", ""]), 0);
    assert_eq!(on_circles(["use b::X;", "fn f() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}", ""]), 0);
}
