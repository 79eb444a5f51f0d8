//! What is said to the user from where nobody can return an error, and where nobody may be held up: neither by a reader
//! that does not read nor by another thread that waits for it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::stderr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How long whoever reads is waited for, each time that something has been read.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// How often, for one piece: others may wait for us.
const WAITS_MAX: usize = 10;
const NONE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
/// A pipe or terminal that has room has room for so much (PIPE_BUF of POSIX).
const PIECE_BYTES: usize = 512;

static STDERR: Reader = Reader::new();

/// Says something on standard error, if that takes it soon.
pub fn tell(text: &str) {
    STDERR.tell(stderr(), text);
}

/// Whoever reads messages, as far as can be seen.
struct Reader {
    /// Nobody took the last message: the next one does not wait, unless something has been read since.
    is_unread: AtomicBool,
    /// What lay there unread then.
    left_bytes: AtomicU64,
}

impl Reader {
    const fn new() -> Reader {
        Reader { is_unread: AtomicBool::new(false), left_bytes: AtomicU64::new(0) }
    }

    fn tell(&self, to: BorrowedFd<'_>, text: &str) {
        let line = format!("fsage: {}\n", units::text::printable(text));
        let is_given_up =
            self.is_unread.load(Ordering::Relaxed) && unread_bytes(to) >= self.left_bytes.load(Ordering::Relaxed);
        let patience = if is_given_up { &NONE } else { &PATIENCE };
        let is_taken = line
            .as_bytes()
            .chunks(PIECE_BYTES)
            .all(|piece| has_room(to, patience) && rustix::io::write(to, piece).is_ok());
        self.left_bytes.store(unread_bytes(to), Ordering::Relaxed);
        self.is_unread.store(!is_taken, Ordering::Relaxed);
    }
}

/// What lies in a pipe; 0 where that is not known.
fn unread_bytes(pipe: BorrowedFd<'_>) -> u64 {
    rustix::io::ioctl_fionread(pipe).unwrap_or(0)
}

/// Whether there is room for a piece in time. A pipe has room again only once a whole page of it has been read: as long
/// as somebody reads, be it byte by byte, it is waited for, a few times.
fn has_room(to: BorrowedFd<'_>, patience: &Timespec) -> bool {
    let mut before = unread_bytes(to);
    for _ in 0..WAITS_MAX {
        let mut room = [PollFd::from_borrowed_fd(to, PollFlags::OUT)];
        match poll(&mut room, Some(patience)) {
            Ok(1..) => return room[0].revents().contains(PollFlags::OUT),
            // A signal, which says nothing about whoever reads.
            Err(Errno::INTR) => {}
            Ok(0) => {
                let now = unread_bytes(to);
                if now >= before {
                    return false;
                }
                before = now;
            }
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Read as _, Write as _};
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    /// A pipe of one page that is full.
    fn full() -> (io::PipeReader, io::PipeWriter) {
        let (reader, mut writer) = io::pipe().unwrap();
        let page = rustix::pipe::fcntl_setpipe_size(&writer, 4096).unwrap();
        writer.write_all(&vec![b'.'; page]).unwrap();
        (reader, writer)
    }

    /// What one who takes more than a second for a page, and reads all the time, gets of some messages; and those.
    fn read_slowly() -> (String, Vec<String>) {
        let (mut reader, writer) = full();
        let slow = std::thread::spawn(move || {
            let (mut all, mut some) = (Vec::new(), [0; 64]);
            loop {
                match reader.read(&mut some).unwrap() {
                    0 => return all,
                    n => all.extend(&some[..n]),
                }
                std::thread::sleep(Duration::from_millis(30));
            }
        });
        let to = Reader::new();
        let long = "x".repeat(600);
        for n in 0..4 {
            to.tell(writer.as_fd(), &format!("{n}{long}"));
        }
        drop(writer);
        let all = String::from_utf8(slow.join().unwrap()).unwrap();
        (all, (0..4).map(|n| format!("fsage: {n}{long}")).collect())
    }

    /// Messages were lost to one who reads all the time. Where others have the processors, he may not for a second:
    /// once in twenty times he does.
    #[test]
    fn a_slow_reader_loses_nothing() {
        let is_whole = |(all, told): (String, Vec<String>)| all.trim_start_matches('.').lines().eq(told);
        assert!((0..20).any(|_| is_whole(read_slowly())));
    }

    /// Whoever reads again after a while is told again.
    #[test]
    fn who_does_not_read_is_given_up_until_he_does() {
        let (mut reader, writer) = full();
        let to = Reader::new();
        to.tell(writer.as_fd(), "lost");
        assert!(to.is_unread.load(Ordering::Relaxed));
        reader.read_exact(&mut [0; 4096]).unwrap();
        to.tell(writer.as_fd(), "heard");
        drop(writer);
        let mut all = String::new();
        reader.read_to_string(&mut all).unwrap();
        assert_eq!(all, "fsage: heard\n");
    }
}
