//! The laboratory: a file system in virtual time behind the hinge.

mod calls;
mod daemons;
mod data;
mod descriptors;
mod hinge;
mod names;
mod processes;
mod walk;

use crate::cache::Cache;
use crate::engine::{ActorId, Engine, Event};
use crate::machine::{Machine, Syncer};
use crate::names::Names;
use crate::nodes::Nodes;
use crate::payload::Image;
use crate::{Busy, CacheCounters, Cx, DeviceCounters, Ino, LogEntry, NameCounters, Volume};
use daemons::Daemons;
use descriptors::Descriptors;
use device::Device;
use posix::{Errno, FileKind};

/// A file system, the kernel around it, and the device below, in virtual time.
///
/// It implements [`posix::FileSystem`]: every driver runs on it as on a mounted directory. The same calls give the same
/// results and times, always.
pub struct Lab<V: Volume> {
    volume: V,
    cx: Cx,
    engine: Engine,
    names: Names,
    descriptors: Descriptors,
    daemons: Daemons,
    setup: Setup,
    /// The directory that paths without another start in.
    root: Ino,
    /// Whether walks stop at that directory.
    contained: bool,
}

/// What a laboratory is made of, apart from file system and device.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// The computer.
    pub machine: Machine,
    /// The target as the user wrote it, for the record.
    pub target: String,
    /// The drive's name, for the record.
    pub drive: String,
    /// The date at time 0, nanoseconds since 1970.
    pub epoch_ns: i64,
}

/// Why a laboratory cannot be set up.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum LabError {
    /// The file system does not fit.
    #[error(
        "the file system has {needed_bytes} bytes, the device {there_bytes}: take a larger drive or a smaller file \
         system"
    )]
    DeviceTooSmall { needed_bytes: u64, there_bytes: u64 },
    /// The file system cannot be mounted.
    #[error("mounting the {type_name} file system: {errno}")]
    Mount { type_name: String, errno: Errno },
}

/// What went on below the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counters {
    pub cache: CacheCounters,
    pub names: NameCounters,
    pub device: DeviceCounters,
    /// What the device's flash has been made to do; `None` if it has none.
    pub flash: Option<device::FlashCounts>,
    pub busy: Busy,
}

impl<V: Volume> Lab<V> {
    /// Mounts a file system on a device. Bytes are kept only where processes give them explicitly.
    pub fn new(volume: V, device: Box<dyn Device>, setup: Setup) -> Result<Lab<V>, LabError> {
        Lab::with_image(volume, device, setup, Image::of_given())
    }

    /// The same with a place for the bytes of blocks.
    pub fn with_image(volume: V, device: Box<dyn Device>, setup: Setup, image: Image) -> Result<Lab<V>, LabError> {
        Lab::mount(volume, device, setup, image, false)
    }

    /// The same with a [log](Lab::record_writes) of completed writes and their bytes, those of mounting among them.
    pub fn recorded(volume: V, device: Box<dyn Device>, setup: Setup, image: Image) -> Result<Lab<V>, LabError> {
        Lab::mount(volume, device, setup, image, true)
    }

    fn mount(volume: V, device: Box<dyn Device>, setup: Setup, image: Image, record: bool) -> Result<Lab<V>, LabError> {
        let needed_bytes = volume.usage().total_bytes;
        let there_bytes = device.capacity_sectors().saturating_mul(u64::from(device.sector_bytes()));
        if needed_bytes > there_bytes {
            return Err(LabError::DeviceTooSmall { needed_bytes, there_bytes });
        }
        let machine = &setup.machine;
        let entries = |figure: u64| usize::try_from(figure).unwrap_or(usize::MAX);
        let cache = Cache::new(machine.memory.buffer_cache_bytes.value, machine.memory.replacement);
        let nodes = Nodes::new(entries(machine.memory.attribute_cache_inodes.value));
        let mut cx = Cx::new(cache, nodes, machine.costs(), machine.transfers(), image, setup.epoch_ns);
        cx.discards.supported = device.supports_trim();
        let mut lab = Lab {
            root: volume.root(),
            contained: false,
            volume,
            cx,
            engine: Engine::new(device, machine.cpu.count),
            names: Names::new(entries(machine.memory.name_cache_entries.value)),
            descriptors: Descriptors::default(),
            daemons: Daemons::new(machine),
            setup,
        };
        if record {
            lab.record_writes(true);
        }
        let mounted = lab.volume.mount(&mut lab.cx);
        lab.run_program(ActorId(0));
        match mounted {
            Ok(()) => Ok(lab),
            Err(errno) => Err(LabError::Mount { type_name: lab.volume.type_name().into(), errno }),
        }
    }

    /// Another laboratory in just this state, its clock, caches and device among it: the same calls take the same time
    /// on either. `None` while somebody has its writes logged, who would not see those of the other; and where the
    /// bytes lie in a file that is written.
    pub fn duplicate(&self) -> Option<Lab<V>> {
        if self.engine.log.is_some() {
            return None;
        }
        Some(Lab {
            volume: self.volume.clone(),
            cx: self.cx.duplicate()?,
            engine: self.engine.clone(),
            names: self.names.clone(),
            descriptors: self.descriptors.clone(),
            daemons: self.daemons.clone(),
            setup: self.setup.clone(),
            root: self.root,
            contained: self.contained,
        })
    }

    /// Writes everything back and gives the file system back.
    pub fn unmount(self) -> Result<V, Errno> {
        self.unmount_with_image().map(|(volume, _)| volume)
    }

    /// The same, with the bytes of its blocks.
    pub fn unmount_with_image(mut self) -> Result<(V, Image), Errno> {
        self.begin();
        let done = self.volume.unmount(&mut self.cx);
        self.run_program(ActorId(0));
        self.engine.settle(&mut self.cx);
        done.and_then(|()| self.trouble()).map(|()| (self.volume, self.cx.image))
    }

    /// Has paths start in this directory from now on, as the calls of a handle rooted in it do; absolute symbolic links
    /// still lead to the root of the file system, but for [contained](posix::FileSystem::contained) calls.
    pub fn set_root(&mut self, root: Ino) {
        self.root = root;
    }

    /// Has calls be made from now on that cannot leave the directory that paths start in, or has no longer.
    pub fn set_contained(&mut self, contained: bool) {
        self.contained = contained;
    }

    /// The directory that paths start in.
    pub fn root(&self) -> Ino {
        self.root
    }

    /// What it is made of.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The file system, to look at.
    pub fn volume(&self) -> &V {
        &self.volume
    }

    /// The kernel's state, to look at.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        self.engine.device()
    }

    /// What went on below the calls.
    pub fn counters(&self) -> Counters {
        Counters {
            cache: self.cx.cache.counters,
            names: self.names.counters,
            device: self.engine.counters,
            flash: self.engine.device().flash_counts(),
            busy: self.engine.busy(),
        }
    }

    /// Keeps a log of completed writes from now on, with their bytes (zeros where there are none) or without.
    pub fn record_writes(&mut self, with_bytes: bool) {
        self.cx.record_bytes = with_bytes;
        self.engine.log = Some(Vec::new());
    }

    /// Takes the log so far, in order of completion.
    pub fn take_log(&mut self) -> Vec<LogEntry> {
        self.engine.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sends every step through the queue of events, without the short cut for one process on an idle disk: slower, and
    /// the same to the nanosecond.
    pub fn always_queue(&mut self) {
        self.engine.always_queue = true;
    }

    /// An operation takes effect now.
    fn begin(&mut self) {
        self.cx.now_ns = self.engine.now_ns();
        self.cx.begun += 1;
        if !self.cx.arrived.is_empty() {
            self.tell_arrived();
        }
    }

    /// Tells the file system of the writes that are complete.
    fn tell_arrived(&mut self) {
        let mut arrived = std::mem::take(&mut self.cx.arrived);
        for io in arrived.drain(..) {
            self.volume.arrived(&mut self.cx, io);
        }
        self.cx.arrived = arrived;
        debug_assert!(self.cx.program.is_empty(), "there is nobody to execute it");
    }

    /// Writes are complete while nobody begins anything: what follows from them is left to the daemons.
    fn writes_arrived(&mut self) {
        self.begin();
        self.wake_daemons();
    }

    /// Executes the program that an operation has left, and everything else that happens until it is done; returns when
    /// that is.
    fn run_program(&mut self, actor: ActorId) -> u64 {
        if let Some(at_ns) = self.engine.start(&mut self.cx, actor) {
            return at_ns;
        }
        self.run_until(actor)
    }

    fn run_until(&mut self, actor: ActorId) -> u64 {
        loop {
            match self.engine.next(&mut self.cx) {
                Event::Ready { actor: ready, at_ns } if ready == actor => return at_ns,
                Event::Ready { actor: ready, .. } => self.daemon_ready(ready),
                Event::Arrived => self.writes_arrived(),
                Event::Nothing => return self.engine.now_ns(),
            }
        }
    }

    /// The device's or the image's refusal, as a call's error; told once.
    fn trouble(&mut self) -> Result<(), Errno> {
        if self.engine.refused.take().is_some() || self.cx.image_error.take().is_some() {
            return Err(Errno::EIO);
        }
        Ok(())
    }

    /// Has an inode in memory, reading it if it is not.
    #[inline]
    fn node(&mut self, ino: Ino) -> Result<(), Errno> {
        if self.cx.nodes.touch(ino) {
            return Ok(());
        }
        self.volume.load(&mut self.cx, ino)?;
        self.new_node(ino);
        Ok(())
    }

    /// An inode is in memory from now on.
    fn new_node(&mut self, ino: Ino) {
        self.cx.nodes.insert(ino);
        while let Some(evicted) = self.cx.nodes.evict() {
            self.volume.unload(&mut self.cx, evicted);
        }
    }

    fn kind(&self, ino: Ino) -> Result<FileKind, Errno> {
        self.volume.attributes(ino).map(|attributes| attributes.kind)
    }

    /// A name of an inode has gone: without links and openings, it goes too.
    fn release_if_unused(&mut self, ino: Ino) {
        let unused = self.volume.attributes(ino).is_ok_and(|attributes| attributes.nlink == 0);
        let open = self.cx.nodes.get(ino).is_some_and(|node| node.opens > 0);
        if unused && !open {
            if self.kind(ino) == Ok(FileKind::Directory) {
                self.names.directory_removed(ino);
            }
            self.volume.release(&mut self.cx, ino);
            self.cx.nodes.remove(ino);
        }
    }
}

impl<V: Volume> std::fmt::Debug for Lab<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lab").field("setup", &self.setup).field("cx", &self.cx).finish_non_exhaustive()
    }
}

/// How the daemons' rules read from a machine.
fn percent_of(bytes: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(bytes) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// A tick of the syncer.
const SECOND_NS: u64 = 1_000_000_000;

/// How long data may be dirty.
const EXPIRE_NS: u64 = 30 * SECOND_NS;

/// How long a class of files may be dirty.
fn delay_ns(syncer: Syncer, class: crate::cache::Class) -> u64 {
    use crate::cache::Class;
    match (syncer, class) {
        (Syncer::Wheel, Class::Directory) => 29 * SECOND_NS,
        (Syncer::Wheel, Class::Device) => 28 * SECOND_NS,
        (Syncer::Wheel | Syncer::Update | Syncer::None, _) => EXPIRE_NS,
    }
}
