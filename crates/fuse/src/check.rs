//! The check in the background of a file system of Soft Updates after a crash: of an image that nobody has mounted, and
//! beside a mount.

use crate::MountError;
use crate::image::Locked;
use crate::live::{Live, date_ns};
use ffs::fsck::{Left, Phase};
use ffs::{Ffs, FfsError, Image, InUse, Search};
use kernel::{Cx, Ino};
use posix::Errno;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Mounts the Fast File System in an image as a crash of Soft Updates has left it, has a snapshot of it checked, gives
/// back what was found, and unmounts it ([`ffs::check_in_background`]). With it the bytes of a fragment. `go_on` is
/// asked now and then.
///
/// # Errors
/// There is no image, somebody else has it mounted, or it is not one that may be used without a full check.
pub fn check_in_background(path: &Path, go_on: &mut dyn FnMut(Phase) -> bool) -> Result<(Left, u32), MountError> {
    let wrong = |source| MountError::Ffs { source_name: path.display().to_string(), source };
    let (lock, mut store) = Locked::open(path, false)?;
    let fsize = Image::open(&mut store, Search::Standard).map_err(wrong)?.geometry().fsize;
    let (left, _) = ffs::check_in_background(store, date_ns(), go_on).map_err(wrong)?;
    drop(lock);
    Ok((left, fsize))
}

/// A check beside a mount.
#[derive(Debug)]
pub(crate) struct Beside {
    stop: Arc<AtomicBool>,
    checks: JoinHandle<()>,
}

impl Beside {
    /// Begins one, on a thread of its own, if a crash has left something that nobody has looked for yet. `tell` is told
    /// what came of it.
    pub(crate) fn begin(live: &Arc<Mutex<Live<Ffs>>>, name: &str, tell: fn(&str)) -> Option<Beside> {
        let unchecked = live.lock().is_ok_and(|live| live.is_unchecked());
        unchecked.then(|| {
            let stop = Arc::new(AtomicBool::new(false));
            let (shared, stopped, name) = (Shared(live.clone()), stop.clone(), name.to_owned());
            let checks = std::thread::spawn(move || {
                let found = ffs::check_in_use(&shared, &mut |_| !stopped.load(Ordering::Relaxed));
                tell(&format!("{name}: {}", said(found)));
            });
            Beside { stop, checks }
        })
    }

    /// Ends it: it goes on where it is mounted next.
    pub(crate) fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        // If it has panicked it has said so.
        let _ = self.checks.join();
    }
}

fn said(found: Result<Left, FfsError>) -> String {
    match found {
        Ok(left) if left.is_nothing() => "checked in the background; the crash has left nothing".to_owned(),
        Ok(Left { unnamed, link_counts, inodes, frags, .. }) => format!(
            "checked in the background; given back: {unnamed} files without a name, {link_counts} link counts, \
             {inodes} inodes, {frags} fragments"
        ),
        Err(FfsError::Interrupted(_)) => {
            "unmounted before the check in the background had ended; the next mount begins it again".to_owned()
        }
        Err(error) => format!("the check in the background: {error}"),
    }
}

/// What is mounted, under its lock.
struct Shared(Arc<Mutex<Live<Ffs>>>);

impl Shared {
    fn with<T>(&self, work: impl FnOnce(&mut Live<Ffs>) -> Result<T, Errno>) -> io::Result<T> {
        // Whoever has panicked under the lock has said so.
        let mut live = self.0.lock().map_err(|_| io::Error::from(Errno::EIO))?;
        work(&mut live).map_err(io::Error::from)
    }
}

impl InUse for Shared {
    fn run<T>(
        &self,
        doing: &'static str,
        operation: impl FnOnce(&mut Ffs, &mut Cx) -> Result<T, Errno>,
    ) -> Result<T, FfsError> {
        self.with(|live| live.act(operation)).map_err(|source| FfsError::in_image(doing, source))
    }

    fn read(&self, ino: Ino, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.with(|live| live.read_quietly(ino, at, buf))
    }

    fn unlinked(&self, ino: Ino) -> Result<(), FfsError> {
        self.with(|live| live.release_if_unused(ino))
            .map_err(|source| FfsError::in_image("give back what a crash has left", source))
    }
}
