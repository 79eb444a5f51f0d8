//! What became of the names between their reading and the beginning of a recording.
//!
//! A command is held until its tracer is attached, so that nothing it does is missed. Processes that run go on: what
//! they make, rename and remove in the moment before the tracer hears them is neither in the names read before nor in
//! the trace. Directories that changed since they were read are counted, so that it can be said.

use crate::snapshot::{View, Walked};
use posix::FileKind;
use rustix::fs::{Statx, StatxFlags};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// A look at the directories of a snapshot, in a thread of its own: the recording is on.
pub(super) struct Meanwhile {
    stop: Arc<AtomicBool>,
    look: Option<JoinHandle<Changed>>,
}

/// Directories in which there are other names than were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Changed {
    count: usize,
    /// Whether all directories were looked at.
    whole: bool,
}

impl Meanwhile {
    /// Begins. `before` is given up once it has been looked through. Where there is no room for a thread the recording
    /// goes on without.
    pub fn start(before: Walked, view: View) -> Meanwhile {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let look = std::thread::Builder::new().name("meanwhile".into()).spawn(move || changed(&before, &view, &asked));
        Meanwhile { stop, look: look.ok() }
    }

    /// What is to be said, if anything. A look that still goes on is broken off.
    pub fn note(self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        note(self.look.and_then(|look| look.join().ok()).unwrap_or_default())
    }
}

fn note(changed: Changed) -> Option<String> {
    let more = if changed.whole { "" } else { "at least " };
    match (changed.count, changed.whole) {
        (0, true) => None,
        (0, false) => {
            Some("whether names changed between their reading and the beginning of the recording is not known".into())
        }
        (count, _) => Some(format!(
            "names in {more}{count} {} changed between their reading and the beginning of the recording, or just \
             after: some may be missing, or be gone",
            if count == 1 { "directory" } else { "directories" }
        )),
    }
}

/// Looks at every directory again. Whatever changes the names in one changes its time.
fn changed(before: &Walked, view: &View, stop: &AtomicBool) -> Changed {
    let mut count = 0;
    for entry in before.snapshot.entries.iter().filter(|entry| entry.kind == FileKind::Directory) {
        if stop.load(Ordering::Relaxed) {
            return Changed { count, whole: false };
        }
        let found = view.statx(Path::new(OsStr::from_bytes(&entry.path)), StatxFlags::INO | StatxFlags::MTIME);
        count += usize::from(!found.is_ok_and(|now| now.stx_ino == entry.ino && mtime_ns(&now) == entry.mtime_ns));
    }
    Changed { count, whole: true }
}

fn mtime_ns(now: &Statx) -> i64 {
    now.stx_mtime.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.stx_mtime.tv_nsec.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::WalkLimits;
    use std::fs;

    #[test]
    fn each_directory_with_other_names_is_counted() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for name in ["a", "a/b", "c", "d", "e", "f"] {
            fs::create_dir(at(name)).expect("a directory");
        }
        for name in ["a/b/old", "c/old", "d/old"] {
            fs::write(at(name), "old").expect("a file");
        }
        let view = View::own();
        let mut before = view.tree(&[dir.path()], &WalkLimits::default()).expect("names");
        // Others make files in the directories above at any time.
        before.snapshot.entries.retain(|entry| entry.path.starts_with(dir.path().as_os_str().as_bytes()));
        let on = AtomicBool::new(false);
        assert_eq!(changed(&before, &view, &on), Changed { count: 0, whole: true });
        // Other contents are not other names.
        fs::write(at("d/old"), "new").expect("a file");
        assert_eq!(changed(&before, &view, &on), Changed { count: 0, whole: true });
        fs::write(at("a/b/new"), "new").expect("a file");
        assert_eq!(changed(&before, &view, &on).count, 1);
        fs::rename(at("c/old"), at("d/moved")).expect("moved");
        assert_eq!(changed(&before, &view, &on).count, 3);
        // What is gone, and where it was.
        fs::remove_dir(at("e")).expect("removed");
        assert_eq!(changed(&before, &view, &on).count, 5);
        // Another directory of the same name.
        fs::rename(at("f"), at("g")).and_then(|()| fs::create_dir(at("f"))).expect("another");
        assert_eq!(changed(&before, &view, &on).count, 6);
        on.store(true, Ordering::Relaxed);
        assert_eq!(changed(&before, &view, &on), Changed { count: 0, whole: false });
        assert!(note(Changed { count: 0, whole: true }).is_none());
    }
}
