//! One recording from beginning to end: what is started, in which order, and how each of it is taken down.

use super::analyse::{Analysis, AnalysisError};
use super::capture::{Capture, Captured};
use super::meanwhile::Meanwhile;
use super::signals::{Signals, Wish};
use super::source::{Ending, Target, Tracer};
use super::workshop::Workshop;
use super::{
    News, RecordError, RecordOptions, RecordSummary, Subject, find_program, host, now_ns, roots, trees, view,
    working_directory,
};
use crate::profile::{self, WriterOptions, escape};
use crate::room::Room;
use crate::snapshot::{WalkLimits, Walked};
use crate::spool::{self, End, Header, Reader, Writer};
use crate::strace::{ImportError, ImportOptions};
use posix::held::Held;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often is looked for signals and ends.
const POLL: Duration = Duration::from_millis(20);
/// How long a command whose end the tracer has seen may take to be reported to us.
const REAPING: Duration = Duration::from_secs(2);
/// How long a signal that a terminal sent to the command as well may take through strace, which drops it if it is asked
/// to let go first.
const DELIVERY: Duration = Duration::from_millis(100);
/// How long after the command's end others are taken to go on.
const OTHERS_GO_ON: Duration = Duration::from_secs(1);
/// How long is waited until somebody has been told that the recording is on.
const TELLING: Duration = Duration::from_millis(100);
/// How many spools of one name are kept at most.
const SPOOLS_MAX: u32 = 1000;

/// A recording that has ended, and the command if that has not.
#[derive(Debug)]
pub struct Recording {
    /// The profile that was written; or why it was not. Then the spool is kept, and the error says where.
    pub profile: Result<RecordSummary, RecordError>,
    command: Option<Child>,
    status: Option<ExitStatus>,
    signals: Signals,
    ending: Option<JoinHandle<Ending>>,
    /// Somebody has asked not to wait when the profile was as good as there.
    leave: bool,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommandEnd {
    /// Its exit status, if it exited.
    pub exit_status: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// It still runs: a second signal asked us not to wait for it. The signal's number.
    pub left_running: Option<i32>,
}

impl Recording {
    /// Whether the command goes on without being recorded.
    pub fn is_command_running(&mut self) -> bool {
        let Some(child) = &mut self.command else { return false };
        if self.status.is_none() {
            // What cannot be told is told by `wait`.
            self.status = child.try_wait().unwrap_or_default();
        }
        self.status.is_none()
    }

    /// Waits for the tracer to let go, and for the command. Signals are passed on to it; the second one ends the
    /// waiting.
    ///
    /// # Errors
    /// The system cannot tell of the command.
    pub fn wait(mut self) -> std::io::Result<CommandEnd> {
        let mut left_running = None;
        while self.is_command_running() {
            let Some(child) = &mut self.command else { break };
            self.status = child.try_wait()?;
            let wish = self.signals.take(Some(child.id()));
            self.signals.pass_on(Some(child.id()));
            self.signals.relay(Some(child.id()));
            if self.leave || wish == Some(Wish::Leave) {
                left_running = self.signals.last();
                break;
            }
            std::thread::sleep(POLL);
        }
        if let Some(ending) = self.ending.take() {
            let _ = ending.join();
        }
        let status = self.status;
        Ok(CommandEnd {
            exit_status: status.and_then(|s| s.code()),
            signal: status.and_then(|s| s.signal()),
            left_running,
        })
    }
}

/// A spool that is removed unless it turns out to be needed.
struct Spool {
    path: PathBuf,
    keep: bool,
}

/// What the recorder of a mount does not see, where its file system is mounted elsewhere too.
fn missed_by_mount(subject: &Subject) -> Option<String> {
    let Subject::Mount(path) = subject else { return None };
    let others = posix::other_mounts(path).unwrap_or_default();
    let first = escape(others.first()?.as_os_str().as_bytes()).into_owned();
    let more = if others.len() > 1 { format!(" and {} other places", others.len() - 1) } else { String::new() };
    Some(format!(
        "the file system is mounted on {first}{more} too: calls by absolute paths through there, other than opens, are \
         not recorded and not counted"
    ))
}

impl Drop for Spool {
    fn drop(&mut self) {
        if !self.keep {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// See [`super::record_with`].
pub(super) fn run(options: &RecordOptions, tracer: &mut dyn Tracer) -> Result<Recording, RecordError> {
    let directory = working_directory(&options.subject);
    let view = view(&options.subject);
    let roots = roots(options, directory.as_deref(), &view);
    let works_in = trees(options, directory.as_deref(), &view);
    let what = || format!("{}: cannot find where to make the profile", options.output.display());
    let workshop = Workshop::open(options, &works_in).map_err(|source| RecordError::Io { what: what(), source })?;
    let place = options.output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let room = Room::on(workshop.path(), options.keep_free_bytes);
    let writing = WriterOptions {
        overwrite: options.overwrite,
        room: Some(room),
        grows_in: workshop.apart().map(|apart| (apart, Room::on(place, options.keep_free_bytes))),
        ..WriterOptions::default()
    };
    let profile = profile::Writer::create(&options.output, writing)?;
    let limits = WalkLimits { entries_max: options.snapshot_entries_max, ..WalkLimits::default() };
    tracer.prepare(target(&options.subject).as_ref())?;
    let before = view.tree(&roots, &limits).map_err(|source| match source.kind() {
        std::io::ErrorKind::Interrupted => RecordError::Interrupted,
        _ => RecordError::Io { what: "cannot read the names before the run".into(), source },
    })?;
    // From here on signals are for what is recorded; one that came before is not.
    let mut signals = Signals::listen(matches!(options.subject, Subject::Command(_)));
    if posix::interrupt::requested() {
        return Err(RecordError::Interrupted);
    }
    let header = Header { mount_namespace: view.namespace(), ..header(options, tracer, directory.as_deref()) };
    let (mut spool, writer) = spool(options, &header, &before, &roots, (&workshop, room))?;
    if workshop.is_elsewhere() {
        tell(options, News::SpoolElsewhere(spool.path.clone()));
    }
    let decoding =
        ImportOptions { name: "the tracer's records".into(), keep_removed: true, ..ImportOptions::default() };
    let reader = Reader::follow(&spool.path, writer.growth())?;
    let analysis = Analysis::start(reader, tracer.decoder(decoding), profile, view).map_err(no_thread)?;
    // Of a command, Ctrl-Z stops the program too, as it should. What runs elsewhere must not wait for us: strace waits
    // for its reader.
    let is_command = matches!(options.subject, Subject::Command(_));
    let _not_stopped = (!is_command).then(posix::interrupt::not_stopped);
    let (capture, mut command) = match begin(options, tracer, writer) {
        Ok(begun) => begun,
        Err(error) => {
            // Nothing was recorded. The analysis sees the end of an empty spool, and removes what it began.
            let _ = analysis.wait(options.patience, &mut || false);
            return Err(error);
        }
    };
    let meanwhile = if is_command {
        drop(before);
        None
    } else {
        // Another view of the same names: the first is the analysis's.
        Some(Meanwhile::start(before, self::view(&options.subject)))
    };
    let mut status = None;
    let captured = supervise(options, capture, &mut signals, command.as_mut(), &mut status)?;
    let changed_meanwhile = meanwhile.and_then(Meanwhile::note);
    let Captured { mut writer, lost_records, why, ending, ended, error } = captured;
    let mut ending = Some(ending);
    let mut end = End { at_unix_ns: now_ns(), ..End::default() };
    let mut said = String::new();
    let mut notes = Vec::new();
    if ended && let Some(ended) = ending.take().and_then(|thread| thread.join().ok()) {
        end.tracer_lost = ended.lost;
        said = ended.said;
        notes = ended.notes;
    }
    if let Some(child) = &mut command {
        let begun = Instant::now();
        // What the tracer saw end has ended; a moment passes until its parent is told.
        while status.is_none() && ended && !end.tracer_lost && begun.elapsed() < REAPING {
            status = child.try_wait().map_err(cannot_wait)?;
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    end.exit_status = status.and_then(|s| s.code());
    end.signal = status.and_then(|s| s.signal());
    // A full disk has been told of; the analysis reads what is there.
    let ended_in_spool = writer.end(&end);
    drop(writer);
    let pid = command.as_ref().filter(|_| status.is_none()).map(Child::id);
    if pid.is_none() {
        signals.over();
    }
    let mut leave = false;
    let analysed = analysis.wait(options.patience, &mut || {
        let wish = signals.take(pid);
        signals.pass_on(pid);
        signals.relay(pid);
        leave |= wish == Some(Wish::Leave);
        wish == Some(Wish::Leave)
    });
    // Whoever gave up the profile has had that. One that was there already costs no second wish.
    let leave = leave && analysed.is_ok();
    // A tracer that was asked to end may take its time, and nobody waits for it here.
    if ending.as_ref().is_some_and(JoinHandle::is_finished)
        && let Some(ended) = ending.take().and_then(|thread| thread.join().ok())
    {
        notes = ended.notes;
    }
    let profile = match analysed {
        Ok(mut summary) => {
            summary.notes.splice(0..0, tracer.notes());
            summary.notes.extend(missed_by_mount(&options.subject));
            summary.notes.extend(changed_meanwhile);
            summary.notes.extend(notes);
            summary.notes.extend(error.map(|e| format!("the tracer could not be heard any more: {e}")));
            summary.notes.extend(Some(said).filter(|said| end.tracer_lost && !said.is_empty()));
            if ended_in_spool.is_err() && lost_records > 0 {
                // The gap could not be put on record in the spool, so the profile does not know of it.
                spool.keep = true;
                summary.notes.push(format!(
                    "{lost_records} records of the tracer's are missing ({why}); {} holds the others",
                    spool.path.display()
                ));
            }
            // The end may have found no room in the spool.
            (summary.exit_status, summary.signal, summary.tracer_lost) = (end.exit_status, end.signal, end.tracer_lost);
            Ok(summary)
        }
        Err(AnalysisError::Import(ImportError::Empty { .. })) if lost_records == 0 => {
            Err(RecordError::CannotTrace { said: nothing(&options.subject, &said) })
        }
        Err(error) => {
            spool.keep = true;
            Err(RecordError::Analysis { spool: spool.path.clone(), lost_records, error })
        }
    };
    Ok(Recording { profile, command, status, signals, ending, leave })
}

/// Starts what is to be recorded, with the tracer attached before its first call.
fn begin(
    options: &RecordOptions,
    tracer: &mut dyn Tracer,
    writer: Writer,
) -> Result<(Capture, Option<Child>), RecordError> {
    let count = tracer.counter();
    let held = match &options.subject {
        Subject::Command(argv) => Some(
            Held::spawn(command(argv)?)
                .map_err(|source| RecordError::Io { what: "cannot start a process".into(), source })?,
        ),
        _ => None,
    };
    // The command is there, with what it inherits.
    posix::memory::first_to_go();
    let of_command = || Target::Command(held.as_ref().map_or(0, Held::pid));
    let target = target(&options.subject).unwrap_or_else(of_command);
    let tracing = tracer.start(&target)?;
    // What strace stopped goes on once it is heard, so this comes before anything that may take its time.
    let capture = Capture::start(tracing, writer, count).map_err(no_thread)?;
    if held.is_none() {
        tell(options, News::Started);
    }
    let Some(held) = held else { return Ok((capture, None)) };
    match held.release() {
        Ok(child) => {
            if let Some(on_command) = options.on_command {
                on_command();
            }
            Ok((capture, Some(child)))
        }
        Err(source) => {
            capture.stop();
            let _ = capture.finish().ending.join();
            let program = match &options.subject {
                Subject::Command(argv) => argv.first().cloned().unwrap_or_default(),
                _ => OsString::new(),
            };
            Err(RecordError::CannotRun { command: program.into(), why: source.to_string() })
        }
    }
}

/// Lets somebody be told who may not be listening: a terminal that is stopped, a pipe that is full. It is waited for a
/// moment only.
fn tell(options: &RecordOptions, news: News) {
    let Some(tell) = options.on_news else { return };
    if let Ok(telling) = std::thread::Builder::new().name("tell".into()).spawn(move || tell(&news)) {
        let begun = Instant::now();
        while !telling.is_finished() && begun.elapsed() < TELLING {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// What the tracer is to look at; `None` of a command that is not there yet.
fn target(subject: &Subject) -> Option<Target> {
    match subject {
        Subject::Command(_) => None,
        Subject::Processes(pids) => Some(Target::Processes(pids.clone())),
        Subject::Cgroup(path) => Some(Target::Cgroup(path.clone())),
        Subject::Mount(path) => Some(Target::Mount(path.clone())),
    }
}

fn command(argv: &[OsString]) -> Result<Command, RecordError> {
    let (program, arguments) = argv.split_first().ok_or(RecordError::NoCommand)?;
    let mut command = Command::new(find_program(Path::new(program))?);
    command.arg0(program).args(arguments);
    Ok(command)
}

/// Waits for the end of the capture, and asks for it where a signal or the time says so.
fn supervise(
    options: &RecordOptions,
    capture: Capture,
    signals: &mut Signals,
    mut command: Option<&mut Child>,
    status: &mut Option<ExitStatus>,
) -> Result<Captured, RecordError> {
    let begun = Instant::now();
    let mut alone_since = None;
    while !capture.is_finished() {
        if let (Some(child), None) = (&mut command, &status) {
            *status = child.try_wait().map_err(cannot_wait)?;
            alone_since = status.map(|_| Instant::now());
        }
        if alone_since.is_some_and(|since: Instant| since.elapsed() > OTHERS_GO_ON) {
            tell(options, News::OthersGoOn);
            alone_since = None;
        }
        let pid = command.as_ref().map(|child| child.id());
        signals.relay(pid.filter(|_| status.is_none()));
        let over = options.duration.is_some_and(|duration| begun.elapsed() >= duration);
        let asked = signals.take(pid).is_some();
        if asked && signals.was_from_kernel() {
            std::thread::sleep(DELIVERY);
        }
        if asked || over {
            capture.stop();
        }
        std::thread::sleep(POLL);
    }
    let captured = capture.finish();
    // Not before the tracer has let go: strace, asked to while it holds a signal for a program, drops it.
    signals.pass_on(command.as_ref().filter(|_| status.is_none()).map(|child| child.id()));
    Ok(captured)
}

fn no_thread(source: std::io::Error) -> RecordError {
    RecordError::Io { what: "cannot start a thread".into(), source }
}

fn cannot_wait(source: std::io::Error) -> RecordError {
    RecordError::Io { what: "cannot wait for the command".into(), source }
}

fn nothing(subject: &Subject, said: &str) -> String {
    let what = match subject {
        Subject::Command(_) => "it recorded nothing",
        _ => "nothing was called while it was recorded",
    };
    if said.is_empty() { what.to_owned() } else { format!("{what}, and said: {said}") }
}

fn header(options: &RecordOptions, tracer: &dyn Tracer, directory: Option<&Path>) -> Header {
    let text = |bytes: &[u8]| escape(bytes).into_owned();
    let of_path = |path: &Path| text(path.as_os_str().as_bytes());
    let subject = match &options.subject {
        Subject::Command(argv) => {
            spool::Subject::Command { argv: argv.iter().map(|arg| text(arg.as_bytes())).collect() }
        }
        Subject::Processes(pids) => spool::Subject::Processes { pids: pids.clone() },
        Subject::Cgroup(path) => spool::Subject::Cgroup { path: of_path(path) },
        Subject::Mount(path) => spool::Subject::Mount { path: of_path(path) },
    };
    Header {
        fsage_version: env!("CARGO_PKG_VERSION").into(),
        notation: tracer.notation(),
        tracer: tracer.describe(),
        clock: tracer.clock(),
        subject,
        working_directory: directory.map(of_path).unwrap_or_default(),
        mount_namespace: None,
        host: host::host(),
        boot_id: host::boot_id(),
        started_unix_ns: now_ns(),
    }
}

/// A new spool, with the names read before the run. One that an earlier recording left is never touched.
fn spool(
    options: &RecordOptions,
    header: &Header,
    before: &Walked,
    roots: &[PathBuf],
    (workshop, room): (&Workshop, Room),
) -> Result<(Spool, Writer), RecordError> {
    let stem = options.output.file_stem().unwrap_or(options.output.as_os_str());
    let mut number = 1;
    let (path, mut writer) = loop {
        let mut name = stem.to_owned();
        if number > 1 {
            name.push(format!("-{number}"));
        }
        name.push(".");
        name.push(spool::EXTENSION);
        let path = workshop.apart().map_or_else(|| options.output.with_file_name(&name), |apart| apart.join(&name));
        match Writer::create(&path, header) {
            // The profile, which comes of it, can still be written when the spool has given way.
            Ok(writer) => break (path, writer.leaving(room.twice())),
            Err(spool::SpoolError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::AlreadyExists && number < SPOOLS_MAX =>
            {
                number += 1;
            }
            Err(e) => return Err(e.into()),
        }
    };
    let spool = Spool { path, keep: false };
    let roots = roots.iter().map(|root| escape(root.as_os_str().as_bytes()).into_owned()).collect();
    writer.names(before, roots).map_err(|source| spool::SpoolError::Io {
        path: spool.path.clone(),
        doing: "write the names before the run",
        source,
    })?;
    Ok((spool, writer))
}
