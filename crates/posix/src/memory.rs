//! Memory that somebody else's file may cost.
//!
//! A decoder that is not ours believes what a file says of its lengths: a page of a few bytes may claim gigabytes, a
//! dictionary of one entry may be repeated a million times. Nobody can check all of that from outside. So the allocator
//! counts: while a thread decodes such a file ([`reading`]) it gets so many bytes and no more, and where it asks for
//! more, or where memory ends, the process ends with a message that names the file. Whatever it had made goes, now or
//! with the next run ([`crate::cleanup`]).
//!
//! Nothing here counts unless the program has [`Counting`] for its allocator, as the `fsage` binary does.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code for a file that asks for more than its kind may.
const BAD_INPUT: i32 = 4;
/// A line is not longer, whatever the names of a file's columns.
const LINE_MAX: usize = 6_000;
/// Exit code for memory that ended.
const ENVIRONMENT: i32 = 3;

/// What a thread is reading, and what that has cost.
struct Region<'a> {
    path: &'a Path,
    limit_bytes: usize,
    /// Names a part of the file.
    place: &'a dyn Fn(usize) -> String,
    /// The part in hand.
    part: Cell<usize>,
    /// Less than nothing where more was freed than allocated.
    used_bytes: Cell<isize>,
}

thread_local! {
    /// Null, or valid: [`reading`] takes it away before the region ends. It has no destructor and no lazy beginning, so
    /// that an allocator may look at it at any time.
    static REGION: Cell<*const Region<'static>> = const { Cell::new(ptr::null()) };
}

/// The input that the whole command is about.
static IN_HAND: OnceLock<String> = OnceLock::new();
static ENDING: AtomicBool = AtomicBool::new(false);

/// Runs something on this thread that decodes the file, which gets at most so many bytes more than it gives back.
/// Within another it changes nothing. `place` names the part of the file that [`at`] said last, and 0 before that.
pub fn reading<T>(path: &Path, limit_bytes: usize, place: &dyn Fn(usize) -> String, decode: impl FnOnce() -> T) -> T {
    struct Ends;
    impl Drop for Ends {
        fn drop(&mut self) {
            REGION.set(ptr::null());
        }
    }
    if !REGION.get().is_null() {
        return decode();
    }
    let region = Region { path, limit_bytes, place, part: Cell::new(0), used_bytes: Cell::new(0) };
    // `region` lives until the guard below, which was made after it and goes before it, has taken the pointer away;
    // also when `decode` panics.
    REGION.set((&raw const region).cast());
    let _ends = Ends;
    decode()
}

/// Says which part of its file this thread decodes from now on, for the message should it ask for too much.
pub fn at(part: usize) {
    let region = REGION.get();
    if !region.is_null() {
        // SAFETY: not null, so its `reading` is further up this thread's stack.
        unsafe { (*region).part.set(part) };
    }
}

/// Says what a command reads, to be named should memory end outside of [`reading`]. The first one stays.
pub fn in_hand(path: &Path) {
    let _ = IN_HAND.set(units::text::printable(&path.to_string_lossy()));
}

/// Where memory ends, the kernel is to end us first, and what we start from now on: not whom we watch. We may always
/// ask for that (proc(5), `oom_score_adj`).
pub fn first_to_go() {
    // A system without /proc chooses as it likes.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// Has all threads allocate from one heap. glibc gives each its own, and what was freed in one serves no other: a
/// replay of 45 threads, each of which reads a part of the trace, held a third more.
pub fn one_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator's; it may refuse.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// The system's allocator, and the count.
#[derive(Debug)]
pub struct Counting;

impl Counting {
    /// Before memory is asked for.
    #[inline]
    fn grows(bytes: usize) {
        let region = REGION.get();
        if region.is_null() {
            return;
        }
        // SAFETY: not null, so its `reading` is further up this thread's stack.
        let region = unsafe { &*region };
        let used = region.used_bytes.get().saturating_add_unsigned(bytes);
        region.used_bytes.set(used);
        if usize::try_from(used).is_ok_and(|used| used > region.limit_bytes) {
            end(region, BAD_INPUT, region.limit_bytes);
        }
    }

    #[inline]
    fn shrinks(bytes: usize) {
        let region = REGION.get();
        if !region.is_null() {
            // SAFETY: as above.
            let used = unsafe { &(*region).used_bytes };
            used.set(used.get().saturating_sub_unsigned(bytes));
        }
    }

    /// After it was asked for.
    #[inline]
    fn got(memory: *mut u8, bytes: usize) -> *mut u8 {
        if memory.is_null() {
            ended(bytes);
        }
        memory
    }
}

// SAFETY: every call goes to the system's allocator as it came, and its answer comes back as it is. What is counted
// beside that does not unwind: it allocates nothing until it has decided to end the process, and then never returns.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::grows(layout.size());
        // SAFETY: the caller's promise.
        Counting::got(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::grows(layout.size());
        // SAFETY: the caller's promise.
        Counting::got(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        Counting::shrinks(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // Both are there while the one is copied to the other.
        Counting::grows(bytes);
        // SAFETY: the caller's promise.
        let moved = Counting::got(unsafe { System.realloc(memory, layout, bytes) }, bytes);
        Counting::shrinks(layout.size());
        moved
    }
}

/// Memory has ended.
#[cold]
fn ended(bytes: usize) {
    let region = REGION.get();
    if !region.is_null() {
        // SAFETY: not null, so its `reading` is further up this thread's stack.
        end(unsafe { &*region }, ENVIRONMENT, bytes);
    }
    // Whoever asked may hold any lock, and nothing can be allocated: a plain message from what is there, and the end.
    // Without a name to tell the standard library says what it always does.
    if let Some(name) = IN_HAND.get() {
        for part in ["fsage: ", name, ": reading it takes more memory than there is\n"] {
            // SAFETY: the bytes are a string's, for as long as it is.
            unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
        }
        // SAFETY: ends the process at once. What is left behind is in the journal.
        unsafe { libc::_exit(ENVIRONMENT) };
    }
}

/// Ends the process over what a file asks for. The thread decodes, so it holds no lock of ours, and allocating is
/// possible again: what was asked for in vain was much.
#[cold]
fn end(region: &Region<'_>, code: i32, bytes: usize) -> ! {
    REGION.set(ptr::null());
    if ENDING.swap(true, Ordering::SeqCst) {
        // Memory ended again, on the way out or on another thread that reads.
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(code) };
    }
    let what = if code == BAD_INPUT {
        format!("unpacks to more than {bytes} bytes, which no such file's does")
    } else {
        format!("reading it takes more memory than there is ({bytes} bytes in one piece)")
    };
    let line = format!("{}: {}: {what}", region.path.display(), (region.place)(region.part.get()));
    crate::notice::tell(&units::text::shortened(&line, LINE_MAX));
    crate::interrupt::force_end(code)
}
