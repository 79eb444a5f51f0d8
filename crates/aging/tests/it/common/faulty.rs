//! A file system on which, from some call on, nothing works any more.

use posix::{Call, Errno, FileSystem, Mounted, Outcome, Process};
use std::io;

pub struct Faulty {
    fs: Mounted,
    errno: Errno,
    calls_left: u64,
}

impl Faulty {
    /// Answers every call with `errno` after so many.
    pub fn new(fs: Mounted, errno: Errno, calls_left: u64) -> Faulty {
        Faulty { fs, errno, calls_left }
    }
}

impl FileSystem for Faulty {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        let mut outcome = self.fs.call(call);
        match self.calls_left.checked_sub(1) {
            Some(left) => self.calls_left = left,
            None => outcome.result = Err(self.errno),
        }
        outcome
    }

    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        posix::run_one_by_one(processes, |call| self.call(call))
    }

    fn contained(&mut self, work: &mut posix::Contained<'_>) -> io::Result<()> {
        work(self);
        Ok(())
    }

    posix::delegate! { |me| me.fs =>
        now_ns, pause_ns, read_into, entries, drop_caches, usage, extents, free_extents, environment
    }
}
