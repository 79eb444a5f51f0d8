//! Stopping on SIGINT, SIGTERM and SIGHUP without leaving anything behind.
//!
//! The first signal only raises a flag: drivers poll [`requested`] and return
//! [`io::ErrorKind::Interrupted`], and everything is cleaned up on the way out. A second signal says that
//! somebody is losing patience: a thread of our own (nothing is done in the handler itself) runs the clean-up
//! of [`cleanup`](crate::cleanup) and ends the process with 128 + the signal's number. Where [`at_once`] says so, the
//! first signal does that; where [`only_asked`] does, none.
#![allow(unsafe_code)]

use std::io;
use std::io::Read;
use std::os::fd::IntoRawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// Signals are for a command we run.
static PASSING: AtomicBool = AtomicBool::new(false);
/// The signal's number, negative where the kernel sent it.
static PASSED: AtomicI32 = AtomicI32::new(0);
/// Who sent it; 0 if the kernel did.
static PASSED_FROM: AtomicI32 = AtomicI32::new(0);
/// The last signal since [`pass_on`] was called, whoever it was for.
static LAST: AtomicI32 = AtomicI32::new(0);

/// A signal that was received while signals were for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signal: i32,
    /// Whether the kernel sent it, as a terminal does for Ctrl-C: then the whole foreground process group got it, and
    /// not from a process that meant us alone.
    pub from_kernel: bool,
    /// The process that sent it; none if the kernel did.
    pub from: Option<u32>,
}

/// Whether a signal asked us to stop. One relaxed load: cheap enough for every step of a loop.
#[inline]
pub fn requested() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

/// `Err` with [`io::ErrorKind::Interrupted`] once a signal asked us to stop.
pub fn check() -> io::Result<()> {
    if requested() { Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted by a signal")) } else { Ok(()) }
}

/// While it lives, signals are meant for a command we run, not for us: they raise no flag and are only told of.
#[derive(Debug)]
pub struct PassOn {
    _others: Replaced,
}

/// Signals that end who has nothing to do with them, beside those that ask to end ([`install`]), real-time signals, and
/// what tells of a fault of one's own: a program restarts its logs by one, prints its threads by another, has an alarm
/// set by whoever executed it.
const OTHERS: [libc::c_int; 9] = [
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGSTKFLT,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
];

/// Others than those that ask to end, from number 1: a bit for each that came and is to be told, and who sent it.
static OTHERS_CAME: AtomicU64 = AtomicU64::new(0);
static OTHERS_FROM: [AtomicI32; 64] = [const { AtomicI32::new(0) }; 64];

/// A signal of [`PassOn::others`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its number.
    pub signal: i32,
    /// The process that sent it; none if the kernel did.
    pub from: Option<u32>,
}

/// Leaves signals to the command we run until the returned guard is dropped. Those that would end us without being for
/// us do not.
pub fn pass_on() -> PassOn {
    PASSED.store(0, Ordering::SeqCst);
    OTHERS_CAME.store(0, Ordering::SeqCst);
    LAST.store(0, Ordering::SeqCst);
    PASSING.store(true, Ordering::SeqCst);
    let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
    PassOn { _others: Replaced::by(other as Handler as libc::sighandler_t, OTHERS.into_iter().chain(real_time)) }
}

/// Whether a signal came since signals were left to a command. Its number.
pub fn passed() -> Option<i32> {
    Some(LAST.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
}

/// What came while signals were left to a command was for us as well: it asks us to stop from now on. Once the guard of
/// [`pass_on`] is dropped, no signal is missed.
pub fn heed_passed() {
    if let Some(signal) = passed()
        && !requested()
    {
        heard(signal);
    }
}

impl PassOn {
    /// The signal received since the last time we asked, if any: the caller passes it on where needed.
    pub fn take(&self) -> Option<Received> {
        match PASSED.swap(0, Ordering::SeqCst) {
            0 => None,
            signal => Some(Received {
                signal: signal.abs(),
                from_kernel: signal < 0,
                from: u32::try_from(PASSED_FROM.load(Ordering::SeqCst)).ok().filter(|&pid| pid != 0),
            }),
        }
    }

    /// Signals since the last time we asked that ask for no end of ours, SIGHUP from a process among them. What a
    /// terminal sends (SIGQUIT) is not: the command has it.
    pub fn others(&self) -> impl Iterator<Item = Other> {
        let pending = OTHERS_CAME.swap(0, Ordering::SeqCst);
        (1..).zip(&OTHERS_FROM).filter(move |(signal, _)| pending >> (signal - 1) & 1 == 1).map(|(signal, from)| {
            let from = u32::try_from(from.load(Ordering::SeqCst)).ok().filter(|&pid| pid != 0);
            Other { signal, from }
        })
    }
}

impl Drop for PassOn {
    fn drop(&mut self) {
        PASSING.store(false, Ordering::SeqCst);
    }
}

/// Sends a process a signal, if it is there and may be sent one.
pub fn send(pid: u32, signal: i32) {
    if let Ok(pid @ 1..) = i32::try_from(pid) {
        // SAFETY: a plain system call on numbers.
        unsafe { libc::kill(pid, signal) };
    }
}

extern "C" fn other(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    LAST.store(signal, Ordering::SeqCst);
    // SAFETY: with SA_SIGINFO the kernel passes a description that is valid until the handler returns; a signal sent by
    // kill(2) or sigqueue(3) says by whom.
    let (from_kernel, from) = unsafe {
        info.as_ref().map_or((true, 0), |info| (info.si_code > 0, if info.si_code > 0 { 0 } else { info.si_pid() }))
    };
    if signal == libc::SIGQUIT && from_kernel {
        return;
    }
    if let Some(place) = usize::try_from(signal - 1).ok().and_then(|at| OTHERS_FROM.get(at)) {
        place.store(from, Ordering::SeqCst);
        OTHERS_CAME.fetch_or(1 << (signal - 1), Ordering::SeqCst);
    }
}

/// What was done on signals, to be done again when it is dropped.
#[derive(Debug)]
struct Replaced {
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Replaced {
    /// Does something else on these signals, but for those that are ignored.
    fn by(action: libc::sighandler_t, signals: impl Iterator<Item = libc::c_int>) -> Replaced {
        // SAFETY: both structs are plain data; the handlers of this module do only what signal-safety(7) allows.
        // SA_RESTART keeps system calls in flight from failing with EINTR.
        let replace = |signal| unsafe {
            let (mut new, mut old): (libc::sigaction, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
            let is_there = libc::sigaction(signal, std::ptr::null(), &raw mut old) == 0;
            if !is_there || old.sa_sigaction == libc::SIG_IGN {
                return None;
            }
            new.sa_sigaction = action;
            new.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            (libc::sigaction(signal, &raw const new, std::ptr::null_mut()) == 0).then_some((signal, old))
        };
        Replaced { before: signals.filter_map(replace).collect() }
    }
}

impl Drop for Replaced {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            // SAFETY: it is what the kernel said was there before.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}

/// While it lives, the key that stops what is in front of a terminal (Ctrl-Z), and a terminal that lets nobody write
/// from behind, do not stop us: SIGSTOP does.
#[derive(Debug)]
pub struct NotStopped {
    _before: Replaced,
}

/// Ignores SIGTSTP and SIGTTOU until the returned guard is dropped. Processes started meanwhile ignore them too.
pub fn not_stopped() -> NotStopped {
    NotStopped { _before: Replaced::by(libc::SIG_IGN, [libc::SIGTSTP, libc::SIGTTOU].into_iter()) }
}

/// How many parts of the program want the first signal to be the last.
static AT_ONCE: AtomicU32 = AtomicU32::new(0);

/// While it lives, the first signal ends the process as a second one would.
#[derive(Debug)]
pub struct AtOnce(());

/// Until the returned guard is dropped, the first signal removes what is in the list of [`cleanup`](crate::cleanup) and
/// ends the process, wherever it is. For work that makes nothing else, and whose loops, many and deep, look at no flag.
pub fn at_once() -> AtOnce {
    AT_ONCE.fetch_add(1, Ordering::SeqCst);
    if requested() {
        end_at_once();
    }
    AtOnce(())
}

impl Drop for AtOnce {
    fn drop(&mut self) {
        AT_ONCE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How many parts of the program end in their own time.
static ONLY_ASKED: AtomicU32 = AtomicU32::new(0);

/// While it lives, no signal ends the process before it has done what it has to: each only asks, as the first does.
#[derive(Debug)]
pub struct OnlyAsked(());

/// Until the returned guard is dropped, whoever loses patience waits: for work that would lose what others have given
/// us, which only we have.
pub fn only_asked() -> OnlyAsked {
    ONLY_ASKED.fetch_add(1, Ordering::SeqCst);
    OnlyAsked(())
}

impl Drop for OnlyAsked {
    fn drop(&mut self) {
        ONLY_ASKED.fetch_sub(1, Ordering::SeqCst);
    }
}

fn end_at_once() -> ! {
    crate::notice::tell("interrupted by a signal");
    force_end(exit_code().unwrap_or(130).into())
}

/// The signal that asked us to stop, if one did.
pub(crate) fn signal() -> Option<i32> {
    Some(SIGNAL.load(Ordering::Relaxed)).filter(|&signal| signal != 0)
}

/// The exit code that tells the shell which signal ended us (130 for SIGINT), if one did.
pub fn exit_code() -> Option<u8> {
    u8::try_from(128 + signal()?).ok()
}

/// Installs the handlers, once; the binary calls this before anything else. A signal that was ignored when we
/// were started (`nohup`) stays ignored.
pub fn install() -> io::Result<()> {
    static ONCE: Once = Once::new();
    let mut result = Ok(());
    ONCE.call_once(|| result = install_handlers());
    result
}

/// `si_code` of what the kernel sends (asm-generic/siginfo.h).
const SI_KERNEL: libc::c_int = 0x80;

/// SIGCHLD was ignored when this process began.
static CHILDREN_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether [`install`] found SIGCHLD ignored: a command that we run is to find it so.
pub(crate) fn children_were_ignored() -> bool {
    CHILDREN_IGNORED.load(Ordering::Relaxed)
}

/// SIGXFSZ was not ignored when this process began.
static LIMIT_KILLED: AtomicBool = AtomicBool::new(false);

/// Whether [`install`] found that SIGXFSZ ends a process: it is to end a command that we run.
pub(crate) fn limit_killed() -> bool {
    LIMIT_KILLED.load(Ordering::Relaxed)
}

/// SIGPIPE was ignored before Rust's runtime began, which ignores it for us in any case and lets no program that we run
/// find it so.
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Whether this process found SIGPIPE ignored, as a service of systemd's does: a command that we run is to find it so.
pub(crate) fn pipe_was_ignored() -> bool {
    PIPE_IGNORED.load(Ordering::Relaxed)
}

/// Called by the C library before `main`, which is too late.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = look_at_pipe;

extern "C" fn look_at_pipe() {
    // SAFETY: `old` is a plain struct that the kernel fills in; passing no new action changes nothing. No part of
    // Rust's runtime is needed.
    let ignored = unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut old) == 0 && old.sa_sigaction == libc::SIG_IGN
    };
    PIPE_IGNORED.store(ignored, Ordering::Relaxed);
}

/// A file that may not grow (`ulimit -f`) is a write that fails, like one on a full disk, and not the end of us.
fn survive_limits() {
    // SAFETY: plain structs that the kernel reads and fills in; SIG_IGN is no handler of ours.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        let mut ignore: libc::sigaction = std::mem::zeroed();
        ignore.sa_sigaction = libc::SIG_IGN;
        if libc::sigaction(libc::SIGXFSZ, &raw const ignore, &raw mut old) == 0 {
            LIMIT_KILLED.store(old.sa_sigaction != libc::SIG_IGN, Ordering::Relaxed);
        }
    }
}

/// Stops ignoring SIGCHLD, which is inherited: the kernel reports no child's end to a process that ignores it.
fn hear_of_children() {
    // SAFETY: plain structs that the kernel reads and fills in; SIG_DFL is no handler of ours.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        let mut default: libc::sigaction = std::mem::zeroed();
        default.sa_sigaction = libc::SIG_DFL;
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut old) == 0 && old.sa_sigaction == libc::SIG_IGN {
            CHILDREN_IGNORED.store(true, Ordering::Relaxed);
            libc::sigaction(libc::SIGCHLD, &raw const default, std::ptr::null_mut());
        }
    }
}

fn install_handlers() -> io::Result<()> {
    crate::inherited::note();
    hear_of_children();
    survive_limits();
    let (reader, writer) = io::pipe()?;
    std::thread::Builder::new().name("signals".into()).spawn(move || listen(reader))?;
    // Kept open for the life of the process: the handler writes to it.
    PIPE.store(writer.into_raw_fd(), Ordering::SeqCst);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: `old` is a plain struct that the kernel fills in; passing no new action changes nothing.
        let ignored = unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut old) == 0 && old.sa_sigaction == libc::SIG_IGN
        };
        if ignored {
            continue;
        }
        // SAFETY: the handler does only what signal-safety(7) allows: atomics and write(2). SA_RESTART keeps
        // system calls in flight from failing with EINTR.
        let installed = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as Handler as libc::sighandler_t;
            action.sa_flags = libc::SA_RESTART | libc::SA_SIGINFO;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if installed != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

extern "C" fn handler(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // First of all: who finds no longer PASSING finds it here.
    LAST.store(signal, Ordering::SeqCst);
    if PASSING.load(Ordering::SeqCst) {
        // SAFETY: with SA_SIGINFO the kernel passes a description that is valid until the handler returns.
        let from_kernel = unsafe { info.as_ref() }.is_some_and(|info| info.si_code == SI_KERNEL);
        // A terminal that is gone asks to end; whoever sends this one asks a service to read its settings again.
        if signal == libc::SIGHUP && !from_kernel {
            return other(signal, info, context);
        }
        // SAFETY: as above; a signal sent by kill(2) or sigqueue(3) says by whom.
        let from = unsafe { info.as_ref().filter(|info| info.si_code <= 0).map_or(0, |info| info.si_pid()) };
        PASSED_FROM.store(from, Ordering::SeqCst);
        PASSED.store(if from_kernel { -signal } else { signal }, Ordering::SeqCst);
        return;
    }
    heard(signal);
}

/// Raises the flag, and tells the thread that listens. A signal's handler may do this.
fn heard(signal: libc::c_int) {
    SIGNAL.store(signal, Ordering::Relaxed);
    COUNT.fetch_add(1, Ordering::SeqCst);
    let byte = 0u8;
    // SAFETY: errno belongs to this thread, and the code that was interrupted must find it unchanged; write(2) reads
    // one byte from the stack.
    unsafe {
        let errno = libc::__errno_location();
        let saved = *errno;
        libc::write(PIPE.load(Ordering::Relaxed), (&raw const byte).cast(), 1);
        *errno = saved;
    }
}

/// Waits for the second signal, or the first where that is enough.
fn listen(mut reader: io::PipeReader) {
    let mut seen = 0usize;
    let mut buffer = [0u8; 16];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => seen += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
        if seen >= 1 && AT_ONCE.load(Ordering::SeqCst) > 0 {
            end_at_once();
        }
        if seen >= 2 && ONLY_ASKED.load(Ordering::SeqCst) == 0 {
            force_end(exit_code().unwrap_or(130).into());
        }
    }
}

/// Removes what the process has made and ends it, whatever its other threads are at.
pub(crate) fn force_end(code: i32) -> ! {
    for line in crate::cleanup::release_all() {
        crate::notice::tell(&line);
    }
    std::process::exit(code)
}
