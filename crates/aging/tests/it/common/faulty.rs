//! A file system on which, from some call on, nothing works any more.

use posix::{
    CacheState, Call, Environment, Errno, Extent, Fd, FileKind, FileSystem, FreeExtent, FsUsage, Mounted, Outcome,
    Process, Step, Unavailable,
};
use std::ffi::OsString;
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

    fn now_ns(&self) -> u64 {
        self.fs.now_ns()
    }

    fn pause_ns(&mut self, ns: u64) {
        self.fs.pause_ns(ns);
    }

    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        for mut process in processes {
            let mut last = None;
            loop {
                match process.next(last.as_ref()) {
                    Step::Call(call) => last = Some(self.call(&call)),
                    Step::PauseNs(_) => last = None,
                    Step::Blocked => return Err(io::Error::from(io::ErrorKind::Deadlock)),
                    Step::Done => break,
                }
            }
        }
        Ok(())
    }

    fn contained(&mut self, work: &mut posix::Contained<'_>) -> io::Result<()> {
        work(self);
        Ok(())
    }

    fn read_into(&mut self, fd: Fd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        self.fs.read_into(fd, offset, buffer)
    }

    fn entries(&mut self, fd: Fd) -> Result<Vec<(OsString, FileKind)>, Errno> {
        self.fs.entries(fd)
    }

    fn drop_caches(&mut self) -> io::Result<CacheState> {
        self.fs.drop_caches()
    }

    fn usage(&mut self) -> io::Result<FsUsage> {
        self.fs.usage()
    }

    fn extents(&mut self, fd: Fd) -> Result<Vec<Extent>, Unavailable> {
        self.fs.extents(fd)
    }

    fn free_extents(&mut self) -> Result<Vec<FreeExtent>, Unavailable> {
        self.fs.free_extents()
    }

    fn environment(&self) -> Environment {
        self.fs.environment()
    }
}
