//! The check in the background, of a file system that nobody has mounted: it is mounted as it is, a snapshot is taken and checked, what the
//! crash has left is given back, and it is unmounted.
//!
//! What a check finds is [`fsck::background`]'s, how it is given back the file system's (`volume::crashed`). Whoever has it mounted
//! already goes through the same steps beside the work.

use crate::fsck::{self, Left, Phase};
use crate::planted::Planted;
use crate::policy::{Integrity, Options};
use crate::{Ffs, FfsError, Store};
use device::store::StoreError;
use kernel::payload::Image as Payload;
use kernel::{CheckEnd, Cx, Ino, Lab, NewNode, ReadAhead, Transfers, Untimed, Volume};
use posix::{Errno, Fd, FileKind, FileSystem as _};
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex};
use ufs::live::operations;

/// Where the snapshot has its name while it is taken, as BSD's check has it.
const DIRECTORY: &[u8] = b".snap";
const NAME: &[u8] = b"fsck_snapshot";

/// Memory for blocks.
const CACHE_BYTES: u64 = 16 << 20;
/// Inodes kept at hand.
const INODES: usize = 4096;

/// Checks a file system of Soft Updates that was not unmounted, in its store, which is given back with what was found. One that was
/// unmounted is looked at in the same way.
///
/// # Errors
/// It cannot be mounted without a full check, or the check finds more than a crash of Soft Updates leaves: then it says so in its superblock. There
/// is no room for a snapshot.
pub fn check_in_background<S: Store + Send + 'static>(
    store: S,
    date_ns: i64,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<(Left, S), FfsError> {
    check_planted(store, date_ns, None, go_on)
}

/// The same with a bug that a test must find.
#[doc(hidden)]
pub fn check_planted<S: Store + Send + 'static>(
    store: S,
    date_ns: i64,
    planted: Planted,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<(Left, S), FfsError> {
    let options = Options { integrity: Integrity::Softdep, ..Options::default() };
    let (mut volume, store) = <Ffs as ufs::insert::Insertable>::open(store, options)?;
    volume.plant(planted);
    let store = Arc::new(Mutex::new(store));
    let transfers = Transfers { largest_bytes: 1 << 20, read_ahead: ReadAhead::None, cluster_writes: true };
    let payload = Payload::full(store.clone());
    let mut mounted = Mounted(Untimed::with_image(volume, CACHE_BYTES, INODES, transfers, date_ns, payload));
    mounted.run("mount it", |volume, cx| volume.mount(cx))?;
    let found = mounted.check(planted, go_on);
    mounted.run("unmount it", |volume, cx| volume.unmount(cx))?;
    mounted.0.sync_image().map_err(|source| StoreError { doing: "write", at_byte: 0, len: 0, source })?;
    let found = found?;
    if let Some(problem) = mounted.0.volume().check().into_iter().next() {
        let problem = format!("in memory: {problem}");
        return Err(FfsError::Inode { ino: crate::format::ROOT_INO.0, problem });
    }
    drop(mounted);
    let store = Arc::into_inner(store).expect("nobody else has the store any more");
    Ok((found, store.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)))
}

struct Mounted(Untimed<Ffs>);

impl Mounted {
    fn run<T>(
        &mut self,
        doing: &'static str,
        operation: impl FnOnce(&mut Ffs, &mut Cx) -> Result<T, Errno>,
    ) -> Result<T, FfsError> {
        let result = self.0.run(operation);
        match (self.0.take_image_error(), result) {
            (Some(source), _) => Err(host(doing, source)),
            (None, Err(errno)) => Err(host(doing, io::Error::from(errno))),
            (None, Ok(done)) => Ok(done),
        }
    }

    fn check(&mut self, planted: Planted, go_on: &mut dyn FnMut(Phase) -> bool) -> Result<Left, FfsError> {
        let ino = self.run("take a snapshot of it", |volume, cx| volume.snapshot_to_check(cx))?;
        let len_bytes = self.0.volume().attributes(ino).map_or(0, |attributes| attributes.size_bytes);
        let snapshot = Shown { fs: RefCell::new(&mut self.0), ino, len_bytes };
        let found = fsck::background_planted(snapshot, planted, go_on);
        let given_back = found.and_then(|left| {
            for correction in &left.corrections {
                self.run("give back what a crash has left", |volume, cx| {
                    for ino in volume.give_back(cx, correction)? {
                        volume.release(cx, ino);
                    }
                    Ok(())
                })?;
            }
            Ok(left)
        });
        self.run("remove the snapshot", |volume, cx| {
            volume.release(cx, ino);
            Ok(())
        })?;
        let end = match &given_back {
            Ok(_) => Some(CheckEnd::AllGivenBack),
            Err(FfsError::NeedsFullCheck(_)) => Some(CheckEnd::FullCheckNeeded),
            Err(_) => None,
        };
        if let Some(end) = end {
            self.run("mark it as checked", |volume, cx| volume.checked(cx, end))?;
        }
        given_back
    }
}

fn host(doing: &'static str, source: io::Error) -> FfsError {
    FfsError::Host { path: "the image".to_owned(), doing, source }
}

/// A snapshot as a store that is only read.
struct Shown<'a> {
    fs: RefCell<&'a mut Untimed<Ffs>>,
    ino: Ino,
    len_bytes: u64,
}

impl Store for Shown<'_> {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        if at.saturating_add(buf.len() as u64) > self.len_bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.fs.borrow_mut().read_file(self.ino, at, buf).map_err(io::Error::from)
    }

    fn write_at(&mut self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// What a check of a snapshot finds that is open in a laboratory ([`Lab::snapshot_to_check`]), and what it reads for it: byte and length, in order.
/// No time passes: what a snapshot shows does not change, so whoever has the check take its time makes these reads and then has the result.
///
/// # Errors
/// As for [`fsck::background`].
pub fn look_at_snapshot(
    lab: &mut Lab<Ffs>,
    fd: Fd,
    planted: Planted,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<(Left, Vec<(u64, u64)>), FfsError> {
    let g = lab.volume().geometry();
    let len_bytes = g.size_frags << g.fshift;
    let opened = Opened { lab: RefCell::new(lab), fd, len_bytes, reads: RefCell::new(Vec::new()) };
    let reads = &opened.reads;
    let left = fsck::background_planted(&mut Unwritten(&opened), planted, go_on)?;
    let reads = reads.take();
    Ok((left, reads))
}

/// A file that a process in a laboratory has open, as a store.
struct Opened<'a> {
    lab: RefCell<&'a mut Lab<Ffs>>,
    fd: Fd,
    len_bytes: u64,
    reads: RefCell<Vec<(u64, u64)>>,
}

struct Unwritten<'a>(&'a Opened<'a>);

impl Store for Unwritten<'_> {
    fn len_bytes(&self) -> u64 {
        self.0.len_bytes
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        let Opened { lab, fd, reads, .. } = self.0;
        reads.borrow_mut().push((at, buf.len() as u64));
        let read = lab.borrow_mut().read_into(*fd, at, buf).map_err(io::Error::from)?;
        if read == buf.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn write_at(&mut self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

impl Ffs {
    /// [`kernel::Volume::snapshot_to_check`]
    pub(crate) fn take_snapshot_to_check(&mut self, cx: &mut Cx) -> Result<Ino, Errno> {
        let root = self.root();
        let (dir, made) = match self.lookup(cx, root, DIRECTORY)? {
            Some(dir) => (dir, false),
            None => {
                let new = NewNode { kind: FileKind::Directory, mode: 0o755, target: b"" };
                (operations::create(self, cx, root, DIRECTORY, &new)?, true)
            }
        };
        // That of a check that was interrupted before it had lost its name.
        if let Some(old) = self.lookup(cx, dir, NAME)? {
            operations::unlink(self, cx, dir, NAME, old)?;
            operations::release(self, cx, old);
        }
        let taken = self.take_snapshot(cx, dir, NAME);
        if let Ok(ino) = taken {
            operations::unlink(self, cx, dir, NAME, ino)?;
        }
        if made {
            operations::rmdir(self, cx, root, DIRECTORY, dir)?;
            operations::release(self, cx, dir);
        }
        taken
    }
}
