//! A laboratory target made ready for a run: handles that share one laboratory.

use crate::data::Data;
use crate::spec::System;
use crate::{Laboratory, OpenError, Spec};
use fault::Fault as _;
use kernel::Ino;
use posix::{
    At, CacheDrop, CacheState, Call, Contained, Environment, Errno, Extent, Fd, FileKind, FileSystem, FreeExtent,
    FsUsage, MemoryLimits, Mode, Outcome, Process, SetupError, Shape, Site, Target, Unavailable,
};
use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The run's own directory in an image that it begins with. A new file system is the run's as a whole.
const OWN_DIRECTORY: &str = "fsage-run";

/// How a laboratory target is opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteOptions {
    /// Where an image is written at the end: a new file.
    pub keep: Option<PathBuf>,
    /// Whether the run looks at what an image holds, instead of working in a directory of its own.
    pub whole: bool,
    /// Space the run will use; opening fails if there is less, with a margin of a sixteenth.
    pub need_bytes: u64,
    /// Files and directories the run will make at the same time.
    pub need_inodes: u64,
}

type Shared = Rc<RefCell<Box<dyn Laboratory>>>;

/// A laboratory target made ready for a run.
pub struct LabSite {
    target: Target,
    lab: Shared,
    root: Ino,
    path: PathBuf,
    /// Shown with the environment.
    machine: String,
    keep: Option<PathBuf>,
    /// Whether the policies are those that its blocks were placed by: an image does not say by which.
    knows_policies: bool,
}

impl LabSite {
    /// Makes the target ready: file system, machine and drive, and a directory of the run's own. Where a log is to be
    /// kept, every byte is: its checksums cover data too.
    ///
    /// # Errors
    /// It cannot be set up, or has less room than the run needs.
    pub fn open(spec: &Spec, options: &SiteOptions) -> Result<LabSite, SetupError> {
        let mut spec = spec.clone();
        if options.keep.is_some() && matches!(spec.system, System::Lfs(_)) {
            spec.data = Data::Full;
        }
        LabSite::with(spec.open()?, spec.text.clone(), spec.machine.clone(), options)
    }

    /// A clean file system in an image, to be looked at: no drive is too small for it.
    ///
    /// # Errors
    /// The image cannot be read, or has no file system that can be mounted.
    pub fn look_at(image: &Path) -> Result<LabSite, SetupError> {
        let options = SiteOptions { whole: true, ..SiteOptions::default() };
        let site = LabSite::with(Spec::look_at(image)?, image.display().to_string(), String::new(), &options)?;
        Ok(LabSite { knows_policies: false, ..site })
    }

    fn with(
        mut lab: Box<dyn Laboratory>,
        target: String,
        machine: String,
        options: &SiteOptions,
    ) -> Result<LabSite, SetupError> {
        check_room(&mut *lab, &target, options)?;
        let root = lab.root();
        let begun = lab.usage().map(|usage| usage.total_inodes - usage.free_inodes > NEW_INODES).unwrap_or(false);
        let mut site = LabSite {
            target: Target::Lab(target.clone()),
            lab: Rc::new(RefCell::new(lab)),
            root,
            path: PathBuf::from("/"),
            machine,
            keep: options.keep.clone(),
            knows_policies: true,
        };
        if begun && !options.whole {
            let made = site.own_directory();
            let (root, name) = made.map_err(|source| SetupError::Io {
                path: target.into(),
                doing: "make the run's own directory",
                source,
            })?;
            (site.root, site.path) = (root, Path::new("/").join(name));
        }
        Ok(site)
    }

    /// A directory with a name that the image does not have yet.
    fn own_directory(&self) -> io::Result<(Ino, String)> {
        let mut top = self.rooted(self.root);
        for number in 1..=MOST_OWN {
            let name = if number == 1 { OWN_DIRECTORY.to_owned() } else { format!("{OWN_DIRECTORY}-{number}") };
            match top.call(&Call::Mkdir { at: name.as_str().into(), mode: Mode(0o755) }).result {
                Ok(_) => return Ok((top.directory(Path::new(&name))?, name)),
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(Errno::EEXIST.into())
    }

    fn rooted(&self, root: Ino) -> Handle {
        let (lab, machine, knows_policies) = (Rc::clone(&self.lab), self.machine.clone(), self.knows_policies);
        Handle { lab, root, machine, knows_policies }
    }
}

/// What is said of policies where an image is looked at.
const NOT_IN_IMAGE: &str = "not known: an image does not say by which policies its files were placed";
/// Inodes in use in a file system that nobody has used: 0 and 1 are kept, 2 is the root, 3 may be `lost+found`.
const NEW_INODES: u64 = 4;
/// Directories of runs that an image may hold.
const MOST_OWN: u32 = 10_000;

impl Site for LabSite {
    fn target(&self) -> &Target {
        &self.target
    }

    fn handle(&self) -> Box<dyn FileSystem> {
        Box::new(self.rooted(self.root))
    }

    fn handle_below(&self, path: &Path) -> io::Result<Box<dyn FileSystem>> {
        let mut top = self.rooted(self.root);
        let way = posix::way_below(path)?;
        for directory in &way {
            match top.call(&Call::Mkdir { at: directory.as_path().into(), mode: Mode(0o755) }).result {
                Ok(_) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        let root = way.last().map_or(Ok(self.root), |directory| top.directory(directory))?;
        Ok(Box::new(self.rooted(root)))
    }

    fn root_path(&self) -> &Path {
        &self.path
    }

    fn kept(&self) -> Option<&Path> {
        self.keep.as_deref()
    }

    fn close(self: Box<Self>) -> io::Result<()> {
        let lab =
            Rc::try_unwrap(self.lab).map_err(|_| io::Error::other("a handle on the laboratory is still there"))?;
        lab.into_inner().unmount(self.keep.as_deref()).map_err(io::Error::other)
    }
}

/// A handle on a directory of a laboratory.
struct Handle {
    lab: Shared,
    root: Ino,
    machine: String,
    knows_policies: bool,
}

impl Handle {
    /// Lets something happen with paths starting in this handle's directory.
    fn with<T>(&self, act: impl FnOnce(&mut dyn Laboratory) -> T) -> T {
        // The processes of a run have no handles, so nobody is inside.
        let mut lab = self.lab.borrow_mut();
        lab.set_root(self.root);
        act(&mut **lab)
    }

    /// The inode of a directory below.
    fn directory(&mut self, path: &Path) -> io::Result<Ino> {
        let stat = self.call(&Call::Stat { at: At::from(path), follow: false }).stat()?;
        let ino = u32::try_from(stat.ino).map_err(|_| io::Error::from(Errno::EINVAL))?;
        if stat.kind == FileKind::Directory { Ok(Ino(ino)) } else { Err(Errno::ENOTDIR.into()) }
    }
}

impl FileSystem for Handle {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        self.with(|lab| lab.call(call))
    }
    fn now_ns(&self) -> u64 {
        self.lab.borrow().now_ns()
    }
    fn date_ns(&self) -> i64 {
        self.lab.borrow().date_ns()
    }
    fn advance_date(&mut self, to_ns: i64) {
        self.with(|lab| lab.advance_date(to_ns));
    }
    fn pause_ns(&mut self, ns: u64) {
        self.with(|lab| lab.pause_ns(ns));
    }
    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        self.with(|lab| lab.run(processes))
    }
    fn contained(&mut self, work: &mut Contained<'_>) -> io::Result<()> {
        self.with(|lab| lab.set_contained(true));
        work(self);
        self.with(|lab| lab.set_contained(false));
        Ok(())
    }
    fn read_into(&mut self, fd: Fd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.with(|lab| lab.read_into(fd, offset, buffer))
    }
    fn entries(&mut self, fd: Fd) -> Result<Vec<(OsString, FileKind)>, Errno> {
        self.with(|lab| lab.entries(fd))
    }
    fn drop_caches(&mut self) -> io::Result<CacheState> {
        self.with(|lab| lab.drop_caches())
    }
    fn drop_caches_explained(&mut self) -> io::Result<CacheDrop> {
        self.with(|lab| lab.drop_caches_explained())
    }
    fn evict(&mut self, fd: Fd) -> io::Result<CacheState> {
        self.with(|lab| lab.evict(fd))
    }
    fn generation(&mut self, fd: Fd) -> Result<u32, Unavailable> {
        self.with(|lab| lab.generation(fd))
    }
    fn usage(&mut self) -> io::Result<FsUsage> {
        self.with(|lab| lab.usage())
    }
    fn extents(&mut self, fd: Fd) -> Result<Vec<Extent>, Unavailable> {
        self.with(|lab| lab.extents(fd))
    }
    fn free_extents(&mut self) -> Result<Vec<FreeExtent>, Unavailable> {
        self.with(|lab| lab.free_extents())
    }
    fn environment(&self) -> Environment {
        let lab = self.lab.borrow();
        let environment = lab.environment();
        let kernel = posix::Kernel::laboratory(env!("CARGO_PKG_VERSION"), &self.machine);
        let mount_options = if self.knows_policies { environment.mount_options } else { NOT_IN_IMAGE.to_owned() };
        Environment { kernel, mount_options, mkfs: lab.made(), ..environment }
    }
    fn is_deterministic(&self) -> bool {
        self.lab.borrow().is_deterministic()
    }
    fn duplicate(&self) -> Option<Box<dyn FileSystem>> {
        let lab = Rc::new(RefCell::new(self.lab.borrow().another()?));
        Some(Box::new(Handle { lab, machine: self.machine.clone(), ..*self }))
    }
    fn shape(&self) -> Option<Shape> {
        self.lab.borrow().shape()
    }
    fn memory(&self) -> Option<MemoryLimits> {
        self.lab.borrow().memory()
    }
}

/// Whether a laboratory has the room that a run needs, and a margin for its metadata.
fn check_room(lab: &mut dyn Laboratory, target: &str, options: &SiteOptions) -> Result<(), SetupError> {
    let path = || PathBuf::from(target);
    let room =
        lab.usage().map_err(|source| SetupError::Io { path: path(), doing: "look at the free space", source })?;
    let margin = |need: u64| need.saturating_add(need / 16);
    if margin(options.need_bytes) > room.available_bytes {
        let (need_bytes, free_bytes) = (margin(options.need_bytes), room.available_bytes);
        return Err(SetupError::NoSpace { path: path(), need_bytes, free_bytes });
    }
    if margin(options.need_inodes) > room.free_inodes {
        let (need, free) = (margin(options.need_inodes), room.free_inodes);
        return Err(SetupError::NoInodes { path: path(), need, free });
    }
    Ok(())
}

impl From<OpenError> for SetupError {
    fn from(error: OpenError) -> SetupError {
        let kind = error.kind();
        SetupError::Other { source: Box::new(error), kind }
    }
}
