//! `lfs92/two-files`: what reaches the disk when a file is made in each of two directories, and where.
//!
//! Everything here is from the device's own record of completed writes and from the bytes that they have left, read as
//! any image is read. Neither file system is asked what it has done.

use super::{DRIVE, MACHINE};
use crate::testbed::call;
use crate::{Axis, Bench, Claim, Experiment, ExperimentError, Explain, Figure, Outcome, Published, Row, Series, Unit};
use device::store::{Frozen, Overlay, Store as _};
use kernel::{Lab, LogEntry, Volume, WriteRecord, payload};
use lab::{Spec, System};
use lfs::format::{IFILE_INO, Piece};
use lfs::recover::partial_at;
use posix::{At, Call, FileSystem as _, Mode, OpenFlags};
use ufs::image::{Readable, data, resolve};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lfs92/two-files",
    title: "Two small files made in two directories: what is written, and where",
    source: "Rosenblum and Ousterhout, The Design and Implementation of a Log-Structured File System, TOCS 10(1), \
             1992, section 3.1, figure 1",
    runs: "dir1/file1 and dir2/file2, of 1 KB, are made by FFS and by LFS, and nobody calls until everything is on the \
           disk; every write that the device has completed is shown with its place and with what the image holds there",
    run,
};

/// An image in memory has no more bytes.
const IMAGE_BYTES_MAX: u64 = 1 << 30;
const FILE_BYTES: u64 = 1 << 10;
/// A directory, its file, and the byte that the file is full of.
const FILES: [(&str, &str, u8); 2] = [("dir1", "dir1/file1", b'1'), ("dir2", "dir2/file2", b'2')];
/// Nobody calls for so long: the daemons write what is late, twice over.
const PAUSE_NS: u64 = 120_000_000_000;
const MIB: f64 = (1 << 20) as f64;

/// The file systems of the micro-benchmarks.
fn systems(size: &str) -> [(&'static str, String); 2] {
    let ffs = "ffs:original,bsize=8K,fsize=1K,minfree=10,maxcontig=1,rotdelay=4,heads=19,sectors=72,rpm=4002";
    let log = "lfs:bsize=4K,fsize=1K,segment=1M";
    [("FFS", format!("{ffs},size={size}@{DRIVE}")), ("LFS", format!("{log},size={size}@{DRIVE}"))]
}

/// What there is at a place of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Superblock,
    FreeMap,
    Summary,
    Inodes,
    Directory,
    Data,
    InodeMap,
    /// Nothing that the two files or their directories need.
    Other,
}

impl Kind {
    const ALL: [Kind; 8] = [
        Kind::Inodes,
        Kind::Directory,
        Kind::Data,
        Kind::FreeMap,
        Kind::Summary,
        Kind::InodeMap,
        Kind::Superblock,
        Kind::Other,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Superblock => "superblock",
            Kind::FreeMap => "free maps",
            Kind::Summary => "summary of a segment",
            Kind::Inodes => "inodes",
            Kind::Directory => "directory",
            Kind::Data => "data of a file",
            Kind::InodeMap => "inode map and segment usage",
            Kind::Other => "something else",
        }
    }
}

/// A stretch of the disk, in bytes.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from: u64,
    to: u64,
    kind: Kind,
}

impl Stretch {
    fn new(from: u64, bytes: u64, kind: Kind) -> Stretch {
        Stretch { from, to: from + bytes, kind }
    }
}

/// A write that the device has completed.
#[derive(Clone, Debug)]
struct Write {
    at_byte: u64,
    bytes: u64,
    /// Whether it was complete before the calls had returned: all that a process waited for is.
    waited: bool,
    /// What it holds, in order of place, each kind once.
    kinds: Vec<Kind>,
}

/// What one file system has done.
struct Found {
    name: &'static str,
    target: String,
    size_bytes: u64,
    writes: Vec<Write>,
    /// How long the device had something to do.
    device_ns: u64,
    /// How long the calls took.
    calls_ns: u64,
    /// Whether both files can be read from the disk, with every byte.
    readable: bool,
}

/// The device's record of what followed the calls.
struct Recorded {
    log: Vec<WriteRecord>,
    /// When the last call returned.
    returned_ns: u64,
    device_ns: u64,
    calls_ns: u64,
}

/// How what is late comes to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// By the daemons, while nobody calls.
    Daemons,
    /// The last call is an fsync of the second file.
    Fsync,
}

fn run(bench: &mut Bench<'_>) -> Result<Outcome, ExperimentError> {
    let size = bench.pick("64M", "300M");
    let (mut found, mut synced) = (Vec::new(), Vec::new());
    for (name, target) in systems(size) {
        synced.push(measure(name, target.clone(), Ends::Fsync)?);
        found.push(measure(name, target, Ends::Daemons)?);
    }
    Ok(outcome(&found, &synced))
}

fn measure(name: &'static str, target: String, ends: Ends) -> Result<Found, ExperimentError> {
    let spec = Spec { machine: MACHINE.to_owned(), ..Spec::parse(&target)? };
    let base = Frozen(spec.image_in_memory(0, IMAGE_BYTES_MAX)?.0.into());
    let size_bytes = base.len_bytes();
    let (recorded, stretches, readable) = match &spec.system {
        System::Ffs(own) => {
            let (volume, image) = ffs::log::load(Overlay::new(base.clone()), own.policy, None)?;
            let setup = spec.setup(spec.load_machine()?, image.superblock().time());
            let bytes = payload::Image::full(image.into_store());
            let (recorded, disk) = record(Lab::recorded(volume, spec.device(None)?, setup, bytes)?, base, ends)?;
            let image = ffs::Image::open(disk, ffs::Search::Standard)?;
            (recorded, of_ffs(&image)?, has_both(&image)?)
        }
        System::Lfs(own) => {
            let mut store = Overlay::new(base.clone());
            let volume = lfs::Lfs::load(&mut store, own.policy)?;
            let setup = spec.setup(spec.load_machine()?, i64::try_from(volume.superblock().tstamp).unwrap_or(0));
            let lab = Lab::recorded(volume, spec.device(None)?, setup, payload::Image::full(store))?;
            let (recorded, disk) = record(lab, base, ends)?;
            let mut image = lfs::Image::open(disk, lfs::Checkpoint::Newer)?;
            image.roll_forward()?;
            let stretches = of_lfs(&image, &recorded.log)?;
            (recorded, stretches, has_both(&image)?)
        }
    };
    let writes = recorded.log.iter().map(|write| described(write, &stretches, recorded.returned_ns)).collect();
    let Recorded { device_ns, calls_ns, .. } = recorded;
    Ok(Found { name, target, size_bytes, writes, device_ns, calls_ns, readable })
}

/// Makes the directories, and when they are at rest the files. What the device completes then is the record; the disk
/// is what was there to begin with, with all that it has completed since.
fn record<V: Volume>(
    mut lab: Lab<V>,
    base: Frozen,
    ends: Ends,
) -> Result<(Recorded, Overlay<Frozen>), ExperimentError> {
    for (directory, ..) in FILES {
        call(&mut lab, "making a directory", &Call::Mkdir { at: At::from(directory), mode: Mode(0o755) })?;
    }
    call(&mut lab, "writing back", &Call::SyncFs)?;
    lab.pause_ns(PAUSE_NS);
    let before = writes(lab.take_log());
    let (from_ns, busy) = (lab.now_ns(), lab.counters().busy.device_ns);
    for (_, path, byte) in FILES {
        let open = Call::Open { at: path.into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
        let failed = |errno| ExperimentError::Call { doing: format!("making {path}"), errno };
        let fd = lab.call(&open).fd().map_err(failed)?;
        let data = [byte; FILE_BYTES as usize];
        let write = Call::Write { fd, offset: None, len_bytes: FILE_BYTES, data: Some(&data) };
        call(&mut lab, "writing", &write)?;
        if ends == Ends::Fsync && FILES.last().is_some_and(|(_, last, _)| *last == path) {
            call(&mut lab, "bringing it to the disk", &Call::Fsync { fd })?;
        }
        call(&mut lab, "closing", &Call::Close { fd })?;
    }
    let returned_ns = lab.now_ns();
    if ends == Ends::Daemons {
        lab.pause_ns(PAUSE_NS);
        if lab.cx().cache().dirty_bytes() > 0 {
            let problem = "something is still to be written after two minutes".to_owned();
            return Err(ExperimentError::Inconsistent { after: "a pause".to_owned(), problem });
        }
    }
    let device_ns = lab.counters().busy.device_ns - busy;
    let log = writes(lab.take_log());
    let mut disk = Overlay::new(base);
    for write in before.iter().chain(&log) {
        let failed = |error| ExperimentError::Io { doing: "writing an image in memory".to_owned(), error };
        disk.write_at(write.pbn.bytes(), write.contents.as_deref().unwrap_or_default()).map_err(failed)?;
    }
    Ok((Recorded { log, returned_ns, device_ns, calls_ns: returned_ns - from_ns }, disk))
}

fn writes(log: Vec<LogEntry>) -> Vec<WriteRecord> {
    let write = |entry| if let LogEntry::Write(write) = entry { Some(write) } else { None };
    log.into_iter().filter_map(write).collect()
}

fn described(write: &WriteRecord, stretches: &[Stretch], returned_ns: u64) -> Write {
    let (from, to) = (write.pbn.bytes(), write.pbn.bytes() + write.bytes);
    let mut kinds: Vec<Kind> = Vec::new();
    for stretch in stretches.iter().filter(|stretch| stretch.from < to && from < stretch.to) {
        if !kinds.contains(&stretch.kind) {
            kinds.push(stretch.kind);
        }
    }
    if kinds.is_empty() {
        kinds.push(Kind::Other);
    }
    Write { at_byte: from, bytes: write.bytes, waited: write.completed_ns <= returned_ns, kinds }
}

/// Where things are in an image of FFS, by place.
fn of_ffs(image: &ffs::Image<Overlay<Frozen>>) -> Result<Vec<Stretch>, ExperimentError> {
    let g = image.geometry();
    let mut found = vec![
        Stretch::new(image.superblock_at(), u64::from(g.bsize), Kind::Superblock),
        Stretch::new(g.byte_of(g.csaddr), u64::from(g.cssize), Kind::FreeMap),
    ];
    for group in (0..g.ncg).map(ffs::GroupNo) {
        let inode_bytes = u64::from(g.ipg) * u64::from(g.layout.version.inode_bytes());
        found.push(Stretch::new(g.byte_of(g.group_block(group)), u64::from(g.cgsize), Kind::FreeMap));
        found.push(Stretch::new(g.byte_of(g.group_inodes(group)), inode_bytes, Kind::Inodes));
    }
    for path in paths() {
        let (ino, inode) = image.resolve(path.as_bytes())?;
        let kind = if inode.is_dir() { Kind::Directory } else { Kind::Data };
        image.runs(ino, &inode, &mut |run| {
            found.push(Stretch::new(g.byte_of(run.addr), run.bytes, kind));
            Ok(())
        })?;
    }
    found.sort_by_key(|stretch| stretch.from);
    Ok(found)
}

/// Where things are in an image of LFS, as far as they were written: superblocks, and partial segments by their
/// summaries.
fn of_lfs(image: &lfs::Image<Overlay<Frozen>>, writes: &[WriteRecord]) -> Result<Vec<Stretch>, ExperimentError> {
    let g = image.geometry();
    let offsets = image.superblock().sboffs.iter().take_while(|addr| **addr != 0);
    let mut found: Vec<Stretch> = offsets
        .map(|addr| {
            Stretch::new(g.byte_of(lfs::format::FragAddr(*addr)), lfs::format::SB_BYTES as u64, Kind::Superblock)
        })
        .collect();
    for write in writes {
        let at = u32::try_from(write.pbn.bytes() / u64::from(g.fsize)).unwrap_or(u32::MAX);
        // Where no summary is whole, no partial segment begins.
        let Ok(partial) = partial_at(image.store(), g, lfs::format::FragAddr(at)) else { continue };
        found.push(Stretch::new(g.byte_of(partial.addr), u64::from(g.sumsize), Kind::Summary));
        for piece in &partial.pieces {
            let (bytes, kind) = match *piece {
                Piece::Inodes { .. } => (g.ibsize, Kind::Inodes),
                Piece::Block { ino, bytes, .. } if ino == IFILE_INO => (bytes, Kind::InodeMap),
                Piece::Block { ino, bytes, .. } => {
                    (bytes, if image.inode(ino).is_ok_and(|d| d.is_dir()) { Kind::Directory } else { Kind::Data })
                }
            };
            found.push(Stretch::new(g.byte_of(piece.addr()), bytes.into(), kind));
        }
    }
    found.sort_by_key(|stretch| stretch.from);
    Ok(found)
}

/// Everything that the two files have changed, besides themselves their directories.
fn paths() -> impl Iterator<Item = &'static str> {
    FILES.iter().flat_map(|(directory, path, _)| [*directory, *path])
}

/// Whether both files are on the disk, as long as they were made and with every byte that was given.
fn has_both<R: Readable>(image: &R) -> Result<bool, ExperimentError>
where
    ExperimentError: From<R::Error>,
{
    let mut both = true;
    for (_, path, byte) in FILES {
        let (mut given, mut other) = (0, 0);
        let (ino, inode) = resolve(image, path.as_bytes())?;
        data(image, ino, &inode, &mut |_, bytes| {
            let same = bytes.iter().filter(|found| **found == byte).count() as u64;
            (given, other) = (given + same, other + bytes.len() as u64 - same);
            Ok(())
        })?;
        both &= (given, other) == (FILE_BYTES, 0);
    }
    Ok(both)
}

impl Found {
    /// Writes that do not begin where the one before them has ended.
    fn jumps(&self) -> usize {
        let follows = |pair: &[Write]| match pair {
            [before, after] => before.at_byte + before.bytes == after.at_byte,
            _ => false,
        };
        self.writes.len() - self.writes.windows(2).filter(|pair| follows(pair)).count()
    }

    fn bytes(&self) -> u64 {
        self.writes.iter().map(|write| write.bytes).sum()
    }

    fn holding(&self, kind: Kind) -> usize {
        self.writes.iter().filter(|write| write.kinds.contains(&kind)).count()
    }

    /// What is in the log or lies among files: all but superblocks and free maps.
    fn of_files(&self) -> usize {
        let of_files = |write: &&Write| {
            write.kinds.iter().any(|kind| !matches!(kind, Kind::Superblock | Kind::FreeMap | Kind::Other))
        };
        self.writes.iter().filter(of_files).count()
    }
}

fn outcome(found: &[Found], synced: &[Found]) -> Outcome {
    let mut outcome = Outcome::new();
    outcome.parameter("machine", MACHINE);
    for system in found {
        outcome.parameter(system.name, system.target.as_str());
    }
    outcome.parameter("files", "1 KiB each; their directories are on the disk before");
    for (system, synced) in found.iter().zip(synced) {
        rows(&mut outcome, system, synced);
    }
    claims(&mut outcome, found);
    for system in found {
        outcome.figure(drawn(system));
        outcome.note(in_words(system));
    }
    outcome
}

fn rows(outcome: &mut Outcome, system: &Found, synced: &Found) {
    let name = system.name;
    let mut row = |what: &str, unit, published, ours, explain| {
        outcome.row(Row::new(format!("{name}: {what}"), unit, published, ours, explain));
    };
    let of_files = system.of_files() as f64;
    if name == "FFS" {
        // For each of the two files five.
        row(
            "writes of inodes, directories and data",
            Unit::Count,
            Published::exact(10.0),
            of_files,
            Explain::because(format!(
                "an inode of a directory and that of its file are often in one block, and then one write is of both: \
                 {} of these writes hold inodes",
                system.holding(Kind::Inodes)
            )),
        );
    } else {
        row(
            "writes of the log",
            Unit::Count,
            Published::exact(1.0),
            of_files,
            Explain::because(format!(
                "one is the daemons' checkpoint, with the inode map; where the last call is an fsync, which needs \
                 none, the log is written {} time",
                synced.of_files()
            )),
        );
        let what = "writes of the log, the last call an fsync";
        row(what, Unit::Count, Published::exact(1.0), synced.of_files() as f64, Explain::unknown());
    }
    let waited = system.writes.iter().filter(|write| write.waited).count();
    let mut plain = |what: &str, unit, ours| row(what, unit, Published::NONE, ours, Explain::Agrees);
    plain("all writes", Unit::Count, system.writes.len() as f64);
    plain("writes that the calls waited for", Unit::Count, waited as f64);
    plain("writes that do not follow the one before", Unit::Count, system.jumps() as f64);
    for kind in Kind::ALL {
        let holding = system.holding(kind);
        if holding > 0 {
            plain(&format!("writes that hold: {}", kind.name()), Unit::Count, holding as f64);
        }
    }
    plain("bytes written", Unit::Bytes, system.bytes() as f64);
    plain("time the disk worked", Unit::Ns, system.device_ns as f64);
    plain("time the calls took", Unit::Ns, system.calls_ns as f64);
}

fn claims(outcome: &mut Outcome, found: &[Found]) {
    let [ffs, lfs] = found else { return };
    let each = |system: &Found| {
        format!(
            "{} {} writes of {} KiB in the mean",
            system.name,
            system.writes.len(),
            system.bytes() / 1024 / system.writes.len().max(1) as u64
        )
    };
    let waited = ffs.writes.iter().filter(|write| write.waited);
    let kinds: Vec<&str> = waited.flat_map(|write| &write.kinds).map(|kind| kind.name()).collect();
    outcome
        .claim(Claim::new(
            "FFS writes small pieces all over the disk, LFS few that are larger",
            ffs.writes.len() > 2 * lfs.writes.len() && 2 * ffs.jumps() > ffs.writes.len(),
            format!(
                "{}, {}; {} of {} do not follow the one before",
                each(ffs),
                each(lfs),
                ffs.jumps(),
                ffs.writes.len()
            ),
            Explain::unknown(),
        ))
        .claim(Claim::new(
            "LFS writes the data, inodes and directories of both files together",
            lfs.writes
                .iter()
                .any(|write| [Kind::Data, Kind::Inodes, Kind::Directory].iter().all(|kind| write.kinds.contains(kind)))
                && lfs.holding(Kind::Data) == 1,
            format!("{} of its writes hold data of the files", lfs.holding(Kind::Data)),
            Explain::unknown(),
        ))
        .claim(Claim::new(
            "FFS makes processes wait for inodes and directories, LFS for nothing",
            !kinds.is_empty()
                && kinds.iter().all(|kind| [Kind::Inodes, Kind::Directory].iter().any(|of| of.name() == *kind))
                && lfs.writes.iter().all(|write| !write.waited),
            format!("FFS waited for {}", kinds.join(", ")),
            Explain::unknown(),
        ))
        .claim(Claim::new(
            "both files are on the disk afterwards, whole",
            ffs.readable && lfs.readable,
            "read from the bytes that the device had completed",
            Explain::unknown(),
        ));
}

/// The disk from its beginning to its end, and above it the writes in their order.
fn drawn(system: &Found) -> Figure {
    let mut series = vec![Series::new("the disk", [(0.0, 0.0), (system.size_bytes as f64 / MIB, 0.0)])];
    for kind in Kind::ALL {
        let holds = |(number, write): (usize, &Write)| {
            write
                .kinds
                .first()
                .filter(|first| **first == kind)
                .map(|_| (write.at_byte as f64 / MIB, number as f64 + 1.0))
        };
        let points: Vec<(f64, f64)> = system.writes.iter().enumerate().filter_map(holds).collect();
        if !points.is_empty() {
            series.push(Series::new(kind.name(), points));
        }
    }
    Figure {
        name: system.name.to_lowercase(),
        title: format!(
            "{}: place of each write, by what it begins with; numbered in the order in which they were complete.",
            system.name
        ),
        x: Axis::Number("place on the disk, MiB".to_owned()),
        y: Axis::Number("write".to_owned()),
        series,
    }
}

fn in_words(system: &Found) -> String {
    let write = |write: &Write| {
        let kinds: Vec<&str> = write.kinds.iter().map(|kind| kind.name()).collect();
        let waited = if write.waited { ", waited for" } else { "" };
        let at = write.at_byte as f64 / MIB;
        format!("{:.1} KiB at {at:.2} MiB ({}{waited})", write.bytes as f64 / 1024.0, kinds.join(", "))
    };
    let all: Vec<String> = system.writes.iter().map(write).collect();
    format!("{} writes, in order: {}.", system.name, all.join("; "))
}
