//! Reading the files of an image: directories, symbolic links, the walk of a path, every name below a directory.

use crate::directory::{DIRBLKSIZ, DirFormat, Directory, parse_chunk};
use crate::extract::{EachName, EachPiece, Status, Tree};
use crate::{DiskInode, FileType, FormatError, ImageError, Ino, ROOT_INO, text};
use serde::Serialize;
use std::collections::BTreeSet;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its inode.
    pub ino: Ino,
    /// Its type as the directory has it; 0 where it has none.
    pub kind: u8,
    /// Its name.
    pub name: Vec<u8>,
}

/// Where a piece of a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Its byte in the file.
    pub in_file: u64,
    /// The byte that what is wrong with it is said to be at: in the image, or in the file as well.
    pub reported_byte: u64,
}

/// What is done with each piece of a file.
pub type EachPlace<'a, E> = &'a mut dyn FnMut(At, &[u8]) -> Result<(), E>;

/// Bytes of a file's data that are read together.
const TOGETHER: u32 = 1 << 20;

/// A file system in an image, as far as reading files takes it.
pub trait Readable {
    /// Its inodes.
    type Inode: DiskInode;
    /// What can go wrong.
    type Error: ImageError;

    /// Reads an inode.
    fn inode(&self, ino: Ino) -> Result<Self::Inode, Self::Error>;

    /// Hands over a file's data in order, at most `max_bytes` at a time; holes are left out.
    fn pieces(
        &self,
        ino: Ino,
        inode: &Self::Inode,
        max_bytes: u32,
        each: EachPlace<'_, Self::Error>,
    ) -> Result<(), Self::Error>;

    /// The target of a symbolic link that is in the inode itself.
    fn short_target(&self, inode: &Self::Inode) -> Option<Vec<u8>>;

    /// Bytes of a block.
    fn block_bytes(&self) -> u32;

    /// How directories are laid out.
    fn dir_format(&self) -> DirFormat;

    /// A chunk of a directory is damaged.
    fn damaged_chunk(ino: Ino, error: FormatError) -> Self::Error;

    /// Names that there is room for: a file system with more has directories that share their blocks.
    fn names_most(&self) -> u64 {
        u64::MAX
    }
}

/// The entries of a directory, `.` and `..` among them.
pub fn entries<R: Readable>(image: &R, ino: Ino, inode: &R::Inode) -> Result<Vec<Entry>, R::Error> {
    let wrong = |problem: String| R::Error::inode(ino, problem);
    if inode.file_type() != Some(FileType::Directory) {
        return Err(wrong("is not a directory".to_owned()));
    }
    let format = image.dir_format();
    let mut entries = Vec::new();
    let mut expected = 0;
    image.pieces(ino, inode, image.block_bytes(), &mut |at, bytes| {
        if at.in_file != expected {
            return Err(wrong(format!("directory with a hole at byte {expected}")));
        }
        expected += bytes.len() as u64;
        for (i, chunk) in bytes.chunks(DIRBLKSIZ).enumerate() {
            let parsed = parse_chunk(chunk, format, at.reported_byte + (i * DIRBLKSIZ) as u64)
                .map_err(|error| R::damaged_chunk(ino, error))?;
            entries.extend(parsed.into_iter().map(|e| Entry { ino: e.ino, kind: e.kind, name: e.name }));
        }
        Ok(())
    })?;
    if expected < inode.size() {
        return Err(wrong(format!("directory of {} bytes ends at byte {expected}", inode.size())));
    }
    Ok(entries)
}

/// Hands over a file's data in order, as `(byte of the file, bytes)`, at most a megabyte at a time; holes are left out.
pub fn data<R: Readable>(image: &R, ino: Ino, inode: &R::Inode, each: EachPiece<'_, R::Error>) -> Result<(), R::Error> {
    image.pieces(ino, inode, TOGETHER, &mut |at, bytes| each(at.in_file, bytes))
}

/// The target of a symbolic link.
pub fn target<R: Readable>(image: &R, ino: Ino, inode: &R::Inode) -> Result<Vec<u8>, R::Error> {
    if let Some(target) = image.short_target(inode) {
        return Ok(target);
    }
    if inode.size() > u64::from(image.block_bytes()) {
        return Err(R::Error::inode(ino, format!("symbolic link of {} bytes", inode.size())));
    }
    let mut target = Vec::new();
    data(image, ino, inode, &mut |_, bytes| {
        target.extend_from_slice(bytes);
        Ok(())
    })?;
    Ok(target)
}

/// The inode that a path names, from the root on; symbolic links are not followed.
pub fn resolve<R: Readable>(image: &R, path: &[u8]) -> Result<(Ino, R::Inode), R::Error> {
    let mut ino = ROOT_INO;
    let mut inode = image.inode(ino)?;
    for name in path.split(|b| *b == b'/').filter(|name| !name.is_empty()) {
        let wrong = |problem: &str| {
            let problem = format!("{problem} ({})", String::from_utf8_lossy(name));
            R::Error::path(String::from_utf8_lossy(path).into_owned(), problem)
        };
        if inode.file_type() != Some(FileType::Directory) {
            return Err(wrong("the name before this one is not a directory"));
        }
        let entries = entries(image, ino, &inode)?;
        let found = entries.iter().find(|e| e.name == name).ok_or_else(|| wrong("no such name in the image"))?;
        ino = found.ino;
        inode = image.inode(ino)?;
    }
    Ok((ino, inode))
}

/// Every name below a directory, depth first, each directory's names in its order: `(path, inode number, inode)`. A
/// directory that was seen already is an error, so that cycles end.
pub fn walk<R: Readable>(image: &R, from: Ino, each: EachName<'_, R>) -> Result<(), R::Error> {
    let is_dir = |inode: &R::Inode| inode.file_type() == Some(FileType::Directory);
    let inode = image.inode(from)?;
    each(b".", from, &inode)?;
    if !is_dir(&inode) {
        return Ok(());
    }
    let mut seen = BTreeSet::from([from]);
    let mut names = image.names_most();
    let mut listing = |ino: Ino, inode: &R::Inode| -> Result<std::vec::IntoIter<Entry>, R::Error> {
        let mut entries = entries(image, ino, inode)?;
        names = names.checked_sub(entries.len() as u64).ok_or_else(|| {
            let problem = "with this directory there are more names than the file system has room for";
            R::Error::inode(ino, problem.to_owned())
        })?;
        entries.retain(|e| e.name != b"." && e.name != b"..");
        Ok(entries.into_iter())
    };
    let mut stack = vec![(b".".to_vec(), listing(from, &inode)?)];
    while let Some((base, entries)) = stack.last_mut() {
        let Some(entry) = entries.next() else {
            stack.pop();
            continue;
        };
        let path = [base.as_slice(), b"/", &entry.name].concat();
        let inode = image.inode(entry.ino)?;
        each(&path, entry.ino, &inode)?;
        if is_dir(&inode) {
            if !seen.insert(entry.ino) {
                let problem = format!("directory with two names, one of them {}", String::from_utf8_lossy(&path));
                return Err(R::Error::inode(entry.ino, problem));
            }
            let below = listing(entry.ino, &inode)?;
            stack.push((path, below));
        }
    }
    Ok(())
}

/// A whole directory, from the pieces of its file in their order.
pub fn directory<E: ImageError + From<FormatError>>(
    ino: Ino,
    size: u64,
    format: DirFormat,
    pieces: impl FnOnce(EachPiece<'_, E>) -> Result<(), E>,
) -> Result<Directory, E> {
    let mut bytes = Vec::new();
    pieces(&mut |at, piece| {
        if at != bytes.len() as u64 {
            return Err(E::inode(ino, format!("directory with a hole at byte {}", bytes.len())));
        }
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    if bytes.len() as u64 != size || !bytes.len().is_multiple_of(DIRBLKSIZ) || bytes.is_empty() {
        return Err(E::inode(ino, format!("directory of {size} bytes")));
    }
    Ok(Directory::load(format, &bytes)?)
}

impl<R: Readable> Tree for R {
    type Inode = R::Inode;
    type Error = R::Error;

    fn find(&self, path: &[u8]) -> Result<Ino, R::Error> {
        resolve(self, path).map(|(ino, _)| ino)
    }

    fn each_name(&self, from: Ino, each: EachName<'_, Self>) -> Result<(), R::Error> {
        walk(self, from, each)
    }

    fn status(&self, inode: &R::Inode) -> Status {
        // Major and minor number, in the encoding that small numbers have everywhere.
        let [device, ..] = inode.direct().map(|pointer| pointer as u32);
        Status {
            mode: inode.mode(),
            nlink: inode.nlink(),
            generation: inode.generation(),
            uid: inode.uid(),
            gid: inode.gid(),
            size: inode.size(),
            atime: inode.atime(),
            mtime: inode.mtime(),
            device: (device >> 8 & 0xFF, device & 0xFF),
        }
    }

    fn each_piece(&self, ino: Ino, inode: &R::Inode, each: EachPiece<'_, R::Error>) -> Result<(), R::Error> {
        data(self, ino, inode, each)
    }

    fn target(&self, ino: Ino, inode: &R::Inode) -> Result<Vec<u8>, R::Error> {
        target(self, ino, inode)
    }
}

/// A directory's entry, to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EntryRow {
    /// Inode.
    pub ino: u32,
    /// Type as the directory has it.
    pub entry_type: u8,
    /// That type in words; empty where it is not known.
    pub kind: String,
    /// Name, escaped.
    #[serde(serialize_with = "text::serialize")]
    pub name: Vec<u8>,
}

/// A directory, to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DirectoryDump {
    /// Its inode.
    pub ino: u32,
    /// Its entries in their order.
    pub entries: Vec<EntryRow>,
}

/// Shows a directory.
pub fn dump_directory<R: Readable>(image: &R, ino: Ino) -> Result<DirectoryDump, R::Error> {
    let rows = entries(image, ino, &image.inode(ino)?)?.into_iter().map(|entry| EntryRow {
        ino: entry.ino.0,
        entry_type: entry.kind,
        kind: FileType::of(u16::from(entry.kind) << 12).map(|t| t.to_string()).unwrap_or_default(),
        name: entry.name,
    });
    Ok(DirectoryDump { ino: ino.0, entries: rows.collect() })
}
