//! Stopping on SIGINT, SIGTERM and SIGHUP without leaving anything behind.
//!
//! The first signal only raises a flag: drivers poll [`requested`] and return
//! [`io::ErrorKind::Interrupted`], and everything is cleaned up on the way out. A second signal says that
//! somebody is losing patience: a thread of our own (nothing is done in the handler itself) runs the clean-up
//! of [`cleanup`](crate::cleanup) and ends the process with 128 + the signal's number.
#![allow(unsafe_code)]

use std::io;
use std::io::Read;
use std::os::fd::IntoRawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);
static SIGNAL: AtomicI32 = AtomicI32::new(0);
static FORCED: AtomicBool = AtomicBool::new(false);
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// Signals are for a command we run.
static PASSING: AtomicBool = AtomicBool::new(false);
/// The signal's number, negative where the kernel sent it.
static PASSED: AtomicI32 = AtomicI32::new(0);

/// A signal that was received while signals were for a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signal: i32,
    /// Whether the kernel sent it, as a terminal does for Ctrl-C: then the whole foreground process group got it, and not from
    /// a process that meant us alone.
    pub from_kernel: bool,
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
pub struct PassOn(());

/// Leaves signals to the command we run until the returned guard is dropped.
pub fn pass_on() -> PassOn {
    PASSED.store(0, Ordering::SeqCst);
    PASSING.store(true, Ordering::SeqCst);
    PassOn(())
}

impl PassOn {
    /// The signal received since the last time we asked, if any: the caller passes it on where needed.
    pub fn take(&self) -> Option<Received> {
        match PASSED.swap(0, Ordering::SeqCst) {
            0 => None,
            signal => Some(Received { signal: signal.abs(), from_kernel: signal < 0 }),
        }
    }
}

impl Drop for PassOn {
    fn drop(&mut self) {
        PASSING.store(false, Ordering::SeqCst);
    }
}

/// While it lives, the key that stops what is in front of a terminal (Ctrl-Z), and a terminal that lets nobody write from behind, do not
/// stop us: SIGSTOP does.
#[derive(Debug)]
pub struct NotStopped {
    before: Vec<(libc::c_int, libc::sigaction)>,
}

/// Ignores SIGTSTP and SIGTTOU until the returned guard is dropped. Processes started meanwhile ignore them too.
pub fn not_stopped() -> NotStopped {
    // SAFETY: both structs are plain data; ignoring a signal runs no code of ours.
    let ignore = |signal| unsafe {
        let (mut action, mut old): (libc::sigaction, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
        action.sa_sigaction = libc::SIG_IGN;
        (libc::sigaction(signal, &raw const action, &raw mut old) == 0).then_some((signal, old))
    };
    NotStopped { before: [libc::SIGTSTP, libc::SIGTTOU].into_iter().filter_map(ignore).collect() }
}

impl Drop for NotStopped {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            // SAFETY: it is what the kernel said was there before.
            unsafe { libc::sigaction(*signal, old, std::ptr::null_mut()) };
        }
    }
}

/// The exit code that tells the shell which signal ended us (130 for SIGINT), if one did.
pub fn exit_code() -> Option<u8> {
    let signal = SIGNAL.load(Ordering::Relaxed);
    if signal == 0 { None } else { u8::try_from(128 + signal).ok() }
}

/// Stops the calling thread for good once the forced clean-up has begun, which ends the process: what it would make
/// now would be left behind, and what it would fail at is no news.
#[inline]
pub(crate) fn stand_aside() {
    if FORCED.load(Ordering::Relaxed) {
        loop {
            std::thread::park();
        }
    }
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
    hear_of_children();
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

extern "C" fn handler(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    if PASSING.load(Ordering::SeqCst) {
        // SAFETY: with SA_SIGINFO the kernel passes a description that is valid until the handler returns.
        let from_kernel = unsafe { info.as_ref() }.is_some_and(|info| info.si_code == SI_KERNEL);
        PASSED.store(if from_kernel { -signal } else { signal }, Ordering::SeqCst);
        return;
    }
    SIGNAL.store(signal, Ordering::Relaxed);
    COUNT.fetch_add(1, Ordering::Relaxed);
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

/// Says something on standard error, if that can be written to.
pub(crate) fn tell(text: &str) {
    use io::Write as _;
    let _ = writeln!(io::stderr(), "fsage: {}", crate::text::printable(text));
}

/// Waits for the second signal.
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
        if seen >= 2 {
            FORCED.store(true, Ordering::SeqCst);
            for line in crate::cleanup::release_all() {
                tell(&line);
            }
            std::process::exit(exit_code().unwrap_or(130).into());
        }
    }
}
