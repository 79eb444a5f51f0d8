//! What is to stay, and is named however its run ends.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static KEPT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Vec<PathBuf>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Something that is to stay. Dropped, as where a run comes to nothing, it is named on standard error; so it is when a
/// signal ends the process.
#[derive(Debug)]
pub struct Kept {
    path: PathBuf,
    is_told: bool,
}

impl Kept {
    /// From now on it is named.
    pub fn new(path: &Path) -> Kept {
        kept().push(path.to_owned());
        Kept { path: path.to_owned(), is_told: false }
    }

    /// The run has ended well: whoever calls this names it.
    pub fn told(mut self) {
        self.is_told = true;
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        super::stand_aside();
        kept().retain(|path| *path != self.path);
        if !self.is_told && self.path.exists() {
            crate::notice::tell(&line(&self.path));
        }
    }
}

fn line(path: &Path) -> String {
    format!("kept {}", path.display())
}

/// What is there and has not been named.
pub(super) fn lines() -> Vec<String> {
    kept().iter().filter(|path| path.exists()).map(|path| line(path)).collect()
}
