//! Copying files into an image, with the live file system.
//!
//! An image is opened ([`Inserter::open`]), as many trees as wanted are copied in, and it is closed again
//! ([`Inserter::finish`]), which leaves it as an unmount would. In between it is marked as in use, and what is written
//! is written in an order from which whoever is interrupted loses nothing that was there before: FFS leaves what `fsck`
//! makes whole, LFS what roll-forward does. [`edit`](crate::edit::edit) does better for image files: all of it or
//! nothing.

use crate::live::Backing;
use crate::live::operations::create_special;
use crate::special::Special;
use crate::{ImageError, Ino, mode};
use device::store::Store;
use kernel::payload::Image as Payload;
use kernel::{Cx, NewNode, ReadAhead, SetAttributes, Transfers, Untimed, WriteRange};
use posix::{Errno, FileKind};
use rustix::fs::SeekFrom;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// How files are copied in.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertOptions {
    /// Owner and group of everything copied; as at the source where there are none.
    pub owner: Option<(u32, u32)>,
    /// Replace files of the same name. Otherwise a name that is there is an error; directories are merged either way.
    pub overwrite: bool,
    /// No time is later than this, seconds since 1970, and the time of last access is that of last modification: what
    /// is copied does not depend on when it is copied or was read.
    pub latest_s: Option<i64>,
}

/// What was copied in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Inserted {
    /// Regular files.
    pub files: u64,
    /// Directories, those that were there already among them.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Further names of files copied already.
    pub hard_links: u64,
    /// Pipes, sockets, devices.
    pub specials: u64,
    /// Files that were there and were replaced.
    pub replaced: u64,
    /// Bytes of data, holes not counted.
    pub data_bytes: u64,
    /// What an image cannot hold, with the reason.
    pub left_out: Vec<String>,
}

/// A file system that files are copied into.
pub trait Insertable: Backing {
    /// The choices it is opened with.
    type Options;
    /// What can go wrong.
    type Error: ImageError;

    /// The file system in a store, and the store. One that must not be written to is refused; nothing is written.
    fn open<S: Store>(store: S, options: Self::Options) -> Result<(Self, S), Self::Error>;

    /// Whether its times have 32 bits of seconds.
    fn has_narrow_times(&self) -> bool;

    /// The first thing in memory that does not agree with another.
    fn disagreement(&self) -> Option<String>;

    /// There is no room for a file.
    fn full(&self, path: String) -> Self::Error;
}

/// Asked before each file whether to go on.
pub type GoOn<'a> = &'a mut dyn FnMut(&Inserted) -> bool;

/// Memory for blocks on their way into the image.
const CACHE_BYTES: u64 = 16 << 20;
/// Inodes kept at hand.
const INODES: usize = 4096;
/// Bytes read and written at a time.
const PIECE: usize = 1 << 20;

/// A file system in an image that files are copied into.
#[derive(Debug)]
pub struct Inserter<V, S> {
    live: Untimed<V>,
    store: Arc<Mutex<S>>,
    done: Inserted,
    /// Where files with several names are: device and inode here, inode there.
    links: BTreeMap<(u64, u64), Ino>,
}

impl<V: Insertable, S: Store + Send + 'static> Inserter<V, S> {
    /// Opens the file system in a store; `date_ns` (nanoseconds since 1970) is when all this happens. One that is
    /// damaged, or must not be written to, is refused and left as it is.
    pub fn open(store: S, options: V::Options, date_ns: i64) -> Result<Inserter<V, S>, V::Error> {
        let (volume, store) = V::open(store, options)?;
        let store = Arc::new(Mutex::new(store));
        let transfers = Transfers { largest_bytes: 1 << 20, read_ahead: ReadAhead::None, cluster_writes: true };
        let payload = Payload::full(store.clone());
        let live = Untimed::with_image(volume, CACHE_BYTES, INODES, transfers, date_ns, payload);
        let mut inserter = Inserter { live, store, done: Inserted::default(), links: BTreeMap::new() };
        inserter.run("the image", "mount it", |volume, cx| volume.mount(cx))?;
        Ok(inserter)
    }

    /// The file system as it is now.
    pub fn volume(&self) -> &V {
        self.live.volume()
    }

    /// Copies `from` and all below it to a path in the image. In a directory that is there it keeps its name, unless it
    /// ends in `/.`, which stands for what is in it; otherwise the path's last name is its new one. Modes, owners,
    /// times, links and holes are kept; a directory's attributes also where it was there already.
    pub fn insert(&mut self, from: &Path, to: &[u8], options: InsertOptions, go_on: GoOn<'_>) -> Result<(), V::Error> {
        let meta = from.symlink_metadata().map_err(host::<V::Error>(from, "read its attributes"))?;
        let contents = [&b"."[..], b".."].contains(&last_name(from));
        let (dir, name) = self.destination(from, to, contents && meta.is_dir())?;
        // Directories get their times last: making their entries changes them.
        let mut directories = Vec::new();
        let mut todo = vec![Step { from: from.to_owned(), dir, name }];
        while let Some(Step { from, dir, name }) = todo.pop() {
            if !go_on(&self.done) {
                return Err(V::Error::interrupted());
            }
            let meta = from.symlink_metadata().map_err(host::<V::Error>(&from, "read its attributes"))?;
            if !meta.is_dir() {
                self.not_a_directory(&from, &meta, dir, &name, options)?;
                continue;
            }
            let here = self.directory(&from, &meta, dir, &name)?;
            directories.push((here, meta, from.clone()));
            let mut names = Vec::new();
            for entry in std::fs::read_dir(&from).map_err(host::<V::Error>(&from, "list it"))? {
                names.push(entry.map_err(host::<V::Error>(&from, "list it"))?.file_name());
            }
            // In order of names, so that the same tree makes the same image; the last is popped first.
            names.sort_unstable_by(|a, b| b.cmp(a));
            let below =
                |name: std::ffi::OsString| Step { from: from.join(&name), dir: here, name: name.as_bytes().to_vec() };
            todo.extend(names.into_iter().map(below));
        }
        for (ino, meta, from) in directories.into_iter().rev() {
            self.attributes(&from, ino, &meta, options)?;
        }
        Ok(())
    }

    /// Writes everything, marks the file system as clean, and gives the store back. If that fails, the image is as an
    /// interruption leaves it.
    pub fn finish(mut self) -> Result<(S, Inserted), V::Error> {
        self.run("the image", "unmount it", |volume, cx| volume.unmount(cx))?;
        let problem = self.live.volume().disagreement();
        drop(self.live);
        let store = Arc::into_inner(self.store).map(|store| store.into_inner());
        match (problem, store) {
            (None, Some(Ok(store))) => Ok((store, self.done)),
            (problem, _) => {
                let problem = problem.unwrap_or_else(|| "it is still in use".to_owned());
                let problem = format!("after copying, this file system does not agree with itself: {problem}");
                Err(V::Error::not_writable(problem))
            }
        }
    }

    /// The directory and the name that a copy goes to; an empty name for the directory itself.
    fn destination(&mut self, from: &Path, to: &[u8], contents: bool) -> Result<(Ino, Vec<u8>), V::Error> {
        let names: Vec<&[u8]> = to.split(|b| *b == b'/').filter(|n| !n.is_empty() && *n != b".").collect();
        let wrong = |problem: String| Err(V::Error::path(String::from_utf8_lossy(to).into_owned(), problem));
        let mut dir = self.live.volume().root();
        for (n, name) in names.iter().enumerate() {
            let last = n + 1 == names.len();
            match self.find(dir, name)? {
                Some(ino) if self.kind(ino)? == FileKind::Directory => dir = ino,
                Some(_) if last => return Ok((dir, name.to_vec())),
                Some(_) => return wrong(format!("is not a directory ({})", String::from_utf8_lossy(name))),
                None if last && !to.ends_with(b"/") => return Ok((dir, name.to_vec())),
                None => return wrong(format!("no such directory in the image ({})", String::from_utf8_lossy(name))),
            }
        }
        match last_name(from) {
            _ if contents => Ok((dir, Vec::new())),
            b"" | b"." | b".." => wrong(format!("{} has no name to keep; end the path with one", from.display())),
            name => Ok((dir, name.to_vec())),
        }
    }

    fn find(&mut self, dir: Ino, name: &[u8]) -> Result<Option<Ino>, V::Error> {
        if name == b".." {
            return self.run("..", "look it up in the image", |volume, cx| volume.parent(cx, dir)).map(Some);
        }
        self.run(OsStr::from_bytes(name), "look it up in the image", |volume, cx| volume.lookup(cx, dir, name))
    }

    fn kind(&self, ino: Ino) -> Result<FileKind, V::Error> {
        let attributes = self.live.volume().attributes(ino);
        attributes.map(|a| a.kind).map_err(|errno| cannot("read its attributes in the image", "an entry", errno))
    }

    /// Makes a directory, or takes the one that is there.
    fn directory(&mut self, from: &Path, meta: &Metadata, dir: Ino, name: &[u8]) -> Result<Ino, V::Error> {
        self.done.directories += 1;
        if name.is_empty() {
            return Ok(dir);
        }
        match self.find(dir, name)? {
            Some(ino) if self.kind(ino)? == FileKind::Directory => Ok(ino),
            Some(_) => Err(there(from, "a file of this name is in the image; it stays, and no directory can be made")),
            None => {
                let new = NewNode { kind: FileKind::Directory, mode: permissions(meta), target: b"" };
                self.make(from, |volume, cx| volume.create(cx, dir, name, &new))
            }
        }
    }

    fn not_a_directory(
        &mut self,
        from: &Path,
        meta: &Metadata,
        dir: Ino,
        name: &[u8],
        options: InsertOptions,
    ) -> Result<(), V::Error> {
        if name.len() > 255 {
            return Err(there(from, "its name is longer than 255 bytes"));
        }
        let special = match special(meta) {
            Ok(special) => special,
            Err(why) => {
                self.done.left_out.push(format!("{}: {why}", from.display()));
                return Ok(());
            }
        };
        self.make_way(from, dir, name, options)?;
        let identity = (meta.dev(), meta.ino());
        if let Some(ino) = self.links.get(&identity).copied() {
            self.run(from, "link it in the image", |volume, cx| volume.link(cx, ino, dir, name))?;
            self.done.hard_links += 1;
            return Ok(());
        }
        let ino = if let Some(special) = special {
            self.done.specials += 1;
            self.make(from, |volume, cx| create_special(volume, cx, dir, name, permissions(meta), special))?
        } else if meta.is_symlink() {
            let target = std::fs::read_link(from).map_err(host::<V::Error>(from, "read the link"))?;
            let target = target.as_os_str().as_bytes();
            let new = NewNode { kind: FileKind::Symlink, mode: permissions(meta), target };
            self.done.symlinks += 1;
            self.make(from, |volume, cx| volume.create(cx, dir, name, &new))?
        } else {
            let file = File::open(from).map_err(host::<V::Error>(from, "open it"))?;
            let new = NewNode { kind: FileKind::File, mode: permissions(meta), target: b"" };
            let ino = self.make(from, |volume, cx| volume.create(cx, dir, name, &new))?;
            self.data(from, &file, ino)?;
            self.done.files += 1;
            ino
        };
        if meta.nlink() > 1 {
            self.links.insert(identity, ino);
        }
        self.attributes(from, ino, meta, options)
    }

    /// Removes what has a file's name, if that is wanted.
    fn make_way(&mut self, from: &Path, dir: Ino, name: &[u8], options: InsertOptions) -> Result<(), V::Error> {
        let Some(old) = self.find(dir, name)? else { return Ok(()) };
        if self.kind(old)? == FileKind::Directory {
            return Err(there(from, "a directory of this name is in the image; it stays"));
        }
        if !options.overwrite {
            return Err(there(from, "a file of this name is in the image; --overwrite replaces it"));
        }
        let left = self.run(from, "replace it in the image", |volume, cx| {
            volume.unlink(cx, dir, name, old)?;
            let left = volume.attributes(old)?.nlink;
            if left == 0 {
                volume.release(cx, old);
            }
            Ok(left)
        })?;
        if left == 0 {
            self.live.forget(old);
            // Its number may be given to the next file.
            self.links.retain(|_, ino| *ino != old);
        }
        self.done.replaced += 1;
        Ok(())
    }

    /// Copies data, not holes. A file that grows meanwhile is copied as far as it went when it was opened; one that
    /// shrinks ends where it ends now.
    fn data(&mut self, from: &Path, file: &File, ino: Ino) -> Result<(), V::Error> {
        let most = self.live.volume().file_max_bytes();
        let size = match file.metadata().map_err(host::<V::Error>(from, "read its attributes"))?.len() {
            // Empty, or of a system like /proc that does not tell lengths.
            0 => most,
            size => size,
        };
        if size > most {
            return Err(there(from, &format!("it has {size} bytes; a file in this image has {most} at most")));
        }
        let mut buffer = vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE))];
        let mut at = 0;
        while at < size {
            let Some((start, end)) = stretch(file, at, size).map_err(host::<V::Error>(from, "read it"))? else { break };
            at = start;
            while at < end {
                let len = (end - at).min(buffer.len() as u64) as usize;
                let n = file
                    .read_at(buffer.get_mut(..len).unwrap_or_default(), at)
                    .map_err(host::<V::Error>(from, "read it"))?;
                if n == 0 {
                    return Ok(());
                }
                let data = buffer.get(..n).unwrap_or_default();
                let range = WriteRange { ino, offset: at, len_bytes: n as u64, data: Some(data), sync: None };
                let written = self.run(from, COPY, |volume, cx| volume.write(cx, &range))?;
                if written < n as u64 {
                    return Err(self.full(from));
                }
                self.done.data_bytes += written;
                at += written;
            }
        }
        let short = self.live.volume().attributes(ino).is_ok_and(|now| now.size_bytes < size);
        if short && size < most {
            self.run(from, COPY, |volume, cx| volume.truncate(cx, ino, size))?;
        }
        Ok(())
    }

    fn attributes(&mut self, from: &Path, ino: Ino, meta: &Metadata, options: InsertOptions) -> Result<(), V::Error> {
        let narrow = self.live.volume().has_narrow_times();
        let time = |s: i64, ns: i64| -> i64 {
            let (s, ns) = options.latest_s.filter(|latest| s >= *latest).map_or((s, ns), |latest| (latest, 0));
            let s = if narrow { s.clamp(i32::MIN.into(), i32::MAX.into()) } else { s };
            s.saturating_mul(1_000_000_000).saturating_add(ns)
        };
        let modified = time(meta.mtime(), meta.mtime_nsec());
        let accessed = if options.latest_s.is_some() { modified } else { time(meta.atime(), meta.atime_nsec()) };
        let (uid, gid) = options.owner.unwrap_or((meta.uid(), meta.gid()));
        let set = SetAttributes {
            mode: Some(permissions(meta)),
            uid: Some(uid),
            gid: Some(gid),
            atime_ns: Some(accessed),
            mtime_ns: Some(modified),
        };
        self.run(from, COPY, |volume, cx| volume.set_attributes(cx, ino, &set))
    }

    fn make(
        &mut self,
        from: &Path,
        operation: impl FnOnce(&mut V, &mut Cx) -> Result<Ino, Errno>,
    ) -> Result<Ino, V::Error> {
        let ino = self.run(from, COPY, operation)?;
        self.live.touch(ino);
        Ok(ino)
    }

    /// Runs an operation, with errors that say what was being done.
    fn run<R>(
        &mut self,
        from: impl AsRef<Path>,
        doing: &'static str,
        operation: impl FnOnce(&mut V, &mut Cx) -> Result<R, Errno>,
    ) -> Result<R, V::Error> {
        let result = self.live.run(operation);
        if let Some(source) = self.live.take_image_error() {
            return Err(V::Error::host("the image".to_owned(), "read or write it", source));
        }
        match result {
            Err(Errno::ENOSPC) => Err(self.full(from.as_ref())),
            Err(errno) => Err(cannot(doing, &from.as_ref().display().to_string(), errno)),
            Ok(value) => Ok(value),
        }
    }

    fn full(&self, from: &Path) -> V::Error {
        self.live.volume().full(from.display().to_string())
    }
}

const COPY: &str = "copy it into the image";

/// Something still to copy: to a name in a directory.
struct Step {
    from: PathBuf,
    dir: Ino,
    name: Vec<u8>,
}

/// The last name of a path as it is written, `.` and `..` too.
fn last_name(path: &Path) -> &[u8] {
    let bytes = path.as_os_str().as_bytes();
    bytes.rsplit(|b| *b == b'/').find(|name| !name.is_empty()).unwrap_or_default()
}

/// The next stretch of data of a file: beginning and end, at most `size`. All of the rest where the file system does
/// not tell data from holes.
fn stretch(file: &File, at: u64, size: u64) -> io::Result<Option<(u64, u64)>> {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) if start < size => {
            let end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
            Ok(Some((start, end.min(size))))
        }
        Ok(_) | Err(rustix::io::Errno::NXIO) => Ok(None),
        Err(rustix::io::Errno::INVAL) => Ok(Some((at, size))),
        Err(errno) => Err(errno.into()),
    }
}

/// What an inode without data is; nothing for files and links, an error for what an image cannot hold.
fn special(meta: &Metadata) -> Result<Option<Special>, String> {
    let file_type = meta.file_type();
    let number = || {
        let (major, minor) = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
        let (Ok(high), Ok(low)) = (u8::try_from(major), u8::try_from(minor)) else {
            return Err(format!("device {major}, {minor}: numbers above 255 mean something else on every system"));
        };
        Ok(u16::from(high) << 8 | u16::from(low))
    };
    Ok(Some(if file_type.is_fifo() {
        Special::Fifo
    } else if file_type.is_socket() {
        Special::Socket
    } else if file_type.is_char_device() {
        Special::CharDevice(number()?)
    } else if file_type.is_block_device() {
        Special::BlockDevice(number()?)
    } else {
        return Ok(None);
    }))
}

fn permissions(meta: &Metadata) -> u16 {
    (meta.mode() & u32::from(mode::PERMISSIONS)) as u16
}

fn host<E: ImageError>(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> E {
    let path = path.display().to_string();
    move |source| E::host(path, doing, source)
}

fn cannot<E: ImageError>(doing: &'static str, path: &str, errno: Errno) -> E {
    E::host(path.to_owned(), doing, errno.into())
}

fn there<E: ImageError>(path: &Path, problem: &str) -> E {
    E::path(path.display().to_string(), problem.to_owned())
}
