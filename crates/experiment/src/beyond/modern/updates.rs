//! Random updates of small parts of files on a flash drive that has been full, in steady state: what the application,
//! the file system and the drive write.

use crate::ExperimentError;
use device::ssd::{Ssd, SsdSpec};
use device::{Device, Drive, DriveError, FlashCounts, Model};
use ffs::Ffs;
use kernel::{Lab, Setup};
use lab::{Laboratory, OpenError, Spec, System};
use lfs::Lfs;
use posix::{Call, Fd, Mode, OpenFlags};
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use workload::hotcold::Skew;

/// The drive: an NVMe drive scaled down so that it is written full many times.
pub(super) const DRIVE: &str = "ssd-nvme-512m";
/// The computer.
pub(super) const MACHINE: &str = "today";
/// Memory for the buffer cache, as a share of the drive: the data do not fit.
const CACHE: u64 = 16;
/// The cleaner starts below so many percent of clean segments, and stops at so many.
const LOW: u32 = 8;
const HIGH: u32 = 12;
/// Blocks of a file: as many as have their pointers in the inode, so that the log has no indirect blocks to write.
pub(super) const FILE_BLOCKS: u64 = 12;
/// Files in a directory.
const FILES_PER_DIRECTORY: u64 = 100;
/// What is written at a time, and the block of both file systems.
const WRITE_BYTES: u64 = 4 << 10;
/// The largest single write while files are made.
const PIECE_BYTES: u64 = 1 << 20;
/// The date at time 0: 1 January 1996, as for laboratory targets.
const EPOCH_S: i64 = 820_454_400;

/// Which file system, as far as the cases differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Updates in place.
    Ffs,
    /// A log with a cleaner.
    Lfs {
        /// What its cleaner goes by.
        policy: &'static str,
        /// Its segments, as so many eighths of the blocks that the drive erases together (one of each die).
        segment_eighths: u64,
        /// Bytes of a fragment, the unit in which the log advances.
        fragment_bytes: u64,
    },
}

/// A point of the experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Case {
    pub(super) kind: Kind,
    pub(super) discard: bool,
    pub(super) skew: Skew,
    /// Data as a share of the drive's capacity.
    pub(super) utilisation: f64,
    /// The drive's flash beyond its capacity.
    pub(super) over_provisioning: f64,
}

/// How much is run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// How much smaller the drive is, and how much smaller its blocks are.
    pub(super) smaller: u32,
    /// Updates before and while measuring, as multiples of the drive's capacity.
    pub(super) warm_up: f64,
    pub(super) measured: f64,
}

/// What was written in steady state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) case: Case,
    /// By the application.
    pub(super) application_bytes: u64,
    /// By the file system.
    pub(super) device_bytes: u64,
    pub(super) flash: FlashCounts,
    /// How long it took.
    pub(super) elapsed_ns: u64,
}

impl Found {
    /// Bytes to the device for each byte of the application.
    pub(super) fn file_system(&self) -> f64 {
        self.device_bytes as f64 / self.application_bytes.max(1) as f64
    }

    /// Bytes programmed for each byte to the device.
    pub(super) fn drive(&self) -> f64 {
        self.flash.programmed_bytes() as f64 / self.device_bytes.max(1) as f64
    }

    /// Bytes programmed for each byte of the application.
    pub(super) fn both(&self) -> f64 {
        self.flash.programmed_bytes() as f64 / self.application_bytes.max(1) as f64
    }

    /// The application's bytes a second.
    pub(super) fn rate(&self) -> f64 {
        self.application_bytes as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// The drive's figures at a size.
pub(super) fn drive(size: Size, over_provisioning: f64) -> Result<SsdSpec, ExperimentError> {
    match Drive::find(DRIVE)?.model {
        Model::Ssd(spec) => Ok(SsdSpec {
            capacity_sectors: spec.capacity_sectors / u64::from(size.smaller),
            pages_per_block: spec.pages_per_block / size.smaller,
            over_provisioning,
            ..*spec
        }),
        Model::Disk(_) => Err(DriveError::Unknown { name: DRIVE.to_owned(), known: "flash drives".to_owned() }.into()),
    }
}

/// Bytes of a block of every die: what a drive that is written in order erases together.
pub(super) fn stripe_bytes(spec: &SsdSpec) -> u64 {
    let block = u64::from(spec.page_bytes) * u64::from(spec.planes_per_die) * u64::from(spec.pages_per_block);
    block * u64::from(spec.channels) * u64::from(spec.dies_per_channel)
}

/// The target of a case, for the record and to make it from.
pub(super) fn target(case: &Case, size: Size) -> Result<String, ExperimentError> {
    let spec = drive(size, case.over_provisioning)?;
    let capacity_bytes = spec.capacity_sectors * u64::from(spec.sector_bytes);
    let cache_kb = (capacity_bytes / CACHE) >> 10;
    Ok(match case.kind {
        Kind::Ffs => {
            let discard = if case.discard { "discard" } else { "nodiscard" };
            format!("ffs:bsize=4K,fsize=4K,minfree=0,noorder,{discard},density=32K,cache={cache_kb}K@{DRIVE}")
        }
        Kind::Lfs { policy, segment_eighths, fragment_bytes } => {
            let segment_bytes = stripe_bytes(&spec) * segment_eighths / 8;
            let segments = capacity_bytes / segment_bytes.max(1);
            // Enough for the cleaner, as a share of the drive the same for all sizes of segment.
            let kept = (segments / 38).max(6);
            let (segment_kb, resvseg) = (segment_bytes >> 10, kept * 2 / 5);
            let discard = if case.discard { "on" } else { "off" };
            let memory_kb = (capacity_bytes / 32) >> 10;
            format!(
                "lfs:cleaner={policy},bsize=4K,fsize={fragment_bytes},segment={segment_kb}K,low={LOW},high={HIGH},\
                 idle=0,minfree=1,minfreeseg={kept},resvseg={resvseg},\
                 memory={memory_kb}K,discard={discard},cache={cache_kb}K@{DRIVE}"
            )
        }
    })
}

/// The laboratory of a case, mounted.
fn open(case: &Case, size: Size) -> Result<Box<dyn Laboratory>, ExperimentError> {
    let text = target(case, size)?;
    let spec = Spec { machine: MACHINE.to_owned(), ..Spec::parse(&text)? };
    let ssd = Ssd::new(drive(size, case.over_provisioning)?);
    let bytes = ssd.capacity_sectors() * u64::from(ssd.sector_bytes());
    let setup = Setup {
        machine: spec.load_machine()?,
        target: text.clone(),
        drive: DRIVE.to_owned(),
        epoch_ns: EPOCH_S * 1_000_000_000,
    };
    match &spec.system {
        System::Ffs(own) => {
            let volume = Ffs::format(&own.mkfs(bytes, EPOCH_S), own.policy)?;
            Ok(Box::new(Lab::new(volume, Box::new(ssd), setup)?))
        }
        System::Lfs(own) => {
            let volume = Lfs::format(&own.mkfs(bytes, EPOCH_S), own.policy);
            let volume = volume.map_err(|source| OpenError::Lfs { target: text, source })?;
            Ok(Box::new(Lab::new(volume, Box::new(ssd), setup)?))
        }
    }
}

/// An open laboratory with the files that are updated.
struct Run {
    lab: Box<dyn Laboratory>,
    files: Vec<Fd>,
    random: Xoshiro256PlusPlus,
    skew: Skew,
}

impl Run {
    fn call(&mut self, doing: &str, call: &Call<'_>) -> Result<posix::Reply, ExperimentError> {
        self.lab.call(call).result.map_err(|errno| ExperimentError::Call { doing: doing.to_owned(), errno })
    }

    fn create(&mut self, path: &str, len_bytes: u64) -> Result<Fd, ExperimentError> {
        let doing = format!("making {path}");
        let open = Call::Open { at: path.into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
        let fd = self.lab.call(&open).fd().map_err(|errno| ExperimentError::Call { doing: doing.clone(), errno })?;
        let mut at = 0;
        while at < len_bytes {
            let piece = PIECE_BYTES.min(len_bytes - at);
            self.call(&doing, &Call::Write { fd, offset: Some(at), len_bytes: piece, data: None })?;
            at += piece;
        }
        Ok(fd)
    }

    fn sync(&mut self) -> Result<(), ExperimentError> {
        self.call("writing back", &Call::SyncFs).map(drop)
    }

    /// The file system, and with it the drive, has been full once: a file takes all that is free, and goes.
    fn fill_once(&mut self) -> Result<(), ExperimentError> {
        self.sync()?;
        let usage = self.lab.usage().map_err(|error| ExperimentError::Io { doing: "free space".to_owned(), error })?;
        let fd = self.create("once", 0)?;
        // Whatever the reserves are: until there is no more.
        for at in 0..usage.total_bytes / PIECE_BYTES {
            let write = Call::Write { fd, offset: Some(at * PIECE_BYTES), len_bytes: PIECE_BYTES, data: None };
            match self.lab.call(&write).result {
                Ok(_) => {}
                Err(posix::Errno::ENOSPC) => break,
                Err(errno) => return Err(ExperimentError::Call { doing: "filling it".to_owned(), errno }),
            }
        }
        self.call("closing", &Call::Close { fd })?;
        self.sync()?;
        self.call("removing what filled it", &Call::Unlink { at: "once".into() })?;
        self.sync()
    }

    fn below(&mut self, n: u64) -> u64 {
        stats::random::below(&mut self.random, n)
    }

    /// A file, by the skew: the first ones are hot.
    fn pick(&mut self) -> u64 {
        let files = self.files.len() as u64;
        match self.skew {
            Skew::Uniform => self.below(files),
            Skew::HotCold { hot_files, hot_writes } => {
                let hot = ((files as f64 * hot_files).round() as u64).clamp(1, files.saturating_sub(1).max(1));
                let unit = stats::random::unit(&mut self.random);
                if unit < hot_writes { self.below(hot) } else { hot + self.below(files.saturating_sub(hot)) }
            }
        }
    }

    /// So many updates.
    fn update(&mut self, writes: u64) -> Result<(), ExperimentError> {
        for _ in 0..writes {
            let file = self.pick();
            let offset = Some(self.below(FILE_BLOCKS) * WRITE_BYTES);
            let Some(&fd) = self.files.get(usize::try_from(file).unwrap_or(usize::MAX)) else { continue };
            self.call("updating", &Call::Write { fd, offset, len_bytes: WRITE_BYTES, data: None })?;
        }
        self.sync()
    }
}

/// Runs a case.
pub(super) fn measure(case: &Case, size: Size, seed: u64) -> Result<Found, ExperimentError> {
    let spec = drive(size, case.over_provisioning)?;
    let capacity_bytes = spec.capacity_sectors * u64::from(spec.sector_bytes);
    let blocks = (capacity_bytes as f64 * case.utilisation) as u64 / WRITE_BYTES;
    let mut run = Run {
        lab: open(case, size)?,
        files: Vec::new(),
        random: Xoshiro256PlusPlus::seed_from_u64(seed),
        skew: case.skew,
    };
    for number in 0..blocks / FILE_BLOCKS {
        if number.is_multiple_of(FILES_PER_DIRECTORY) {
            let path = format!("d{}", number / FILES_PER_DIRECTORY);
            run.call("making a directory", &Call::Mkdir { at: path.as_str().into(), mode: Mode(0o755) })?;
        }
        let path = format!("d{}/f{number}", number / FILES_PER_DIRECTORY);
        let fd = run.create(&path, FILE_BLOCKS * WRITE_BYTES)?;
        run.files.push(fd);
    }
    run.fill_once()?;
    let updates = |capacities: f64| (capacity_bytes as f64 * capacities) as u64 / WRITE_BYTES;
    run.update(updates(size.warm_up))?;
    let (before, start_ns) = (run.lab.counters(), run.lab.now_ns());
    run.update(updates(size.measured))?;
    let after = run.lab.counters();
    let flash = after.flash.unwrap_or_default();
    Ok(Found {
        case: *case,
        application_bytes: updates(size.measured) * WRITE_BYTES,
        device_bytes: after.device.write_bytes - before.device.write_bytes,
        flash: flash - before.flash.unwrap_or_default(),
        elapsed_ns: run.lab.now_ns() - start_ns,
    })
}
