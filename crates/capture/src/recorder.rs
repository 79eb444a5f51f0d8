//! A recording in the kernel: its programs loaded and attached, whom it records, and its records.

use crate::{Missing, OBJECT, permitted};
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::{BtfTracePoint, Program, ProgramError};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trace::kernel::specs;
use trace::kernel::wire::{self, feature};
use trace::record::{Target, descendants};

/// The programs, by name, and their tracepoints.
const PROGRAMS: &[(&str, &str)] = &[
    // Ends first, so that nothing is taken in whose end would be missed.
    ("on_exit", "sched_process_exit"),
    ("on_exec", "sched_process_exec"),
    ("on_fork", "sched_process_fork"),
    ("on_switch", "sched_switch"),
    ("on_waking", "sched_waking"),
    ("on_timer", "hrtimer_expire_entry"),
    ("on_timer_end", "hrtimer_expire_exit"),
    ("on_irq", "irq_handler_entry"),
    ("on_irq_end", "irq_handler_exit"),
    ("on_sys_exit", "sys_exit"),
    ("on_sys_enter", "sys_enter"),
];

/// Programs that show what no system call shows. A kernel without their tracepoints is recorded without them.
const BEYOND_CALLS: &[(u16, &[(&str, &str)])] = &[
    (
        feature::FAULTS,
        &[
            ("on_filemap_fault", "mm_filemap_fault"),
            ("on_map_pages", "mm_filemap_map_pages"),
            ("on_dirty", "writeback_dirty_folio"),
        ],
    ),
    (feature::REQUESTS, &[("on_complete", "io_uring_complete"), ("on_submit", "io_uring_submit_req")]),
];

/// Programs that make no records: left out once, they leave a time imprecise.
const WITHOUT_RECORDS: &[&str] = &["on_waking", "on_timer", "on_timer_end", "on_irq", "on_irq_end"];

/// `struct counters` of `spec.h`, its fields in turn.
type Counters = [u64; 7];
const COUNTER_LOST: usize = 0;
const COUNTER_TOLD: usize = 1;
const COUNTER_RECORDS: usize = 2;
const COUNTER_NO_MEMORY: usize = 3;
const COUNTER_BEGAN: usize = 4;
const COUNTER_ENDED: usize = 5;
const COUNTER_FAULTS_UNKNOWN: usize = 6;
/// Values of `subject_mode`.
const MODE_PROCESSES: u32 = 1;
const MODE_CGROUP: u32 = 2;
const MODE_MOUNT: u32 = 3;
/// Values of the map `wanted`.
const WANTED: u32 = 1;
const WANTED_FROM_EXEC: u32 = 2;

/// What is gathered before it is handed over.
const CHUNK_BYTES: usize = 256 * 1024;
/// Time in which processes that are recorded may fork before all are known.
const ROUNDS_MAX: usize = 100;

/// How to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of the buffer between the kernel and us; a power of two of at least 4096. What does not fit is lost, and
    /// counted.
    pub buffer_bytes: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { buffer_bytes: 64 << 20 }
    }
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum CaptureError {
    #[error("cannot record in the kernel: {0}")]
    Missing(#[from] Missing),
    #[error("the kernel refuses the recorder's {what}: {why}")]
    Refused { what: String, why: String },
    #[error("process {pid} does not exist")]
    NoProcess { pid: u32 },
    #[error("{}: is no directory of cgroup2 (usually below /sys/fs/cgroup; see mount -t cgroup2)", path.display())]
    NoCgroup { path: PathBuf },
    #[error("{}: {why}", path.display())]
    NoMount { path: PathBuf, why: String },
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
}

fn refused(what: impl Into<String>) -> impl FnOnce(Box<dyn std::error::Error>) -> CaptureError {
    let what = what.into();
    move |e| {
        let mut why = e.to_string();
        let mut source = e.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !why.contains(&text) {
                why = format!("{why}: {text}");
            }
            source = cause.source();
        }
        CaptureError::Refused { what, why }
    }
}

/// A recording. Dropping it detaches everything.
pub struct Recorder {
    /// Owns the programs and maps.
    ebpf: Option<Ebpf>,
    /// What keeps the programs attached.
    links: Vec<BtfTracePointLink>,
    ring: RingBuf<MapData>,
    counters: PerCpuArray<MapData, Counters>,
    wanted: HashMap<MapData, u32, u32>,
    /// Which process numbers are worth a look in `wanted`.
    candidates: Array<MapData, u8>,
    chunk: Vec<u8>,
    mode: u32,
    /// Losses told of by a record of ours.
    told_here: u64,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Loads the recorder into the kernel and starts it. When it returns, the target's calls are recorded; of a
    /// command, those from the execve on that runs it.
    ///
    /// # Errors
    /// What is missing, what the kernel refuses, or a target that is not there.
    pub fn start(target: &Target, options: &Options) -> Result<Recorder, CaptureError> {
        Loaded::new(Some(target), options)?.start(target)
    }

    /// The first record: the clocks.
    fn begin(&mut self, features: u32) {
        let start = wire::Start {
            version: wire::VERSION,
            features,
            monotonic_ns: monotonic_ns(),
            realtime_ns: now_ns(rustix::time::ClockId::Realtime),
        };
        wire::append(&mut self.chunk, wire::Kind::Start, 0, |out| start.write(out));
    }

    fn want(&mut self, pid: u32, how: u32) -> Result<(), CaptureError> {
        self.wanted.insert(pid, how, 0).map_err(|e: MapError| refused("processes")(e.into()))?;
        let slot = pid % self.candidates.len();
        self.candidates.set(slot, 1, 0).map_err(|e: MapError| refused("candidates")(e.into()))
    }

    /// Takes in processes and their descendants. The programs run already: what they fork meanwhile is taken in by the
    /// kernel, and looking again until nothing new is found closes the race with what was forked before its parent was
    /// known.
    fn want_all(&mut self, pids: &[u32]) -> Result<(), CaptureError> {
        let mut known: Vec<u32> = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let new: Vec<u32> = descendants(pids).into_iter().filter(|pid| !known.contains(pid)).collect();
            if new.is_empty() {
                break;
            }
            for pid in new {
                self.want(pid, WANTED)?;
                if !is_running(pid) {
                    // It ended before it could be taken out by its end.
                    let _ = self.wanted.remove(&pid);
                }
                known.push(pid);
            }
        }
        Ok(())
    }

    /// Whether all that is recorded has ended. Never of a control group or a mount.
    pub fn has_ended(&mut self) -> bool {
        if self.mode != MODE_PROCESSES {
            return false;
        }
        // In this order: whoever begins meanwhile makes the two counts unequal.
        let wanted: Vec<u32> = self.wanted.keys().filter_map(Result::ok).collect();
        let ended = self.count(COUNTER_ENDED);
        if ended != self.count(COUNTER_BEGAN) {
            return false;
        }
        // Who ended before he was wanted was not taken out by his end.
        for pid in wanted.iter().filter(|&&pid| !is_running(pid)) {
            let _ = self.wanted.remove(pid);
        }
        wanted.is_empty()
    }

    /// Hands over the records that are there, in chunks of whole records, and returns how many bytes these were. Never
    /// waits.
    pub fn drain(&mut self, sink: &mut dyn FnMut(&[u8])) -> usize {
        let mut drained = 0;
        while let Some(record) = self.ring.next() {
            self.chunk.extend_from_slice(&record);
            drop(record);
            if self.chunk.len() >= CHUNK_BYTES {
                drained += self.chunk.len();
                sink(&self.chunk);
                self.chunk.clear();
            }
        }
        if !self.chunk.is_empty() {
            drained += self.chunk.len();
            sink(&self.chunk);
            self.chunk.clear();
        }
        drained
    }

    /// Detaches the programs, hands over what is left, and tells of losses that no record has told of yet.
    pub fn finish(mut self, sink: &mut dyn FnMut(&[u8])) -> Totals {
        self.stop();
        self.drain(sink);
        self.tell_losses(sink);
        self.totals()
    }

    /// Tells of losses that no record has told of yet, as a record.
    pub fn tell_losses(&mut self, sink: &mut dyn FnMut(&[u8])) {
        let lost = self.count(COUNTER_LOST).saturating_sub(self.count(COUNTER_TOLD)) + self.missed();
        let records = lost.saturating_sub(self.told_here);
        if records > 0 {
            self.told_here += records;
            let lost = wire::Lost { at_ns: monotonic_ns(), records };
            let mut record = Vec::new();
            wire::append(&mut record, wire::Kind::Lost, 0, |out| lost.write(out));
            sink(&record);
        }
    }

    /// Detaches the programs: nothing is recorded any more.
    pub fn stop(&mut self) {
        self.links.clear();
    }

    /// How often the kernel left a program out as it ran on that processor already: what it would have told is lost.
    fn missed(&self) -> u64 {
        let programs = self.ebpf.iter().flat_map(Ebpf::programs);
        programs.filter(|&(name, _)| !WITHOUT_RECORDS.contains(&name)).map(|(_, program)| missed_by(program)).sum()
    }

    /// What the recorder has counted so far.
    pub fn totals(&self) -> Totals {
        Totals {
            records: self.count(COUNTER_RECORDS),
            lost: self.count(COUNTER_LOST) + self.missed(),
            without_memory: self.count(COUNTER_NO_MEMORY),
            unknown_accesses: self.count(COUNTER_FAULTS_UNKNOWN),
        }
    }

    fn count(&self, counter: usize) -> u64 {
        self.counters.get(&0, 0).map_or(0, |each| each.iter().map(|counters| counters[counter]).sum())
    }
}

/// A recorder in the kernel that looks at nobody yet.
pub struct Loaded {
    ebpf: Ebpf,
    recorder: Recorder,
    features: u32,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Loaded").field("features", &self.features).finish_non_exhaustive()
    }
}

impl Loaded {
    /// Loads the programs, which the kernel takes its time to verify. `None`: for a command that is not there yet.
    ///
    /// # Errors
    /// What is missing, what the kernel refuses, or a target that is not there.
    pub fn new(target: Option<&Target>, options: &Options) -> Result<Loaded, CaptureError> {
        permitted()?;
        let btf = Btf::from_sys_fs().map_err(|e| refused("types")(e.into()))?;
        let whom = Whom::of(target)?;
        let own = std::process::id();
        let secret = random()?;
        let specs = specs();
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .allow_unsupported_maps()
            .map_max_entries("ring", options.buffer_bytes)
            .override_global("subject_mode", &whom.mode, true)
            .override_global("own_tgid", &own, true)
            .override_global("secret", &secret, true)
            .override_global("cgroup_id", &whom.cgroup_id, true)
            .override_global("mount_dev", &whom.mount_dev, true)
            .override_global("mount_path_bytes", &whom.mount_path_bytes, true)
            .override_global("mount_path", &whom.mount_path, true)
            .override_global("specs", &specs[..], true)
            .load(OBJECT)
            .map_err(|e: EbpfError| refused("object")(e.into()))?;
        let ring = RingBuf::try_from(take(&mut ebpf, "ring")?).map_err(|e| refused("ring")(e.into()))?;
        let counters =
            PerCpuArray::try_from(take(&mut ebpf, "counters")?).map_err(|e| refused("counters")(e.into()))?;
        let wanted = HashMap::try_from(take(&mut ebpf, "wanted")?).map_err(|e| refused("processes")(e.into()))?;
        let candidates =
            Array::try_from(take(&mut ebpf, "candidates")?).map_err(|e| refused("candidates")(e.into()))?;
        let mut features = u32::from(if whom.mode == MODE_MOUNT { feature::ONE_MOUNT } else { feature::TURNS });
        for &(feature, programs) in BEYOND_CALLS {
            if programs.iter().all(|&(name, tracepoint)| load(&mut ebpf, &btf, name, tracepoint).is_ok()) {
                features |= u32::from(feature);
            }
        }
        for &(name, tracepoint) in PROGRAMS {
            load(&mut ebpf, &btf, name, tracepoint)?;
        }
        let recorder = Recorder {
            ebpf: None,
            links: Vec::new(),
            ring,
            counters,
            wanted,
            candidates,
            chunk: Vec::with_capacity(CHUNK_BYTES + wire::RECORD_BYTES_MAX),
            mode: whom.mode,
            told_here: 0,
        };
        Ok(Loaded { ebpf, recorder, features })
    }

    /// Starts it on the target that it was loaded for.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn start(self, target: &Target) -> Result<Recorder, CaptureError> {
        let Loaded { mut ebpf, mut recorder, features } = self;
        if let Target::Command(pid) = target {
            must_exist(&[*pid])?;
            recorder.want(*pid, WANTED_FROM_EXEC)?;
        }
        recorder.begin(features);
        let has = |feature: u16| features & u32::from(feature) != 0;
        for (_, programs) in BEYOND_CALLS.iter().filter(|&&(feature, _)| has(feature)) {
            recorder.links.extend(attach(&mut ebpf, programs)?);
        }
        recorder.links.extend(attach(&mut ebpf, PROGRAMS)?);
        recorder.ebpf = Some(ebpf);
        if let Target::Processes(pids) = target {
            recorder.want_all(pids)?;
        }
        Ok(recorder)
    }
}

/// What a recorder counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records made, those lost included.
    pub records: u64,
    /// Records for which there was no room, and times that a program was left out.
    pub lost: u64,
    /// Threads that could not be recorded for want of memory in the kernel.
    pub without_memory: u64,
    /// Accesses through mappings of which the file could not be named.
    pub unknown_accesses: u64,
}

impl Totals {
    /// What the user has to know of them, beside what is lost.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.without_memory > 0 {
            notes.push(format!(
                "the kernel had no memory to record {} threads: their calls are missing",
                self.without_memory
            ));
        }
        if self.unknown_accesses > 0 {
            notes.push(format!(
                "{} accesses through mappings are to files that could not be named",
                self.unknown_accesses
            ));
        }
        notes
    }
}

/// `recursion_misses` of the kernel's description of a program (Linux 5.12 and later).
fn missed_by(program: &Program) -> u64 {
    let Ok(fd) = program.fd() else { return 0 };
    let path = format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd());
    misses(&std::fs::read_to_string(path).unwrap_or_default()).unwrap_or(0)
}

fn misses(fdinfo: &str) -> Option<u64> {
    fdinfo.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?.trim().parse().ok()
}

fn now_ns(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// The kernel's own monotonic clock, which its programs read: in a time namespace ours is ahead of it, or behind.
fn monotonic_ns() -> u64 {
    let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
    let ours = i128::from(now_ns(rustix::time::ClockId::Monotonic));
    u64::try_from(ours - offset_ns(&offsets).unwrap_or(0)).unwrap_or(0)
}

/// How far the monotonic clock of a time namespace is ahead, by the kernel's text of its offsets (time_namespaces(7)).
fn offset_ns(offsets: &str) -> Option<i128> {
    let mut numbers = offsets.lines().find_map(|line| line.strip_prefix("monotonic"))?.split_whitespace();
    let (seconds, ns): (i128, i128) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    Some(seconds * 1_000_000_000 + ns)
}

fn no_map(name: &str) -> CaptureError {
    CaptureError::Refused { what: name.into(), why: "the object lacks it: make it again with scripts/build-bpf".into() }
}

fn take(ebpf: &mut Ebpf, name: &str) -> Result<Map, CaptureError> {
    ebpf.take_map(name).ok_or_else(|| no_map(name))
}

fn program<'e>(ebpf: &'e mut Ebpf, name: &str, tracepoint: &str) -> Result<&'e mut BtfTracePoint, CaptureError> {
    let program = ebpf.program_mut(name).ok_or_else(|| no_map(name))?;
    program.try_into().map_err(|e| said(name, tracepoint, e))
}

fn said(name: &str, tracepoint: &str, e: ProgramError) -> CaptureError {
    refused(format!("program {name} on tracepoint {tracepoint}"))(e.into())
}

fn load(ebpf: &mut Ebpf, btf: &Btf, name: &str, tracepoint: &str) -> Result<(), CaptureError> {
    program(ebpf, name, tracepoint)?.load(tracepoint, btf).map_err(|e| said(name, tracepoint, e))
}

fn attach(ebpf: &mut Ebpf, programs: &[(&str, &str)]) -> Result<Vec<BtfTracePointLink>, CaptureError> {
    let mut links = Vec::new();
    for &(name, tracepoint) in programs {
        let program = program(ebpf, name, tracepoint)?;
        let link = program.attach().map_err(|e| said(name, tracepoint, e))?;
        links.push(program.take_link(link).map_err(|e| said(name, tracepoint, e))?);
    }
    Ok(links)
}

/// What hides addresses in records.
fn random() -> Result<u64, CaptureError> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|source| CaptureError::Io { what: "/dev/urandom".into(), source })?;
    Ok(u64::from_le_bytes(bytes))
}

/// A target in the terms of the programs.
#[derive(Clone, Copy, Debug)]
struct Whom {
    mode: u32,
    cgroup_id: u64,
    mount_dev: u32,
    mount_path_bytes: u32,
    mount_path: [u8; 256],
}

impl Whom {
    fn of(target: Option<&Target>) -> Result<Whom, CaptureError> {
        let mut whom =
            Whom { mode: MODE_PROCESSES, cgroup_id: 0, mount_dev: 0, mount_path_bytes: 0, mount_path: [0; 256] };
        match target {
            None | Some(Target::Command(_)) => {}
            Some(Target::Processes(pids)) => must_exist(pids)?,
            Some(Target::Cgroup(path)) => {
                whom.mode = MODE_CGROUP;
                whom.cgroup_id = cgroup_id(path)?;
            }
            Some(Target::Mount(path)) => {
                whom.mode = MODE_MOUNT;
                let no = |why: String| CaptureError::NoMount { path: path.clone(), why };
                let entry = posix::mount_of_path(path).map_err(|e| no(e.to_string()))?;
                let entry = entry.ok_or_else(|| no("its mount is not in /proc/self/mountinfo".into()))?;
                let number = entry.device_number.split_once(':');
                let number = number.and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
                let (major, minor) = number.ok_or_else(|| no("its device number is not known".into()))?;
                // As the kernel writes it itself (MKDEV of <linux/kdev_t.h>).
                whom.mount_dev = major << 20 | minor;
                let point = entry.point.as_os_str().as_bytes();
                let point = if point == b"/" { b"" } else { point };
                // One byte stays NUL.
                let room = whom.mount_path.get_mut(..point.len()).filter(|room| room.len() < 256);
                room.ok_or_else(|| no("the path of its mount point is longer than 255 bytes".into()))?
                    .copy_from_slice(point);
                whom.mount_path_bytes = u32::try_from(point.len()).unwrap_or(0);
            }
        }
        Ok(whom)
    }
}

fn exists(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

/// Whether a process has a thread that has not ended. One whose end nobody has asked for is still there.
fn is_running(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // Behind the name, which may hold anything.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !matches!(state, Some('Z' | 'X')) || threads() > 1
}

fn must_exist(pids: &[u32]) -> Result<(), CaptureError> {
    match pids.iter().find(|&&pid| !exists(pid)) {
        Some(&pid) => Err(CaptureError::NoProcess { pid }),
        None => Ok(()),
    }
}

/// The number by which the kernel knows a control group: that of its directory's inode.
fn cgroup_id(path: &Path) -> Result<u64, CaptureError> {
    /// `CGROUP2_SUPER_MAGIC` of `<linux/magic.h>`
    const CGROUP2: rustix::fs::FsWord = 0x6367_7270;
    let no = || CaptureError::NoCgroup { path: path.to_owned() };
    let system = rustix::fs::statfs(path).map_err(|_| no())?;
    let stat = rustix::fs::stat(path).map_err(|_| no())?;
    if system.f_type == CGROUP2 { Ok(stat.st_ino) } else { Err(no()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_read_from_the_kernels_text() {
        let text = "pos:\t0\nprog_type:\t26\nrun_cnt:\t0\nrecursion_misses:\t17\nverified_insns:\t9\n";
        assert_eq!(misses(text), Some(17));
        assert_eq!(misses("pos:\t0\n"), None);
    }

    #[test]
    fn offsets_are_read_from_the_kernels_text() {
        let text = "monotonic      -1000         500000000\nboottime           0         0\n";
        assert_eq!(offset_ns(text), Some(-999_500_000_000));
        assert_eq!(offset_ns(""), None);
    }

    #[test]
    fn the_user_is_told_of_what_is_not_there() {
        assert_eq!(Totals { records: 5, lost: 1, ..Totals::default() }.notes(), Vec::<String>::new());
        let notes = Totals { without_memory: 3, unknown_accesses: 4, ..Totals::default() }.notes();
        assert!(
            matches!(&notes[..], [one, two] if one.contains("3 threads") && two.contains("4 accesses")),
            "{notes:?}"
        );
    }
}
