//! The file of a sweep: which command, over which values.
//!
//! ```toml
//! format = "fsage.sweep/1"
//! run = ["bench", "smallfile", "ffs:{mode},size=64M@{drive}", "--files", "{files}", "--seed", "{seed}"]
//!
//! [axes]
//! mode = ["conventional", "softdep"]
//! drive = ["st32430n", "hp-c2247a"]
//! files = [100, 1000]
//! seed = { from = 1, to = 10 }
//!
//! [[exclude]]
//! mode = "conventional"
//! files = 1000
//! ```
//!
//! docs/sweeps.md has every key.

use crate::SweepError;
use crate::partition::hive;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;

/// The format that is read; others are refused.
pub const FORMAT: &str = "fsage.sweep/1";

/// Commands whose results are read ([`crate::figure`]).
pub const COMMANDS: [&str; 9] =
    ["age", "bench", "crash", "layout", "measure", "predict", "replay", "reproduce", "validate"];

/// Columns of the data set that are no axis's.
pub const OWN_COLUMNS: [&str; 9] = ["task", "subject", "part", "metric", "value", "low", "high", "unit", "batch"];

/// No file of a sweep is larger, and no sweep has more values on an axis or more tasks.
const SPEC_BYTES_MAX: u64 = 16 << 20;
const VALUES_MAX: usize = 1_000_000;
/// A name in a directory is no longer.
const NAME_BYTES_MAX: usize = 255;

/// What a task's number and parameters make of a seed's name.
pub const TASK_SEED: &str = "task_seed";

/// A value on an axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AxisValue {
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// One argument, or a part of one.
    Text(String),
    /// Several arguments, or none.
    Words(Vec<String>),
}

impl AxisValue {
    /// As it stands in an argument, in a name and in the data set.
    pub fn text(&self) -> String {
        match self {
            AxisValue::Int(n) => n.to_string(),
            AxisValue::Float(x) => x.to_string(),
            AxisValue::Bool(b) => b.to_string(),
            AxisValue::Text(text) => text.clone(),
            AxisValue::Words(words) => words.join(" "),
        }
    }

    /// As a number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            AxisValue::Int(n) => Some(*n as f64),
            AxisValue::Float(x) => Some(*x),
            _ => None,
        }
    }
}

/// What is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Its name, as `{name}` in the command has it.
    pub name: String,
    /// Its values, in the order given.
    pub values: Vec<AxisValue>,
}

/// What the report is about. What is left out is chosen from the axes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReportSpec {
    /// The figure it is about.
    pub metric: Option<String>,
    /// The part that the figure is of (`create`); without it, each part by itself, the first few.
    pub part: Option<String>,
    /// The axis that goes across.
    pub x: Option<String>,
    /// The axis of the lines.
    pub series: Option<String>,
    /// The axis of the panels.
    pub panel: Option<String>,
    /// Two figures to be weighed against each other, each `METRIC`, `METRIC:PART`, with `:min` or `:max` behind.
    pub pareto: Option<[String; 2]>,
}

/// A sweep, as its file says it.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The file.
    pub file: PathBuf,
    /// The file's text, which goes into the data set.
    pub text: String,
    /// What the sweep is called: by default, the file's stem.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The command's words and arguments behind `fsage`, with `{axis}` in them.
    pub run: Vec<String>,
    /// What `{task_seed}` is drawn from.
    pub seed: u64,
    /// Axes, in the order of the file. The last one varies fastest.
    pub axes: Vec<Axis>,
    /// Axes that go together, by position.
    pub zips: Vec<Vec<usize>>,
    /// Combinations that are left out: each by positions of axes, and of the values that are.
    pub excludes: Vec<Vec<(usize, Vec<usize>)>>,
    /// Axes by which the data set is partitioned; none: by a thousand tasks.
    pub partition: Vec<usize>,
    /// How long a task may take.
    pub timeout: Option<Duration>,
    /// Further files that tasks read, relative to the sweep's directory.
    pub files: Vec<String>,
    /// What the report shows.
    pub report: ReportSpec,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Run {
    Words(Vec<String>),
    Line(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    format: String,
    name: Option<String>,
    #[serde(default)]
    description: String,
    run: Spanned<Run>,
    #[serde(default = "one")]
    seed: u64,
    #[serde(default)]
    partition: Vec<Spanned<String>>,
    timeout: Option<Spanned<String>>,
    #[serde(default)]
    zip: Vec<Spanned<Vec<String>>>,
    #[serde(default)]
    files: Vec<String>,
    axes: BTreeMap<String, Spanned<toml::Value>>,
    #[serde(default)]
    exclude: Vec<BTreeMap<String, Spanned<toml::Value>>>,
    #[serde(default)]
    report: ReportSpec,
}

fn one() -> u64 {
    1
}

/// What is wrong, and at which byte of the text it begins.
type Problem = (Option<usize>, String);

impl Spec {
    /// Reads the file of a sweep.
    ///
    /// # Errors
    /// It is not there, or says what cannot be: with file and line.
    pub fn load(file: &Path) -> Result<Spec, SweepError> {
        let text = posix::input::read_text(file, SPEC_BYTES_MAX).map_err(|error| SweepError::Spec {
            file: file.to_owned(),
            line: None,
            message: error.to_string(),
        })?;
        Spec::parse(&text, file)
    }

    /// Reads its text; `file` is what errors name and what relative paths begin at.
    ///
    /// # Errors
    /// As [`load`](Spec::load).
    pub fn parse(text: &str, file: &Path) -> Result<Spec, SweepError> {
        read(text, file).map_err(|(at, message)| SweepError::Spec {
            file: file.to_owned(),
            line: at.map(|at| text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1),
            message,
        })
    }

    /// The directory of the file, in which tasks run: relative paths in it mean what they seem to.
    pub fn directory(&self) -> PathBuf {
        match self.file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        }
    }

    /// Where an axis stands among the axes.
    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }
}

fn read(text: &str, file: &Path) -> Result<Spec, Problem> {
    let raw: Raw = toml::from_str(text).map_err(|e| (e.span().map(|s| s.start), e.message().to_owned()))?;
    if raw.format != FORMAT {
        return Err((Some(0), format!("format {:?}: this fsage reads {FORMAT:?}", raw.format)));
    }
    let run_at = raw.run.span().start;
    let run = match raw.run.into_inner() {
        Run::Words(words) => words,
        Run::Line(line) => line.split_whitespace().map(str::to_owned).collect(),
    };
    check_command(&run).map_err(|message| (Some(run_at), message))?;

    let mut ordered: Vec<(String, Spanned<toml::Value>)> = raw.axes.into_iter().collect();
    ordered.sort_by_key(|(_, value)| value.span().start);
    let directory = file.parent().unwrap_or(Path::new(""));
    let mut axes = Vec::with_capacity(ordered.len());
    for (name, value) in ordered {
        let at = value.span().start;
        check_name(&name).map_err(|message| (Some(at), message))?;
        if let Some(twin) = axes.iter().find(|axis: &&Axis| axis.name.eq_ignore_ascii_case(&name)) {
            return Err((Some(at), format!("the axes {} and {name} differ in capitals alone; rename one", twin.name)));
        }
        let values =
            axis_values(value.into_inner(), directory).map_err(|message| (Some(at), format!("{name}: {message}")))?;
        axes.push(Axis { name, values });
    }
    let position = |name: &str, at: usize| {
        axes.iter().position(|axis| axis.name == name).ok_or_else(|| {
            let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            (Some(at), format!("no axis is called {name:?}; there are {}", names.join(", ")))
        })
    };
    let mut zips: Vec<Vec<usize>> = Vec::new();
    for zip in raw.zip {
        let at = zip.span().start;
        let together = zip.into_inner().iter().map(|name| position(name, at)).collect::<Result<Vec<usize>, _>>()?;
        check_zip(&together, &zips, &axes).map_err(|message| (Some(at), message))?;
        zips.push(together);
    }
    let mut excludes = Vec::with_capacity(raw.exclude.len());
    for exclude in raw.exclude {
        let mut conditions = Vec::with_capacity(exclude.len());
        for (name, value) in exclude {
            let at = value.span().start;
            let axis = position(&name, at)?;
            let left_out = excluded(value.into_inner(), &axes[axis]).map_err(|message| (Some(at), message))?;
            conditions.push((axis, left_out));
        }
        if conditions.is_empty() {
            return Err((None, "[[exclude]] without an axis leaves everything out; name axes and values".to_owned()));
        }
        excludes.push(conditions);
    }
    let mut partition = Vec::with_capacity(raw.partition.len());
    for name in raw.partition {
        let axis = position(name.get_ref(), name.span().start)?;
        if partition.contains(&axis) {
            return Err((Some(name.span().start), format!("partition names {:?} twice", name.get_ref())));
        }
        check_partition(&axes[axis]).map_err(|message| (Some(name.span().start), message))?;
        partition.push(axis);
    }
    check_use(&run, &axes, &zips).map_err(|message| (Some(run_at), message))?;
    let timeout = raw.timeout.map(|text| {
        let ns = units::duration_ns(text.get_ref()).ok().filter(|ns| *ns >= 1e6 && *ns < 1e18);
        ns.map(|ns| Duration::from_nanos(ns as u64)).ok_or_else(|| {
            (Some(text.span().start), format!("timeout {:?}: write a span of time, such as \"90s\"", text.get_ref()))
        })
    });
    for (key, axis) in [("x", &raw.report.x), ("series", &raw.report.series), ("panel", &raw.report.panel)] {
        if let Some(name) = axis {
            position(name, 0).map_err(|(_, message)| (None, format!("[report] {key}: {message}")))?;
        }
    }
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Spec {
        file: file.to_owned(),
        text: text.to_owned(),
        name: raw.name.unwrap_or(stem),
        description: raw.description,
        run,
        seed: raw.seed,
        axes,
        zips,
        excludes,
        partition,
        timeout: timeout.transpose()?,
        files: raw.files,
        report: raw.report,
    })
}

/// The command is one whose result is read, and leaves it to the sweep where that goes.
fn check_command(run: &[String]) -> Result<(), String> {
    let command = run.first().map(String::as_str).unwrap_or_default();
    if !COMMANDS.contains(&command) {
        return Err(format!("run: {command:?} cannot be swept; there are {}", COMMANDS.join(", ")));
    }
    match run.iter().find(|word| is_ours(word)) {
        Some(word) => Err(format!("run: {word} is the sweep's own affair: results go into its data set; leave it out")),
        None => Ok(()),
    }
}

/// Whether an argument says where a result goes.
fn is_ours(word: &str) -> bool {
    let ours = ["--json", "--html", "-o", "--output", "--keep"];
    ours.iter().any(|o| word == *o || word.strip_prefix(o).is_some_and(|rest| rest.starts_with('=') || *o == "-o"))
}

/// Words of a value that no argument can be, or that say where a result goes.
fn check_word(word: &str) -> Result<(), String> {
    if word.contains('\0') {
        return Err(format!("{word:?} has a NUL in it, which no argument can"));
    }
    if is_ours(word) {
        return Err(format!("{word} is the sweep's own affair: results go into its data set; leave it out"));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), String> {
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    if !begins || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(format!("{name:?} is no name of an axis: letters, digits and _, a letter first"));
    }
    // Readers of the data set, DuckDB among them, take capitals for the same.
    if OWN_COLUMNS.iter().any(|own| own.eq_ignore_ascii_case(name)) || name == TASK_SEED {
        return Err(format!("{name:?} is a column of every data set; call the axis something else"));
    }
    Ok(())
}

/// Each value of an axis by which the data set is partitioned is the name of a directory.
fn check_partition(axis: &Axis) -> Result<(), String> {
    let names = axis.values.iter().map(|value| hive(&axis.name, &value.text()));
    match names.map(|name| name.len()).max() {
        Some(longest) if longest > NAME_BYTES_MAX => Err(format!(
            "partition: a value of {} makes a directory's name of {longest} bytes, and {NAME_BYTES_MAX} are possible; \
             partition by another axis",
            axis.name
        )),
        _ => Ok(()),
    }
}

fn check_zip(together: &[usize], before: &[Vec<usize>], axes: &[Axis]) -> Result<(), String> {
    let name = |axis: usize| axes[axis].name.as_str();
    if together.len() < 2 {
        return Err("zip: axes that go together are two at least".to_owned());
    }
    for (i, &axis) in together.iter().enumerate() {
        if together[..i].contains(&axis) || before.iter().any(|zip| zip.contains(&axis)) {
            return Err(format!("zip: {} goes with others twice", name(axis)));
        }
        let (these, those) = (axes[axis].values.len(), axes[together[0]].values.len());
        if these != those {
            return Err(format!(
                "zip: {} has {those} values and {} has {these}; what goes together is equally long",
                name(together[0]),
                name(axis)
            ));
        }
    }
    Ok(())
}

/// Every `{name}` is an axis's, and every axis changes something.
fn check_use(run: &[String], axes: &[Axis], zips: &[Vec<usize>]) -> Result<(), String> {
    let mut used = vec![false; axes.len()];
    for word in run {
        for piece in pieces(word)? {
            let Piece::Name(name) = piece else { continue };
            match axes.iter().position(|axis| axis.name == name) {
                Some(axis) => {
                    let whole = word.len() == name.len() + 2;
                    let words = axes[axis].values.iter().any(|value| matches!(value, AxisValue::Words(_)));
                    if words && !whole {
                        return Err(format!("run: {word:?}: a list is several arguments; {{{name}}} must stand alone"));
                    }
                    used[axis] = true;
                }
                None if name == TASK_SEED => {}
                None => {
                    let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
                    return Err(format!("run: no axis is called {name:?}; there are {}", names.join(", ")));
                }
            }
        }
    }
    let goes_with_used = |axis: usize| zips.iter().any(|zip| zip.contains(&axis) && zip.iter().any(|a| used[*a]));
    match (0..axes.len()).find(|&axis| !used[axis] && !goes_with_used(axis)) {
        Some(axis) => Err(format!(
            "run: {{{0}}} is nowhere in it, so that the axis {0} would run the same again and again; use it, or zip it \
             with one that is used",
            axes[axis].name
        )),
        None => Ok(()),
    }
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// As it stands.
    Text(&'a str),
    /// `{name}`.
    Name(&'a str),
}

/// Takes an argument apart. `{{` and `}}` are braces.
pub(crate) fn pieces(word: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut found = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        if !before.is_empty() {
            found.push(Piece::Text(before));
        }
        if from.starts_with("{{") || from.starts_with("}}") {
            found.push(Piece::Text(&from[..1]));
            rest = &from[2..];
            continue;
        }
        let name = from.strip_prefix('{').and_then(|name| name.split_once('}'));
        let Some((name, behind)) = name else {
            return Err(format!("run: {word:?}: a brace stands alone; write {{{{ or }}}} for a brace"));
        };
        found.push(Piece::Name(name));
        rest = behind;
    }
    if !rest.is_empty() {
        found.push(Piece::Text(rest));
    }
    Ok(found)
}

fn axis_values(value: toml::Value, directory: &Path) -> Result<Vec<AxisValue>, String> {
    let values = match value {
        toml::Value::Array(values) => values.into_iter().map(axis_value).collect::<Result<Vec<_>, _>>()?,
        toml::Value::Table(table) if table.contains_key("glob") => from_glob(&table, directory)?,
        toml::Value::Table(table) => from_range(&table)?,
        _ => return Err("write a list, { from = 1, to = 10 }, or { glob = \"*.workload\" }".to_owned()),
    };
    if values.is_empty() {
        return Err("has no value".to_owned());
    }
    for value in &values {
        match value {
            AxisValue::Text(text) => check_word(text)?,
            AxisValue::Words(words) => words.iter().try_for_each(|word| check_word(word))?,
            _ => {}
        }
    }
    let mut texts: Vec<String> = values.iter().map(AxisValue::text).collect();
    texts.sort();
    if let Some(twice) = texts.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("{:?} is there twice", twice[0]));
    }
    Ok(values)
}

fn axis_value(value: toml::Value) -> Result<AxisValue, String> {
    Ok(match value {
        toml::Value::Integer(n) => AxisValue::Int(n),
        toml::Value::Float(x) if x.is_finite() => AxisValue::Float(x),
        toml::Value::Boolean(b) => AxisValue::Bool(b),
        toml::Value::String(text) => AxisValue::Text(text),
        toml::Value::Array(words) => AxisValue::Words(
            words
                .into_iter()
                .map(|word| match axis_value(word)? {
                    AxisValue::Words(_) => Err("a list in a list in a list".to_owned()),
                    word => Ok(word.text()),
                })
                .collect::<Result<Vec<String>, String>>()?,
        ),
        other => return Err(format!("{other} is no value: write text, a number, true, false or a list of arguments")),
    })
}

fn from_range(table: &toml::Table) -> Result<Vec<AxisValue>, String> {
    let whole = |key: &str| table.get(key).and_then(toml::Value::as_integer);
    let known = table.keys().all(|key| ["from", "to", "step"].contains(&key.as_str()));
    let (Some(from), Some(to), Some(step), true) =
        (whole("from"), whole("to"), if table.contains_key("step") { whole("step") } else { Some(1) }, known)
    else {
        return Err("write { from = 1, to = 10 } with whole numbers, and step = N if need be".to_owned());
    };
    if step < 1 || to < from {
        return Err("a range goes upwards by steps of one at least".to_owned());
    }
    if to.abs_diff(from) / step.unsigned_abs() >= VALUES_MAX as u64 {
        return Err(format!("more than {VALUES_MAX} values"));
    }
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    Ok((from..=to).step_by(step).map(AxisValue::Int).collect())
}

/// Files by pattern, sorted, relative to the directory of the sweep's file.
fn from_glob(table: &toml::Table, directory: &Path) -> Result<Vec<AxisValue>, String> {
    let pattern = table.get("glob").and_then(toml::Value::as_str);
    let Some(pattern) = pattern.filter(|_| table.len() == 1) else {
        return Err("write { glob = \"DIRECTORY/*.workload\" }".to_owned());
    };
    let escaped = glob::Pattern::escape(&directory.to_string_lossy());
    let absolute = directory.join(pattern);
    let whole = if Path::new(pattern).is_absolute() || escaped.is_empty() {
        pattern.to_owned()
    } else {
        format!("{escaped}/{pattern}")
    };
    let found = glob::glob(&whole).map_err(|error| format!("{}: {error}", absolute.display()))?;
    let mut names = Vec::new();
    for path in found {
        let path = path.map_err(|error| error.to_string())?;
        let name = path.strip_prefix(directory).unwrap_or(&path);
        let name = name.to_str().ok_or_else(|| format!("{}: the name is not UTF-8", name.display()))?;
        names.push(AxisValue::Text(name.to_owned()));
    }
    if names.is_empty() {
        return Err(format!("no file matches {pattern:?} in {}", directory.display()));
    }
    Ok(names)
}

/// Positions of the values that a condition names.
fn excluded(value: toml::Value, axis: &Axis) -> Result<Vec<usize>, String> {
    let named = match value {
        toml::Value::Array(values) => values,
        one => vec![one],
    };
    named
        .into_iter()
        .map(|value| {
            let text = axis_value(value)?.text();
            axis.values.iter().position(|value| value.text() == text).ok_or_else(|| {
                let all: Vec<String> = axis.values.iter().take(20).map(AxisValue::text).collect();
                format!("exclude: {:?} is no value of {}; there are {}", text, axis.name, all.join(", "))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Spec, String> {
        Spec::parse(text, Path::new("x/mine.toml")).map_err(|error| error.to_string())
    }

    const HEAD: &str = "format = \"fsage.sweep/1\"\n";

    #[test]
    fn axes_keep_the_order_of_the_file() {
        let spec = parse(&format!(
            "{HEAD}run = \"bench scan {{z}} --x {{a}} {{m}}\"\n[axes]\nz = [1]\nm = {{ from = 1, to = 3 }}\n\
             a = [\"p\", \"q\"]\n"
        ))
        .unwrap();
        assert_eq!(spec.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>(), ["z", "m", "a"]);
        assert_eq!(spec.name, "mine");
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        for (body, line, word) in [
            ("run = \"mkfs x\"\n[axes]\na = [1]\n", 2, "cannot be swept"),
            ("run = \"bench x --json {a}\"\n[axes]\na = [1]\n", 2, "own affair"),
            ("run = \"bench {b}\"\n[axes]\na = [1]\n", 2, "no axis"),
            ("run = \"bench {a\"\n[axes]\na = [1]\n", 2, "brace"),
            ("run = \"bench x\"\n[axes]\na = [1]\n", 2, "nowhere"),
            ("run = \"bench {a}\"\n[axes]\na = []\n", 4, "no value"),
            ("run = \"bench {a}\"\n[axes]\na = [1, 1]\n", 4, "twice"),
            ("run = \"bench {task}\"\n[axes]\ntask = [1]\n", 4, "column"),
            ("run = \"bench {a}\"\nsurprise = 1\n[axes]\na = [1]\n", 3, "surprise"),
            ("run = \"bench {a}{b}\"\nzip = [[\"a\", \"b\"]]\n[axes]\na = [1]\nb = [1, 2]\n", 3, "equally long"),
            ("run = \"bench {a}\"\n[axes]\na = [1]\n[[exclude]]\na = 2\n", 6, "no value of a"),
            ("run = \"bench {a}\"\ntimeout = \"5\"\n[axes]\na = [1]\n", 3, "timeout"),
            ("run = \"bench {a} {A}\"\n[axes]\na = [1]\nA = [2]\n", 5, "differ in capitals alone"),
            ("run = \"bench {Task}\"\n[axes]\nTask = [1]\n", 4, "column"),
            ("run = \"bench {a}\"\n[axes]\na = [\"b\\u0000c\"]\n", 4, "NUL"),
            ("run = \"bench {a}\"\n[axes]\na = [\"x\", \"--json\"]\n", 4, "own affair"),
            ("run = \"bench {a}\"\n[axes]\na = [\"-o=there\"]\n", 4, "own affair"),
        ] {
            let message = parse(&format!("{HEAD}{body}")).unwrap_err();
            assert!(message.contains(&format!("line {line}:")) && message.contains(word), "{body}: {message}");
        }
        let long = "v".repeat(NAME_BYTES_MAX);
        let axes = format!("[axes]\na = [\"{long}\"]\n");
        let message = parse(&format!("{HEAD}run = \"bench {{a}}\"\npartition = [\"a\"]\n{axes}")).unwrap_err();
        assert!(message.contains("line 3:") && message.contains("directory's name"), "{message}");
        assert!(
            parse("format = \"fsage.other\"\nrun = \"bench {a}\"\n[axes]\na = [1]\n")
                .unwrap_err()
                .contains("this fsage reads")
        );
    }

    #[test]
    fn braces_are_doubled_to_stand_for_themselves() {
        assert_eq!(
            pieces("a{{b}}{c}").unwrap(),
            [Piece::Text("a"), Piece::Text("{"), Piece::Text("b"), Piece::Text("}"), Piece::Name("c")]
        );
    }
}
