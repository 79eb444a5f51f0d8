//! One arm per call: arguments are prepared, then the system call alone is timed.

use super::buffers::{Filler, PIECE_BYTES, REQUEST_BYTES_MAX, Scratchpad};
use super::path::CPath;
use super::resolve::{Last, Place, Reach, open_in_root};
use super::table::{Entry, Table};
use super::{Mounted, clock, raw};
use crate::{AccessMode, At, Call, Errno, Fallocate, FileKind, Mode, OpenFlags, Outcome, Reply, SetTime, Stat};
use rustix::fs::{self, Access, Advice, AtFlags, FallocateFlags, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Result as SysResult;
use std::num::NonZeroU64;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};

/// What a handle keeps between calls, apart from what it shares with its clones.
#[derive(Debug)]
pub(super) struct Tools {
    one: CPath,
    two: CPath,
    three: CPath,
    pad: Scratchpad,
    filler: Filler,
}

impl Tools {
    pub(super) fn new(stream: usize) -> Tools {
        Tools {
            one: CPath::default(),
            two: CPath::default(),
            three: CPath::default(),
            pad: Scratchpad::default(),
            filler: Filler::new(stream),
        }
    }
}

/// A system call's answer and its time.
struct Timed<T> {
    start_ns: u64,
    dur_ns: u64,
    result: SysResult<T>,
}

/// Times the system call in `f` and nothing else.
#[inline(always)]
fn timed<T>(f: impl FnOnce() -> SysResult<T>) -> Timed<T> {
    let start_ns = clock::now_ns();
    let result = f();
    let end_ns = clock::now_ns();
    Timed { start_ns, dur_ns: end_ns.saturating_sub(start_ns).saturating_sub(clock::overhead_ns()), result }
}

impl<T> Timed<T> {
    fn reply(self, reply: impl FnOnce(T) -> Reply) -> Outcome {
        let result = self.result.map(reply).map_err(Errno::from);
        Outcome { start_ns: self.start_ns, dur_ns: self.dur_ns, result }
    }

    fn done(self) -> Outcome {
        self.reply(|_| Reply::Done)
    }

    /// Takes off what the detour through `/proc/self/fd` cost.
    fn less(mut self, ns: u64) -> Timed<T> {
        self.dur_ns = self.dur_ns.saturating_sub(ns);
        self
    }
}

impl Timed<u64> {
    fn count(self) -> Outcome {
        self.reply(Reply::Count)
    }
}

impl Timed<usize> {
    fn count(self) -> Outcome {
        self.reply(|n| Reply::Count(n as u64))
    }
}

impl Mounted {
    /// Makes a call; `Err` is what was wrong with its arguments before any system call was made.
    pub(super) fn dispatch(&mut self, call: &Call<'_>) -> Result<Outcome, Errno> {
        let Mounted { shared, tools, reach } = self;
        let place = Place::new(shared, *reach);
        let table: &Table = &shared.table;
        let mut outcome = match *call {
            Call::Open { at, flags, mode } => open(&place, tools, at, flags, mode)?,
            Call::Close { fd } => {
                let owned = table.take(fd)?;
                timed(|| raw::close(owned)).done()
            }
            Call::Read { fd, offset, len_bytes } => read(table.get(fd)?.0, &mut tools.pad, offset, len_bytes)?,
            Call::Write { fd, offset, len_bytes, data } => {
                let (file, entry) = table.get(fd)?;
                write(file, entry, tools, offset, len_bytes, data)?
            }
            Call::Seek { fd, offset, whence } => {
                let file = table.get(fd)?.0;
                timed(|| raw::lseek(file, offset, whence)).count()
            }
            Call::Fsync { fd } => {
                let file = table.get(fd)?.0;
                timed(|| fs::fsync(file)).done()
            }
            Call::Fdatasync { fd } => {
                let file = table.get(fd)?.0;
                timed(|| fs::fdatasync(file)).done()
            }
            Call::SyncRange { fd, offset, len_bytes, how } => {
                let file = table.get(fd)?.0;
                timed(|| raw::sync_range(file, offset, len_bytes, how)).done()
            }
            Call::SyncFs => timed(|| fs::syncfs(&shared.root)).done(),
            Call::Ftruncate { fd, len_bytes } => {
                let file = table.get(fd)?.0;
                timed(|| fs::ftruncate(file, len_bytes)).done()
            }
            Call::Truncate { at, len_bytes } => {
                let (_dir, path) = place.detour(at, Last::Follow, &mut tools.one)?;
                timed(|| raw::truncate(path, len_bytes)).less(place.detour_ns()).done()
            }
            Call::Fallocate { fd, how, offset, len_bytes } => {
                let file = table.get(fd)?.0;
                timed(|| fs::fallocate(file, fallocate_flags(how), offset, len_bytes)).done()
            }
            Call::CopyRange { from, mut from_offset, to, mut to_offset, len_bytes } => {
                let (from, to) = (table.get(from)?.0, table.get(to)?.0);
                let len = usize::try_from(len_bytes.min(REQUEST_BYTES_MAX)).map_err(|_| Errno::EINVAL)?;
                timed(|| fs::copy_file_range(from, from_offset.as_mut(), to, to_offset.as_mut(), len)).count()
            }
            Call::DontNeed { fd, offset, len_bytes } => {
                let file = table.get(fd)?.0;
                timed(|| fs::fadvise(file, offset, NonZeroU64::new(len_bytes), Advice::DontNeed)).done()
            }
            Call::Advise { fd, offset, len_bytes, advice } => {
                let file = table.get(fd)?.0;
                timed(|| fs::fadvise(file, offset, NonZeroU64::new(len_bytes), hint(advice))).done()
            }
            Call::Lock { fd, offset, len_bytes, lock } => {
                let file = table.get(fd)?.0;
                let lock = raw::lock_request(lock, offset, len_bytes)?;
                timed(|| raw::set_lock(file, &lock)).done()
            }
            Call::MapUnmap { fd, len_bytes } => {
                let file = table.get(fd)?.0;
                let len = usize::try_from(len_bytes).map_err(|_| Errno::EOVERFLOW)?;
                timed(|| raw::map_unmap(file, len)).done()
            }
            Call::Residency { fd, offset, len_bytes } => {
                let file = table.get(fd)?.0;
                let stat = fs::fstat(file)?;
                if fs::FileType::from_raw_mode(stat.st_mode) != fs::FileType::RegularFile {
                    return Err(Errno::EINVAL);
                }
                let size_bytes = u64::try_from(stat.st_size).unwrap_or(0);
                let found = raw::residency(file, offset, len_bytes, size_bytes)?;
                Outcome { start_ns: clock::now_ns(), dur_ns: 0, result: Ok(Reply::Residency(found)) }
            }
            Call::Stat { at, follow } => {
                let (dir, path) = place.walk(at, Last::follow(follow), &mut tools.one)?;
                timed(|| fs::statat(&dir, path, follow_flag(follow))).reply(|s| Reply::Stat(stat(&s)))
            }
            Call::Fstat { fd } => {
                let file = table.get(fd)?.0;
                timed(|| fs::fstat(file)).reply(|s| Reply::Stat(stat(&s)))
            }
            Call::StatFs { at } => {
                let (_dir, path) = place.detour(at, Last::Follow, &mut tools.one)?;
                timed(|| fs::statfs(path)).less(place.detour_ns()).done()
            }
            Call::Access { at, mode } => {
                let (dir, path) = place.walk(at, Last::Follow, &mut tools.one)?;
                timed(|| fs::accessat(&dir, path, access(mode), AtFlags::empty())).done()
            }
            Call::ReadLink { at } => {
                let (dir, path) = place.walk(at, Last::Name, &mut tools.one)?;
                let buffer = tools.pad.at_least(4096)?;
                timed(|| fs::readlinkat_raw(&dir, path, buffer)).count()
            }
            Call::GetDents { fd, len_bytes } => {
                let file = table.get(fd)?.0;
                let buffer = tools.pad.at_least(small(len_bytes))?;
                timed(|| raw::getdents(file, buffer)).count()
            }
            Call::Mkdir { at, mode } => {
                let (dir, path) = place.walk(at, Last::Name, &mut tools.one)?;
                timed(|| fs::mkdirat(&dir, path, mode_bits(mode))).done()
            }
            Call::Rmdir { at } => {
                let (dir, path) = place.walk(at, Last::Name, &mut tools.one)?;
                timed(|| fs::unlinkat(&dir, path, AtFlags::REMOVEDIR)).done()
            }
            Call::Unlink { at } => {
                let (dir, path) = place.walk(at, Last::Name, &mut tools.one)?;
                timed(|| fs::unlinkat(&dir, path, AtFlags::empty())).done()
            }
            Call::Rename { from, to, noreplace, exchange } => {
                let (old_dir, old) = place.walk(from, Last::Name, &mut tools.one)?;
                let (new_dir, new) = place.walk(to, Last::Name, &mut tools.two)?;
                let mut flags = RenameFlags::empty();
                flags.set(RenameFlags::NOREPLACE, noreplace);
                flags.set(RenameFlags::EXCHANGE, exchange);
                timed(|| fs::renameat_with(&old_dir, old, &new_dir, new, flags)).done()
            }
            Call::Link { from, to, follow } => {
                let last = if follow { Last::Follow } else { Last::Name };
                let (old_dir, old) = place.walk(from, last, &mut tools.one)?;
                let (new_dir, new) = place.walk(to, Last::Name, &mut tools.two)?;
                let how = if follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
                timed(|| fs::linkat(&old_dir, old, &new_dir, new, how)).done()
            }
            Call::LinkFd { fd, to } => {
                let file = table.get(fd)?.0;
                tools.one.set_verbatim(file.as_raw_fd().to_string().as_bytes())?;
                let (new_dir, new) = place.walk(to, Last::Name, &mut tools.two)?;
                // By the descriptor itself (`AT_EMPTY_PATH`) it takes a right that few have.
                let (links, name) = (shared.links()?, tools.one.as_c_str());
                timed(|| fs::linkat(links, name, &new_dir, new, AtFlags::SYMLINK_FOLLOW)).less(place.detour_ns()).done()
            }
            Call::Symlink { target, at } => {
                tools.two.set_verbatim(std::os::unix::ffi::OsStrExt::as_bytes(target.as_os_str()))?;
                let (dir, path) = place.walk(at, Last::Name, &mut tools.one)?;
                let target = tools.two.as_c_str();
                timed(|| fs::symlinkat(target, &dir, path)).done()
            }
            Call::Mknod { at, kind, mode } => {
                let kind = match kind {
                    FileKind::File => fs::FileType::RegularFile,
                    FileKind::Special => fs::FileType::Fifo,
                    FileKind::Directory | FileKind::Symlink => return Err(Errno::EPERM),
                };
                let (dir, path) = place.walk(at, Last::Name, &mut tools.one)?;
                timed(|| fs::mknodat(&dir, path, kind, mode_bits(mode), 0)).done()
            }
            Call::Chmod { at, mode } => {
                let (dir, path) = place.walk(at, Last::Follow, &mut tools.one)?;
                timed(|| fs::chmodat(&dir, path, mode_bits(mode), AtFlags::empty())).done()
            }
            Call::Fchmod { fd, mode } => {
                let file = table.get(fd)?.0;
                timed(|| fs::fchmod(file, mode_bits(mode))).done()
            }
            Call::Chown { at, follow, uid, gid } => {
                let (dir, path) = place.walk(at, Last::follow(follow), &mut tools.one)?;
                let (uid, gid) = owner(uid, gid);
                timed(|| fs::chownat(&dir, path, uid, gid, follow_flag(follow))).done()
            }
            Call::Fchown { fd, uid, gid } => {
                let file = table.get(fd)?.0;
                let (uid, gid) = owner(uid, gid);
                timed(|| fs::fchown(file, uid, gid)).done()
            }
            Call::Utimens { at, follow, atime, mtime } => {
                let (dir, path) = place.walk(at, Last::follow(follow), &mut tools.one)?;
                let times = timestamps(atime, mtime);
                timed(|| fs::utimensat(&dir, path, &times, follow_flag(follow))).done()
            }
            Call::Futimens { fd, atime, mtime } => {
                let file = table.get(fd)?.0;
                let times = timestamps(atime, mtime);
                timed(|| fs::futimens(file, &times)).done()
            }
            Call::SetXattr { at, follow, name, value } => {
                tools.three.set_verbatim(std::os::unix::ffi::OsStrExt::as_bytes(name))?;
                let name = tools.three.as_c_str();
                if raw::has_xattrat() {
                    let (dir, path) = place.walk(at, Last::follow(follow), &mut tools.one)?;
                    timed(|| raw::setxattrat(dir.as_fd(), path, follow_flag(follow), name, value)).done()
                } else {
                    let (_dir, path) = place.detour(at, Last::follow(follow), &mut tools.one)?;
                    let set = if follow { fs::setxattr } else { fs::lsetxattr };
                    timed(|| set(path, name, value, fs::XattrFlags::empty())).less(place.detour_ns()).done()
                }
            }
            Call::GetXattr { at, follow, name } => {
                tools.three.set_verbatim(std::os::unix::ffi::OsStrExt::as_bytes(name))?;
                let name = tools.three.as_c_str();
                let buffer = tools.pad.at_least(64 << 10)?;
                if raw::has_xattrat() {
                    let (dir, path) = place.walk(at, Last::follow(follow), &mut tools.one)?;
                    timed(|| raw::getxattrat(dir.as_fd(), path, follow_flag(follow), name, buffer)).count()
                } else {
                    let (_dir, path) = place.detour(at, Last::follow(follow), &mut tools.one)?;
                    let get = if follow { fs::getxattr } else { fs::lgetxattr };
                    timed(|| get(path, name, buffer)).less(place.detour_ns()).count()
                }
            }
            Call::ListXattr { at, follow } => {
                let buffer = tools.pad.at_least(64 << 10)?;
                if raw::has_xattrat() {
                    let (dir, path) = place.walk(at, Last::follow(follow), &mut tools.one)?;
                    timed(|| raw::listxattrat(dir.as_fd(), path, follow_flag(follow), buffer)).count()
                } else {
                    let (_dir, path) = place.detour(at, Last::follow(follow), &mut tools.one)?;
                    let list = if follow { fs::listxattr } else { fs::llistxattr };
                    timed(|| list(path, buffer)).less(place.detour_ns()).count()
                }
            }
            Call::RemoveXattr { at, follow, name } => {
                tools.three.set_verbatim(std::os::unix::ffi::OsStrExt::as_bytes(name))?;
                let name = tools.three.as_c_str();
                if raw::has_xattrat() {
                    let (dir, path) = place.walk(at, Last::follow(follow), &mut tools.one)?;
                    timed(|| raw::removexattrat(dir.as_fd(), path, follow_flag(follow), name)).done()
                } else {
                    let (_dir, path) = place.detour(at, Last::follow(follow), &mut tools.one)?;
                    let remove = if follow { fs::removexattr } else { fs::lremovexattr };
                    timed(|| remove(path, name)).less(place.detour_ns()).done()
                }
            }
        };
        outcome.dur_ns += place.walked_ns();
        Ok(outcome)
    }
}

fn open(place: &Place<'_>, tools: &mut Tools, at: At<'_>, flags: OpenFlags, mode: Mode) -> Result<Outcome, Errno> {
    let (dir, depth) = place.start(at)?;
    let entry = Entry { direct: flags.direct, depth };
    let creates = flags.create || flags.tmpfile;
    let (flags, mode) = (open_flags(flags), mode_bits(mode));
    let opened = if place.reach == Reach::Resolved {
        let path = place.text(at, &mut tools.one)?;
        let (flags, mode) = strictly(flags, if creates { mode } else { fs::Mode::empty() });
        timed(|| open_in_root(&place.shared.root, path, flags, mode))
    } else {
        tools.one.set(at.path)?;
        let path = tools.one.as_c_str();
        timed(|| fs::openat(dir, path, flags, mode))
    };
    let result = match opened.result {
        Ok(fd) => place.shared.table.insert(fd, entry).map(Reply::Fd),
        Err(errno) => Err(errno.into()),
    };
    Ok(Outcome { start_ns: opened.start_ns, dur_ns: opened.dur_ns, result })
}

#[allow(unsafe_code)]
fn read(file: BorrowedFd<'_>, pad: &mut Scratchpad, offset: Option<u64>, len_bytes: u64) -> Result<Outcome, Errno> {
    let len = usize::try_from(len_bytes.min(REQUEST_BYTES_MAX)).map_err(|_| Errno::EINVAL)?;
    if len > PIECE_BYTES {
        let pieces = pad.repeated(len)?;
        // SAFETY: every piece is the scratchpad's memory, which `pad` lends to this call alone.
        return Ok(timed(|| unsafe { raw::read_pieces(file, &pieces, offset) }).count());
    }
    let buffer = pad.at_least(len)?;
    Ok(match offset {
        None => timed(|| rustix::io::read(file, buffer)).count(),
        Some(offset) => timed(|| rustix::io::pread(file, buffer, offset)).count(),
    })
}

fn write(
    file: BorrowedFd<'_>,
    entry: Entry,
    tools: &mut Tools,
    offset: Option<u64>,
    len_bytes: u64,
    data: Option<&[u8]>,
) -> Result<Outcome, Errno> {
    let len = usize::try_from(len_bytes.min(REQUEST_BYTES_MAX)).map_err(|_| Errno::EINVAL)?;
    let bytes = match data {
        Some(data) if data.len() as u64 != len_bytes => return Err(Errno::EINVAL),
        Some(data) if entry.direct && data.len() <= PIECE_BYTES => {
            let aligned = tools.pad.at_least(data.len())?;
            aligned.copy_from_slice(data);
            &*aligned
        }
        Some(data) => data,
        None if len > PIECE_BYTES => {
            let pieces = tools.filler.pieces(len, entry.direct)?;
            return Ok(match offset {
                None => timed(|| rustix::io::writev(file, &pieces)).count(),
                Some(offset) => timed(|| rustix::io::pwritev(file, &pieces, offset)).count(),
            });
        }
        None => tools.filler.piece(len, entry.direct)?,
    };
    Ok(match offset {
        None => timed(|| rustix::io::write(file, bytes)).count(),
        Some(offset) => timed(|| rustix::io::pwrite(file, bytes, offset)).count(),
    })
}

/// A request for a small buffer (`getdents64`): 4 bytes at least, 1 MiB at most.
fn small(len_bytes: u64) -> usize {
    usize::try_from(len_bytes.clamp(4, 1 << 20)).unwrap_or(1 << 20)
}

/// The flags as asked, and three that change nothing on files and directories: close-on-exec, no controlling
/// terminal, and no waiting for the other end of a FIFO.
fn open_flags(flags: OpenFlags) -> OFlags {
    let mut o = match (flags.read, flags.write) {
        (true, true) => OFlags::RDWR,
        (false, true) => OFlags::WRONLY,
        _ => OFlags::RDONLY,
    };
    for (wanted, flag) in [
        (flags.create, OFlags::CREATE),
        (flags.exclusive, OFlags::EXCL),
        (flags.truncate, OFlags::TRUNC),
        (flags.append, OFlags::APPEND),
        (flags.directory, OFlags::DIRECTORY),
        (flags.nofollow, OFlags::NOFOLLOW),
        (flags.direct, OFlags::DIRECT),
        (flags.sync, OFlags::SYNC),
        (flags.dsync, OFlags::DSYNC),
        (flags.path_only, OFlags::PATH),
        (flags.tmpfile, OFlags::TMPFILE),
        (flags.noatime, OFlags::NOATIME),
    ] {
        // Not `set`: some flags contain others (O_TMPFILE has O_DIRECTORY, O_SYNC has O_DSYNC).
        if wanted {
            o |= flag;
        }
    }
    o | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK
}

/// `openat2` refuses what `openat` ignores: with `O_PATH` all flags but three.
fn strictly(flags: OFlags, mode: fs::Mode) -> (OFlags, fs::Mode) {
    if !flags.contains(OFlags::PATH) {
        return (flags, mode);
    }
    (flags & (OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC), fs::Mode::empty())
}

fn mode_bits(mode: Mode) -> fs::Mode {
    fs::Mode::from_raw_mode(u32::from(mode.0 & 0o7777))
}

fn follow_flag(follow: bool) -> AtFlags {
    if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW }
}

fn access(mode: AccessMode) -> Access {
    let mut access = Access::empty();
    access.set(Access::READ_OK, mode.read);
    access.set(Access::WRITE_OK, mode.write);
    access.set(Access::EXEC_OK, mode.execute);
    access
}

fn fallocate_flags(how: Fallocate) -> FallocateFlags {
    FallocateFlags::from_bits_retain(how.bits().into())
}

fn hint(advice: crate::Advice) -> Advice {
    match advice {
        crate::Advice::Normal => Advice::Normal,
        crate::Advice::Sequential => Advice::Sequential,
        crate::Advice::Random => Advice::Random,
        crate::Advice::WillNeed => Advice::WillNeed,
    }
}

/// `u32::MAX` is the kernel's own "leave as it is".
fn owner(uid: Option<u32>, gid: Option<u32>) -> (Option<fs::Uid>, Option<fs::Gid>) {
    let given = |id: &u32| *id != u32::MAX;
    (uid.filter(given).map(fs::Uid::from_raw), gid.filter(given).map(fs::Gid::from_raw))
}

fn timestamps(atime: SetTime, mtime: SetTime) -> Timestamps {
    let spec = |time| match time {
        SetTime::Now => Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW },
        SetTime::Omit => Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT },
        SetTime::To(ns) => {
            Timespec { tv_sec: i64::div_euclid(ns, 1_000_000_000), tv_nsec: i64::rem_euclid(ns, 1_000_000_000) }
        }
    };
    Timestamps { last_access: spec(atime), last_modification: spec(mtime) }
}

/// The attributes drivers need, from what the kernel says.
pub(crate) fn stat(s: &fs::Stat) -> Stat {
    let time = |sec: i64, nsec: u64| sec.saturating_mul(1_000_000_000).saturating_add(nsec.cast_signed());
    #[allow(clippy::unnecessary_cast)] // the fields' types differ between architectures
    Stat {
        ino: s.st_ino as u64,
        dev: s.st_dev as u64,
        kind: kind(fs::FileType::from_raw_mode(s.st_mode)),
        mode: Mode((s.st_mode & 0o7777) as u16),
        uid: s.st_uid,
        gid: s.st_gid,
        nlink: u32::try_from(s.st_nlink).unwrap_or(u32::MAX),
        size_bytes: u64::try_from(s.st_size).unwrap_or(0),
        allocated_bytes: u64::try_from(s.st_blocks).unwrap_or(0).saturating_mul(512),
        atime_ns: time(s.st_atime as i64, s.st_atime_nsec as u64),
        mtime_ns: time(s.st_mtime as i64, s.st_mtime_nsec as u64),
        ctime_ns: time(s.st_ctime as i64, s.st_ctime_nsec as u64),
    }
}

/// What kind of object a file type is.
pub(crate) fn kind(file_type: fs::FileType) -> FileKind {
    match file_type {
        fs::FileType::RegularFile => FileKind::File,
        fs::FileType::Directory => FileKind::Directory,
        fs::FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Special,
    }
}

/// Untimed opening of an open directory once more, for the calls that POSIX hides.
pub(super) fn open_again(directory: BorrowedFd<'_>, flags: OFlags) -> Result<std::os::fd::OwnedFd, Errno> {
    Ok(fs::openat(directory, c".", flags | OFlags::CLOEXEC, fs::Mode::empty())?)
}
