//! What is said to the user from where nobody can return an error.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::stdio::stderr;

/// How long a process that ends waits for whoever reads what it says.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// A pipe or terminal that has room has room for so much (PIPE_BUF of POSIX).
const PIECE_BYTES: usize = 512;

/// Says something on standard error, if that can be written to.
pub(crate) fn tell(text: &str) {
    use std::io::{self, Write as _};
    let _ = writeln!(io::stderr(), "fsage: {}", units::text::printable(text));
}

/// The same for the end of a process, which nothing holds up: neither a reader that does not read nor another thread
/// that waits for it. What is not taken in time is not said.
pub(crate) fn tell_at_the_end(text: &str) {
    let line = format!("fsage: {}\n", units::text::printable(text));
    for piece in line.as_bytes().chunks(PIECE_BYTES) {
        let mut room = [PollFd::from_borrowed_fd(stderr(), PollFlags::OUT)];
        let is_taken = poll(&mut room, Some(&PATIENCE)).is_ok_and(|ready| ready == 1)
            && room[0].revents().contains(PollFlags::OUT)
            && rustix::io::write(stderr(), piece).is_ok();
        if !is_taken {
            return;
        }
    }
}
