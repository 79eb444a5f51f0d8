//! What a personality says: the TOML file's structure, and what is refused in it.

use crate::model::{Component, Lifetime, SizeParameters};
use crate::plan::PlanError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of personality files that this code reads.
pub const FORMAT_VERSION: u32 = 1;

/// A kind of use of a file system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Personality {
    /// [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Its name.
    pub name: String,
    /// Whose use it is, in a sentence.
    pub description: String,
    /// How full the file system is over time: `[share of the time, share of the capacity]`, ascending.
    pub utilisation: Vec<[f64; 2]>,
    /// When things happen.
    pub rhythm: Rhythm,
    /// The tree.
    pub directories: Directories,
    /// The kinds of files.
    pub stream: Vec<Stream>,
    /// A published size distribution that the live files are held against besides their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Reference>,
    /// Where each parameter comes from, by its name (`stream.documents.size`) or a beginning of it. `[estimate]` marks
    /// ours.
    pub sources: BTreeMap<String, String>,
}

/// The daily and weekly rhythm, as relative weights.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rhythm {
    /// Of the 24 hours.
    pub hours: Vec<f64>,
    /// Of the 7 days, from Monday; the first simulated day is a Monday.
    pub weekdays: Vec<f64>,
}

/// How directories grow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Directories {
    /// A tree that grows with its files.
    Tree {
        /// Mean number of files in a directory.
        files_per_directory: f64,
        /// Mean of the files' depth, which has a Poisson distribution.
        depth_mean: f64,
    },
    /// Directories made once: `fan_out[i]` in each directory of level i. Files lie in the last level.
    Fixed {
        /// Subdirectories per directory, by level.
        fan_out: Vec<u32>,
        /// Exponent of a Zipf distribution of the files over the directories; 0 for equal shares.
        popularity: f64,
    },
}

/// One kind of file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Its name.
    pub name: String,
    /// Its share of the arrivals.
    pub share: f64,
    /// Sizes.
    pub size: SizeParameters,
    /// Lifetimes.
    pub lifetime: Vec<Component>,
    /// Files that arrive together.
    #[serde(default)]
    pub batch: Batch,
    /// How they end.
    #[serde(default)]
    pub dies: Dies,
    /// How they are written.
    #[serde(default)]
    pub write: Write,
    /// Whether the writer waits for stable storage.
    #[serde(default)]
    pub fsync: bool,
    /// What happens to them while they live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
}

/// Files that arrive together: their number has a lognormal distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Mean number.
    pub mean: f64,
    /// Standard deviation of the number's logarithm (base e).
    #[serde(default)]
    pub sigma: f64,
    /// Files per directory of a tree of their own, made for them and removed with the last of them; 0: no such tree.
    #[serde(default)]
    pub files_per_directory: f64,
}

impl Default for Batch {
    fn default() -> Self {
        Batch { mean: 1.0, sigma: 0.0, files_per_directory: 0.0 }
    }
}

/// How files end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Dies {
    /// Each by itself.
    #[default]
    Each,
    /// All that arrived together (a tree is removed).
    Together,
    /// In a run at this hour of the day, directory by directory (expiry).
    Run(f64),
}

/// How files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Write {
    /// In one go.
    #[default]
    Whole,
    /// Into a staging directory, then renamed into place.
    Staged,
    /// Appended to until they have their size, other files being written meanwhile.
    Grown {
        /// Bytes at a time (more where a file would take over 256 pieces).
        chunk_bytes: u64,
        /// From the first to the last piece, seconds.
        span_s: f64,
    },
}

/// What happens to living files.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// Updates per file and day.
    pub per_file_per_day: f64,
    /// Weight of updates that overwrite pieces in place.
    #[serde(default)]
    pub overwrite: f64,
    /// Weight of updates that truncate the file and write it anew.
    #[serde(default)]
    pub rewrite: f64,
    /// Weight of updates that write a new file, bring it to stable storage and rename it over the old one.
    #[serde(default)]
    pub replace: f64,
    /// Weight of updates that punch holes.
    #[serde(default)]
    pub punch: f64,
    /// Bytes of a piece overwritten or punched.
    #[serde(default = "page")]
    pub piece_bytes: u64,
    /// Pieces per update.
    #[serde(default = "single")]
    pub pieces: u32,
    /// Files touched together: this one and those that arrived next to it.
    #[serde(default = "single")]
    pub together: u32,
    /// Share of updates that go to files updated recently.
    #[serde(default)]
    pub hot: f64,
    /// Whether each is brought to stable storage.
    #[serde(default)]
    pub fsync: bool,
}

const fn page() -> u64 {
    4096
}

const fn single() -> u32 {
    1
}

/// A published size distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// What it is called.
    pub name: String,
    /// Its parameters.
    pub size: SizeParameters,
}

impl Personality {
    /// Parses and checks a personality; `path` names it in errors.
    ///
    /// # Errors
    /// [`PlanError::Input`] naming the place.
    pub fn parse(path: &Path, text: &str) -> Result<Personality, PlanError> {
        let at = |span: Option<std::ops::Range<usize>>| {
            let line = span.and_then(|s| text.get(..s.start)).map(|before| before.matches('\n').count() + 1);
            line.map_or_else(|| "whole file".to_owned(), |line| format!("line {line}"))
        };
        let table: toml::Table = toml::from_str(text).map_err(|e| PlanError::input(path, at(e.span()), e.message()))?;
        let version = table.get("format_version").and_then(toml::Value::as_integer);
        if version != Some(i64::from(FORMAT_VERSION)) {
            let found = version.map_or_else(|| "none".to_owned(), |v| v.to_string());
            let message =
                format!("{found} is not supported: this fsage reads personalities of version {FORMAT_VERSION}");
            return Err(PlanError::input(path, "format_version", message));
        }
        let personality: Personality =
            toml::from_str(text).map_err(|e| PlanError::input(path, at(e.span()), e.message()))?;
        personality.check().map_err(|(place, message)| PlanError::input(path, place, message))?;
        Ok(personality)
    }

    fn check(&self) -> Result<(), (String, String)> {
        let bad = |place: &str, message: String| Err((place.to_owned(), message));
        check_curve(&self.utilisation, 1.0).or_else(|message| bad("utilisation", message))?;
        weights("rhythm.hours", &self.rhythm.hours, 24)?;
        weights("rhythm.weekdays", &self.rhythm.weekdays, 7)?;
        match &self.directories {
            Directories::Tree { files_per_directory, depth_mean } => {
                within("directories.files_per_directory", *files_per_directory, 1.0, 1e6)?;
                within("directories.depth_mean", *depth_mean, 0.1, 30.0)?;
            }
            Directories::Fixed { fan_out, popularity } => {
                let leaves: f64 = fan_out.iter().map(|n| f64::from(*n)).product();
                within("directories.fan_out (product)", leaves, 1.0, 1e6)?;
                within("directories.popularity", *popularity, 0.0, 10.0)?;
            }
        }
        within("number of streams", self.stream.len() as f64, 1.0, 64.0)?;
        self.stream.iter().try_for_each(Stream::check)?;
        if !self.stream.iter().any(Stream::lasts) {
            return bad("stream", "no stream has lasting files (a lifetime with a median of a day or more)".into());
        }
        if let Some(reference) = &self.reference {
            reference.size.check().map_err(|message| ("reference.size".to_owned(), message))?;
        }
        Ok(())
    }
}

/// Checks points of utilisation over time: ascending times up to `end`, shares that leave room.
pub fn check_curve(points: &[[f64; 2]], end: f64) -> Result<(), String> {
    if points.is_empty() {
        return Err("at least one point is needed".into());
    }
    for [at, share] in points {
        if !(0.0..=end).contains(at) {
            return Err(format!("time {at} is not in 0 to {end}"));
        }
        if !(0.0..=0.99).contains(share) {
            return Err(format!("share {share} is not in 0 to 0.99"));
        }
    }
    match points.windows(2).find(|w| matches!(w, [a, b] if b[0] <= a[0])) {
        Some(_) => Err("times must ascend".into()),
        None if points.iter().all(|p| p[1] == 0.0) => Err("all shares are 0".into()),
        None => Ok(()),
    }
}

fn within(place: &str, value: f64, low: f64, high: f64) -> Result<(), (String, String)> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err((place.to_owned(), format!("{value} is not in {low} to {high}")))
    }
}

fn weights(place: &str, values: &[f64], n: usize) -> Result<(), (String, String)> {
    if values.len() != n {
        return Err((place.to_owned(), format!("{} weights instead of {n}", values.len())));
    }
    values.iter().try_for_each(|w| within(place, *w, 0.0, 1e9))?;
    within(&format!("{place} (sum)"), values.iter().sum(), 1e-9, 1e12)
}

impl Stream {
    /// Whether some of its files last a day or more.
    pub fn lasts(&self) -> bool {
        self.lifetime.iter().any(|c| c.median_s >= 86_400.0)
    }

    fn check(&self) -> Result<(), (String, String)> {
        let place = |field: &str| format!("stream.{}.{field}", self.name);
        within(&place("share"), self.share, 1e-12, 1e12)?;
        self.size.check().map_err(|message| (place("size"), message))?;
        Lifetime::check(&self.lifetime).map_err(|message| (place("lifetime"), message))?;
        within(&place("batch.mean"), self.batch.mean, 1.0, 1e6)?;
        within(&place("batch.sigma"), self.batch.sigma, 0.0, 3.0)?;
        within(&place("batch.files_per_directory"), self.batch.files_per_directory, 0.0, 1e6)?;
        if let Dies::Run(hour) = self.dies {
            within(&place("dies.run"), hour, 0.0, 23.99)?;
        }
        if let Write::Grown { chunk_bytes, span_s } = self.write {
            within(&place("write.grown.chunk_bytes"), chunk_bytes as f64, 1.0, 1e12)?;
            within(&place("write.grown.span_s"), span_s, 0.0, 1e9)?;
        }
        let Some(update) = &self.update else { return Ok(()) };
        within(&place("update.per_file_per_day"), update.per_file_per_day, 0.0, 1e6)?;
        let kinds = [update.overwrite, update.rewrite, update.replace, update.punch];
        kinds.iter().try_for_each(|w| within(&place("update (weight)"), *w, 0.0, 1e9))?;
        within(&place("update (sum of weights)"), kinds.iter().sum(), 1e-9, 1e12)?;
        within(&place("update.piece_bytes"), update.piece_bytes as f64, 1.0, 1e12)?;
        within(&place("update.pieces"), f64::from(update.pieces), 1.0, 1e6)?;
        within(&place("update.together"), f64::from(update.together), 1.0, 1e6)?;
        within(&place("update.hot"), update.hot, 0.0, 1.0)
    }
}
