//! What a replay saw of each call: its latency, and the state in which it found the file.
//!
//! A replay of millions of calls must not hold them all, and its threads make calls out of the order of the trace. So
//! each thread's observations go to a file in blocks, and are read back in the order of the trace by merging the
//! threads' runs, each of which is in order. Memory is a block a thread. The file has no name: nothing is left of it,
//! however the run ends.

use posix::Residency;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use trace::Op;

/// What was seen of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Position in the trace.
    pub seq: u64,
    /// What was called.
    pub op: Op,
    /// Its latency, nanoseconds.
    pub latency_ns: u64,
    /// Calls of the replay that were under way when it began, itself among them.
    pub in_flight: u32,
    /// Whether its outcome was not the traced one.
    pub unlike: bool,
    /// What of its range, or of its file, was in memory just before; `None` where that cannot be known.
    pub found: Option<Residency>,
}

/// Bytes of an observation in the file.
const RECORD_BYTES: usize = 48;
/// Observations of a block.
const BLOCK_RECORDS: usize = 2048;

/// Bits of the record's flags.
const UNLIKE: u8 = 1;
const FOUND: u8 = 2;
const DIRTY_KNOWN: u8 = 4;

impl Observation {
    fn encode(&self, out: &mut Vec<u8>) {
        let found = self.found.unwrap_or_default();
        let flags = if self.unlike { UNLIKE } else { 0 }
            | if self.found.is_some() { FOUND } else { 0 }
            | if found.dirty_bytes.is_some() { DIRTY_KNOWN } else { 0 };
        out.extend_from_slice(&self.seq.to_le_bytes());
        out.extend_from_slice(&self.latency_ns.to_le_bytes());
        out.extend_from_slice(&found.cached_bytes.to_le_bytes());
        out.extend_from_slice(&found.missing_bytes.to_le_bytes());
        out.extend_from_slice(&found.dirty_bytes.unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&self.in_flight.to_le_bytes());
        out.extend_from_slice(&[self.op as u8, flags, 0, 0]);
    }

    fn decode(record: &[u8; RECORD_BYTES]) -> Observation {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| record[at + i]));
        let flags = record[45];
        let dirty_bytes = (flags & DIRTY_KNOWN != 0).then(|| word(32));
        let op = *Op::ALL.get(usize::from(record[44])).expect("a record of ours holds an operation of ours");
        Observation {
            seq: word(0),
            op,
            latency_ns: word(8),
            in_flight: u32::from_le_bytes(std::array::from_fn(|i| record[40 + i])),
            unlike: flags & UNLIKE != 0,
            found: (flags & FOUND != 0).then(|| Residency {
                cached_bytes: word(16),
                missing_bytes: word(24),
                dirty_bytes,
            }),
        }
    }
}

/// Where the observations of one replay go.
#[derive(Debug)]
pub struct ObservationFile {
    file: File,
    /// What errors name.
    path: PathBuf,
    end: AtomicU64,
}

impl ObservationFile {
    /// A file in a directory, which it leaves at once. The directory should not be on the target: what is written there
    /// during the replay is work for its disk.
    ///
    /// # Errors
    /// The directory cannot be written to.
    pub fn create_in(directory: &Path) -> io::Result<ObservationFile> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!(".fsage-observed-{}-{number}", std::process::id()));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path).map_err(named)?;
        std::fs::remove_file(&path).map_err(named)?;
        Ok(ObservationFile { file, path, end: AtomicU64::new(0) })
    }

    fn failed(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("what a replay saw ({}): {error}", self.path.display()))
    }
}

/// One thread's observations, while it makes calls.
#[derive(Debug)]
pub(super) struct Observer<'f> {
    file: &'f ObservationFile,
    block: Vec<u8>,
    run: Run,
    failed: Option<io::Error>,
}

/// Where the blocks of a thread are: place and length, in their order.
#[derive(Clone, Debug, Default)]
pub(super) struct Run(Vec<(u64, u32)>);

impl<'f> Observer<'f> {
    pub(super) fn new(file: &'f ObservationFile) -> Observer<'f> {
        let block = Vec::with_capacity(BLOCK_RECORDS * RECORD_BYTES);
        Observer { file, block, run: Run::default(), failed: None }
    }

    /// Takes one in. A full disk is told at the end: calls go on.
    pub(super) fn see(&mut self, observation: &Observation) {
        observation.encode(&mut self.block);
        if self.block.len() >= BLOCK_RECORDS * RECORD_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let len = self.block.len();
        if len == 0 || self.failed.is_some() {
            return self.block.clear();
        }
        let at = self.file.end.fetch_add(len as u64, Ordering::Relaxed);
        match self.file.file.write_all_at(&self.block, at) {
            Ok(()) => self.run.0.push((at, u32::try_from(len).expect("a block is small"))),
            Err(error) => self.failed = Some(error),
        }
        self.block.clear();
    }

    /// The thread makes no more calls.
    pub(super) fn end(mut self) -> io::Result<Run> {
        self.flush();
        match self.failed {
            Some(error) => Err(self.file.failed(error)),
            None => Ok(self.run),
        }
    }
}

/// All observations of a replay.
#[derive(Debug)]
pub struct Observations {
    file: ObservationFile,
    runs: Vec<Run>,
}

impl Observations {
    pub(super) fn new(file: ObservationFile, runs: Vec<Run>) -> Observations {
        Observations { file, runs }
    }

    /// Reads them in the order of the trace.
    pub fn read(&self) -> InOrder<'_> {
        let mut runs: Vec<Blocks<'_>> =
            self.runs.iter().map(|run| Blocks { file: &self.file, run, next: 0, block: Vec::new(), at: 0 }).collect();
        let mut failed = None;
        let mut heads = BinaryHeap::new();
        for (number, run) in runs.iter_mut().enumerate() {
            match run.next() {
                Ok(Some(first)) => heads.push(Reverse((first.seq, number))),
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        InOrder { runs, heads, failed }
    }
}

/// A thread's run as it is read.
#[derive(Debug)]
struct Blocks<'o> {
    file: &'o ObservationFile,
    run: &'o Run,
    next: usize,
    block: Vec<u8>,
    at: usize,
}

impl Blocks<'_> {
    /// The observation at the head, read from the file where the block before is used up; does not take it.
    fn next(&mut self) -> io::Result<Option<Observation>> {
        if self.at >= self.block.len() {
            let Some(&(at, len)) = self.run.0.get(self.next) else { return Ok(None) };
            self.next += 1;
            self.block.resize(len as usize, 0);
            self.at = 0;
            self.file.file.read_exact_at(&mut self.block, at).map_err(|error| self.file.failed(error))?;
        }
        let record = self.block[self.at..].first_chunk().expect("blocks are of whole records");
        Ok(Some(Observation::decode(record)))
    }
}

/// The observations of a replay in the order of the trace.
#[derive(Debug)]
pub struct InOrder<'o> {
    runs: Vec<Blocks<'o>>,
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    failed: Option<io::Error>,
}

impl Iterator for InOrder<'_> {
    type Item = io::Result<Observation>;

    fn next(&mut self) -> Option<io::Result<Observation>> {
        if let Some(error) = self.failed.take() {
            self.heads.clear();
            return Some(Err(error));
        }
        let Reverse((_, number)) = self.heads.pop()?;
        let run = &mut self.runs[number];
        let seen = run.next().transpose()?;
        run.at += RECORD_BYTES;
        match run.next() {
            Ok(Some(head)) => self.heads.push(Reverse((head.seq, number))),
            Ok(None) => {}
            Err(error) => self.failed = Some(error),
        }
        Some(seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(seq: u64) -> Observation {
        let found = match seq % 3 {
            0 => None,
            1 => Some(Residency { cached_bytes: seq * 4096, missing_bytes: 0, dirty_bytes: None }),
            _ => Some(Residency { cached_bytes: u64::MAX - seq, missing_bytes: 4096, dirty_bytes: Some(seq) }),
        };
        let op = Op::ALL[seq as usize % Op::ALL.len()];
        Observation {
            seq,
            op,
            latency_ns: seq * seq,
            in_flight: seq as u32 ^ 0xffff,
            unlike: seq.is_multiple_of(5),
            found,
        }
    }

    #[test]
    fn threads_are_merged_into_the_order_of_the_trace() {
        let dir = tempfile::tempdir().unwrap();
        let file = ObservationFile::create_in(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind, even now");
        // More than one block in each but the last, which made no call; far apart, so that blocks are read when due.
        let count = 3 * BLOCK_RECORDS as u64 + 7;
        let mut threads = [(); 4].map(|()| Observer::new(&file));
        for seq in 0..count {
            threads[if seq < count / 2 { 0 } else { 1 + seq as usize % 2 }].see(&seen(seq));
        }
        let runs: Vec<Run> = threads.into_iter().map(|thread| thread.end().unwrap()).collect();
        let all = Observations::new(file, runs);
        for _ in 0..2 {
            let read: Vec<Observation> = all.read().map(Result::unwrap).collect();
            assert!(read.iter().copied().eq((0..count).map(seen)));
        }
    }

    #[test]
    fn a_file_that_was_cut_is_an_error_not_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let file = ObservationFile::create_in(dir.path()).unwrap();
        let mut thread = Observer::new(&file);
        thread.see(&seen(1));
        let run = thread.end().unwrap();
        file.file.set_len(8).unwrap();
        let all = Observations::new(file, vec![run]);
        assert!(all.read().next().unwrap().unwrap_err().to_string().contains("what a replay saw"));
    }
}
