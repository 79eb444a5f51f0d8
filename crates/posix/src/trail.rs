//! Going from directory to directory below one, each time from where the last path led.
//!
//! Beside the directory in which all ways begin only one is open, however deep it is. The way back up is `..`, which
//! must be the directory that was come through: where somebody moved it, the way begins anew.

use rustix::fs::{Stat, fstat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::rc::Rc;

/// Opens a directory by one name in another, `..` among them. Follows no link.
pub type Open = fn(&OwnedFd, &OsStr) -> Result<OwnedFd, Errno>;

/// Device and inode number.
pub type Identity = (u64, u64);

/// Where a walk is, and how it came there.
#[derive(Debug)]
pub struct Trail {
    open: Open,
    start: (Rc<OwnedFd>, Identity),
    here: (Rc<OwnedFd>, Identity),
    /// The names from the start to here, with a slash before each.
    path: Vec<u8>,
    /// The directories from the start to the one above: how much of the path leads there, and which it is.
    above: Vec<(usize, Identity)>,
}

impl Trail {
    /// Begins in a directory.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn new(start: OwnedFd, open: Open) -> Result<Trail, Errno> {
        let identity = identity(&fstat(&start)?);
        let start = (Rc::new(start), identity);
        Ok(Trail { open, here: start.clone(), start, path: Vec::new(), above: Vec::new() })
    }

    /// The directory it is in.
    pub fn here(&self) -> &Rc<OwnedFd> {
        &self.here.0
    }

    /// Which directory that is.
    pub fn identity(&self) -> Identity {
        self.here.1
    }

    /// The names from the start to here, with a slash before each: nothing at the start.
    pub fn path(&self) -> &[u8] {
        &self.path
    }

    /// How many names that are.
    pub fn depth(&self) -> usize {
        self.above.len()
    }

    /// Goes down by one name; stays where it is if that fails.
    ///
    /// # Errors
    /// Those of openat(2) and fstat(2).
    pub fn enter(&mut self, name: &OsStr) -> Result<(), Errno> {
        let below = (self.open)(&self.here.0, name)?;
        let identity = identity(&fstat(&below)?);
        self.above.push((self.path.len(), self.here.1));
        self.path.push(b'/');
        self.path.extend_from_slice(name.as_bytes());
        self.here = (Rc::new(below), identity);
        Ok(())
    }

    /// Goes up by one name; stays where it is if that fails, or at the start.
    ///
    /// # Errors
    /// Those of openat(2) and fstat(2); ESTALE if it is not the directory that was come through.
    pub fn up(&mut self) -> Result<(), Errno> {
        let Some(&(path_len, expected)) = self.above.last() else { return Ok(()) };
        let above = (self.open)(&self.here.0, OsStr::new(".."))?;
        if identity(&fstat(&above)?) != expected {
            return Err(Errno::STALE);
        }
        self.above.pop();
        self.path.truncate(path_len);
        self.here = (Rc::new(above), expected);
        Ok(())
    }

    /// Goes back to the start.
    pub fn restart(&mut self) {
        self.here = self.start.clone();
        self.path.clear();
        self.above.clear();
    }

    /// Goes to a directory on the way from the start along some names from which the rest is short: the deepest that it
    /// came through, or the start where that is nearer. As many of the names are behind it then as
    /// [`depth`](Self::depth) says.
    pub fn back_toward<'n>(&mut self, names: impl Iterator<Item = &'n [u8]>) {
        let own = self.path.split(|&byte| byte == b'/').skip(1);
        let shared = own.zip(names).take_while(|(own, name)| own == name).count();
        if self.depth() - shared > shared {
            return self.restart();
        }
        while self.depth() > shared {
            if self.up().is_err() {
                return self.restart();
            }
        }
    }

    /// Goes from the start along some names.
    ///
    /// # Errors
    /// Those of openat(2) and fstat(2); it is then where it got to.
    pub fn go<'n>(&mut self, names: impl Iterator<Item = &'n [u8]> + Clone) -> Result<(), Errno> {
        self.back_toward(names.clone());
        names.skip(self.depth()).try_for_each(|name| self.enter(OsStr::from_bytes(name)))
    }
}

fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    use std::cell::Cell;
    use std::path::Path;

    thread_local! {
        static OPENED: Cell<u64> = const { Cell::new(0) };
    }

    fn open(at: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
        OPENED.set(OPENED.get() + 1);
        openat(at, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    }

    fn start(path: &Path) -> Trail {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Trail::new(openat(CWD, path, flags, Mode::empty()).unwrap(), open).unwrap()
    }

    fn names(path: &str) -> impl Iterator<Item = &[u8]> + Clone {
        path.split('/').filter(|name| !name.is_empty()).map(str::as_bytes)
    }

    /// Each directory is visited, down and up again.
    #[test]
    fn a_step_costs_a_step() {
        let base = tempfile::tempdir().unwrap();
        let mut trail = start(base.path());
        const DEPTH: usize = 1000;
        let path = "/d".repeat(DEPTH);
        for depth in 1..=DEPTH {
            mkdirat(trail.here(), "d", Mode::RWXU).unwrap();
            trail.go(names(&path[..2 * depth])).unwrap();
            assert_eq!((trail.depth(), trail.path()), (depth, &path.as_bytes()[..2 * depth]));
        }
        assert_eq!(OPENED.take(), DEPTH as u64);
        for depth in (1..DEPTH).rev() {
            trail.go(names(&path[..2 * depth])).unwrap();
        }
        assert!(OPENED.take() <= DEPTH as u64);
        assert_eq!(trail.path(), b"/d");
        drop(trail);
        crate::remove::remove_tree(std::os::fd::AsFd::as_fd(start(base.path()).here()), Path::new("d")).unwrap();
    }

    #[test]
    fn a_way_leads_where_it_led_from_the_start() {
        let base = tempfile::tempdir().unwrap();
        let at = |path: &str| base.path().join(path);
        for path in ["a/b/c", "a/b/d", "a/bb", "e/b/c"] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        let mut trail = start(base.path());
        for path in ["a/b/c", "a/b/d", "a/bb", "a", "e/b/c", "a/b/c", "", "e/b"] {
            trail.go(names(path)).unwrap();
            let there = identity(&rustix::fs::stat(at(path)).unwrap());
            assert_eq!(trail.identity(), there, "{path}");
            assert_eq!(identity(&fstat(trail.here()).unwrap()), there, "{path}");
        }
        assert!(trail.go(names("a/none/x")).is_err());
        assert!(trail.go(names("link/b")).is_err());
        trail.go(names("a/b/d")).unwrap();
        // Moved away with whoever is in it: `..` leads elsewhere.
        std::fs::rename(at("a/b"), at("e/moved")).unwrap();
        assert_eq!(trail.up().and_then(|()| trail.up()), Err(Errno::STALE));
        std::fs::create_dir_all(at("a/b/d")).unwrap();
        trail.go(names("a/bb")).unwrap();
        assert_eq!(trail.identity(), identity(&rustix::fs::stat(at("a/bb")).unwrap()));
    }
}
