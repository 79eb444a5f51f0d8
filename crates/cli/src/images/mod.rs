//! Images of file systems: which one is in a file, and what `dump`, `fsck` and `cp` ask of it ([`Images`]).
//!
//! A further file system is a file beside `ffs.rs` and `lfs.rs` and a line in [`ALL`]. What may not live here: the
//! commands' options, and which of them go together.

mod ffs;
mod lfs;

pub use self::ffs::FREE_MAPS_SCHEMA;

use crate::output::{self, ResultArgs};
use crate::{failure, progress};
use ::ffs::{FileStore, Overlay};
use clap::ValueEnum;
use document::Document;
use lab::{Checked, System};
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use ufs::Ino;
use ufs::edit::Edit;
use ufs::extract::{ExtractOptions, Extracted};
use ufs::image::Readable;
use ufs::insert::{InsertOptions, Insertable, Inserted, Inserter};

/// A file system, as the commands know its images. What another one can and this one cannot is refused with the reason.
pub trait Images: Sync {
    /// Whether a store holds it.
    fn is_in(&self, store: FileStore) -> bool;

    /// A structure of it.
    fn dump(&self, store: FileStore, wanted: &Wanted<'_>) -> failure::Result<Answer>;

    /// Whether checks repair it.
    fn may_repair(&self) -> failure::Result<()>;

    /// Checks it; a repair is left in the overlay.
    fn check(&self, store: &mut Overlay<FileStore>) -> failure::Result<Box<dyn Found>>;

    /// Copies a path out of it.
    fn extract(
        &self,
        store: FileStore,
        copying: &Extracting<'_>,
        go_on: &mut dyn FnMut(&Extracted) -> bool,
    ) -> failure::Result<Extracted>;

    /// Copies files into it. The schema of what was done stands before it.
    fn insert(&self, image: &Path, copying: &Inserting<'_>) -> failure::Result<(&'static str, Inserted)>;
}

/// The file systems there are. The last takes what no other knows: its superblock may be damaged.
static ALL: [&dyn Images; 2] = [&lfs::Lfs, &ffs::Ffs];

/// Opens an image to read it.
pub fn open(image: &Path) -> failure::Result<FileStore> {
    FileStore::open(image)
        .map_err(|error| failure::bad_input(format!("{}: cannot open it: {error}", output::shown(image))))
}

/// The file system whose commands a file is for.
pub fn of(image: &Path) -> &'static dyn Images {
    let [others @ .., last] = &ALL;
    *others.iter().find(|images| is_of(**images, image)).unwrap_or(last)
}

/// The file system of a laboratory target.
pub fn of_target(system: &System) -> &'static dyn Images {
    match system {
        System::Ffs(_) => &ffs::Ffs,
        System::Lfs(_) => &lfs::Lfs,
    }
}

/// What a check of a laboratory target found.
pub fn found(checked: Checked) -> Box<dyn Found> {
    match checked {
        Checked::Ffs(report) => Box::new(report),
        Checked::Lfs(report) => Box::new(report),
    }
}

/// Whether a file is an image of one of them, and sound as far as opening it tells.
pub fn is_image(path: &Path) -> bool {
    !path.is_dir() && ALL.iter().any(|images| is_of(*images, path))
}

fn is_of(images: &dyn Images, path: &Path) -> bool {
    FileStore::open(path).is_ok_and(|store| images.is_in(store))
}

/// A result of a command.
pub struct Answer {
    schema: &'static str,
    /// For other programs.
    pub value: Value,
    /// For people.
    pub document: Document,
}

impl Answer {
    fn new<T: Serialize>(schema: &'static str, value: &T, document: Document) -> failure::Result<Answer> {
        Ok(Answer { schema, value: output::json(value)?, document })
    }

    /// Prints it and writes the files asked for.
    pub fn emit(&self, result: &ResultArgs) -> failure::Result<()> {
        result.emit(self.schema, &self.value, &self.document)
    }
}

/// What a check found.
pub trait Found {
    /// Whether nothing is wrong.
    fn is_clean(&self) -> bool;

    /// Whether it was marked as clean before.
    fn was_marked_clean(&self) -> bool;

    /// Problems that a repair has left.
    fn unrepaired(&self) -> u64;

    /// All of it, of an image of this name, and what came of it.
    fn answer(&self, image: &str, outcome: &str) -> failure::Result<Answer>;
}

/// What is copied out of an image, and where it goes.
pub struct Extracting<'a> {
    /// The path in the image.
    pub path: &'a [u8],
    /// Where it goes.
    pub to: &'a Path,
    /// What is preserved.
    pub options: ExtractOptions,
    /// Whether a copy of the superblock will do.
    pub copies: bool,
}

/// What is copied into an image, and how.
pub struct Inserting<'a> {
    /// The files.
    pub from: &'a [OsString],
    /// Where they go in the image.
    pub path: &'a [u8],
    /// To a copy of the image or to it.
    pub how: Edit,
    /// When this is.
    pub date_ns: i64,
    /// Owners, and what becomes of what is there.
    pub options: InsertOptions,
    /// Allocation policies of FFS.
    pub policy: Option<::ffs::policy::Options>,
}

impl Inserting<'_> {
    /// Copies it, whatever the file system.
    fn run<V: Insertable>(&self, store: FileStore, options: V::Options) -> Result<(FileStore, Inserted), V::Error> {
        let mut inserter = Inserter::<V, _>::open(store, options, self.date_ns)?;
        let bar = progress::bar(0, "copying");
        let mut go_on = |so_far: &Inserted| {
            bar.set_message(format!("copying: {} files", so_far.files));
            !posix::interrupt::requested()
        };
        let mut each = self.from.iter();
        let copied = each.try_for_each(|from| inserter.insert(Path::new(from), self.path, self.options, &mut go_on));
        bar.finish_and_clear();
        if let Err(error) = copied {
            if self.how == Edit::InPlace {
                // What is there by now is whole; the error to report is the first.
                let _ = inserter.finish();
            }
            return Err(error);
        }
        inserter.finish()
    }
}

/// A structure that is to be shown.
pub struct Wanted<'a> {
    /// Which kind.
    pub what: What,
    /// Which one.
    pub which: Option<&'a Path>,
    /// Whether a copy of the superblock will do.
    pub copies: bool,
    /// As of the checkpoint.
    pub checkpoint: bool,
    /// What the image is called.
    pub image_name: &'a str,
}

/// Structures of images.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Every field of the superblock.
    Superblock,
    /// FFS: a line for each cylinder group.
    Groups,
    /// FFS: a cylinder group.
    Group,
    /// An inode and where its data is.
    Inode,
    /// The entries of a directory.
    Directory,
    /// FFS: free fragments.
    Free,
    /// FFS: the free maps of all groups with the superblock, for `fsage mkfs free-maps`.
    FreeMaps,
    /// LFS: the segment usage table.
    Segments,
    /// LFS: a segment with its partial segments.
    Segment,
    /// LFS: cleaner information and the inode map.
    Ifile,
}

/// Of some structures there is one only: which one is then no question.
fn one_only(wanted: &Wanted<'_>, those: &[What]) -> failure::Result<()> {
    match wanted.which {
        Some(which) if those.contains(&wanted.what) => {
            Err(failure::usage(format!("{}: there is one of these only", output::shown(which))))
        }
        _ => Ok(()),
    }
}

/// The number of a structure.
fn number(wanted: &Wanted<'_>, what: &str) -> failure::Result<u32> {
    let number = wanted.which.and_then(Path::to_str).and_then(|text| text.parse().ok());
    number.ok_or_else(|| failure::usage(format!("which {what}? Give its number, from 0")))
}

/// A number is an inode's, anything else a path from the root.
fn inode<R: Readable>(wanted: &Wanted<'_>, image: &R) -> Result<Ino, R::Error> {
    let Some(which) = wanted.which else { return Ok(ufs::ROOT_INO) };
    match which.to_str().and_then(|text| text.parse().ok()) {
        Some(number) => Ok(Ino(number)),
        None => Ok(ufs::image::resolve(image, which.as_os_str().as_bytes())?.0),
    }
}

/// Checks, and shows how far it has come: `check` tells the title of each phase, and is told whether to go on.
fn with_progress<R>(check: impl FnOnce(&mut dyn FnMut(&str) -> bool) -> R) -> R {
    let bar = progress::bar(0, "checking");
    let checked = check(&mut |title| {
        bar.set_message(format!("checking: {title}"));
        !posix::interrupt::requested()
    });
    bar.finish_and_clear();
    checked
}
