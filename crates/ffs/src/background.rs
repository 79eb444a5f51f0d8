//! The check in the background: a snapshot of a mounted file system is taken and checked, and what a crash has left is
//! given back, beside whoever uses it ([`check_in_use`]). One that nobody has mounted is mounted for that, as it is,
//! and unmounted.
//!
//! What a check finds is [`fsck::background`]'s, how it is given back the file system's (`volume::crashed`).

use crate::fsck::{self, Left, Phase};
use crate::planted::Planted;
use crate::policy::{Integrity, Options};
use crate::{Ffs, FfsError, Image, Search, Store, Superblock};
use device::store::StoreError;
use kernel::payload::Image as Payload;
use kernel::{CheckEnd, Cx, Ino, Lab, NewNode, ReadAhead, Transfers, Untimed, Volume};
use posix::{Errno, Fd, FileKind, FileSystem as _};
use std::cell::RefCell;
use std::io;
use std::sync::{Arc, Mutex};
use ufs::ImageError as _;
use ufs::live::operations;

/// Where the snapshot has its name while it is taken, as BSD's check has it.
const DIRECTORY: &[u8] = b".snap";
const NAME: &[u8] = b"fsck_snapshot";

/// Memory for blocks.
const CACHE_BYTES: u64 = 16 << 20;
/// Inodes kept at hand.
const INODES: usize = 4096;

/// Refuses a file system that the check in the background is not for, by its superblock.
///
/// # Errors
/// It has a log, which tells what a crash has left; or its superblock has no list of snapshots.
pub fn suits_background(sb: &Superblock) -> Result<(), FfsError> {
    let refused = |why: &str| Err(FfsError::NotInBackground(why.to_owned()));
    if sb.log_place().is_some() {
        return refused(
            "it has a log (/.fsjournal), which tells what a crash has left; a mount recovers by it, and so does `fsage \
             fsck IMAGE --repair --in-place`",
        );
    }
    if !sb.wide() {
        return refused(
            "its superblock has no list of snapshots; check it with `fsage fsck IMAGE --repair --in-place`",
        );
    }
    Ok(())
}

/// Checks a file system of Soft Updates that was not unmounted, in its store, which is given back with what was found.
/// One that was unmounted is looked at in the same way.
///
/// # Errors
/// It cannot be mounted without a full check, or the check finds more than a crash of Soft Updates leaves: then it says
/// so in its superblock. There is no room for a snapshot.
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
    mut store: S,
    date_ns: i64,
    planted: Planted,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<(Left, S), FfsError> {
    suits_background(Image::open(&mut store, Search::Standard)?.superblock())?;
    let options = Options { integrity: Integrity::Softdep, ..Options::default() };
    let (mut volume, store) = <Ffs as ufs::insert::Insertable>::open(store, options)?;
    volume.plant(planted);
    let store = Arc::new(Mutex::new(store));
    let transfers = Transfers { largest_bytes: 1 << 20, read_ahead: ReadAhead::None, cluster_writes: true };
    let payload = Payload::full(store.clone());
    let mounted = Mounted(RefCell::new(Untimed::with_image(volume, CACHE_BYTES, INODES, transfers, date_ns, payload)));
    mounted.run("mount it", |volume, cx| volume.mount(cx))?;
    let found = check_in_use_planted(&mounted, planted, go_on);
    mounted.run("unmount it", |volume, cx| volume.unmount(cx))?;
    let mut fs = mounted.0.into_inner();
    fs.sync_image().map_err(|source| StoreError { doing: "write", at_byte: 0, len: 0, source })?;
    let found = found?;
    if let Some(problem) = fs.volume().check().into_iter().next() {
        let problem = format!("in memory: {problem}");
        return Err(FfsError::Inode { ino: crate::format::ROOT_INO.0, problem });
    }
    drop(fs);
    let store = Arc::into_inner(store).expect("nobody else has the store any more");
    Ok((found, store.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)))
}

/// A file system that is mounted, and that others may use between two calls of these.
pub trait InUse {
    /// Does an operation.
    ///
    /// # Errors
    /// The file system's, or its image's; `doing` says what could not be done.
    fn run<T>(
        &self,
        doing: &'static str,
        operation: impl FnOnce(&mut Ffs, &mut Cx) -> Result<T, Errno>,
    ) -> Result<T, FfsError>;

    /// Reads from a file.
    ///
    /// # Errors
    /// The image cannot be read.
    fn read(&self, ino: Ino, at: u64, buf: &mut [u8]) -> io::Result<()>;

    /// An inode has lost its last link. It goes, unless somebody has it open: then when nobody has any more.
    ///
    /// # Errors
    /// As for [`run`](InUse::run).
    fn unlinked(&self, ino: Ino) -> Result<(), FfsError>;
}

/// Checks a mounted file system in the background: takes a snapshot of it, checks that, and gives back what a crash has
/// left. `go_on` is asked now and then; where it says no, a later check begins again.
///
/// # Errors
/// As for [`check_in_background`].
pub fn check_in_use(in_use: &impl InUse, go_on: &mut dyn FnMut(Phase) -> bool) -> Result<Left, FfsError> {
    check_in_use_planted(in_use, None, go_on)
}

fn check_in_use_planted(
    in_use: &impl InUse,
    planted: Planted,
    go_on: &mut dyn FnMut(Phase) -> bool,
) -> Result<Left, FfsError> {
    let (ino, len_bytes) = in_use.run("take a snapshot of it", |volume, cx| {
        let ino = volume.snapshot_to_check(cx)?;
        Ok((ino, volume.attributes(ino)?.size_bytes))
    })?;
    let given_back =
        fsck::background_planted(SnapshotStore { in_use, ino, len_bytes }, planted, go_on).and_then(|left| {
            for correction in &left.corrections {
                if !go_on(Phase::Groups) {
                    return Err(FfsError::interrupted());
                }
                let gone =
                    in_use.run("give back what a crash has left", |volume, cx| volume.give_back(cx, correction))?;
                gone.into_iter().try_for_each(|ino| in_use.unlinked(ino))?;
            }
            Ok(left)
        });
    in_use.run("remove the snapshot", |volume, cx| {
        volume.release(cx, ino);
        Ok(())
    })?;
    let end = match &given_back {
        Ok(_) => Some(CheckEnd::AllGivenBack),
        Err(FfsError::NeedsFullCheck(_)) => Some(CheckEnd::FullCheckNeeded),
        Err(_) => None,
    };
    if let Some(end) = end {
        in_use.run("mark it as checked", |volume, cx| volume.checked(cx, end))?;
    }
    given_back
}

/// One that nobody else uses.
struct Mounted(RefCell<Untimed<Ffs>>);

impl InUse for Mounted {
    fn run<T>(
        &self,
        doing: &'static str,
        operation: impl FnOnce(&mut Ffs, &mut Cx) -> Result<T, Errno>,
    ) -> Result<T, FfsError> {
        let mut fs = self.0.borrow_mut();
        let result = fs.run(operation);
        match (fs.take_image_error(), result) {
            (Some(source), _) => Err(FfsError::in_image(doing, source)),
            (None, Err(errno)) => Err(FfsError::in_image(doing, io::Error::from(errno))),
            (None, Ok(done)) => Ok(done),
        }
    }

    fn read(&self, ino: Ino, at: u64, buf: &mut [u8]) -> io::Result<()> {
        self.0.borrow_mut().read_file(ino, at, buf).map_err(io::Error::from)
    }

    fn unlinked(&self, ino: Ino) -> Result<(), FfsError> {
        self.run("give back what a crash has left", |volume, cx| {
            volume.release(cx, ino);
            Ok(())
        })
    }
}

/// A snapshot as a store that is only read.
struct SnapshotStore<'a, F> {
    in_use: &'a F,
    ino: Ino,
    len_bytes: u64,
}

impl<F: InUse> Store for SnapshotStore<'_, F> {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<()> {
        if at.saturating_add(buf.len() as u64) > self.len_bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.in_use.read(self.ino, at, buf)
    }

    fn write_at(&mut self, _at: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

/// What a check of a snapshot finds that is open in a laboratory ([`Lab::snapshot_to_check`]), and what it reads for
/// it: byte and length, in order. No time passes: what a snapshot shows does not change, so whoever has the check take
/// its time makes these reads and then has the result.
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
