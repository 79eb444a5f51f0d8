//! A recording in the kernel: its programs loaded and attached, whom it records, and its records.

use crate::{Missing, OBJECT, permitted};
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfError, EbpfLoader};
use rustix::thread::gettid;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use trace::kernel::{CALLS, SPEC_BYTES, wire};

/// The programs, by name, and their tracepoints.
const PROGRAMS: &[(&str, &str)] = &[
    // Ends first, so that nothing is taken in whose end would be missed.
    ("on_exit", "sched_process_exit"),
    ("on_exec", "sched_process_exec"),
    ("on_fork", "sched_process_fork"),
    ("on_switch", "sched_switch"),
    ("on_wakeup", "sched_wakeup"),
    ("on_sys_exit", "sys_exit"),
    ("on_sys_enter", "sys_enter"),
];

/// Slots of the map `control` (`spec.h`).
const CONTROL_ARMED_TID: u32 = 0;
/// Slots of the map `counters`.
const COUNTER_LOST: u32 = 0;
const COUNTER_TOLD: u32 = 1;
const COUNTER_RECORDS: u32 = 2;
const COUNTER_NO_MEMORY: u32 = 3;

/// What is gathered before it is handed over.
const CHUNK_BYTES: usize = 256 * 1024;
/// Time in which processes that are recorded may fork before all are known.
const ROUNDS_MAX: usize = 100;

/// Whom to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A command and all it starts: [`Recorder::spawn`] starts it.
    Command,
    /// Processes that run already, their threads, their descendants, and all that these start.
    Processes(Vec<u32>),
}

/// How to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Whom.
    pub subject: Subject,
    /// Bytes of the buffer between the kernel and us; a power of two of at least 4096. What does not fit is lost, and counted.
    pub buffer_bytes: u32,
}

impl Options {
    /// Records a subject with the usual buffer.
    pub fn of(subject: Subject) -> Options {
        Options { subject, buffer_bytes: 64 << 20 }
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
    ebpf: Ebpf,
    /// What keeps the programs attached.
    links: Vec<BtfTracePointLink>,
    ring: RingBuf<MapData>,
    counters: PerCpuArray<MapData, u64>,
    chunk: Vec<u8>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Loads the recorder into the kernel and starts it. Of a command, nothing is recorded before [`spawn`](Self::spawn).
    ///
    /// # Errors
    /// What is missing, or what the kernel refuses.
    pub fn start(options: &Options) -> Result<Recorder, CaptureError> {
        permitted()?;
        let btf = Btf::from_sys_fs().map_err(|e| refused("types")(e.into()))?;
        let (mode, pids): (u32, &[u32]) = match &options.subject {
            Subject::Command => (0, &[]),
            Subject::Processes(pids) => (1, pids),
        };
        if let Some(&pid) = pids.iter().find(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            return Err(CaptureError::NoProcess { pid });
        }
        let own = std::process::id();
        let secret = random()?;
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .allow_unsupported_maps()
            .map_max_entries("ring", options.buffer_bytes)
            .override_global("subject_mode", &mode, true)
            .override_global("own_tgid", &own, true)
            .override_global("secret", &secret, true)
            .load(OBJECT)
            .map_err(|e: EbpfError| refused("object")(e.into()))?;
        tell_specs(&mut ebpf)?;
        let ring = take(&mut ebpf, "ring")?;
        let ring = RingBuf::try_from(ring).map_err(|e| refused("ring")(e.into()))?;
        let counters = take(&mut ebpf, "counters")?;
        let counters = PerCpuArray::try_from(counters).map_err(|e| refused("counters")(e.into()))?;
        let links = attach(&mut ebpf, &btf)?;
        let chunk = Vec::with_capacity(CHUNK_BYTES + wire::RECORD_BYTES_MAX);
        let mut recorder = Recorder { ebpf, links, ring, counters, chunk };
        recorder.begin();
        recorder.want(pids)?;
        Ok(recorder)
    }

    /// The first record: the clocks.
    fn begin(&mut self) {
        let now = |clock| {
            let time = rustix::time::clock_gettime(clock);
            let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
            seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
        };
        let start = wire::Start {
            version: wire::VERSION,
            reserved: 0,
            monotonic_ns: now(rustix::time::ClockId::Monotonic),
            realtime_ns: now(rustix::time::ClockId::Realtime),
        };
        wire::append(&mut self.chunk, wire::Kind::Start, 0, |out| start.write(out));
    }

    /// Takes in processes and their descendants. The programs run already: what they fork meanwhile is taken in by the
    /// kernel, and looking again until nothing new is found closes the race with what was forked before its parent was known.
    fn want(&mut self, pids: &[u32]) -> Result<(), CaptureError> {
        if pids.is_empty() {
            return Ok(());
        }
        let map = self.ebpf.map_mut("wanted").ok_or_else(|| no_map("wanted"))?;
        let mut wanted: HashMap<_, u32, u32> = HashMap::try_from(map).map_err(|e| refused("processes")(e.into()))?;
        let mut known: Vec<u32> = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let all = descendants(pids);
            let new: Vec<u32> = all.into_iter().filter(|pid| !known.contains(pid)).collect();
            if new.is_empty() {
                break;
            }
            for pid in new {
                wanted.insert(pid, 1, 0).map_err(|e: MapError| refused("processes")(e.into()))?;
                known.push(pid);
            }
        }
        Ok(())
    }

    /// Starts the command that is recorded. Must be called by the thread that started the recording.
    ///
    /// The program is looked up here, so that the only call before its own is the execve that runs it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(&mut self, argv: &[OsString], prepare: impl FnOnce(&mut Command)) -> Result<Child, CaptureError> {
        let failed = |source| CaptureError::Io { what: "cannot run the command".into(), source };
        let Some((program, arguments)) = argv.split_first() else {
            return Err(failed(std::io::Error::from(std::io::ErrorKind::InvalidInput)));
        };
        let mut command = Command::new(find(Path::new(program)).unwrap_or_else(|| PathBuf::from(program)));
        command.arg0(program).args(arguments);
        prepare(&mut command);
        self.arm(u64::try_from(gettid().as_raw_nonzero().get()).unwrap_or(0))?;
        let child = command.spawn();
        self.arm(0)?;
        child.map_err(failed)
    }

    fn arm(&mut self, tid: u64) -> Result<(), CaptureError> {
        let map = self.ebpf.map_mut("control").ok_or_else(|| no_map("control"))?;
        let mut control: Array<_, u64> = Array::try_from(map).map_err(|e| refused("control")(e.into()))?;
        control.set(CONTROL_ARMED_TID, tid, 0).map_err(|e: MapError| refused("control")(e.into()))
    }

    /// Hands over the records that are there, in chunks of whole records, and returns how many bytes these were. Never waits.
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
        self.links.clear();
        self.drain(sink);
        let totals = self.totals();
        let untold = totals.lost.saturating_sub(self.count(COUNTER_TOLD));
        if untold > 0 {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            let at_ns =
                u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0);
            let mut record = Vec::new();
            wire::append(&mut record, wire::Kind::Lost, 0, |out| wire::Lost { at_ns, records: untold }.write(out));
            sink(&record);
        }
        totals
    }

    /// What the recorder has counted so far.
    pub fn totals(&self) -> Totals {
        Totals {
            records: self.count(COUNTER_RECORDS),
            lost: self.count(COUNTER_LOST),
            without_memory: self.count(COUNTER_NO_MEMORY),
        }
    }

    fn count(&self, slot: u32) -> u64 {
        self.counters.get(&slot, 0).map_or(0, |each| each.iter().sum())
    }
}

/// What a recorder counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records made, those lost included.
    pub records: u64,
    /// Records for which there was no room.
    pub lost: u64,
    /// Threads that could not be recorded for want of memory in the kernel.
    pub without_memory: u64,
}

fn no_map(name: &str) -> CaptureError {
    CaptureError::Refused { what: name.into(), why: "the object lacks it: make it again with scripts/build-bpf".into() }
}

fn take(ebpf: &mut Ebpf, name: &str) -> Result<Map, CaptureError> {
    ebpf.take_map(name).ok_or_else(|| no_map(name))
}

fn tell_specs(ebpf: &mut Ebpf) -> Result<(), CaptureError> {
    let map = ebpf.map_mut("specs").ok_or_else(|| no_map("specs"))?;
    let mut specs: Array<_, [u8; SPEC_BYTES]> = Array::try_from(map).map_err(|e| refused("specs")(e.into()))?;
    for &(number, _, how) in CALLS {
        specs.set(number, how.spec().to_bytes(), 0).map_err(|e: MapError| refused("specs")(e.into()))?;
    }
    Ok(())
}

fn attach(ebpf: &mut Ebpf, btf: &Btf) -> Result<Vec<BtfTracePointLink>, CaptureError> {
    for &(name, tracepoint) in PROGRAMS {
        let said = |e: ProgramError| refused(format!("program {name} on tracepoint {tracepoint}"))(e.into());
        let program = ebpf.program_mut(name).ok_or_else(|| no_map(name))?;
        let program: &mut BtfTracePoint = program.try_into().map_err(said)?;
        program.load(tracepoint, btf).map_err(said)?;
    }
    let mut links = Vec::new();
    for &(name, tracepoint) in PROGRAMS {
        let said = |e: ProgramError| refused(format!("program {name} on tracepoint {tracepoint}"))(e.into());
        let program = ebpf.program_mut(name).ok_or_else(|| no_map(name))?;
        let program: &mut BtfTracePoint = program.try_into().map_err(said)?;
        let link = program.attach().map_err(said)?;
        links.push(program.take_link(link).map_err(said)?);
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

/// Where execvp(3) finds a program; `None` if nowhere.
fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() != 1 || program.is_absolute() || program.as_os_str().is_empty() {
        return Some(program.to_owned());
    }
    let path = std::env::var_os("PATH")?;
    let runs = |at: &PathBuf| rustix::fs::access(at, rustix::fs::Access::EXEC_OK).is_ok() && at.is_file();
    std::env::split_paths(&path).map(|dir| dir.join(program)).find(runs)
}

/// Processes and all their descendants that run now.
fn descendants(pids: &[u32]) -> Vec<u32> {
    let mut all = pids.to_vec();
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut from = 0;
    while from < all.len() {
        let parent = all[from];
        let children: Vec<u32> =
            parents.iter().filter(|&&(pid, of)| of == parent && !all.contains(&pid)).map(|&(pid, _)| pid).collect();
        all.extend(children);
        from += 1;
    }
    all
}
