//! Which states the error comes from: a regression tree over the columns of a file of residuals.
//!
//! What the tree explains is each call's relative error, predicted less measured over the greater of the two, each call
//! weighted by that greater one: by time, not by number. So a call that took a hundred times its price counts as much
//! as its time, and cannot outweigh half a million calls that are each a little too dear. A split is chosen where it
//! lessens the weighted sum of squares most, which for sums of errors `S` and of weights `W` is `S²/W` of both sides
//! less `S²/W` before (Breiman et al., *Classification and Regression Trees*, 1984, chapter 8). Numbers are split at
//! powers of two, words one against all others.
//!
//! The tree grows a level at a time, with a pass over the file for each: memory is the sums of the leaves. Nothing is
//! drawn by lot, and sums run in the order of the file, so that the same file gives the same contexts.

use super::read::{ResidualReader, Rows};
use super::{COLUMNS, Column, Kind, Value};
use columnar::FileError;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Levels of the tree.
const DEPTH_MAX: usize = 6;
/// A side of a split has at least so many calls: fewer are no context but an event.
const CALLS_MIN: u64 = 8;
/// A split explains at least this share of the time in all.
const GAIN_MIN: f64 = 0.0005;

/// Entries named of a context.
const ENTRIES_MAX: usize = 3;

/// A state that calls were made in, and what their prices missed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Context {
    /// What tells its calls from all others, from the first split on.
    pub conditions: Vec<String>,
    /// Calls, in all replays.
    pub calls: u64,
    /// Their prices, nanoseconds.
    pub predicted_ns: f64,
    /// Their latencies, nanoseconds.
    pub measured_ns: f64,
    /// Predicted less measured.
    pub error_ns: f64,
    /// The size of that, over the sum of the sizes of all contexts.
    pub share: f64,
    /// The entries whose calls carry most of the error, each with what they carry, nanoseconds.
    pub entries: Vec<(String, f64)>,
}

/// Sums over the calls of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    calls: u64,
    predicted_ns: f64,
    measured_ns: f64,
    weight_ns: f64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.calls += other.calls;
        self.predicted_ns += other.predicted_ns;
        self.measured_ns += other.measured_ns;
        self.weight_ns += other.weight_ns;
    }

    fn less(&self, other: &Sums) -> Sums {
        Sums {
            calls: self.calls - other.calls,
            predicted_ns: self.predicted_ns - other.predicted_ns,
            measured_ns: self.measured_ns - other.measured_ns,
            weight_ns: self.weight_ns - other.weight_ns,
        }
    }

    fn error_ns(&self) -> f64 {
        self.predicted_ns - self.measured_ns
    }

    /// What a mean of its own explains of these calls.
    fn explained(&self) -> f64 {
        if self.weight_ns > 0.0 { self.error_ns() * self.error_ns() / self.weight_ns } else { 0.0 }
    }
}

/// A number's place: 0 where it is not known, 1 for nothing, then one for each power of two.
fn place_of(value: u64) -> u32 {
    value.checked_ilog2().map_or(1, |log| 2 + log)
}

/// The least number of a place from 2 on.
fn least_of(place: u32) -> Option<u64> {
    place.checked_sub(2).map(|log| 1 << log)
}

/// What a row is told by: the place of each telling column's value.
#[derive(Debug, Default)]
struct Places {
    columns: Vec<&'static Column>,
    /// Of columns with words: their numbers, from 1; 0 is none.
    words: Vec<FxHashMap<String, u32>>,
    names: Vec<Vec<String>>,
}

impl Places {
    fn new() -> Places {
        let columns: Vec<&'static Column> = COLUMNS.iter().filter(|c| c.tells).collect();
        let (words, names) = (vec![FxHashMap::default(); columns.len()], vec![Vec::new(); columns.len()]);
        Places { columns, words, names }
    }

    fn place(&mut self, feature: usize, value: Value<'_>) -> u32 {
        let number = |value: Option<u64>| value.map_or(0, place_of);
        match value {
            Value::Count(value) => number(value),
            Value::Real(value) => number(value.map(|v| v.max(0.0) as u64)),
            Value::Truth(value) => self.word(feature, value.map(|v| if v { "true" } else { "false" })),
            Value::Text(value) => self.word(feature, value),
        }
    }

    fn word(&mut self, feature: usize, word: Option<&str>) -> u32 {
        let Some(word) = word else { return 0 };
        if let Some(&number) = self.words[feature].get(word) {
            return number;
        }
        self.names[feature].push(word.to_owned());
        let number = u32::try_from(self.names[feature].len()).expect("there are not that many words");
        self.words[feature].insert(word.to_owned(), number);
        number
    }

    fn feature(&self, name: &str) -> usize {
        self.columns.iter().position(|c| c.name == name).expect("it is a column that tells")
    }

    fn is_number(&self, feature: usize) -> bool {
        matches!(self.columns[feature].kind, Kind::Count | Kind::Real)
    }
}

/// Where a node parts its calls.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    feature: usize,
    /// Of numbers: those from this place on go to the first side. Of words: this one does.
    place: u32,
    first: usize,
    other: usize,
}

#[derive(Clone, Debug, Default)]
struct Node {
    above: Option<(usize, bool)>,
    split: Option<Split>,
    sums: Sums,
    /// By telling column and place; of leaves that may still be split.
    by_place: Vec<Vec<Sums>>,
    /// Of those by entry, what a leaf keeps.
    by_entry: Vec<Sums>,
}

struct Tree {
    places: Places,
    nodes: Vec<Node>,
}

/// The contexts of a file's errors, the greatest first.
///
/// # Errors
/// The file cannot be read.
pub fn contexts(file: &ResidualReader) -> Result<Vec<Context>, FileError> {
    let mut tree = Tree { places: Places::new(), nodes: vec![Node::default()] };
    let mut open = vec![0];
    for depth in 0..=DEPTH_MAX {
        // The last pass only sums up what the last splits made.
        tree.pass(file, &open)?;
        let least_gain = if depth == DEPTH_MAX { f64::INFINITY } else { GAIN_MIN * tree.nodes[0].sums.weight_ns };
        open = open.into_iter().filter_map(|node| tree.split(node, least_gain)).flatten().collect();
        if open.is_empty() {
            break;
        }
    }
    Ok(tree.contexts())
}

impl Tree {
    /// Sums the rows of open leaves.
    fn pass(&mut self, file: &ResidualReader, open: &[usize]) -> Result<(), FileError> {
        let features = self.places.columns.len();
        for &node in open {
            self.nodes[node] = Node { by_place: vec![Vec::new(); features], ..self.nodes[node].clone() };
        }
        let mut names: Vec<&str> = self.places.columns.iter().map(|c| c.name).collect();
        names.extend(["predicted_ns", "measured_ns"]);
        file.each(&names, |rows| self.take(rows))
    }

    fn take(&mut self, rows: &Rows) {
        let at = |name: &str| rows.columns().position(|c| c.name == name).expect("it was asked for");
        let (predicted, measured) = (at("predicted_ns"), at("measured_ns"));
        let columns: Vec<usize> = self.places.columns.iter().map(|c| at(c.name)).collect();
        let mut places = vec![0; columns.len()];
        for row in 0..rows.len() {
            let real = |value| match value {
                Value::Real(value) => value.unwrap_or(0.0),
                Value::Count(value) => value.unwrap_or(0) as f64,
                other => unreachable!("{other:?} is no time"),
            };
            let (predicted_ns, measured_ns) = (real(rows.value(predicted, row)), real(rows.value(measured, row)));
            let weight_ns = predicted_ns.max(measured_ns);
            let sums = Sums { calls: 1, predicted_ns, measured_ns, weight_ns };
            for (feature, &column) in columns.iter().enumerate() {
                places[feature] = self.places.place(feature, rows.value(column, row));
            }
            let leaf = self.leaf_of(&places);
            let node = &mut self.nodes[leaf];
            if node.by_place.is_empty() {
                continue;
            }
            node.sums.add(&sums);
            for (of, &place) in node.by_place.iter_mut().zip(&places) {
                let place = place as usize;
                if place >= of.len() {
                    of.resize(place + 1, Sums::default());
                }
                of[place].add(&sums);
            }
        }
    }

    fn leaf_of(&self, places: &[u32]) -> usize {
        let mut at = 0;
        while let Some(split) = self.nodes[at].split {
            let place = places[split.feature];
            let first = if self.places.is_number(split.feature) { place >= split.place } else { place == split.place };
            at = if first { split.first } else { split.other };
        }
        at
    }

    /// Splits a leaf where that explains most, if anything explains enough.
    fn split(&mut self, node: usize, least_gain: f64) -> Option<[usize; 2]> {
        let Node { sums, by_place, .. } = &self.nodes[node];
        let mut best: Option<(f64, usize, u32)> = None;
        for (feature, of) in by_place.iter().enumerate() {
            let mut from_here = Sums::default();
            for (place, at) in of.iter().enumerate().rev() {
                from_here = if self.places.is_number(feature) {
                    from_here.add(at);
                    from_here
                } else {
                    *at
                };
                let rest = sums.less(&from_here);
                if from_here.calls < CALLS_MIN || rest.calls < CALLS_MIN {
                    continue;
                }
                let gain = from_here.explained() + rest.explained() - sums.explained();
                if gain >= least_gain && best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, feature, place as u32));
                }
            }
        }
        let entry = self.places.feature("entry");
        let leaf = &mut self.nodes[node];
        leaf.by_entry = std::mem::take(&mut leaf.by_place).swap_remove(entry);
        let (_, feature, place) = best?;
        let (first, other) = (self.nodes.len(), self.nodes.len() + 1);
        self.nodes[node].split = Some(Split { feature, place, first, other });
        for is_first in [true, false] {
            self.nodes.push(Node { above: Some((node, is_first)), ..Node::default() });
        }
        Some([first, other])
    }

    fn contexts(&self) -> Vec<Context> {
        let leaves = self.nodes.iter().enumerate().filter(|(_, n)| n.split.is_none() && n.sums.calls > 0);
        let mut contexts: Vec<Context> = leaves
            .map(|(number, Node { sums, .. })| Context {
                conditions: self.conditions(number),
                calls: sums.calls,
                predicted_ns: sums.predicted_ns,
                measured_ns: sums.measured_ns,
                error_ns: sums.error_ns(),
                share: 0.0,
                entries: self.entries(number),
            })
            .collect();
        let all_ns: f64 = contexts.iter().map(|c| c.error_ns.abs()).sum();
        for context in &mut contexts {
            context.share = if all_ns > 0.0 { context.error_ns.abs() / all_ns } else { 0.0 };
        }
        contexts.sort_by(|a, b| b.error_ns.abs().total_cmp(&a.error_ns.abs()));
        contexts
    }

    /// The entries that carry most of a leaf's error, in its direction.
    fn entries(&self, leaf: usize) -> Vec<(String, f64)> {
        let Node { sums, by_entry, .. } = &self.nodes[leaf];
        let names = &self.places.names[self.places.feature("entry")];
        let named = by_entry.iter().skip(1).zip(names).map(|(of, name)| (name.clone(), of.error_ns()));
        let mut carrying: Vec<(String, f64)> = named.filter(|(_, ns)| ns * sums.error_ns() > 0.0).collect();
        carrying.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then_with(|| a.0.cmp(&b.0)));
        carrying.truncate(ENTRIES_MAX);
        carrying
    }

    /// What leads to a leaf, from the root on. Of several bounds of one side of a number, the last is the tightest.
    fn conditions(&self, leaf: usize) -> Vec<String> {
        let mut found: Vec<(usize, Side, String)> = Vec::new();
        let mut at = leaf;
        while let Some((above, is_first)) = self.nodes[at].above {
            let split = self.nodes[above].split.expect("a node above has been split");
            let (side, text) = self.condition(&split, is_first);
            if side == Side::Not || !found.iter().any(|(f, s, _)| (*f, *s) == (split.feature, side)) {
                found.push((split.feature, side, text));
            }
            at = above;
        }
        found.into_iter().rev().map(|(_, _, text)| text).collect()
    }

    fn condition(&self, split: &Split, is_first: bool) -> (Side, String) {
        let name = self.places.columns[split.feature].name;
        if !self.places.is_number(split.feature) {
            let names = &self.places.names[split.feature];
            let word = split.place.checked_sub(1).and_then(|at| names.get(at as usize)).map_or("none", String::as_str);
            return match is_first {
                true => (Side::Is, format!("{name} is {word}")),
                false => (Side::Not, format!("{name} is not {word}")),
            };
        }
        match (least_of(split.place), is_first) {
            (None, true) => (Side::AtLeast, format!("{name} is known")),
            (None, false) => (Side::Below, format!("{name} is not known")),
            (Some(bound), true) => (Side::AtLeast, format!("{name} >= {bound}")),
            (Some(bound), false) => (Side::Below, format!("{name} < {bound}, or not known")),
        }
    }
}

/// Kinds of conditions on a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Is,
    Not,
    AtLeast,
    Below,
}
