//! The folder of a library.
//!
//! | name | holds |
//! |---|---|
//! | `workloads/NAME.workload` | a workload profile, its names hidden |
//! | `systems/NAME.system` | a system profile |
//! | `replays/WORKLOAD/SYSTEM.json` | what a replay of the one on the other measured |
//! | `matrix.json`, `index.html` | the matrix, made from the above |

use crate::{LibraryError, SCHEMA};
use fault::refused;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use system::SystemProfile;
use trace::profile::Reader;

const WORKLOADS: &str = "workloads";
const SYSTEMS: &str = "systems";
const REPLAYS: &str = "replays";
const MATRIX: &str = "matrix.json";
const PAGE: &str = "index.html";
/// The result of `fsage replay --json`, whose figures are kept.
const REPLAY_SCHEMA: &str = "fsage.replay/1";
/// Schema of what is kept of a replay: no path of the workload's.
const KEPT_SCHEMA: &str = "fsage.library-replay/1";

/// How far into a file its schema may stand: the page has its style and its words before.
const OURS_BYTES: u64 = 1 << 20;

/// A library's folder.
#[derive(Clone, Debug)]
pub struct Library {
    folder: PathBuf,
}

/// What is kept of a replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// `fsage.library-replay/1`.
    pub schema: String,
    /// The target that it was made on.
    pub target: String,
    /// The sum of the latencies of its calls, nanoseconds.
    pub total_ns: f64,
    /// Calls made.
    pub calls: u64,
    /// Calls whose outcome was not the recorded one.
    pub differences: u64,
    /// By operation: its name, calls, and their time, nanoseconds.
    pub per_op: Vec<(String, u64, f64)>,
}

impl Replayed {
    /// Of a replay's result.
    pub fn of(result: &Value) -> Option<Replayed> {
        let per_op = result["per_op"].as_array()?.iter();
        Some(Replayed {
            schema: KEPT_SCHEMA.to_owned(),
            target: result["environment"]["target"].as_str()?.to_owned(),
            total_ns: result["total_ns"].as_f64()?,
            calls: result["calls"].as_u64()?,
            differences: result["differences"]["total"].as_u64()?,
            per_op: per_op
                .map(|op| Some((op["op"].as_str()?.to_owned(), op["count"].as_u64()?, op["total_ns"].as_f64()?)))
                .collect::<Option<Vec<_>>>()?,
        })
    }
}

impl Library {
    /// Opens a library's folder, or makes it. What is somebody else's is not touched.
    ///
    /// # Errors
    /// It holds something else; the system refuses.
    pub fn open(folder: &Path) -> Result<Library, LibraryError> {
        check(folder)?;
        for name in ["", WORKLOADS, SYSTEMS, REPLAYS] {
            let path = folder.join(name);
            if !path.is_dir() {
                std::fs::create_dir(&path).map_err(refused(&path, "make"))?;
            }
        }
        Ok(Library { folder: folder.to_owned() })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a workload of this name is, or would be.
    pub fn workload(&self, name: &str) -> PathBuf {
        self.folder.join(WORKLOADS).join(format!("{name}.workload"))
    }

    /// Where a system of this name is, or would be.
    pub fn system(&self, name: &str) -> PathBuf {
        self.folder.join(SYSTEMS).join(format!("{name}.system"))
    }

    fn replay(&self, workload: &str, system: &str) -> PathBuf {
        self.folder.join(REPLAYS).join(workload).join(format!("{system}.json"))
    }

    /// The workloads' names, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn workloads(&self) -> Result<Vec<String>, LibraryError> {
        names(&self.folder.join(WORKLOADS), ".workload")
    }

    /// The systems' names, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn systems(&self) -> Result<Vec<String>, LibraryError> {
        names(&self.folder.join(SYSTEMS), ".system")
    }

    /// Opens a workload.
    ///
    /// # Errors
    /// It is damaged.
    pub fn open_workload(&self, name: &str) -> Result<Reader, LibraryError> {
        Ok(Reader::open(&self.workload(name))?)
    }

    /// Reads a system's profile.
    ///
    /// # Errors
    /// It is damaged.
    pub fn open_system(&self, name: &str) -> Result<SystemProfile, LibraryError> {
        Ok(SystemProfile::load(&self.system(name))?)
    }

    /// What a replay measured, if one was made.
    ///
    /// # Errors
    /// Its file is damaged.
    pub fn replayed(&self, workload: &str, system: &str) -> Result<Option<Replayed>, LibraryError> {
        let path = self.replay(workload, system);
        let bad = |message: String| LibraryError::Replay { path: path.clone(), message };
        if !path.exists() {
            return Ok(None);
        }
        let text = posix::input::read(&path, 64 << 20).map_err(|error| bad(error.to_string()))?;
        let replayed: Replayed = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        match replayed.schema == KEPT_SCHEMA {
            true => Ok(Some(replayed)),
            false => Err(bad(format!("is of schema {:?}, and this fsage reads {KEPT_SCHEMA:?}", replayed.schema))),
        }
    }

    /// Keeps what a replay measured: its `--json`.
    ///
    /// # Errors
    /// It is no replay's result; the system refuses.
    pub fn keep_replay(&self, workload: &str, system: &str, result: &Value) -> Result<(), LibraryError> {
        let path = self.replay(workload, system);
        let known = (result["schema"] == REPLAY_SCHEMA).then(|| Replayed::of(result)).flatten();
        let message = format!("is no {REPLAY_SCHEMA}");
        let replayed = known.ok_or_else(|| LibraryError::Replay { path: path.clone(), message })?;
        let parent = self.folder.join(REPLAYS).join(workload);
        std::fs::create_dir_all(&parent).map_err(refused(&parent, "make"))?;
        let text = serde_json::to_string_pretty(&replayed).unwrap_or_default() + "\n";
        Ok(posix::output::write(&path, text.as_bytes()).map_err(refused(&path, "write"))?)
    }

    /// Forgets the replays of a workload that is there no more, and says of how many systems.
    ///
    /// # Errors
    /// The system refuses.
    pub fn forget_replays(&self, workload: &str) -> Result<usize, LibraryError> {
        let of = self.folder.join(REPLAYS).join(workload);
        if !of.is_dir() {
            return Ok(0);
        }
        let systems = names(&of, ".json")?;
        for system in &systems {
            let path = self.replay(workload, system);
            std::fs::remove_file(&path).map_err(refused(&path, "remove"))?;
        }
        // Where there is something else in it, it stays.
        let _ = std::fs::remove_dir(&of);
        Ok(systems.len())
    }

    /// Puts the matrix and its page in place of those that are there.
    ///
    /// # Errors
    /// The system refuses.
    pub fn publish(&self, json: &str, page: &str) -> Result<PathBuf, LibraryError> {
        let place = |name| self.folder.join(name);
        for (path, text) in [(place(MATRIX), json), (place(PAGE), page)] {
            posix::output::write(&path, text.as_bytes()).map_err(refused(&path, "write"))?;
        }
        Ok(place(PAGE))
    }
}

/// A folder is a library's if it is new or empty, has its folders, or its matrix; and what the matrix and the page
/// take the place of is ours.
fn check(folder: &Path) -> Result<(), LibraryError> {
    let foreign = |path: &Path, what| Err(LibraryError::Foreign { path: path.to_owned(), what });
    if !folder.exists() {
        return Ok(());
    }
    let (matrix, page) = (folder.join(MATRIX), folder.join(PAGE));
    for (path, begins) in [(&matrix, "{"), (&page, document::HTML_BEGINS)] {
        if path.exists() && !is_ours(path, begins).map_err(refused(path, "read"))? {
            return foreign(path, "is there and was not made by fsage library: it would be overwritten");
        }
    }
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(refused(folder, "read"))?;
    // What is hidden is somebody's who looks after folders, git's for example.
    let is_empty = entries.iter().all(|entry| entry.file_name().as_encoded_bytes().starts_with(b"."));
    if is_empty || matrix.exists() || [WORKLOADS, SYSTEMS].iter().any(|name| folder.join(name).is_dir()) {
        return Ok(());
    }
    foreign(folder, "is there, and is no library: it has neither workloads/ nor systems/")
}

/// Whether a file begins so and names our schema: the matrix in its first field, the page in its data.
fn is_ours(path: &Path, begins: &str) -> std::io::Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let mut text = Vec::new();
    posix::input::open(path)?.take(OURS_BYTES).read_to_end(&mut text)?;
    let schema = format!("\"{SCHEMA}\"");
    Ok(text.starts_with(begins.as_bytes()) && text.windows(schema.len()).any(|bytes| bytes == schema.as_bytes()))
}

/// Names in a directory, without what they end with.
fn names(directory: &Path, end: &str) -> Result<Vec<String>, LibraryError> {
    let entries = std::fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(refused(directory, "read"))?;
    let mut names = Vec::new();
    for entry in entries {
        let file = entry.file_name();
        if file.as_encoded_bytes().starts_with(b".") || !file.as_encoded_bytes().ends_with(end.as_bytes()) {
            continue;
        }
        match file.to_str().and_then(|name| name.strip_suffix(end)) {
            Some(name) => names.push(name.to_owned()),
            None => return Err(LibraryError::Name { path: entry.path() }),
        }
    }
    names.sort();
    Ok(names)
}
