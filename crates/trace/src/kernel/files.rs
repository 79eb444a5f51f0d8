//! What ids stand for: the files the recorder has told of.
//!
//! An id is the address of a kernel object, hidden; it is told of again when the object stands for another file or the
//! file has another path. So there are no more ids than the kernel ever had open files, and directories in its cache,
//! at once.

use super::wire::{Below, File, file_flag, path_of};
use crate::strace::constants::O_APPEND;
use crate::track::{Inode, Seen, Who};
use rustc_hash::FxHashMap;

/// What an id stands for.
#[derive(Debug)]
struct Told {
    /// The path in the notation of [`Seen`]: backslashes doubled. Empty where it was too long to be told.
    raw: Box<[u8]>,
    deleted: bool,
    foreign: bool,
    regular: bool,
    appends: bool,
    who: Who,
}

/// All that was told.
#[derive(Debug, Default)]
pub(super) struct Files(FxHashMap<u64, Told>);

impl Files {
    /// Takes note of a file; `None` if the names are damaged.
    ///
    /// A file told by its directory has the path that the directory has now: the recorder sees to it that this is the
    /// one it meant. Where the directory's record was lost or has no path, the file has none either, and is known by
    /// its inode.
    pub fn tell(&mut self, flags: u16, file: &File, names: &[u8]) -> Option<()> {
        let mut names = names.get(..usize::try_from(file.names_bytes).ok()?)?;
        let raw = if flags & file_flag::BELOW != 0 {
            let directory = Below::read(&mut names)?.directory;
            let (1.., names) = (names.len(), names) else { return None };
            let name = escape(path_of(names)?);
            match self.0.get(&directory).map(|told| &*told.raw) {
                None | Some([]) => Box::default(),
                Some(b"/") => name,
                Some(path) => [path, &*name].concat().into(),
            }
        } else {
            escape(path_of(names)?)
        };
        let cut = flags & file_flag::CUT != 0;
        let told = Told {
            who: Who {
                description: file.id,
                inode: Inode { dev: file.dev, generation: file.generation, ino: file.ino },
            },
            raw: if cut { Box::default() } else { raw },
            regular: file.mode & 0o170_000 == 0o100_000,
            appends: u64::from(file.open_flags) & O_APPEND != 0,
            deleted: flags & file_flag::DELETED != 0,
            foreign: flags & file_flag::INTERNAL != 0 || is_device(file.mode),
        };
        self.0.insert(file.id, told);
        Some(())
    }

    /// What stands behind a descriptor, as the tracker wants it; `None` if there was none or it was not told.
    pub fn seen(&self, id: u64) -> Option<Seen<'_>> {
        let told = self.0.get(&id)?;
        if told.foreign {
            Some(Seen::Foreign)
        } else if told.raw.is_empty() {
            Some(Seen::Unnamed(told.who))
        } else {
            Some(Seen::Path { raw: &told.raw, deleted: told.deleted, who: Some(told.who) })
        }
    }

    /// Of an ordinary file, with an offset and a length in bytes: whether it was opened to append.
    pub fn regular_appends(&self, id: u64) -> Option<bool> {
        self.0.get(&id).filter(|told| told.regular && !told.foreign).map(|told| told.appends)
    }
}

/// A socket with a name is none: it is opened by `O_PATH` alone, as a name like others. Those that are connected are
/// internal.
fn is_device(mode: u32) -> bool {
    matches!(mode & 0o170_000, 0o020_000 | 0o060_000)
}

fn escape(path: Vec<u8>) -> Box<[u8]> {
    if memchr::memchr(b'\\', &path).is_none() {
        return path.into();
    }
    path.into_iter().flat_map(|b| std::iter::repeat_n(b, if b == b'\\' { 2 } else { 1 })).collect()
}
