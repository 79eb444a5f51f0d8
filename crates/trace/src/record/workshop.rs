//! Where the spool and the profile grow: beside the profile's place, unless what is recorded works there. Who packs,
//! copies or cleans a directory is to find in it what would be there without us.

use super::RecordOptions;
use posix::cleanup::{Growing, Locking, lock_directory};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// What the names of our directories elsewhere begin with.
const PREFIX: &str = "fsage-record-";

/// A directory to work in.
#[derive(Debug)]
pub(super) struct Workshop {
    directory: PathBuf,
    /// It is where the profile goes.
    is_beside: bool,
    /// It is ours, and goes when it is empty. Locked, so that nobody takes it for what a killed recording left.
    own: Option<OwnedFd>,
}

impl Workshop {
    /// The directory for a recording of what works in `trees`, which are real paths.
    ///
    /// # Errors
    /// The directory of the output, or the one asked for, is not there.
    pub fn open(options: &RecordOptions, trees: &[PathBuf]) -> io::Result<Workshop> {
        let place = options.output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let beside = place.canonicalize()?;
        if let Some(directory) = &options.spool_in {
            let directory = directory.canonicalize()?;
            if directory != beside {
                return Ok(Workshop { directory, is_beside: false, own: None });
            }
        }
        let is_used = |directory: &Path| trees.iter().any(|tree| directory.starts_with(tree));
        let elsewhere = || [PathBuf::from("/var/tmp"), std::env::temp_dir()].into_iter();
        if options.spool_in.is_none()
            && is_used(&beside)
            && let Some(workshop) = elsewhere().find_map(|parent| {
                let parent = parent.canonicalize().ok().filter(|parent| !is_used(parent))?;
                sweep(&parent);
                Workshop::within(&parent).ok()
            })
        {
            return Ok(workshop);
        }
        Ok(Workshop { directory: place.to_owned(), is_beside: true, own: None })
    }

    fn within(parent: &Path) -> io::Result<Workshop> {
        loop {
            let directory = parent.join(format!("{PREFIX}{:016x}", posix::cleanup::unguessable()?));
            DirBuilder::new().mode(0o700).create(&directory)?;
            // Another recording can sweep it in the moment before the lock: another name will do.
            match lock_directory(&directory) {
                Locking::Ours(own) if directory.exists() => {
                    return Ok(Workshop { directory, is_beside: false, own: Some(own) });
                }
                // A file system without locks: nobody sweeps there.
                Locking::Unknown if directory.exists() => {
                    let own = fs::File::open(&directory)?.into();
                    return Ok(Workshop { directory, is_beside: false, own: Some(own) });
                }
                _ => {}
            }
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// The same, unless it is where the profile goes.
    pub fn apart(&self) -> Option<PathBuf> {
        (!self.is_beside).then(|| self.directory.clone())
    }

    /// Whether it is not where the profile goes, nor where the caller said.
    pub fn is_elsewhere(&self) -> bool {
        self.own.is_some()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        if self.own.is_some() {
            // A spool that is kept keeps it.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

/// Removes what killed recordings left besides their spools.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_named = entry.file_name().to_str().and_then(|name| name.strip_prefix(PREFIX)).is_some_and(is_hex);
        let path = entry.path();
        let is_ours = |meta: fs::Metadata| meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
        if is_named
            && path.symlink_metadata().is_ok_and(is_ours)
            && let Locking::Ours(_lock) = lock_directory(&path)
        {
            Growing::sweep(&path, None, &crate::profile::FILES);
            let _ = fs::remove_dir(&path);
        }
    }
}

fn is_hex(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit())
}
