//! Which processes run below others.

/// Processes and all their descendants that run now, without this one and its own: nobody records the recorder. The
/// ones asked for come first.
pub fn descendants(pids: &[u32]) -> Vec<u32> {
    posix::offspring::below(pids, Some(std::process::id()))
}
