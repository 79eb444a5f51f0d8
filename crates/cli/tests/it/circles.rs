//! Files of a crate use each other in one direction, so that one can be read, and changed, without all the others.
//!
//! A file uses another one if a path in it, in a `use` line or elsewhere, leads there; a path through re-exports leads
//! to the file that they take it from. What is only for tests does not count. Two things are allowed. A module's root
//! (`mod.rs`, `lib.rs`, `main.rs`) names its children, and they may use what it says for all of them: roots are left
//! out. And the methods of a type may stand in several files, which call each other by no path.

use crate::documents::{sources, top};
use proc_macro2::{Spacing, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Which files each uses.
type Uses<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Names with `::` between them.
type Names = Vec<String>;

/// What a file says.
#[derive(Default)]
struct Source {
    file: String,
    is_root: bool,
    /// Paths in it.
    paths: Vec<Names>,
    /// Names that `use` has made, and of what.
    bound: BTreeMap<String, Names>,
    /// Modules of which everything is used.
    globs: Vec<Names>,
    defined: BTreeSet<String>,
}

/// The words and signs of code, in order, without what is only for tests.
fn words(tokens: TokenStream, found: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(sign) if sign.as_char() == '#' => {
                let Some(TokenTree::Group(attribute)) = tokens.next_if(|next| matches!(next, TokenTree::Group(_)))
                else {
                    continue;
                };
                if attribute.stream().to_string().replace(' ', "") == "cfg(test)" {
                    let ends = |token: &TokenTree| match token {
                        TokenTree::Group(group) => group.delimiter() == proc_macro2::Delimiter::Brace,
                        TokenTree::Punct(sign) => sign.as_char() == ';',
                        _ => false,
                    };
                    tokens.by_ref().find(ends);
                } else {
                    words(attribute.stream(), found);
                }
            }
            TokenTree::Punct(sign) if sign.as_char() == ':' && sign.spacing() == Spacing::Joint => {
                tokens.next();
                found.push("::".to_owned());
            }
            TokenTree::Punct(sign) => found.push(sign.to_string()),
            TokenTree::Ident(word) => found.push(word.to_string()),
            TokenTree::Literal(_) => found.push("\"\"".to_owned()),
            TokenTree::Group(group) => {
                found.push("{".to_owned());
                words(group.stream(), found);
                found.push("}".to_owned());
            }
        }
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

impl Source {
    fn new(file: String, text: &str) -> Source {
        let mut all = Vec::new();
        words(text.parse().unwrap_or_else(|error| panic!("{file}: {error}")), &mut all);
        let is_root = ["mod.rs", "lib.rs", "main.rs"].iter().any(|root| file.rsplit('/').next() == Some(*root));
        let mut source = Source { file, is_root, ..Source::default() };
        let word = |at: usize| all.get(at).map_or("", String::as_str);
        let mut at = 0;
        while at < all.len() {
            let before = at.checked_sub(1).map_or("", word);
            if word(at) == "use" && word(at + 1) != "<" {
                at += 1;
                source.take_use(&all, &mut at, Vec::new());
            } else if is_name(word(at)) && word(at + 1) == "::" && !matches!(before, "::" | "$") {
                let mut names = vec![word(at).to_owned()];
                while word(at + 1) == "::" && is_name(word(at + 2)) {
                    names.push(word(at + 2).to_owned());
                    at += 2;
                }
                source.paths.push(names);
            } else if ["struct", "enum", "fn", "trait", "type", "const", "static", "union"].contains(&word(at)) {
                source.defined.insert(word(at + 1).to_owned());
            }
            at += 1;
        }
        source
    }

    /// Takes a tree of `use`: `a::{b, c::d}` is `a::b` and `a::c::d`.
    fn take_use(&mut self, all: &[String], at: &mut usize, mut names: Names) {
        loop {
            match all[*at].as_str() {
                "::" => *at += 1,
                "*" => {
                    *at += 1;
                    self.globs.push(names.clone());
                    return self.paths.push(names);
                }
                "{" => {
                    *at += 1;
                    while all[*at] != "}" {
                        self.take_use(all, at, names.clone());
                        *at += usize::from(all[*at] == ",");
                    }
                    *at += 1;
                    return;
                }
                // In a macro: what is used is said where it is called.
                "$" => {
                    *at += 1;
                    return;
                }
                name => {
                    assert!(is_name(name), "{}: `use` of {name}", self.file);
                    if name != "self" || names.is_empty() {
                        names.push(name.to_owned());
                    }
                    *at += 1;
                    if all[*at] == "::" {
                        continue;
                    }
                    let is_renamed = all[*at] == "as";
                    let called = if is_renamed { all[*at + 1].clone() } else { names.last().unwrap().clone() };
                    *at += if is_renamed { 2 } else { 0 };
                    self.bound.insert(called, names.clone());
                    return self.paths.push(names);
                }
            }
        }
    }
}

/// Re-exports of re-exports that are followed: two modules may each use all of the other.
const REEXPORTS_MAX: u32 = 6;

/// The files of a crate, by the module that each is.
struct Files(BTreeMap<Names, Source>);

impl Files {
    /// Of texts by their place below `src`.
    fn new(texts: impl IntoIterator<Item = (String, String)>) -> Files {
        let module = |source: Source| {
            let mut names: Names = source.file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            names.truncate(names.len() - usize::from(source.is_root));
            (names, source)
        };
        Files(texts.into_iter().map(|(file, text)| module(Source::new(file, &text))).collect())
    }

    /// What a path in a module leads on from, and the names that are left; `None` if that is in another crate.
    fn start(&self, module: &[String], path: &[String]) -> Option<(Names, Names)> {
        let supers = path.iter().take_while(|name| *name == "super").count();
        let first = path.first()?;
        match first.as_str() {
            "crate" => Some((Vec::new(), path[1..].to_vec())),
            "super" => Some((module[..module.len().checked_sub(supers)?].to_vec(), path[supers..].to_vec())),
            "self" => Some((module.to_vec(), path[1..].to_vec())),
            _ if self.0.contains_key(&child(module, first)) => Some((module.to_vec(), path.to_vec())),
            _ => {
                let bound = self.0.get(module)?.bound.get(first).filter(|bound| bound[0] != *first)?;
                let (module, names) = self.start(module, bound)?;
                Some((module, [&names, &path[1..]].concat()))
            }
        }
    }

    /// The file in which is defined what a path leads to, by way of `left` re-exports at most.
    fn defining(&self, mut module: Names, path: &[String], left: u32) -> Option<&Source> {
        if left == 0 {
            return None;
        }
        for (at, name) in path.iter().enumerate() {
            let below = child(&module, name);
            if self.0.contains_key(&below) {
                module = below;
                continue;
            }
            let source = self.0.get(&module)?;
            if let Some(bound) = source.bound.get(name) {
                let (start, names) = self.start(&module, bound)?;
                if start == module && names == path[at..] {
                    return Some(source);
                }
                return self.defining(start, &[&names, &path[at + 1..]].concat(), left - 1);
            }
            if !source.defined.contains(name) {
                let starts = source.globs.iter().filter_map(|glob| self.start(&module, glob));
                let mut all = starts.filter_map(|(start, names)| self.defining(start, &child(&names, name), left - 1));
                if let Some(other) = all.find(|other| other.defined.contains(name)) {
                    return Some(other);
                }
            }
            return Some(source);
        }
        self.0.get(&module)
    }

    /// Which files each uses.
    fn uses(&self) -> Uses<'_> {
        let of = |module: &Names, source: &Source| -> BTreeSet<&str> {
            let starts = source.paths.iter().filter_map(|path| self.start(module, path));
            let all = starts.filter_map(|(start, names)| self.defining(start, &names, REEXPORTS_MAX));
            all.filter(|other| !other.is_root && other.file != source.file).map(|other| other.file.as_str()).collect()
        };
        let files = self.0.iter().filter(|(_, source)| !source.is_root);
        files.map(|(module, source)| (source.file.as_str(), of(module, source))).collect()
    }
}

fn child(module: &[String], name: &str) -> Names {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// What a file uses, directly or by way of others.
fn reached<'a>(uses: &Uses<'a>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut known, mut todo) = (BTreeSet::new(), vec![from]);
    while let Some(file) = todo.pop() {
        todo.extend(uses[file].iter().filter(|other| known.insert(**other)));
    }
    known
}

/// Files that are on a circle, each with those that it uses and that lead back to it.
fn circles(uses: &Uses<'_>) -> Vec<String> {
    let all: Uses<'_> = uses.keys().map(|file| (*file, reached(uses, file))).collect();
    let back = |file: &str| uses[file].iter().filter(|other| all[**other].contains(file)).collect::<Vec<_>>();
    uses.keys().filter(|file| !back(file).is_empty()).map(|file| format!("{file:?} uses {:?}", back(file))).collect()
}

#[test]
fn files_of_a_crate_use_each_other_in_one_direction() {
    let rooms = std::fs::read_dir(top().join("crates")).unwrap().map(|room| room.unwrap().path());
    let (mut files, mut arrows, mut found) = (0, 0, Vec::new());
    for room in rooms.chain([top().join("python")]) {
        let src = room.join("src");
        let place = |file: PathBuf| file.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
        let all = Files::new(sources(&src).into_iter().map(|(file, text)| (place(file), text)));
        let uses = all.uses();
        files += uses.len();
        arrows += uses.values().map(BTreeSet::len).sum::<usize>();
        found.extend(circles(&uses).into_iter().map(|circle| format!("{}: {circle}", room.display())));
    }
    assert!(files > 700 && arrows > 2 * files, "{files} files and {arrows} arrows: the sources were not understood");
    assert!(found.is_empty(), "files on circles:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_found_whatever_way_its_files_name_each_other() {
    let on_circles = |root: &str, texts: [&str; 3]| {
        let names = ["lib.rs", "a.rs", "a/b.rs", "c.rs"].map(str::to_owned);
        let files = Files::new(names.into_iter().zip([root, texts[0], texts[1], texts[2]].map(str::to_owned)));
        circles(&files.uses()).len()
    };
    let by_path = |texts| on_circles("", texts);
    assert_eq!(by_path(["mod b;\nuse b::X;", "use crate::c::Y;", "pub struct Y;"]), 0);
    assert_eq!(by_path(["mod b;\nuse b::X;", "use super::Z;", ""]), 2);
    assert_eq!(by_path(["mod b;\nfn f() { b::g() }", "fn g(_: super::Z) {}", ""]), 2);
    assert_eq!(by_path(["use crate::{\n    c::{self, Y},\n    d,\n};", "", "fn f() { crate::a::b::g() }"]), 0);
    assert_eq!(by_path(["use crate::{\n    d, // }\n    c::{self, Y},\n};", "", "fn f() { crate::a::g() }"]), 2);
    assert_eq!(by_path(["pub(crate) use crate::c::Y;", "use super::super::c;", "pub use super::a::b as z;"]), 2);
    assert_eq!(by_path(["use crate::a::b::X;", "fn f() -> super::super::c::Y {}", "use super::a;"]), 3);
    assert_eq!(by_path(["use crate::c;\nfn f() { c::g() }", "", "fn g() { println!(\"{}\", crate::a::N) }"]), 2);
    // What is only said, what is only for tests, and a macro's own crate.
    assert_eq!(by_path(["// use b::X;\nuse self::b::X;", "/// [`crate::a::Z`]\nfn f() { \"super::Z\" }", ""]), 0);
    assert_eq!(by_path(["use b::X;", "#[cfg(test)]\npub(crate) mod tests {\n    use crate::a;\n}", ""]), 0);
    assert_eq!(by_path(["use b::X;", "macro_rules! m { () => { $crate::a::Z } }", ""]), 0);
    // Re-exports lead to where they take it from, also if they take all.
    let exported = |root: &str| on_circles(root, ["use crate::Y;\npub struct X;", "", "use crate::X;\npub struct Y;"]);
    assert_eq!(exported("pub use a::X;\npub use c::Y;"), 2);
    assert_eq!(exported("pub use a::*;\npub use c::*;"), 2);
    assert_eq!(exported("pub use c::Y;\npub struct X;"), 0);
}
