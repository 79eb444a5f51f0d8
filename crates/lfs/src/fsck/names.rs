//! Directories: every name leads to an inode, every inode has as many names as it says.

use super::{Check, Phase};
use crate::format::{FileType, IFILE_INO, Ino, ROOT_INO};
use crate::{Entry, LfsError, Store};
use std::collections::BTreeSet;
use ufs::image::Readable as _;

impl<S: Store> Check<'_, S> {
    /// Walks down from the root.
    pub(super) fn names(&mut self) -> Result<(), LfsError> {
        self.asked(Phase::Names)?;
        let directory = FileType::Directory.entry_type();
        if self.entry_type(ROOT_INO) != directory {
            self.problem(Phase::Names, "root", Some(ROOT_INO), "the root is not a directory");
            return Ok(());
        }
        let mut reached = BTreeSet::from([ROOT_INO]);
        let mut below = vec![(ROOT_INO, ROOT_INO)];
        let mut done = 0_u64;
        let mut room = self.image.names_most();
        while let Some((ino, parent)) = below.pop() {
            done += 1;
            if done.is_multiple_of(256) {
                self.asked(Phase::Names)?;
            }
            let entries = match self.image.inode(ino).and_then(|inode| self.image.directory(ino, &inode)) {
                Ok(entries) => entries,
                Err(LfsError::Io(error)) => return Err(error.into()),
                Err(error) => {
                    self.problem(Phase::Names, "directory", Some(ino), error.to_string());
                    continue;
                }
            };
            let Some(rest) = room.checked_sub(entries.len() as u64) else {
                let message = "with this directory there are more names than the file system has room for";
                self.problem(Phase::Names, "too-many", Some(ino), message);
                break;
            };
            room = rest;
            self.dots(ino, parent, &entries);
            let mut names = BTreeSet::new();
            for entry in entries {
                if !names.insert(entry.name.clone()) {
                    let message = format!("has the name {:?} twice", crate::text::escaped(&entry.name));
                    self.problem(Phase::Names, "name", Some(ino), message);
                }
                let is_dot = entry.name == b"." || entry.name == b"..";
                if self.name(ino, &entry) && !is_dot && entry.kind == directory {
                    if reached.insert(entry.ino) {
                        below.push((entry.ino, ino));
                    } else {
                        self.problem(Phase::Names, "two-names", Some(entry.ino), "is a directory with two names");
                    }
                }
            }
        }
        self.links(&reached)
    }

    fn entry_type(&self, ino: Ino) -> u8 {
        self.known.get(ino.0 as usize).map_or(0, |known| known.entry_type)
    }

    /// `.` and `..` come first, and lead to the directory and the one above.
    fn dots(&mut self, ino: Ino, parent: Ino, entries: &[Entry]) {
        for (i, (name, leads_to)) in [(b".".as_slice(), ino), (b"..", parent)].into_iter().enumerate() {
            match entries.get(i) {
                Some(entry) if entry.name == name && entry.ino == leads_to => {}
                found => {
                    let found = found.map_or("nothing".to_owned(), |e| {
                        format!("{:?} leading to inode {}", crate::text::escaped(&e.name), e.ino)
                    });
                    let name = crate::text::escaped(name);
                    let message = format!("entry {i} should be {name:?} leading to inode {leads_to}, and is {found}");
                    self.problem(Phase::Names, "dots", Some(ino), message);
                }
            }
        }
    }

    /// A name: whether it leads to something of the type it says.
    fn name(&mut self, directory: Ino, entry: &Entry) -> bool {
        let is = self.entry_type(entry.ino);
        if is == 0 || entry.ino == IFILE_INO {
            let message =
                format!("{:?} leads to inode {}, which is not in use", crate::text::escaped(&entry.name), entry.ino);
            self.problem(Phase::Names, "dangling", Some(directory), message);
            return false;
        }
        if let Some(known) = self.known.get_mut(entry.ino.0 as usize) {
            known.names = known.names.saturating_add(1);
        }
        if is != entry.kind {
            let name = crate::text::escaped(&entry.name);
            let message =
                format!("{name:?} says that inode {} is of type {}, which is of type {is}", entry.ino, entry.kind);
            self.problem(Phase::Names, "entry-type", Some(directory), message);
        }
        is == entry.kind
    }

    /// Link counts, and what has no name.
    fn links(&mut self, reached: &BTreeSet<Ino>) -> Result<(), LfsError> {
        let directory = FileType::Directory.entry_type();
        let known = std::mem::take(&mut self.known);
        for (ino, known) in (0_u32..).map(Ino).zip(&known) {
            if known.entry_type == 0 || ino == IFILE_INO {
                continue;
            }
            if known.entry_type == directory {
                self.report.contents.directories += 1;
            } else {
                self.report.contents.files += 1;
            }
            // Held open when the checkpoint was made: to be freed at the next mount. Not every system marks it in the
            // map.
            if known.names == 0 && known.nlink <= 0 {
                continue;
            }
            if known.names == 0 || known.entry_type == directory && !reached.contains(&ino) {
                self.problem(Phase::Names, "no-name", Some(ino), "is in use, and no directory leads to it");
            } else if i32::from(known.nlink) != known.names {
                let message = format!("has {} links, and says {}", known.names, known.nlink);
                self.problem(Phase::Names, "links", Some(ino), message);
            }
        }
        Ok(())
    }
}
