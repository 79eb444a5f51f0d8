//! A mount from the first byte read of the image to the last one written.

use crate::check::Beside;
use crate::filesystem::Served;
use crate::image::Locked;
use crate::live::{Live, LiveOptions};
use crate::{FS_TYPE, MountError};
use device::store::{Overlay, Store};
use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};
use kernel::Barriers;
use kernel::payload::Image;
use lab::{Spec, System};
use posix::cleanup::Served as Listed;
use rustix::fs::{Mode, OFlags};
use rustix::mount::MountFlags;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use ufs::insert::Insertable;

/// How often is looked for a signal, and for what has been dirty for a while.
const TICK: Duration = Duration::from_millis(50);
/// Ticks between two looks for what is to be written.
const TICKS_BETWEEN: u32 = 20;

/// What is mounted.
#[derive(Clone, Debug)]
pub enum Source {
    /// The file system in an image file or on a block device.
    Image(PathBuf),
    /// A laboratory target: with `image=` the file system in that image, which is written to here, otherwise a new one
    /// in memory, which goes when it is unmounted. Its drive and machine are for virtual time, and nobody waits for
    /// that here.
    Target(Box<Spec>),
}

impl Source {
    /// As the system shows it.
    fn name(&self) -> String {
        match (self.image(), self) {
            (Some(path), _) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string(),
            (None, Source::Target(spec)) => spec.text.clone(),
            (None, Source::Image(_)) => unreachable!("an image has a path"),
        }
    }

    fn image(&self) -> Option<&Path> {
        match self {
            Source::Image(path) => Some(path),
            Source::Target(spec) => spec.image.as_deref(),
        }
    }
}

/// Who may use a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everybody, as the permissions of files say.
    Everybody,
    /// The user who mounts, who may do everything: the image is his.
    Owner,
}

/// How it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountOptions {
    /// Nothing is changed, in the image either.
    pub read_only: bool,
    /// For whom.
    pub access: Access,
    /// Threads that answer the kernel.
    pub threads: usize,
    /// Memory for blocks.
    pub cache_bytes: u64,
    /// Whether each write that the file system waits for goes to stable storage: what survives a power failure of this
    /// machine is then what would survive one of a disk without a write cache.
    pub ordered: bool,
    /// Take a snapshot into `.snap/` under this name before anything else.
    pub snapshot: Option<String>,
}

/// Whoever is told what goes on.
pub struct Events<'a> {
    /// It is mounted, and can be used.
    pub ready: &'a mut dyn FnMut(),
    /// Whether to unmount now. Asked some times a second.
    pub stop: &'a mut dyn FnMut() -> bool,
    /// Something is wrong, in words.
    pub tell: fn(&str),
}

/// Mounts a file system on a directory and serves it until it is unmounted, by somebody else or because `events.stop`
/// says so. When this returns without an error, everything is on stable storage and the file system is marked as
/// unmounted.
///
/// # Errors
/// There is no file system, it must not be written to, or is in use; it cannot be mounted; the last of it cannot be
/// written.
pub fn mount(source: &Source, on: &Path, options: &MountOptions, events: Events<'_>) -> Result<(), MountError> {
    let on =
        on.canonicalize().map_err(|source| MountError::Io { path: on.to_owned(), doing: "mount on it", source })?;
    if !on.is_dir() {
        let source = std::io::ErrorKind::NotADirectory.into();
        return Err(MountError::Io { path: on, doing: "mount on it", source });
    }
    // Before anything is marked as in use.
    drop(fuse_device()?);
    let name = source.name();
    let mount = Mount { name: &name, on: &on, options };
    let Some(path) = source.image() else {
        let Source::Target(spec) = source else { unreachable!("an image has a path") };
        let disk = spec.new_disk()?;
        return match &spec.system {
            System::Ffs(own) => mount.ffs(disk, own.policy, events),
            System::Lfs(own) => mount.lfs(disk, own.policy, events),
        };
    };
    let (lock, store) = Locked::open(path, options.read_only)?;
    let is_log = lfs::is_lfs(&store);
    let (mut ffs_policy, mut lfs_policy) = (ffs::policy::Options::default(), lfs::Options::default());
    match source {
        Source::Target(spec) => match &spec.system {
            System::Ffs(own) if !is_log => ffs_policy = own.policy,
            System::Lfs(own) if is_log => lfs_policy = own.policy,
            System::Ffs(_) => return Err(mount.is_another("Fast File System")),
            System::Lfs(_) => return Err(mount.is_another("log-structured file system")),
        },
        Source::Image(_) => {}
    }
    // What reading changes (a log is rolled forward, a superblock marked) stays in memory.
    let served = match (is_log, options.read_only) {
        (false, false) => mount.ffs(store, ffs_policy, events),
        (false, true) => mount.ffs(Overlay::new(store), ffs_policy, events),
        (true, false) => mount.lfs(store, lfs_policy, events),
        (true, true) => mount.lfs(Overlay::new(store), lfs_policy, events),
    };
    drop(lock);
    served
}

/// What the kernel and a server speak to each other through; an ordinary user opens it, too, before fusermount3 is
/// asked to mount.
fn fuse_device() -> Result<OwnedFd, MountError> {
    rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|error| MountError::NoFuse { source: error.into() })
}

/// The directory is there: what is not is the program.
fn by_fusermount(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(
            error.kind(),
            "there is no fusermount3, which mounts for ordinary users: install the package fuse3, or be root",
        ),
        _ => error,
    }
}

/// Whether a session has ended by itself, and without an error: somebody has unmounted it, or cut its connection.
fn has_ended(session: &mut BackgroundSession) -> bool {
    session.guard.is_finished()
        && std::mem::replace(&mut session.guard, std::thread::spawn(|| Ok(()))).join().is_ok_and(|ended| ended.is_ok())
}

/// Begins a check beside a mount, where one is due; told the mount's name and where messages go.
type CheckBeside<V> = dyn Fn(&Arc<Mutex<Live<V>>>, &str, fn(&str)) -> Option<Beside>;

/// One mount.
struct Mount<'a> {
    name: &'a str,
    on: &'a Path,
    options: &'a MountOptions,
}

impl Mount<'_> {
    fn is_another(&self, system: &'static str) -> MountError {
        MountError::Target(lab::OpenError::System { target: self.name.to_owned(), system })
    }

    fn ffs(
        &self,
        store: impl Store + Send + 'static,
        policy: ffs::policy::Options,
        events: Events<'_>,
    ) -> Result<(), MountError> {
        let wrong = |source| MountError::Ffs { source_name: self.name.to_owned(), source };
        let (volume, store) = ffs::Ffs::open(store, policy).map_err(wrong)?;
        self.serve(volume, store, events, &Beside::begin)
    }

    fn lfs(
        &self,
        store: impl Store + Send + 'static,
        policy: lfs::Options,
        events: Events<'_>,
    ) -> Result<(), MountError> {
        let wrong = |source| MountError::Lfs { source_name: self.name.to_owned(), source };
        let (volume, store) = lfs::Lfs::open(store, policy).map_err(wrong)?;
        self.serve(volume, store, events, &|_, _, _| None)
    }

    fn serve<V: Insertable + Send + 'static>(
        &self,
        volume: V,
        store: impl Store + Send + 'static,
        events: Events<'_>,
        check: &CheckBeside<V>,
    ) -> Result<(), MountError> {
        let live_options = LiveOptions {
            read_only: self.options.read_only,
            cache_bytes: self.options.cache_bytes,
            barriers: if self.options.ordered { Barriers::Writes } else { Barriers::Flushes },
        };
        let refused =
            |doing, next| move |errno| MountError::Refused { source_name: self.name.to_owned(), doing, errno, next };
        // From here on it is marked as in use, and what is written to it is in our memory until the end, whoever loses
        // patience.
        let _only_asked = posix::interrupt::only_asked();
        let mut live = Live::new(volume, Image::full(store), live_options, Box::new(events.tell))
            .map_err(refused("mount it", "nothing is mounted"))?;
        if let Some(name) = &self.options.snapshot
            && let Err(errno) = live.take_snapshot(name.as_bytes())
        {
            // It was marked as in use.
            live.unmount().map_err(refused("unmount it", "repair the image with `fsage fsck`"))?;
            return Err(refused("take a snapshot of it", "nothing is mounted")(errno));
        }
        let live = Arc::new(Mutex::new(live));
        // In the list before it is there: whoever is killed leaves a mount that answers nobody.
        let mut listed = Listed::new(self.on, FS_TYPE);
        let session = self.session(Served { live: live.clone() });
        let mut session = match session {
            Ok(session) => session,
            Err(error) => {
                listed.forget();
                // It was marked as in use.
                self.end(&live)?;
                return Err(error);
            }
        };
        listed.made();
        let Events { ready, stop, tell } = events;
        ready();
        let check = check(&live, self.name, tell);
        let mut since = 0;
        while !session.guard.is_finished() && !stop() {
            std::thread::sleep(TICK);
            since += 1;
            if since >= TICKS_BETWEEN {
                since = 0;
                if let Ok(mut live) = live.lock() {
                    live.tick();
                }
            }
        }
        if let Some(check) = check {
            check.end();
        }
        let unmounted = match has_ended(&mut session) {
            true => listed.unmount_dead(),
            false => listed.unmount(),
        };
        if let Err(error) = &unmounted {
            tell(&error.to_string());
        }
        // Whoever still has a file open there keeps the session going; what is written from now on could not be kept.
        let waited = Instant::now();
        while !session.guard.is_finished() && waited.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(TICK);
        }
        // Dropped, it would unmount once more, whatever is mounted there now: version 0.18 of the crate takes no note
        // of ours being gone.
        std::mem::forget(session);
        self.end(&live)
    }

    /// The last of it is written.
    fn end<V: Insertable>(&self, live: &Mutex<Live<V>>) -> Result<(), MountError> {
        let refused = |errno| MountError::Refused {
            source_name: self.name.to_owned(),
            doing: "write the last of it",
            errno,
            next: "repair it with `fsage fsck`",
        };
        let mut live = live.lock().map_err(|_| refused(posix::Errno::EIO))?;
        live.unmount().map_err(refused)?;
        match live.disagreement() {
            None => Ok(()),
            Some(problem) => Err(MountError::Disagrees { source_name: self.name.to_owned(), problem }),
        }
    }

    /// Mounts it and begins to answer. Root mounts by itself, with our own type, which tells our mounts from those of
    /// others; ordinary users have `fusermount3` do so.
    fn session<V: Insertable + Send + 'static>(&self, served: Served<V>) -> Result<BackgroundSession, MountError> {
        let cannot = |source| MountError::Io { path: self.on.to_owned(), doing: "mount on it", source };
        let session = if rustix::process::geteuid().is_root() {
            self.session_of_root(served, fuse_device()?)
        } else {
            Session::new(served, self.on, &self.config()).and_then(Session::spawn).map_err(by_fusermount)
        };
        session.map_err(cannot)
    }

    fn session_of_root<V: Insertable + Send + 'static>(
        &self,
        served: Served<V>,
        device: OwnedFd,
    ) -> io::Result<BackgroundSession> {
        let mut data = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        if self.options.access == Access::Everybody {
            data.push_str(",default_permissions,allow_other");
        }
        let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
        flags.set(MountFlags::RDONLY, self.options.read_only);
        rustix::mount::mount(self.name, self.on, FS_TYPE, flags, CString::new(data)?.as_c_str())?;
        let session = Session::from_fd(served, device, self.acl(), self.config()).and_then(Session::spawn);
        if session.is_err() {
            posix::cleanup::unmount_served(self.on, true)?;
        }
        session
    }

    fn acl(&self) -> SessionACL {
        match self.options.access {
            Access::Everybody => SessionACL::All,
            Access::Owner => SessionACL::Owner,
        }
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(self.name.to_owned()),
            MountOption::Subtype("fsage".to_owned()),
            MountOption::NoDev,
            MountOption::NoSuid,
            if self.options.read_only { MountOption::RO } else { MountOption::RW },
        ];
        match self.options.access {
            Access::Everybody => config.mount_options.push(MountOption::DefaultPermissions),
            Access::Owner => {}
        }
        config.acl = self.acl();
        config.n_threads = Some(self.options.threads.max(1));
        config.clone_fd = self.options.threads > 1;
        config
    }
}
