//! Random calls through `Mounted`, and the same calls through the standard library in a second directory: answers
//! and what is on disk afterwards must agree.

use posix::{At, Call, Errno, Fd, FileSystem, Mode, Mounted, OpenFlags};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const NAMES: [&str; 6] = ["a", "b", "c", "d/a", "d/b", "d/e/a"];
const DIRECTORIES: [&str; 4] = ["d", "d/e", "x", "a"];

struct Both {
    fs: Mounted,
    direct: PathBuf,
    /// Open files: ours, and the standard library's.
    open: Vec<(Fd, std::fs::File)>,
    rng: Xoshiro256PlusPlus,
}

fn errno(result: io::Result<u64>) -> Result<u64, Errno> {
    result.map_err(|e| Errno(e.raw_os_error().and_then(|e| u16::try_from(e).ok()).unwrap_or(0)))
}

impl Both {
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.rng.next_u64() % from.len() as u64).unwrap()]
    }

    fn made(&mut self, call: Call<'_>) -> Result<u64, Errno> {
        match self.fs.call(&call).result? {
            posix::Reply::Count(n) => Ok(n),
            posix::Reply::Stat(s) => Ok(s.size_bytes + (u64::from(s.mode.0) << 40)),
            posix::Reply::Residency(found) => Ok(found.cached_bytes),
            posix::Reply::Done | posix::Reply::Fd(_) => Ok(0),
        }
    }

    /// One random call on both sides; what each answered, with the call's name.
    fn step(&mut self) -> (String, Result<u64, Errno>, Result<u64, Errno>) {
        let (path, other) = (self.pick(&NAMES), self.pick(&NAMES));
        let directory = self.pick(&DIRECTORIES);
        let (on, on_other, on_dir) = (self.direct.join(path), self.direct.join(other), self.direct.join(directory));
        let at = At::from(path);
        match self.rng.next_u64() % 13 {
            0 => {
                let ours = self.made(Call::Mkdir { at: directory.into(), mode: Mode(0o755) });
                let mut builder = std::fs::DirBuilder::new();
                std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
                (format!("mkdir {directory}"), ours, errno(builder.create(on_dir).map(|()| 0)))
            }
            1 => {
                let ours = self.made(Call::Rmdir { at: directory.into() });
                (format!("rmdir {directory}"), ours, errno(std::fs::remove_dir(on_dir).map(|()| 0)))
            }
            2 => {
                (format!("unlink {path}"), self.made(Call::Unlink { at }), errno(std::fs::remove_file(on).map(|()| 0)))
            }
            3 => {
                let call = Call::Rename { from: at, to: other.into(), noreplace: false, exchange: false };
                (format!("rename {path} {other}"), self.made(call), errno(std::fs::rename(on, on_other).map(|()| 0)))
            }
            4 => {
                let ours = self.made(Call::Link { from: at, to: other.into(), follow: false });
                (format!("link {path} {other}"), ours, errno(std::fs::hard_link(on, on_other).map(|()| 0)))
            }
            5 => {
                let ours = self.made(Call::Symlink { target: Path::new(other), at });
                (format!("symlink {path}"), ours, errno(std::os::unix::fs::symlink(other, on).map(|()| 0)))
            }
            6 => {
                let mode = self.pick(&[0o600, 0o644, 0o755]);
                let ours = self.made(Call::Chmod { at, mode: Mode(mode) });
                let theirs = std::fs::set_permissions(on, PermissionsExt::from_mode(mode.into()));
                (format!("chmod {path}"), ours, errno(theirs.map(|()| 0)))
            }
            7 => {
                let size =
                    |m: std::fs::Metadata| if m.is_dir() { 0 } else { m.len() + (u64::from(m.mode() & 0o7777) << 40) };
                let ours = self.fs.call(&Call::Stat { at, follow: false }).stat();
                let is_dir = |s: &posix::Stat| s.kind == posix::FileKind::Directory;
                let ours = ours.map(|s| if is_dir(&s) { 0 } else { s.size_bytes + (u64::from(s.mode.0) << 40) });
                (format!("lstat {path}"), ours, errno(on.symlink_metadata().map(size)))
            }
            8 if !self.open.is_empty() => {
                let victim = usize::try_from(self.rng.next_u64()).unwrap() % self.open.len();
                let (fd, _) = self.open.swap_remove(victim);
                ("close".into(), self.made(Call::Close { fd }), Ok(0))
            }
            9 | 10 if !self.open.is_empty() => {
                let which = usize::try_from(self.rng.next_u64()).unwrap() % self.open.len();
                let (offset, len) = (self.rng.next_u64() % 50_000, self.rng.next_u64() % 10_000);
                let data: Vec<u8> = (0..len).map(|_| self.rng.next_u64() as u8).collect();
                let fd = self.open[which].0;
                let ours = self.made(Call::Write { fd, offset: Some(offset), len_bytes: len, data: Some(&data) });
                let theirs = self.open[which].1.write_at(&data, offset);
                (format!("pwrite {len} at {offset}"), ours, errno(theirs.map(|n| n as u64)))
            }
            11 if !self.open.is_empty() => {
                let which = usize::try_from(self.rng.next_u64()).unwrap() % self.open.len();
                let len_bytes = self.rng.next_u64() % 60_000;
                let ours = self.made(Call::Ftruncate { fd: self.open[which].0, len_bytes });
                (format!("ftruncate {len_bytes}"), ours, errno(self.open[which].1.set_len(len_bytes).map(|()| 0)))
            }
            _ => {
                let (create, exclusive, truncate) =
                    self.pick(&[(true, false, false), (true, true, false), (false, false, true)]);
                let flags = OpenFlags { create, exclusive, truncate, ..OpenFlags::READ_WRITE };
                let ours = self.fs.call(&Call::Open { at, flags, mode: Mode(0o644) }).fd();
                let theirs = std::fs::OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create(create)
                    .create_new(exclusive)
                    .truncate(truncate)
                    .mode(0o644)
                    .open(on);
                let answer = (
                    ours.map(|_| 0),
                    errno(
                        theirs
                            .as_ref()
                            .map(|_| 0)
                            .map_err(|e| io::Error::from_raw_os_error(e.raw_os_error().unwrap_or(0))),
                    ),
                );
                if let (Ok(fd), Ok(file)) = (ours, theirs) {
                    self.open.push((fd, file));
                }
                (format!("open {path}"), answer.0, answer.1)
            }
        }
    }
}

/// Everything below a directory: kind, mode, links and contents by name.
fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, u64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut todo = vec![root.to_path_buf()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let m = path.symlink_metadata().unwrap();
            let contents = if m.is_dir() {
                todo.push(path.clone());
                Vec::new()
            } else if m.is_symlink() {
                path.read_link().unwrap().into_os_string().into_encoded_bytes()
            } else {
                std::fs::read(&path).unwrap()
            };
            let links = if m.is_dir() { 0 } else { m.nlink() };
            found.insert(path.strip_prefix(root).unwrap().to_path_buf(), (m.mode(), links, contents));
        }
    }
    found
}

#[test]
fn random_calls_agree_with_the_standard_library() {
    for seed in 0..20 {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
        std::fs::create_dir(&ours).unwrap();
        std::fs::create_dir(&theirs).unwrap();
        let fs = Mounted::open(&ours).unwrap();
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut both = Both { fs, direct: theirs.clone(), open: Vec::new(), rng };
        let mut succeeded = 0;
        for n in 0..400 {
            let (call, mine, other) = both.step();
            assert_eq!(mine, other, "seed {seed}, call {n}: {call}");
            succeeded += u32::from(mine.is_ok());
        }
        assert!(succeeded > 50, "seed {seed}: {succeeded} calls succeeded, the test tests nothing");
        assert_eq!(tree(&ours), tree(&theirs), "seed {seed}");
    }
}
