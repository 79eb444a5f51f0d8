//! The image in which a file system is made, and what is copied into it.

use crate::failure;
use crate::{output, progress, values};
use ffs::{FileStore, InsertOptions, Inserted, Store as _};
use posix::output::Output;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use ufs::insert::{Insertable, Inserter};

/// What a new file system begins with.
#[derive(clap::Args, Debug)]
pub(super) struct Populate {
    /// When it is made, seconds since 1970 (default: now). With --populate, files modified later get this time, and
    /// every file was last read when it was modified.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(super) time: Option<i64>,
    /// Make lost+found.
    #[arg(long)]
    pub(super) lost_found: bool,
    /// Copy what is in this directory into it: modes, owners, times, links and holes are kept.
    #[arg(long, value_name = "DIR")]
    pub(super) populate: Option<PathBuf>,
    /// Owner of everything copied (0:0), instead of the files' own.
    #[arg(long, value_name = "UID:GID", value_parser = values::owner, requires = "populate")]
    pub(super) owner: Option<(u32, u32)>,
}

/// What was made, and what was copied into it.
#[derive(serde::Serialize)]
pub(super) struct Result<M> {
    #[serde(flatten)]
    pub(super) made: M,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) copied: Option<Inserted>,
}

impl Populate {
    /// Copies a directory's contents into a new file system.
    pub(super) fn copy<V: Insertable>(
        &self,
        store: FileStore,
        options: V::Options,
        made_s: i64,
    ) -> std::result::Result<Option<Inserted>, V::Error> {
        let Some(directory) = &self.populate else { return Ok(None) };
        let mut inserter = Inserter::<V, _>::open(store, options, made_s.saturating_mul(1_000_000_000))?;
        let options = InsertOptions { owner: self.owner, overwrite: false, latest_s: self.time };
        let bar = progress::bar(0, "copying");
        let copied = inserter.insert(&directory.join("."), b"/", options, &mut |so_far| {
            bar.set_message(format!("copying: {} files", so_far.files));
            !posix::interrupt::requested()
        });
        bar.finish_and_clear();
        copied?;
        inserter.finish().map(|(_, done)| Some(done))
    }
}

/// The size of what is there.
pub(super) fn size_of(path: &Path) -> failure::Result<u64> {
    let there = FileStore::open(path).map_or(0, |store| store.len_bytes());
    if there == 0 { Err(failure::usage("--size: how large is the file system to be? (64M, 2G)")) } else { Ok(there) }
}

/// Where a file system is made.
pub(super) struct Opened {
    pub(super) store: FileStore,
    /// It is all zeros.
    pub(super) blank: bool,
    /// A new file, which takes its place when the file system is in it: half of one is worse than none. A device is
    /// there already.
    pub(super) whole: Option<Output>,
}

fn cannot_make(path: &Path) -> impl Fn(std::io::Error) -> failure::Failure {
    move |error| failure::environment(format!("{}: cannot make the image: {error}", output::shown(path)))
}

/// Makes the image, or opens the device.
pub(super) fn open(path: &Path, size: u64) -> failure::Result<Opened> {
    use std::os::unix::fs::FileTypeExt as _;
    let cannot = cannot_make(path);
    if path.metadata().is_ok_and(|meta| meta.file_type().is_block_device()) {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(&cannot)?;
        return Ok(Opened { store: FileStore::new(file).map_err(cannot)?, blank: false, whole: None });
    }
    // A link stays; what it leads to is replaced.
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (whole, file) = Output::create(&place, 0o666).map_err(&cannot)?;
    if let Ok(there) = place.metadata() {
        file.set_permissions(there.permissions()).map_err(&cannot)?;
    }
    file.set_len(size).map_err(&cannot)?;
    Ok(Opened { store: FileStore::new(file).map_err(cannot)?, blank: true, whole: Some(whole) })
}

pub(super) fn finish(whole: Option<Output>, path: &Path) -> failure::Result<()> {
    whole.map_or(Ok(()), Output::finish).map_err(cannot_make(path))
}

pub(super) fn narrow(name: &str, value: u64) -> failure::Result<u32> {
    u32::try_from(value).map_err(|_| failure::usage(format!("{name}: {value} is too much")))
}

/// Seconds since 1970.
pub(super) fn now() -> i64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |t| t.as_secs() as i64)
}
