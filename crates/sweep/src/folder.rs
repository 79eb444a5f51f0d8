//! The folder that a sweep grows in: what it is of, its journal, and its data set.
//!
//! | name | holds |
//! |---|---|
//! | `spec.toml` | the sweep's file, byte for byte |
//! | `sweep.json` | version, number of tasks, what identifies the inputs |
//! | `journal` | a line for each task that has ended |
//! | `lock` | held by the run that writes here |
//! | `results/` | the data set: figures, partitioned |
//! | `tasks.parquet` | each task's parameters, and what became of it |
//! | `timing.parquet` | when and how long each task ran, and where: the only table that differs from run to run |
//!
//! A part of a sweep (`--tasks`) is the same without the last three.

use crate::journal::{Journal, Place};
use crate::spec::{AxisValue, Spec};
use crate::tasks::Tasks;
use crate::{Entry, Outcome, SweepError};
use fault::refused;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Schema of `sweep.json`.
const SCHEMA: &str = "fsage.sweep-folder/1";
const SPEC: &str = "spec.toml";
const IDENTITY: &str = "sweep.json";
const JOURNAL: &str = "journal";
const LOCK: &str = "lock";
/// Files up to this length are hashed whole; of longer ones the length and both ends. The end of a Parquet file of ours
/// holds the checksums of all the rest.
const WHOLE_BYTES: u64 = 4 << 20;
const END_BYTES: u64 = 64 << 10;

/// An input of tasks: a value of an axis, or a word of the command, that is a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// As the sweep names it, relative to the sweep's file.
    pub path: String,
    /// BLAKE3 of names, lengths and contents, hexadecimal.
    pub blake3: String,
}

/// What a folder is of. Two runs go into one folder only where this is the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// `fsage.sweep-folder/1`.
    pub schema: String,
    /// Version of fsage.
    pub version: String,
    /// The sweep's name.
    pub name: String,
    /// BLAKE3 of the sweep's file, hexadecimal.
    pub spec_blake3: String,
    /// How many tasks it has.
    pub tasks: u64,
    /// What tasks read, by path.
    pub inputs: Vec<Input>,
}

impl Identity {
    /// Of a sweep, as its files are now.
    ///
    /// # Errors
    /// An input cannot be read.
    pub fn of(spec: &Spec, tasks: &Tasks) -> Result<Identity, SweepError> {
        Ok(Identity {
            schema: SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            name: spec.name.clone(),
            spec_blake3: blake3::hash(spec.text.as_bytes()).to_hex().to_string(),
            tasks: tasks.len(),
            inputs: inputs(spec)?,
        })
    }

    /// In what it differs from another, and what to do.
    fn differs(&self, other: &Identity) -> Option<String> {
        let again = "name another folder with -o, or remove this one";
        if self.version != other.version {
            return Some(format!("was made by fsage {}, and this is {}; {again}", self.version, other.version));
        }
        if self.spec_blake3 != other.spec_blake3 {
            return Some(format!("is of another state of the sweep's file (its own is in {SPEC}); {again}"));
        }
        let changed =
            |a: &[Input], b: &[Input]| a.iter().find(|input| !b.contains(input)).map(|input| input.path.clone());
        if let Some(path) = changed(&self.inputs, &other.inputs).or_else(|| changed(&other.inputs, &self.inputs)) {
            return Some(format!("{path} has changed since tasks read it; {again}"));
        }
        (self != other).then(|| format!("is of another sweep; {again}"))
    }
}

/// Files and directories that the command names, or a value of an axis: by path, each once.
fn inputs(spec: &Spec) -> Result<Vec<Input>, SweepError> {
    let mut named: BTreeSet<String> = spec.files.iter().cloned().collect();
    let directory = spec.directory();
    if let Some(missing) = named.iter().find(|path| !directory.join(path).exists()) {
        let message = format!("files: {missing}: there is no such file in {}", directory.display());
        return Err(SweepError::Spec { file: spec.file.clone(), line: None, message });
    }
    let words = spec.run.iter().map(String::as_str);
    let values = spec.axes.iter().flat_map(|axis| &axis.values).flat_map(|value| match value {
        AxisValue::Text(text) => std::slice::from_ref(text),
        AxisValue::Words(words) => words.as_slice(),
        _ => &[],
    });
    for word in words.chain(values.map(String::as_str)) {
        // A target's name may be a directory's too: a directory to work in is no input.
        let path = directory.join(word);
        let is_input = path.is_file() || path.join("meta.json").is_file();
        if !word.is_empty() && is_input {
            named.insert(word.to_owned());
        }
    }
    named
        .into_iter()
        .map(|path| {
            let mut hash = blake3::Hasher::new();
            hash_tree(&directory.join(&path), &mut hash)?;
            Ok(Input { path, blake3: hash.finalize().to_hex().to_string() })
        })
        .collect()
}

fn hash_tree(path: &Path, hash: &mut blake3::Hasher) -> Result<(), SweepError> {
    let io = |doing| refused(path, doing);
    if path.is_dir() {
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(io("read"))?;
        let mut names: Vec<_> = entries.into_iter().map(|entry| entry.file_name()).collect();
        names.sort();
        hash.update(&(names.len() as u64).to_le_bytes());
        for name in names {
            let bytes = name.as_encoded_bytes();
            hash.update(&(bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
            hash_tree(&path.join(&name), hash)?;
        }
        return Ok(());
    }
    let mut file = posix::input::open(path).map_err(io("open"))?;
    let len = file.metadata().map_err(io("look at"))?.len();
    hash.update(&len.to_le_bytes());
    let mut bytes = Vec::new();
    if len <= WHOLE_BYTES {
        file.take(WHOLE_BYTES).read_to_end(&mut bytes).map_err(io("read"))?;
    } else {
        file.by_ref().take(END_BYTES).read_to_end(&mut bytes).map_err(io("read"))?;
        file.seek(SeekFrom::End(-(END_BYTES as i64))).map_err(io("read"))?;
        file.take(END_BYTES).read_to_end(&mut bytes).map_err(io("read"))?;
    }
    hash.update(&bytes);
    Ok(())
}

/// The lock of a folder, held.
#[derive(Debug)]
struct Held(File);

impl Drop for Held {
    fn drop(&mut self) {
        // Closing it is not enough: a process that is being started has it too, until it has executed its program.
        let _ = rustix::fs::flock(&self.0, rustix::fs::FlockOperation::Unlock);
    }
}

/// A sweep's folder, held by this process.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    identity: Identity,
    journal: Journal,
    /// For each task, from number 1: where its entry stands, if it has ended.
    ended: Vec<Option<Place>>,
    /// Tasks that have ended without a result.
    failed: BTreeSet<u64>,
    /// Seconds of the tasks that have ended.
    seconds: Vec<f64>,
    /// None where it is only looked at.
    lock: Option<Held>,
}

impl Folder {
    /// Opens the folder of a sweep, or makes it.
    ///
    /// # Errors
    /// It is of something else, or another run has it; it is damaged; the system refuses.
    pub fn open(path: &Path, spec: &Spec, tasks: &Tasks) -> Result<Folder, SweepError> {
        let identity = Identity::of(spec, tasks)?;
        let folder = |message: String| SweepError::Folder { folder: path.to_owned(), message };
        let io = |doing| refused(path, doing);
        if !path.is_dir() {
            std::fs::create_dir(path).map_err(io("make"))?;
        }
        let described = path.join(IDENTITY);
        if !described.exists() && !is_begun(path, spec).map_err(io("read"))? {
            return Err(folder("is there and is no folder of a sweep; name another with -o".to_owned()));
        }
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK))
            .map_err(io("open the lock of"))?;
        match rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(folder("another run of this sweep is writing here; wait for it, or end it".to_owned()));
            }
            Err(errno) => return Err(io("lock")(errno.into()).into()),
        }
        if described.exists() {
            if let Some(message) = read_identity(path)?.differs(&identity) {
                return Err(folder(message));
            }
        } else {
            // The description comes last: with it, the folder is a sweep's.
            posix::output::write_durably(&path.join(SPEC), spec.text.as_bytes()).map_err(io("write into"))?;
            let json = serde_json::to_string_pretty(&identity).unwrap_or_default() + "\n";
            posix::output::write_durably(&described, json.as_bytes()).map_err(io("write into"))?;
        }
        Folder::of(path, identity, tasks, Some(Held(lock)), Journal::open)
    }

    /// Opens the folder of a sweep to look at it, which changes nothing there and goes beside a run: what had ended
    /// by now is seen.
    ///
    /// # Errors
    /// It is none, or of something else; it is damaged; the system refuses.
    pub fn look(path: &Path, spec: &Spec, tasks: &Tasks) -> Result<Folder, SweepError> {
        let identity = read_identity(path)?;
        if let Some(message) = identity.differs(&Identity::of(spec, tasks)?) {
            return Err(SweepError::Folder { folder: path.to_owned(), message });
        }
        Folder::of(path, identity, tasks, None, Journal::read)
    }

    fn of(
        path: &Path,
        identity: Identity,
        tasks: &Tasks,
        lock: Option<Held>,
        open: impl FnOnce(&Path, &mut dyn FnMut(Entry, Place) -> Result<(), SweepError>) -> Result<Journal, SweepError>,
    ) -> Result<Folder, SweepError> {
        let mut ended = vec![None; usize::try_from(tasks.len()).unwrap_or_default()];
        let (mut failed, mut seconds) = (BTreeSet::new(), Vec::new());
        let file = path.join(JOURNAL);
        let journal = open(&file, &mut |entry, place| {
            let slot = slot(&mut ended, &entry, &file)?;
            *slot = Some(place);
            note_failure(&mut failed, &entry);
            seconds.push(entry.seconds);
            Ok(())
        })?;
        Ok(Folder { path: path.to_owned(), identity, journal, ended, failed, seconds, lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is of.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Tasks that have not ended yet; with `again`, those as well that ended without a result.
    pub fn to_do(&self, again: bool) -> Vec<u64> {
        let number = |index: usize| index as u64 + 1;
        let open = self.ended.iter().enumerate().filter(|(_, place)| place.is_none()).map(|(index, _)| number(index));
        let mut numbers: Vec<u64> = open.collect();
        if again {
            numbers.extend(&self.failed);
            numbers.sort_unstable();
        }
        numbers
    }

    /// How many tasks have ended, and how many of them without a result.
    pub fn counts(&self) -> (u64, u64) {
        (self.ended.iter().flatten().count() as u64, self.failed.len() as u64)
    }

    /// How long the tasks that have ended took, seconds.
    pub fn seconds(&self) -> &[f64] {
        &self.seconds
    }

    /// Keeps what became of a task. A task that ended before is replaced.
    ///
    /// # Errors
    /// The system refuses; there is no task of that number.
    pub fn keep(&mut self, entry: &Entry) -> Result<(), SweepError> {
        assert!(self.lock.is_some(), "a folder that is only looked at takes no task");
        let slot = slot(&mut self.ended, entry, &self.path)?;
        *slot = Some(self.journal.append(entry)?);
        note_failure(&mut self.failed, entry);
        self.seconds.push(entry.seconds);
        Ok(())
    }

    /// What became of a task, if it has ended.
    ///
    /// # Errors
    /// The journal cannot be read again.
    pub fn entry(&mut self, number: u64) -> Result<Option<Entry>, SweepError> {
        let place =
            number.checked_sub(1).and_then(|index| self.ended.get(usize::try_from(index).ok()?).copied().flatten());
        place.map(|place| self.journal.entry(place)).transpose()
    }

    /// Brings the journal to stable storage.
    ///
    /// # Errors
    /// The system refuses.
    pub fn sync(&mut self) -> Result<(), SweepError> {
        self.journal.sync()
    }

    /// Takes in what another folder of the same sweep has: a part that another machine ran. Tasks that have a result
    /// here keep it. How many tasks were new, and how many had another outcome there than here.
    ///
    /// # Errors
    /// It is of another sweep, or damaged.
    pub fn collect(&mut self, part: &Path) -> Result<(u64, u64), SweepError> {
        if let Some(message) = read_identity(part)?.differs(&self.identity) {
            return Err(SweepError::Folder { folder: part.to_owned(), message });
        }
        let (mut new, mut different) = (0, 0);
        Journal::read(&part.join(JOURNAL), &mut |entry, _| {
            let here = self.entry(entry.task)?;
            match here.map(|here| here.outcome) {
                Some(outcome @ Outcome::Figures(_)) => different += u64::from(outcome != entry.outcome),
                Some(Outcome::Failed { .. }) if matches!(entry.outcome, Outcome::Failed { .. }) => {}
                _ => {
                    self.keep(&entry)?;
                    new += 1;
                }
            }
            Ok(())
        })?;
        self.journal.sync()?;
        Ok((new, different))
    }
}

/// Whether there is nothing in a folder but what a run that was killed while it made it has left.
fn is_begun(path: &Path, spec: &Spec) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_growing = [SPEC, IDENTITY].iter().any(|place| name.to_string_lossy().starts_with(&format!(".{place}.")));
        let is_spec = || std::fs::read(entry.path()).is_ok_and(|bytes| bytes == spec.text.as_bytes());
        if !(is_growing || name == LOCK || (name == SPEC && is_spec())) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The place of an entry's task.
fn slot<'e>(ended: &'e mut [Option<Place>], entry: &Entry, file: &Path) -> Result<&'e mut Option<Place>, SweepError> {
    let tasks = ended.len();
    let index = entry.task.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    index.and_then(|index| ended.get_mut(index)).ok_or_else(|| SweepError::Damaged {
        file: file.to_owned(),
        place: format!("task {}", entry.task),
        message: format!("the sweep has tasks 1 to {tasks}"),
    })
}

fn note_failure(failed: &mut BTreeSet<u64>, entry: &Entry) {
    match entry.outcome {
        Outcome::Failed { .. } => failed.insert(entry.task),
        Outcome::Figures(_) => failed.remove(&entry.task),
    };
}

fn read_identity(path: &Path) -> Result<Identity, SweepError> {
    let file = path.join(IDENTITY);
    let folder = |message: String| SweepError::Folder { folder: path.to_owned(), message };
    if !file.exists() {
        return Err(folder(format!("is no folder of a sweep: it has no {IDENTITY}")));
    }
    let text = posix::input::read_text(&file, 64 << 20).map_err(refused(&file, "read"))?;
    let identity: Identity = serde_json::from_str(&text).map_err(|error| SweepError::Damaged {
        file: file.clone(),
        place: format!("line {}", error.line()),
        message: format!("{error}; it is written by fsage sweep alone"),
    })?;
    match identity.schema == SCHEMA {
        true => Ok(identity),
        false => Err(folder(format!("{IDENTITY} is of schema {:?}, and this fsage reads {SCHEMA:?}", identity.schema))),
    }
}

/// How far a folder is, without taking it: whoever runs goes on.
///
/// # Errors
/// It is no folder of a sweep, or damaged.
pub fn status(path: &Path) -> Result<Status, SweepError> {
    let identity = read_identity(path)?;
    let mut status = Status { name: identity.name, tasks: identity.tasks, ..Status::default() };
    let mut ended = BTreeSet::new();
    let (mut failed, mut messages) = (BTreeSet::new(), std::collections::BTreeMap::new());
    let journal = path.join(JOURNAL);
    if journal.exists() {
        Journal::read(&journal, &mut |entry, _| {
            ended.insert(entry.task);
            note_failure(&mut failed, &entry);
            status.seconds += entry.seconds;
            match entry.outcome {
                Outcome::Failed { message, .. } => drop(messages.insert(entry.task, message)),
                Outcome::Figures(_) => drop(messages.remove(&entry.task)),
            }
            Ok(())
        })?;
    }
    (status.ended, status.failed) = (ended.len() as u64, failed.len() as u64);
    status.failures = messages.into_iter().collect();
    for number in (1..=identity.tasks).filter(|number| !ended.contains(number)) {
        match status.to_do.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => status.to_do.push((number, number)),
        }
    }
    // Nothing is written, and a data set on a medium that cannot be written to is looked at, too. Without a lock
    // nobody runs.
    let held = |lock: File| rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockShared).is_err();
    status.running = File::open(path.join(LOCK)).is_ok_and(held);
    Ok(status)
}

/// How far a sweep is.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// The sweep's name.
    pub name: String,
    /// How many tasks it has.
    pub tasks: u64,
    /// How many have ended.
    pub ended: u64,
    /// How many of them without a result.
    pub failed: u64,
    /// What the tasks that ended took together, seconds.
    pub seconds: f64,
    /// Whether a run is writing into the folder now.
    pub running: bool,
    /// Tasks without a result, and what their commands said.
    pub failures: Vec<(u64, String)>,
    /// Tasks that have not ended: first and last of each stretch.
    pub to_do: Vec<(u64, u64)>,
}
