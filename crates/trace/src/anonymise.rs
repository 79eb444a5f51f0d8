//! A profile without the names of what it is about: its structure kept, every name hidden.
//!
//! What lives here: the pseudonyms, and where in a profile names stand. What may not: reading and writing profiles.
//!
//! Each component of a path is replaced by letters drawn from its keyed hash (BLAKE3), so that one name has one
//! pseudonym throughout a profile, different names have different ones, and nobody without the key can test a guess.
//! The key is random for each profile and stored nowhere. Kept are: depth, which names are equal, `.`, `..`, slashes,
//! whether a path or link's target is absolute, and the length of each name, but for short names of which there are
//! more than letters. Extensions and leading dots are hidden like the rest.
//!
//! What holds no names is left alone: times, turns of threads, sizes, owners' numbers, inodes, calls, file system
//! types, kernel and processor.

use crate::profile::{Meta, Reader, Row, Writer, WriterOptions, escape, unescape};
use crate::{Batch, Event, PathId, Paths, Snapshot};
use columnar::FileError;
use rustc_hash::{FxHashMap, FxHashSet};
use std::path::Path;

/// What pseudonyms are made of: letters that words are not made of, so that none reads like a name (or is one).
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
/// Attempts at a pseudonym of a name's length before it grows.
const ATTEMPTS: u64 = 64;

/// Hides names, the same name always behind the same pseudonym.
#[derive(Debug)]
pub struct Anonymiser {
    key: [u8; 32],
    pseudonyms: FxHashMap<Box<[u8]>, Box<[u8]>>,
    taken: FxHashSet<Box<[u8]>>,
}

impl Anonymiser {
    /// One with a random key, which nobody keeps.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn new() -> std::io::Result<Anonymiser> {
        let mut key = [0; 32];
        let mut filled = 0;
        while let Some(rest) = key.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            filled += rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty())?;
        }
        Ok(Anonymiser::with_key(key))
    }

    /// One with a given key, for tests.
    pub fn with_key(key: [u8; 32]) -> Anonymiser {
        Anonymiser { key, pseudonyms: FxHashMap::default(), taken: FxHashSet::default() }
    }

    /// A name's pseudonym. `.`, `..` and nothing are themselves.
    pub fn name(&mut self, name: &[u8]) -> Box<[u8]> {
        if matches!(name, b"" | b"." | b"..") {
            return name.into();
        }
        if let Some(known) = self.pseudonyms.get(name) {
            return known.clone();
        }
        let mut attempt = 0;
        let pseudonym = loop {
            let drawn = self.draw(name, attempt);
            if self.taken.insert(drawn.clone()) {
                break drawn;
            }
            attempt += 1;
        };
        self.pseudonyms.insert(name.into(), pseudonym.clone());
        pseudonym
    }

    fn draw(&self, name: &[u8], attempt: u64) -> Box<[u8]> {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&attempt.to_le_bytes());
        hasher.update(name);
        let grown = usize::try_from(attempt / ATTEMPTS).unwrap_or(0);
        let mut letters = vec![0; name.len() + grown];
        hasher.finalize_xof().fill(&mut letters);
        for letter in &mut letters {
            // A few letters are a little likelier than others, which tells nobody anything.
            *letter = LETTERS.get(usize::from(*letter) % LETTERS.len()).copied().unwrap_or(b'B');
        }
        letters.into()
    }

    /// A path, component by component.
    pub fn path(&mut self, path: &[u8]) -> Vec<u8> {
        let mut hidden = Vec::with_capacity(path.len());
        for (i, component) in path.split(|&b| b == b'/').enumerate() {
            if i > 0 {
                hidden.push(b'/');
            }
            hidden.extend_from_slice(&self.name(component));
        }
        hidden
    }

    /// An escaped path; what is no such text as a whole.
    fn text(&mut self, text: &str) -> String {
        let hidden = match unescape(text.as_bytes()) {
            Ok(path) => self.path(&path),
            Err(_) => self.path(text.as_bytes()),
        };
        escape(&hidden).into_owned()
    }

    /// Events with their paths hidden.
    pub fn batch(&mut self, batch: &Batch) -> Batch {
        let mut paths = Paths::default();
        let mut ids: FxHashMap<PathId, PathId> = FxHashMap::default();
        let mut hidden = |event: &Event| {
            let mut row = Row::from(event);
            for id in [&mut row.path, &mut row.path2, &mut row.caller_dir, &mut row.caller_dir2] {
                *id = id.map(|id| *ids.entry(id).or_insert_with(|| paths.intern(&self.path(batch.paths.get(id)))));
            }
            Event::from(row)
        };
        let events = batch.events.iter().map(&mut hidden).collect();
        Batch { events, paths, schedule: batch.schedule.clone() }
    }

    /// A snapshot with its names and links' targets hidden.
    pub fn snapshot(&mut self, snapshot: Snapshot) -> Snapshot {
        let mut entries = snapshot.entries;
        for entry in &mut entries {
            entry.path = self.path(&entry.path);
            entry.target = entry.target.take().map(|target| self.path(&target));
        }
        Snapshot::from_entries(entries)
    }

    /// A description with every string hidden that a user may have chosen.
    pub fn meta(&mut self, meta: Meta) -> Meta {
        let mut meta = meta;
        meta.host.name = self.text(&meta.host.name);
        for fs in &mut meta.file_systems {
            fs.mount_point = self.text(&fs.mount_point);
            fs.device = self.text(&fs.device);
            let options: Vec<String> = fs.options.split(',').map(|option| self.mount_option(option)).collect();
            fs.options = options.join(",");
        }
        if let Some(command) = &mut meta.command {
            command.argv = command.argv.iter().map(|arg| self.text(arg)).collect();
            command.working_directory = self.text(&command.working_directory);
        }
        meta.tracer.options = meta.tracer.options.iter().map(|option| self.tracer_option(option)).collect();
        for unreadable in &mut meta.snapshot.unreadable {
            unreadable.path = self.text(&unreadable.path);
            if unreadable.error.contains('/') {
                unreadable.error = "hidden".to_owned();
            }
        }
        // Columns that a prediction added name files and systems; they are not written again.
        meta.annotations.clear();
        meta
    }

    /// `rw`, `commit=5` and `data=ordered` say nothing of their user; `subvol=/home`, `lowerdir=…` and `addr=…` do.
    fn mount_option(&mut self, option: &str) -> String {
        const HARMLESS: &[&str] =
            &["data", "errors", "discard", "compress", "compress-force", "journal_checksum", "logbufs"];
        match option.split_once('=') {
            None if option.contains(['/', ':', '.']) => self.text(option),
            None => option.to_owned(),
            Some((key, value)) if HARMLESS.contains(&key) || is_quantity(value) => format!("{key}={value}"),
            Some((key, value)) => format!("{key}={}", self.text(value)),
        }
    }

    /// Options of tracers that only say what is traced are kept.
    fn tracer_option(&mut self, option: &str) -> String {
        let plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-=,!%_:".contains(&b));
        let harmless = option.starts_with('-') || option.starts_with("trace=") || option.starts_with("iolog version ");
        if harmless && plain(&option.replace(' ', "")) || is_quantity(option) {
            option.to_owned()
        } else {
            self.text(option)
        }
    }
}

/// A number, with a unit or without.
fn is_quantity(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && text.len() - digits <= 1 && text.bytes().skip(digits).all(|b| b.is_ascii_alphabetic())
}

/// Writes a profile with its names hidden.
///
/// # Errors
/// The profile is damaged, or the output cannot be written; nothing is left of it then.
pub fn anonymise(reader: &Reader, output: &Path, writing: WriterOptions) -> Result<Meta, FileError> {
    let mut hiding = Anonymiser::new().map_err(FileError::io(output, "draw a random key for"))?;
    let mut writer = Writer::create(output, WriterOptions { annotations: Vec::new(), ..writing })?;
    let snapshot = hiding.snapshot(reader.snapshot()?);
    let mut batches = reader.batches()?;
    let mut batch = Batch::default();
    while batches.next_into(&mut batch)? {
        writer.push(&hiding.batch(&batch))?;
    }
    writer.push_schedule(&reader.schedule()?.unwrap_or_default())?;
    writer.finish(hiding.meta(reader.meta().clone()), &snapshot)
}

/// Hides the names of a profile where it stands: the new one takes the old one's place when it is whole.
///
/// # Errors
/// As [`anonymise`]; the old one is still there then.
pub fn anonymise_in_place(directory: &Path) -> Result<Meta, FileError> {
    let reader = Reader::open(directory)?;
    anonymise(&reader, directory, WriterOptions { overwrite: true, ..WriterOptions::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn structure_is_kept() {
        let mut hiding = Anonymiser::with_key([7; 32]);
        let path = String::from_utf8(hiding.path(b"/home/joe/./../home//notes.txt/")).unwrap();
        let parts: Vec<&str> = path.split('/').collect();
        assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [0, 4, 3, 1, 2, 4, 0, 9, 0]);
        assert_eq!((parts[3], parts[4], parts[1]), (".", "..", parts[5]));
        assert_eq!(hiding.path(b"../joe"), format!("../{}", parts[2]).into_bytes());
        assert_ne!(Anonymiser::with_key([8; 32]).path(b"/home"), hiding.path(b"/home"));
    }

    #[test]
    fn short_names_stay_apart() {
        let mut hiding = Anonymiser::with_key([7; 32]);
        let names: Vec<Vec<u8>> = (1..=255u8).filter(|b| *b != b'/' && *b != b'.').map(|b| vec![b]).collect();
        let hidden: FxHashSet<Box<[u8]>> = names.iter().map(|name| hiding.name(name)).collect();
        assert_eq!(hidden.len(), names.len());
        assert!(hidden.iter().all(|name| name.len() <= 3), "{hidden:?}");
    }

    #[test]
    fn options_keep_what_says_nothing() {
        let mut hiding = Anonymiser::with_key([7; 32]);
        for kept in ["rw", "relatime", "commit=5", "size=8G", "data=ordered"] {
            assert_eq!(hiding.mount_option(kept), kept);
        }
        for (option, begin) in [("subvol=/@home", "subvol=/"), ("user=joe", "user="), ("//server/share", "//")] {
            let hidden = hiding.mount_option(option);
            assert!(hidden.starts_with(begin) && hidden != option && hidden.len() == option.len(), "{hidden}");
        }
        for kept in ["-f", "--trace=%file,read", "-ttt", "trace=!write", "iolog version 3", "4711"] {
            assert_eq!(hiding.tracer_option(kept), kept);
        }
        assert!(!hiding.tracer_option("-o/home/joe").contains("joe"));
        assert!(!hiding.tracer_option("postgres").contains("postgres"));
    }

    proptest! {
        #[test]
        fn equal_names_and_only_they_are_equal(names in proptest::collection::vec("[a-c]{1,3}", 2..60)) {
            let mut hiding = Anonymiser::with_key([1; 32]);
            let hidden: Vec<_> = names.iter().map(|name| hiding.name(name.as_bytes())).collect();
            for (a, ha) in names.iter().zip(&hidden) {
                for (b, hb) in names.iter().zip(&hidden) {
                    prop_assert_eq!(a == b, ha == hb);
                }
            }
        }
    }
}
