//! What is said to the user from where nobody can return an error, and where nobody may be held up: neither by a reader
//! that does not read nor by another thread that waits for it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stderr;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long whoever reads is waited for.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
const NONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// A pipe or terminal that has room has room for so much (PIPE_BUF of POSIX).
const PIECE_BYTES: usize = 512;

/// Nobody took the last message: the next one does not wait.
static IS_UNREAD: AtomicBool = AtomicBool::new(false);

/// Says something on standard error, if that takes it soon.
pub fn tell(text: &str) {
    let line = format!("fsage: {}\n", units::text::printable(text));
    let patience = if IS_UNREAD.load(Ordering::Relaxed) { &NONE } else { &PATIENCE };
    let is_taken = line.as_bytes().chunks(PIECE_BYTES).all(|piece| {
        let mut room = [PollFd::from_borrowed_fd(stderr(), PollFlags::OUT)];
        poll(&mut room, Some(patience)).is_ok_and(|ready| ready == 1)
            && room[0].revents().contains(PollFlags::OUT)
            && rustix::io::write(stderr(), piece).is_ok()
    });
    IS_UNREAD.store(!is_taken, Ordering::Relaxed);
}
