//! Copying files out of an image.

use crate::{FileType, ImageError, Ino, Time, mode};
use posix::trail::Trail;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// What to preserve.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtractOptions {
    /// Give files their owners; needs root.
    pub owners: bool,
    /// Make devices, and keep setuid and setgid bits. Only for an image that is trusted, and as root with `owners`:
    /// without them a program that ran as its owner runs as whoever copies it.
    pub special: bool,
}

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Extracted {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Further names of files copied already.
    pub hard_links: u64,
    /// Pipes, sockets, devices.
    pub specials: u64,
    /// Setuid and setgid bits that were not given: their files are there without them.
    pub set_ids_dropped: u64,
    /// Devices that were not made, for nobody asked for them.
    pub devices_left_out: u64,
    /// Bytes of data, holes not counted.
    pub data_bytes: u64,
    /// What could not be made here, with the reason.
    pub left_out: Vec<String>,
    /// Symbolic links that could be made nowhere, with the reason: the image is damaged.
    pub bad_links: Vec<String>,
}

impl Extracted {
    /// Counts what another copy has done as well.
    pub fn add(&mut self, other: Extracted) {
        self.files += other.files;
        self.directories += other.directories;
        self.symlinks += other.symlinks;
        self.hard_links += other.hard_links;
        self.specials += other.specials;
        self.set_ids_dropped += other.set_ids_dropped;
        self.devices_left_out += other.devices_left_out;
        self.data_bytes += other.data_bytes;
        self.left_out.extend(other.left_out);
        self.bad_links.extend(other.bad_links);
    }
}

/// What is known of a file before its data is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Type and permissions.
    pub mode: u16,
    /// Links.
    pub nlink: i16,
    /// Changes when the inode is used for another file.
    pub generation: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
    /// Last read.
    pub atime: Time,
    /// Last modified.
    pub mtime: Time,
    /// Of a device: major and minor number.
    pub device: (u32, u32),
}

/// What is done with each name of a tree: its path below where the walk began, which begins with `.`; its inode.
pub type EachName<'a, T> = &'a mut dyn FnMut(&[u8], Ino, &<T as Tree>::Inode) -> Result<(), <T as Tree>::Error>;

/// What is done with each piece of a file: its byte in the file, its bytes.
pub type EachPiece<'a, E> = &'a mut dyn FnMut(u64, &[u8]) -> Result<(), E>;

/// A file system that files are copied out of.
pub trait Tree {
    /// An inode as it reads them.
    type Inode;
    /// Its errors.
    type Error: ImageError;

    /// The inode that a path names.
    fn find(&self, path: &[u8]) -> Result<Ino, Self::Error>;
    /// Every name below an inode, itself first, directories before what is in them.
    fn each_name(&self, from: Ino, each: EachName<'_, Self>) -> Result<(), Self::Error>;
    /// What is known of an inode.
    fn status(&self, inode: &Self::Inode) -> Status;
    /// Hands over a file's data in order; holes are left out.
    fn each_piece(&self, ino: Ino, inode: &Self::Inode, each: EachPiece<'_, Self::Error>) -> Result<(), Self::Error>;
    /// The target of a symbolic link.
    fn target(&self, ino: Ino, inode: &Self::Inode) -> Result<Vec<u8>, Self::Error>;
}

/// Copies what `path` names in the image to `to`, which must not be there yet (or be an empty directory, for a
/// directory): names, data with holes, modes, times, links. Nothing that is there is overwritten, and no name of the
/// image leads out of `to`: every name is made in a directory that was opened without following a link. `go_on` is
/// asked before each file and each piece of one.
pub fn extract<T: Tree>(
    image: &T,
    path: &[u8],
    to: &Path,
    options: ExtractOptions,
    go_on: &mut dyn FnMut(&Extracted) -> bool,
) -> Result<Extracted, T::Error> {
    let from = image.find(path)?;
    let mut out = Extraction {
        image,
        to,
        options,
        go_on,
        done: Extracted::default(),
        trail: None,
        names: BTreeMap::new(),
        directories: Vec::new(),
    };
    image.each_name(from, &mut |below, ino, inode| {
        out.asked()?;
        let below = below.strip_prefix(b"./").unwrap_or_default();
        out.one(Path::new(OsStr::from_bytes(below)), ino, inode)
    })?;
    out.finish_directories()?;
    Ok(out.done)
}

struct Extraction<'a, T> {
    image: &'a T,
    to: &'a Path,
    options: ExtractOptions,
    go_on: &'a mut dyn FnMut(&Extracted) -> bool,
    done: Extracted,
    /// From the destination, where it is a directory, to the one that the last name was made in.
    trail: Option<Trail>,
    /// Where files with several names are, below the destination.
    names: BTreeMap<Ino, PathBuf>,
    /// Directories get their modes and times last: making their entries changes both, and may need the right to write.
    directories: Vec<(PathBuf, Status)>,
}

/// Where a name is made: a directory, and one component in it.
struct Place {
    directory: Rc<OwnedFd>,
    name: OsString,
    /// For messages.
    shown: PathBuf,
}

fn host<T: Tree>(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> T::Error {
    let path = path.display().to_string();
    move |source| T::Error::host(path, doing, source)
}

fn errno<T: Tree>(path: &Path, doing: &'static str) -> impl FnOnce(Errno) -> T::Error {
    let host = host::<T>(path, doing);
    move |errno| host(errno.into())
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl<T: Tree> Extraction<'_, T> {
    /// Whether to go on.
    fn asked(&mut self) -> Result<(), T::Error> {
        if (self.go_on)(&self.done) { Ok(()) } else { Err(T::Error::interrupted()) }
    }

    fn one(&mut self, below: &Path, ino: Ino, inode: &T::Inode) -> Result<(), T::Error> {
        let status = self.image.status(inode);
        let Some(kind) = FileType::of(status.mode) else {
            return Err(T::Error::inode(ino, format!("mode 0{:o} is of no known type", status.mode)));
        };
        // To chown(2) it would say that nothing is to change, and leave the file whoever's who copies it.
        if self.options.owners && (status.uid == u32::MAX || status.gid == u32::MAX) {
            return Err(T::Error::inode(ino, format!("owner {}:{} is nobody's number", status.uid, status.gid)));
        }
        if kind == FileType::Directory && below.as_os_str().is_empty() {
            return self.destination(status);
        }
        let place = self.place(below, ino)?;
        if let Some(first) = self.names.get(&ino).cloned() {
            let first = self.place(&first, ino)?;
            rustix::fs::linkat(&first.directory, &first.name, &place.directory, &place.name, AtFlags::empty())
                .map_err(errno::<T>(&place.shown, "link"))?;
            self.done.hard_links += 1;
            return Ok(());
        }
        match kind {
            FileType::Directory => {
                // Nobody else may change what is in it before it is whole.
                rustix::fs::mkdirat(&place.directory, &place.name, Mode::RWXU)
                    .map_err(errno::<T>(&place.shown, "make the directory"))?;
                self.directories.push((below.to_owned(), status));
                self.done.directories += 1;
                return Ok(());
            }
            FileType::Regular => self.regular(&place, ino, inode, &status)?,
            FileType::Symlink => {
                // Longer than a path can be; the target is not read for it.
                let too_long = status.size >= PATH_MAX;
                let text = if too_long { Vec::new() } else { self.image.target(ino, inode)? };
                let why = match text.as_slice() {
                    _ if too_long => format!("{} bytes", status.size),
                    [] => "no target".to_owned(),
                    text if text.contains(&0) => "zero bytes in its target".to_owned(),
                    _ => String::new(),
                };
                if !why.is_empty() {
                    self.done.bad_links.push(format!("{}: symbolic link with {why}", place.shown.display()));
                    return Ok(());
                }
                rustix::fs::symlinkat(OsStr::from_bytes(&text), &place.directory, &place.name)
                    .map_err(errno::<T>(&place.shown, "make the link"))?;
                self.done.symlinks += 1;
                self.named(&place, &status, None)?;
            }
            FileType::Whiteout => {
                self.done.left_out.push(format!("{}: a whiteout has no counterpart here", place.shown.display()));
                return Ok(());
            }
            special => {
                if !self.special(&place, special, status.device)? {
                    return Ok(());
                }
                let mode = self.mode(&status);
                self.named(&place, &status, Some(mode))?;
            }
        }
        if status.nlink > 1 {
            self.names.insert(ino, below.to_owned());
        }
        Ok(())
    }

    /// The directory that everything goes into. It alone may be there already, and is found as its caller names it.
    fn destination(&mut self, status: Status) -> Result<(), T::Error> {
        let empty = || std::fs::read_dir(self.to).is_ok_and(|mut entries| entries.next().is_none());
        let made = rustix::fs::mkdir(self.to, Mode::RWXU);
        let follow = match made {
            Err(Errno::EXIST) if empty() => OFlags::empty(),
            other => other.map(|()| OFlags::NOFOLLOW).map_err(errno::<T>(self.to, "make the directory"))?,
        };
        let root = rustix::fs::open(self.to, DIRECTORY | follow, Mode::empty())
            .map_err(errno::<T>(self.to, "open the directory"))?;
        self.trail = Some(Trail::new(root, open).map_err(errno::<T>(self.to, "look at the directory"))?);
        self.directories.push((PathBuf::new(), status));
        self.done.directories += 1;
        Ok(())
    }

    /// Where a path below the destination leads, through directories only.
    fn place(&mut self, below: &Path, ino: Ino) -> Result<Place, T::Error> {
        let Some(trail) = &mut self.trail else {
            // One file, whose destination is its own name.
            let name = self
                .to
                .file_name()
                .ok_or_else(|| host::<T>(self.to, "make a file of this name")(io::ErrorKind::InvalidInput.into()))?;
            let parent = self.to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let directory =
                rustix::fs::open(parent, DIRECTORY, Mode::empty()).map_err(errno::<T>(parent, "open the directory"))?;
            return Ok(Place { directory: Rc::new(directory), name: name.to_owned(), shown: self.to.to_owned() });
        };
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        let (Some(parent), Some(name), true) = (below.parent(), below.file_name(), plain) else {
            return Err(T::Error::inode(ino, format!("its name {} leads elsewhere", below.display())));
        };
        let shown = self.to.join(below);
        trail.go(names(parent)).map_err(errno::<T>(&shown, "open the directory of"))?;
        let directory = Rc::clone(trail.here());
        Ok(Place { directory, name: name.to_owned(), shown })
    }

    fn regular(&mut self, place: &Place, ino: Ino, inode: &T::Inode, status: &Status) -> Result<(), T::Error> {
        let shown = &place.shown;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&place.directory, &place.name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(errno::<T>(shown, "make the file"))?;
        let filled = self.fill(File::from(fd), shown, ino, inode, status);
        if filled.is_err() {
            // Half a file is worse than none; the error to report is the first.
            let _ = rustix::fs::unlinkat(&place.directory, &place.name, AtFlags::empty());
        }
        filled
    }

    fn fill(&mut self, file: File, shown: &Path, ino: Ino, inode: &T::Inode, status: &Status) -> Result<(), T::Error> {
        self.image.each_piece(ino, inode, &mut |at, bytes| {
            self.asked()?;
            self.done.data_bytes += bytes.len() as u64;
            file.write_all_at(bytes, at).map_err(host::<T>(shown, "write"))
        })?;
        file.set_len(status.size).map_err(host::<T>(shown, "set the size"))?;
        self.done.files += 1;
        self.opened(&file, shown, status)
    }

    /// Whether it could be made, and may be: devices need root, and to be asked for.
    fn special(&mut self, place: &Place, kind: FileType, (major, minor): (u32, u32)) -> Result<bool, T::Error> {
        let kind_here = match kind {
            FileType::CharDevice => rustix::fs::FileType::CharacterDevice,
            FileType::BlockDevice => rustix::fs::FileType::BlockDevice,
            FileType::Socket => rustix::fs::FileType::Socket,
            _ => rustix::fs::FileType::Fifo,
        };
        let is_device = !kind_here.is_fifo() && !kind_here.is_socket();
        if is_device && !self.options.special {
            self.done.devices_left_out += 1;
            return Ok(false);
        }
        let device = if is_device { rustix::fs::makedev(major, minor) } else { 0 };
        match rustix::fs::mknodat(&place.directory, &place.name, kind_here, Mode::RUSR | Mode::WUSR, device) {
            Ok(()) => {
                self.done.specials += 1;
                Ok(true)
            }
            Err(Errno::PERM) => {
                self.done.left_out.push(format!("{}: making a {kind} needs root", place.shown.display()));
                Ok(false)
            }
            Err(error) => Err(errno::<T>(&place.shown, "make the special file")(error)),
        }
    }

    /// The permissions that a file gets: a program that runs as its owner must be the image's owner's, and asked for.
    fn mode(&mut self, status: &Status) -> Mode {
        let mut permissions = status.mode & mode::PERMISSIONS;
        if permissions & SET_IDS != 0 && !self.options.special {
            permissions &= !SET_IDS;
            self.done.set_ids_dropped += 1;
        }
        Mode::from_raw_mode(permissions.into())
    }

    /// Owner, mode and times of what is open.
    fn opened(&mut self, file: impl AsFd, shown: &Path, status: &Status) -> Result<(), T::Error> {
        if self.options.owners {
            let (uid, gid) = (Uid::from_raw(status.uid), Gid::from_raw(status.gid));
            rustix::fs::fchown(&file, Some(uid), Some(gid)).map_err(errno::<T>(shown, "set the owner"))?;
        }
        // After the owner, for a change of owner clears set-id bits.
        rustix::fs::fchmod(&file, self.mode(status)).map_err(errno::<T>(shown, "set the mode"))?;
        rustix::fs::futimens(&file, &times(status)).map_err(errno::<T>(shown, "set the times"))
    }

    /// The same of what cannot be opened: links, which have no mode, and special files.
    fn named(&self, place: &Place, status: &Status, mode: Option<Mode>) -> Result<(), T::Error> {
        let Place { directory, name, shown } = place;
        if self.options.owners {
            let (uid, gid) = (Uid::from_raw(status.uid), Gid::from_raw(status.gid));
            rustix::fs::chownat(directory, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(errno::<T>(shown, "set the owner"))?;
        }
        if let Some(mode) = mode {
            set_mode(directory, name, mode).map_err(errno::<T>(shown, "set the mode"))?;
        }
        rustix::fs::utimensat(directory, name, &times(status), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(errno::<T>(shown, "set the times"))
    }

    fn finish_directories(&mut self) -> Result<(), T::Error> {
        let Some(mut trail) = self.trail.take() else { return Ok(()) };
        // Those below come first. The trail stays above: nobody may be able to walk through what has its mode.
        for (below, status) in std::mem::take(&mut self.directories).iter().rev() {
            self.asked()?;
            let shown = self.to.join(below);
            trail.go(names(below.parent().unwrap_or(below))).map_err(errno::<T>(&shown, "open the directory of"))?;
            let Some(name) = below.file_name() else {
                self.opened(trail.here(), &shown, status)?;
                continue;
            };
            let directory = open(trail.here(), name).map_err(errno::<T>(&shown, "open the directory"))?;
            self.opened(&directory, &shown, status)?;
        }
        Ok(())
    }
}

fn names(path: &Path) -> impl Iterator<Item = &[u8]> + Clone {
    path.components().map(|part| part.as_os_str().as_bytes())
}

/// Opens a directory by its name in another, which may be no link.
fn open(at: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    #[cfg(test)]
    tests::OPENED.set(tests::OPENED.get() + 1);
    rustix::fs::openat(at, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// Sets the mode of a special file just made, and of nothing else: where others can write to the directory, a link may
/// have taken its name.
fn set_mode(directory: &OwnedFd, name: &OsStr, mode: Mode) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = rustix::fs::openat(directory, name, flags, Mode::empty())?;
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&open)?.st_mode);
    if kind.is_symlink() || kind.is_file() || kind.is_dir() {
        return Err(Errno::EXIST);
    }
    // What was opened by its path alone has no other way in (open(2), O_PATH).
    rustix::fs::chmod(format!("/proc/self/fd/{}", open.as_raw_fd()), mode)
}

/// Bytes of the longest target of a link with its zero byte, here (`PATH_MAX`).
const PATH_MAX: u64 = 4096;

/// The bits of a mode with which a program runs as the owner or group of its file.
const SET_IDS: u16 = 0o6000;

fn times(status: &Status) -> Timestamps {
    Timestamps { last_access: timespec(&status.atime), last_modification: timespec(&status.mtime) }
}

fn timespec(time: &Time) -> Timespec {
    // A foreign number of nanoseconds is cut to what the call takes.
    Timespec { tv_sec: time.s, tv_nsec: i64::from(time.ns.clamp(0, 999_999_999)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ROOT_INO;
    use std::cell::Cell;
    use std::os::unix::fs::PermissionsExt as _;

    thread_local! {
        /// How often a directory was opened below the destination.
        pub static OPENED: Cell<usize> = const { Cell::new(0) };
    }

    /// Directories in directories, and a file in each after what is below: so many.
    struct Nest(usize);

    impl Tree for Nest {
        type Inode = FileType;
        type Error = String;

        fn find(&self, _: &[u8]) -> Result<Ino, String> {
            Ok(ROOT_INO)
        }

        fn each_name(&self, from: Ino, each: EachName<'_, Self>) -> Result<(), String> {
            let mut path = b".".to_vec();
            each(&path, from, &FileType::Directory)?;
            for _ in 0..self.0 {
                path.extend(b"/d");
                each(&path, from, &FileType::Directory)?;
            }
            while path.len() > 1 {
                each(&[&path, &b"/f"[..]].concat(), from, &FileType::Regular)?;
                path.truncate(path.len() - 2);
            }
            Ok(())
        }

        fn status(&self, inode: &FileType) -> Status {
            let mode = if *inode == FileType::Directory { 0o40500 } else { 0o100400 };
            let time = Time { s: 7, ns: 0 };
            Status { mode, nlink: 1, generation: 0, uid: 0, gid: 0, size: 0, atime: time, mtime: time, device: (0, 0) }
        }

        fn each_piece(&self, _: Ino, _: &FileType, _: EachPiece<'_, String>) -> Result<(), String> {
            Ok(())
        }

        fn target(&self, _: Ino, _: &FileType) -> Result<Vec<u8>, String> {
            Ok(Vec::new())
        }
    }

    impl ImageError for String {
        fn host(path: String, doing: &'static str, source: io::Error) -> String {
            format!("{path}: cannot {doing}: {source}")
        }

        fn path(path: String, problem: String) -> String {
            format!("{path}: {problem}")
        }

        fn inode(_: Ino, problem: String) -> String {
            problem
        }

        fn not_writable(problem: String) -> String {
            problem
        }

        fn interrupted() -> String {
            "interrupted".into()
        }
    }

    /// Each directory was walked to from the destination, twice, and nobody asked for signals the second time.
    #[test]
    fn directories_in_directories_cost_a_step_each_and_end_when_asked() {
        const DEPTH: usize = 500;
        let base = tempfile::tempdir().expect("a directory");
        let copy = |to: &str, go_on: &mut dyn FnMut(&Extracted) -> bool| {
            extract(&Nest(DEPTH), b"/", &base.path().join(to), ExtractOptions::default(), go_on)
        };
        let done = copy("whole", &mut |_| true).expect("copied");
        assert_eq!((done.directories, done.files), (DEPTH as u64 + 1, DEPTH as u64));
        let opened = OPENED.take();
        assert!(opened < 5 * DEPTH, "{opened} directories were opened");
        let mut directories = 0;
        let mut path = base.path().join("whole");
        while path.exists() {
            let meta = path.metadata().expect("there");
            assert_eq!(meta.permissions().mode() & 0o7777, 0o500);
            assert_eq!(meta.modified().expect("a time"), std::time::UNIX_EPOCH + std::time::Duration::from_secs(7));
            directories += 1;
            path.push("d");
        }
        assert_eq!(directories, DEPTH + 1);
        let mut asked = 0;
        let ended = copy("part", &mut |done| {
            asked += usize::from(done.files == DEPTH as u64);
            asked < 10
        });
        assert_eq!(ended, Err("interrupted".into()));
        // Whoever is not root may not remove what is in a directory without the right to write.
        for top in ["whole", "part"] {
            let mut path = base.path().join(top);
            while path.exists() {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).expect("ours");
                path.push("d");
            }
        }
    }
}
