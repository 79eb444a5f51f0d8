//! The thesis's snapshot text.
//!
//! ```text
//! /home/user 12 4096
//! 17 d 4096 src
//! 23 f 1200 notes.txt
//! 31 l 9 link notes.txt
//! ~
//! src
//! 40 f 3 main.c
//! ~
//! ```
//!
//! The first line is the root: its path, its inode number and its size. After that a directory's path on a line,
//! relative to the root, or absolute (trees beside the root); one line `inode type size name [link target]` per entry;
//! a line that is just a tilde ends the directory. Parents come before children, and a directory's own line before its
//! block. A first line without numbers is read too. Types: `f` file, `d` directory,
//! `l` symbolic link, `s` anything else; a digit-free word is accepted in their place (`file`, `directory`, `symlink`,
//! `special`).
//!
//! Names and targets are escaped as in Parquet ([`crate::profile::escape`]); beyond that a space is `\x20` (a space
//! separates fields) and a name or path that begins with a tilde begins with `\x7E`. Paths of directories keep their
//! spaces: they have their line to themselves. Owner, permissions, times and device are not in this format: they come
//! back as zero and the usual permission bits, the provenance as [`Provenance::Before`].

use crate::profile::{escape, unescape};
use crate::snapshot::{is_below, is_plain, parent_of};
use crate::{Provenance, Snapshot, SnapshotEntry};
use fault::{Fault, Kind};
use posix::FileKind;
use rustc_hash::FxHashMap;
use std::io::{self, BufRead, Write};

/// Why a snapshot text could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotTextError {
    /// The input could not be read.
    #[error("line {line}: cannot read: {source}")]
    Io {
        /// Line, from 1.
        line: u64,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("line {line}: {message}")]
    Malformed {
        /// Line, from 1.
        line: u64,
        /// What is wrong and what was expected.
        message: String,
    },
}

impl Fault for SnapshotTextError {
    fn kind(&self) -> Kind {
        match self {
            SnapshotTextError::Io { .. } => Kind::Environment,
            SnapshotTextError::Malformed { .. } => Kind::BadInput,
        }
    }
}

/// No line is longer: a path of any depth that a file system holds, escaped.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Reads a snapshot text.
///
/// # Errors
/// A line that is malformed, a directory that is not ended, an entry listed twice.
pub fn read(input: impl BufRead) -> Result<Snapshot, SnapshotTextError> {
    let mut reader = LineReader { input, line: 0, buffer: Vec::new() };
    let mut entries: Vec<SnapshotEntry> = Vec::new();
    let mut listed: FxHashMap<Vec<u8>, u64> = FxHashMap::default();
    let mut directory: Option<Vec<u8>> = None;
    let mut root: Option<Vec<u8>> = None;
    while reader.next()? {
        let text = reader.buffer.as_slice();
        if text == b"~" {
            if directory.take().is_none() {
                return Err(reader.malformed("a tilde ends a directory, and none has begun"));
            }
            continue;
        }
        match &directory {
            None if text.is_empty() => {}
            None => match &root {
                Some(root) => directory = Some(reader.directory(root)?),
                None => {
                    let entry = reader.root()?;
                    root = Some(entry.path.clone());
                    directory = Some(entry.path.clone());
                    listed.insert(entry.path.clone(), reader.line);
                    entries.push(entry);
                }
            },
            Some(directory) => {
                let entry = reader.entry(directory)?;
                if let Some(first) = listed.insert(entry.path.clone(), reader.line) {
                    return Err(reader.malformed(format!("{} is listed on line {first} already", escape(&entry.path))));
                }
                entries.push(entry);
            }
        }
        if let Some(directory) = &directory
            && !listed.contains_key(directory)
        {
            // A tree beside the root: no line of its own, so all that is known of it is that it is a directory.
            listed.insert(directory.clone(), reader.line);
            entries.push(directory_entry(directory.clone()));
        }
    }
    if directory.is_some() {
        return Err(
            reader.malformed("the text ends inside a directory: a line with a tilde is missing, the file is truncated")
        );
    }
    Ok(Snapshot::from_entries(entries))
}

struct LineReader<R> {
    input: R,
    line: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> LineReader<R> {
    fn next(&mut self) -> Result<bool, SnapshotTextError> {
        self.buffer.clear();
        self.line += 1;
        let line = self.line;
        let mut limited = io::Read::take(&mut self.input, LINE_BYTES_MAX);
        let n = limited.read_until(b'\n', &mut self.buffer).map_err(|source| SnapshotTextError::Io { line, source })?;
        if self.buffer.last() == Some(&b'\n') {
            self.buffer.pop();
        } else if n as u64 == LINE_BYTES_MAX {
            return Err(self.malformed("longer than any path can be"));
        }
        Ok(n > 0)
    }

    fn malformed(&self, message: impl Into<String>) -> SnapshotTextError {
        SnapshotTextError::Malformed { line: self.line, message: message.into() }
    }

    fn unescape(&self, text: &[u8]) -> Result<Vec<u8>, SnapshotTextError> {
        unescape(text).map(|b| b.into_owned()).map_err(|e| self.malformed(e.to_string()))
    }

    /// The first line: `path inode size`, or a path alone.
    fn root(&self) -> Result<SnapshotEntry, SnapshotTextError> {
        let mut fields = self.buffer.rsplitn(3, |&b| b == b' ');
        let (size, ino, path) = (fields.next(), fields.next(), fields.next());
        let number = |text: Option<&[u8]>| std::str::from_utf8(text?).ok()?.parse::<u64>().ok();
        let (Some(size), Some(ino), Some(path)) = (number(size), number(ino), path) else {
            return Ok(directory_entry(self.path(&self.buffer)?));
        };
        let mut entry = directory_entry(self.path(path)?);
        (entry.ino, entry.size_bytes) = (ino, size);
        Ok(entry)
    }

    /// Another directory's line.
    fn directory(&self, root: &[u8]) -> Result<Vec<u8>, SnapshotTextError> {
        if self.buffer.first() == Some(&b'/') {
            return self.path(&self.buffer);
        }
        let separator: &[u8] = if root == b"/" { b"" } else { b"/" };
        self.path(&[escape(root).as_bytes(), separator, &self.buffer].concat())
    }

    fn path(&self, text: &[u8]) -> Result<Vec<u8>, SnapshotTextError> {
        let path = self.unescape(text)?;
        if !is_plain(&path) || path.contains(&0) {
            let message = "the path of a directory is expected here (the first one absolute), without `.`, `..`, `//` \
                and a slash at its end";
            return Err(self.malformed(message));
        }
        Ok(path)
    }

    fn entry(&self, directory: &[u8]) -> Result<SnapshotEntry, SnapshotTextError> {
        let mut fields = self.buffer.split(|&b| b == b' ');
        let expected = "expected: inode type size name [link target]";
        let mut field =
            |what: &str| fields.next().ok_or_else(|| self.malformed(format!("{what} is missing; {expected}")));
        let ino = self.number(field("inode")?, "inode")?;
        let kind_text = field("type")?;
        let kind = kind_from(kind_text).ok_or_else(|| {
            self.malformed(format!("type {:?} is none of f, d, l, s; {expected}", String::from_utf8_lossy(kind_text)))
        })?;
        let size_bytes = self.number(field("size")?, "size")?;
        let name = self.unescape(field("name")?)?;
        if name.is_empty() || name.contains(&b'/') || name.contains(&0) || name == b"." || name == b".." {
            return Err(self.malformed("the name is empty, `.`, `..`, or holds a slash or NUL"));
        }
        let target = match fields.next() {
            Some(target) if kind == FileKind::Symlink => Some(self.unescape(target)?),
            None if kind == FileKind::Symlink => {
                return Err(self.malformed("a symbolic link needs its target after the name"));
            }
            Some(_) => return Err(self.malformed(format!("too many fields (a space in a name is \\x20); {expected}"))),
            None => None,
        };
        if fields.next().is_some() {
            return Err(self.malformed(format!("too many fields (a space in a target is \\x20); {expected}")));
        }
        let separator: &[u8] = if directory == b"/" { b"" } else { b"/" };
        let path = [directory, separator, &name].concat();
        let mut entry = SnapshotEntry::implied(path, kind);
        (entry.ino, entry.size_bytes, entry.target, entry.provenance) = (ino, size_bytes, target, Provenance::Before);
        Ok(entry)
    }

    fn number(&self, text: &[u8], what: &str) -> Result<u64, SnapshotTextError> {
        let number = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok());
        number.ok_or_else(|| self.malformed(format!("{what} {:?} is not a number", String::from_utf8_lossy(text))))
    }
}

fn kind_from(text: &[u8]) -> Option<FileKind> {
    match text {
        b"f" | b"file" => Some(FileKind::File),
        b"d" | b"directory" => Some(FileKind::Directory),
        b"l" | b"symlink" => Some(FileKind::Symlink),
        b"s" | b"special" => Some(FileKind::Special),
        _ => None,
    }
}

fn directory_entry(path: Vec<u8>) -> SnapshotEntry {
    SnapshotEntry { provenance: Provenance::Before, ..SnapshotEntry::implied(path, FileKind::Directory) }
}

/// Writes a snapshot as text: a block for every directory, parents before children, the first one the root. Inode and
/// size of another directory whose own directory is not in the snapshot have no line to stand on and are left out.
///
/// # Errors
/// The output cannot be written.
pub fn write(snapshot: &Snapshot, mut out: impl Write) -> io::Result<()> {
    let mut children: FxHashMap<&[u8], Vec<&SnapshotEntry>> = FxHashMap::default();
    let mut order: Vec<&[u8]> = Vec::new();
    for entry in &snapshot.entries {
        let parent = parent_of(&entry.path);
        // A file whose directory is no entry still needs a block to stand in; a directory like that is a root.
        if let Some(parent) = parent.filter(|p| entry.kind != FileKind::Directory && !children.contains_key(p)) {
            order.push(parent);
            children.entry(parent).or_default();
        }
        if let Some(siblings) = parent.and_then(|p| children.get_mut(p)) {
            siblings.push(entry);
        }
        if entry.kind == FileKind::Directory {
            order.push(&entry.path);
            children.entry(&entry.path).or_default();
        }
    }
    let root = order.first().copied().unwrap_or_default();
    for directory in order {
        let shown = if directory == root {
            let (ino, size) = snapshot.get(root).map_or((0, 0), |entry| (entry.ino, entry.size_bytes));
            format!("{} {ino} {size}", escape(root))
        } else if is_below(directory, root) {
            let from = if root == b"/" { 1 } else { root.len() + 1 };
            first_tilde(escape(directory.get(from..).unwrap_or_default()).into_owned())
        } else {
            escape(directory).into_owned()
        };
        writeln!(out, "{shown}")?;
        for entry in children.get(directory).into_iter().flatten() {
            let kind = match entry.kind {
                FileKind::File => 'f',
                FileKind::Directory => 'd',
                FileKind::Symlink => 'l',
                FileKind::Special => 's',
            };
            write!(out, "{} {kind} {} {}", entry.ino, entry.size_bytes, field(entry.name()))?;
            match (&entry.target, entry.kind) {
                (Some(target), FileKind::Symlink) => writeln!(out, " {}", field(target))?,
                (None, FileKind::Symlink) => writeln!(out, " ")?,
                _ => writeln!(out)?,
            }
        }
        writeln!(out, "~")?;
    }
    out.flush()
}

fn field(bytes: &[u8]) -> String {
    first_tilde(escape(bytes).replace(' ', "\\x20"))
}

fn first_tilde(text: String) -> String {
    match text.strip_prefix('~') {
        Some(rest) => format!("\\x7E{rest}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "/home/user\n17 d 4096 src\n23 f 1200 my\\x20notes\n31 l 9 \\x7Elink \
        notes.txt\n~\n/home/user/src\n5 s 0 fifo\n~\n";

    #[test]
    fn reads_and_writes_the_sample() {
        let snapshot = read(SAMPLE.as_bytes()).unwrap();
        let paths: Vec<_> = snapshot.entries.iter().map(|e| String::from_utf8_lossy(&e.path).into_owned()).collect();
        assert_eq!(
            paths,
            ["/home/user", "/home/user/my notes", "/home/user/src", "/home/user/src/fifo", "/home/user/~link"]
        );
        let link = snapshot.get(b"/home/user/~link").unwrap();
        assert_eq!((link.ino, link.size_bytes, link.target.as_deref()), (31, 9, Some(&b"notes.txt"[..])));
        let mut out = Vec::new();
        write(&snapshot, &mut out).unwrap();
        assert_eq!(read(&out[..]).unwrap(), snapshot);
    }

    /// By hand from the description of the thesis's format.
    #[test]
    fn the_first_line_is_the_root_with_its_inode_and_size() {
        let snapshot =
            read(&b"/ 2 512\n3 d 1024 usr\n4 f 7 vmunix\n~\nusr\n9 d 512 my\\x20src\n~\nusr/my src\n~\n"[..]).unwrap();
        let root = snapshot.get(b"/").unwrap();
        assert_eq!((root.kind, root.ino, root.size_bytes), (FileKind::Directory, 2, 512));
        assert_eq!(snapshot.get(b"/vmunix").unwrap().ino, 4);
        assert_eq!(snapshot.get(b"/usr/my src").unwrap().ino, 9);
        assert_eq!(snapshot.entries.len(), 4);
        let mut out = Vec::new();
        write(&snapshot, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "/ 2 512\n3 d 1024 usr\n4 f 7 vmunix\n~\nusr\n9 d 512 my\\x20src\n~\nusr/my src\n~\n"
        );
        // A root that is no `/`, and a name that ends like a root's line.
        let below = read(&b"/home 5 64\n6 d 64 a\x201\\x202\n~\n/home/a 1 2\n~\n"[..]);
        assert!(below.is_err(), "a space in a name is written \\x20");
        let below = read(&b"/home/a 1 2 5 64\n7 f 1 x\n~\n"[..]).unwrap();
        assert_eq!((below.get(b"/home/a 1 2").unwrap().ino, below.get(b"/home/a 1 2/x").unwrap().ino), (5, 7));
    }

    #[test]
    fn errors_name_their_line() {
        for (text, line, part) in [
            ("~\n", 1, "none has begun"),
            ("relative\n~\n", 1, "absolute"),
            // Found by the fuzzer: directories that lose themselves when they are written again.
            ("//~4\n~\n", 1, "absolute"),
            ("/a/../b\n~\n", 1, "absolute"),
            ("/a/\n~\n", 1, "absolute"),
            ("/a\n1 d 2 b\n", 3, "truncated"),
            ("/a\nx d 2 b\n~\n", 2, "inode \"x\""),
            ("/a\n1 q 2 b\n~\n", 2, "type \"q\""),
            ("/a\n1 f\n~\n", 2, "size is missing"),
            ("/a\n1 f 2 a b\n~\n", 2, "\\x20"),
            ("/a\n1 l 2 a\n~\n", 2, "target"),
            ("/a\n1 f 2 a\\q\n~\n", 2, "bad escape"),
            ("/a\n1 f 2 ..\n~\n", 2, "`..`"),
            ("/a\n1 f 2 b\n1 f 2 b\n~\n", 3, "line 2 already"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), Kind::BadInput);
            let message = error.to_string();
            assert!(message.starts_with(&format!("line {line}:")) && message.contains(part), "{text:?}: {message}");
        }
    }

    fn component() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![4 => (1u8..=255).prop_filter("no slash", |b| *b != b'/'), 1 => Just(b' '),
            1 => Just(b'~'), 1 => Just(b'\\')];
        proptest::collection::vec(byte, 1..8).prop_filter("a name", |n| n != b"." && n != b"..")
    }

    proptest! {
        #[test]
        fn any_tree_round_trips(
            directories in proptest::collection::vec(component(), 1..4),
            names in proptest::collection::vec((0..4usize, component(), any::<u64>(), any::<u64>(),
                proptest::option::of(component())), 0..20),
        ) {
            let mut path = Vec::new();
            let mut entries = Vec::new();
            let mut paths = Vec::new();
            for directory in &directories {
                path.push(b'/');
                path.extend_from_slice(directory);
                paths.push(path.clone());
                entries.push(SnapshotEntry { provenance: Provenance::Before,
                    ..SnapshotEntry::implied(path.clone(), FileKind::Directory) });
            }
            for (at, name, ino, size_bytes, target) in names {
                let kind = if target.is_some() { FileKind::Symlink } else { FileKind::File };
                let path = [&paths[at % paths.len()], &b"/"[..], &name].concat();
                let entry = SnapshotEntry::implied(path, kind);
                entries.push(SnapshotEntry { ino, size_bytes, target, provenance: Provenance::Before, ..entry });
            }
            // The parent of the first directory is listed, so it comes back as an entry.
            entries.push(SnapshotEntry { provenance: Provenance::Before,
                ..SnapshotEntry::implied(b"/".to_vec(), FileKind::Directory) });
            let is_directory = |entry: &SnapshotEntry| entry.kind == FileKind::Directory;
            entries.sort_by(|a, b| a.path.cmp(&b.path).then(is_directory(b).cmp(&is_directory(a))));
            entries.dedup_by(|a, b| a.path == b.path);
            let snapshot = Snapshot::from_entries(entries);
            let mut out = Vec::new();
            write(&snapshot, &mut out).unwrap();
            prop_assert_eq!(read(&out[..]).unwrap(), snapshot);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes[..]);
        }
    }
}
