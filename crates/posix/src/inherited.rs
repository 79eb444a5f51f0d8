//! The descriptors that this process was given by whoever started it.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::OnceLock;

/// What this process was given beside its standard streams.
static INHERITED: OnceLock<Vec<RawFd>> = OnceLock::new();

/// Notes which descriptors this process was given, before it has any of its own that a program would be given.
pub(crate) fn note() {
    let listed = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok()).filter(|&fd| fd > 2);
    // SAFETY: a system call on a number.
    let is_given = |fd: &RawFd| unsafe { libc::fcntl(*fd, libc::F_GETFD) & libc::FD_CLOEXEC == 0 };
    let _ = INHERITED.set(numbers.filter(is_given).collect());
}

/// Them; none where nobody has noted any.
pub(crate) fn descriptors() -> &'static [RawFd] {
    INHERITED.get().map_or(&[], Vec::as_slice)
}
