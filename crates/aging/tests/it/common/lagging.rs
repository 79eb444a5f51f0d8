//! A small XFS on a busy machine, made up: what removed files had is in use until somebody waits for it.

use posix::{At, Call, Environment, FileKind, FileSystem, FsType, FsUsage, Mounted, Outcome, Process, Reply};
use std::io;
use std::path::{Path, PathBuf};

const BLOCK_BYTES: u64 = 4096;

pub struct Lagging {
    fs: Mounted,
    root: PathBuf,
    total_bytes: u64,
    /// Of removed files, still in use.
    lagging_bytes: u64,
    /// When the last file was removed, of the time that has passed in pauses.
    removed_ns: u64,
    paused_ns: u64,
    /// Of files, where no call has been made since.
    files_bytes: Option<u64>,
}

impl Lagging {
    /// How long removals take by themselves: longer than any reading is waited for that does not change.
    const LAG_NS: u64 = 400_000_000;

    pub fn new(root: &Path, total_bytes: u64) -> Lagging {
        let (fs, root) = (Mounted::open(root).expect("a directory"), root.to_owned());
        Lagging { fs, root, total_bytes, lagging_bytes: 0, removed_ns: 0, paused_ns: 0, files_bytes: None }
    }

    fn size(&mut self, at: At<'_>) -> u64 {
        match self.fs.call(&Call::Stat { at, follow: false }).result {
            Ok(Reply::Stat(stat)) => stat.size_bytes.next_multiple_of(BLOCK_BYTES),
            _ => 0,
        }
    }
}

impl FileSystem for Lagging {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        match call {
            // The directory's own file system may have much of others' to write.
            Call::SyncFs => return Outcome { start_ns: self.now_ns(), dur_ns: 0, result: Ok(Reply::Done) },
            Call::Unlink { at } => {
                self.lagging_bytes += self.size(*at);
                self.removed_ns = self.paused_ns;
            }
            _ => {}
        }
        self.files_bytes = None;
        self.fs.call(call)
    }

    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        posix::run_one_by_one(processes, |call| self.call(call))
    }

    fn contained(&mut self, work: &mut posix::Contained<'_>) -> io::Result<()> {
        work(self);
        Ok(())
    }

    fn pause_ns(&mut self, ns: u64) {
        self.paused_ns += ns;
        if self.paused_ns - self.removed_ns >= Self::LAG_NS {
            self.lagging_bytes = 0;
        }
    }

    fn usage(&mut self) -> io::Result<FsUsage> {
        let root = &self.root;
        let files_bytes = *self.files_bytes.get_or_insert_with(|| {
            let listing = super::walked(root);
            let files = listing.values().filter(|(kind, _)| *kind == FileKind::File);
            files.map(|(_, bytes)| bytes.next_multiple_of(BLOCK_BYTES)).sum()
        });
        let free_bytes = self.total_bytes.saturating_sub(files_bytes + self.lagging_bytes);
        Ok(FsUsage {
            total_bytes: self.total_bytes,
            free_bytes,
            available_bytes: free_bytes,
            total_inodes: 1 << 20,
            free_inodes: 1 << 20,
            block_bytes: BLOCK_BYTES as u32,
        })
    }

    fn finish_removals(&mut self) -> bool {
        self.lagging_bytes = 0;
        true
    }

    fn environment(&self) -> Environment {
        Environment { fs_type: FsType::Xfs, ..self.fs.environment() }
    }

    posix::delegate! { |me| me.fs => now_ns, read_into, entries, drop_caches, extents, free_extents }
}
