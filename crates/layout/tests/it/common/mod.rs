//! Scratch file systems with fragmented content, and the output of other tools.
#![allow(dead_code)] // Each test binary uses a part.
#![allow(clippy::unwrap_used)] // Only tests use it; a failure to set up is a failed test.

use posix::{Extent, ExtentFlags};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::FallocateFlags;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{Need, Tool};

/// Whether a test that needs root, loop devices and these tools can run; where not, it is skipped.
pub fn can_run(tools: &[Tool]) -> bool {
    testkit::need(Need::LoopDevices) && tools.iter().all(|tool| testkit::need(Need::Tool(*tool)))
}

/// Runs a tool; its standard output.
pub fn run(tool: &str, args: &[&str]) -> String {
    attempt(tool, args).unwrap_or_else(|why| panic!("{why}"))
}

/// As [`run`], again for two seconds while it fails: other programs take loop devices, and look into new mounts.
fn run_patiently(tool: &str, args: &[&str]) {
    let mut result = attempt(tool, args);
    for _ in 0..20 {
        if result.is_ok() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        result = attempt(tool, args);
    }
    result.unwrap_or_else(|why| panic!("{why}"));
}

fn attempt(tool: &str, args: &[&str]) -> Result<String, String> {
    let path = testkit::find(tool).ok_or_else(|| format!("{tool} is not installed"))?;
    let out = Command::new(&path).args(args).env("LC_ALL", "C").output().map_err(|e| format!("{tool}: {e}"))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    if out.status.success() { Ok(stdout.into_owned()) } else { Err(format!("{tool} {args:?}: {stdout}{stderr}")) }
}

/// An image in a directory of its own, and its mount while there is one. Unmounted and removed on drop.
pub struct Scratch {
    directory: tempfile::TempDir,
    mounted: bool,
}

impl Scratch {
    /// Makes a sparse image and a file system in it, not mounted.
    pub fn make(bytes: u64, mkfs: &[&str]) -> Scratch {
        let directory = tempfile::Builder::new().prefix("fsage-layout-").tempdir().unwrap();
        let scratch = Scratch { directory, mounted: false };
        File::create(scratch.image()).unwrap().set_len(bytes).unwrap();
        fs::create_dir(scratch.mount_point()).unwrap();
        let image = scratch.image();
        let (tool, options) = mkfs.split_first().unwrap();
        let args: Vec<&str> = options.iter().copied().chain([image.to_str().unwrap()]).collect();
        run(tool, &args);
        scratch
    }

    pub fn image(&self) -> PathBuf {
        self.directory.path().join("image")
    }

    pub fn mount_point(&self) -> PathBuf {
        self.directory.path().join("mount")
    }

    pub fn mount(&mut self, options: &str) -> PathBuf {
        let (image, point) = (self.image(), self.mount_point());
        let options = format!("loop,{options}");
        run_patiently("mount", &["-o", &options, image.to_str().unwrap(), point.to_str().unwrap()]);
        self.mounted = true;
        point
    }

    pub fn unmount(&mut self) {
        run_patiently("umount", &[self.mount_point().to_str().unwrap()]);
        self.mounted = false;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.mounted {
            let _ = Command::new("umount").arg("-l").arg(self.mount_point()).status();
        }
    }
}

/// Fills a file system with files that grew in turns, holes, preallocation, links, deep and wide directories; the
/// same seed gives the same calls.
pub fn fragment(root: &Path, seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut below = |n: u64| random.next_u64() % n;
    let name = |i: u64| root.join(format!("d{}", i % 4)).join(format!("file-{i}"));
    for i in 0..4 {
        fs::create_dir(root.join(format!("d{i}"))).unwrap();
    }
    let mut files: Vec<File> = (0..40).map(|i| File::create(name(i)).unwrap()).collect();
    for _ in 0..400 {
        let i = below(40) as usize;
        let block = vec![i as u8 + 1; 1 + below(24_000) as usize];
        files[i].write_all(&block).unwrap();
        // Writing back in turns is what interleaves their blocks.
        files[i].sync_data().unwrap();
    }
    for i in (0..40).step_by(3) {
        fs::remove_file(name(i)).unwrap();
    }
    for i in [1, 4, 7] {
        let file = OpenOptions::new().write(true).open(name(i)).unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // ext2 and ext3 maps cannot be preallocated, but can be punched.
        rustix::fs::fallocate(&file, punch, 8192, 16384).unwrap();
    }
    let mut late = File::create(root.join("d1/late")).unwrap();
    late.write_all(&vec![9; 900_000]).unwrap();
    late.sync_all().unwrap();
    let preallocated = File::create(root.join("preallocated")).unwrap();
    if rustix::fs::fallocate(&preallocated, FallocateFlags::empty(), 0, 300_000).is_ok() {
        preallocated.write_all_at(&[1; 10_000], 100_000).unwrap();
    }
    let sparse = File::create(root.join("sparse")).unwrap();
    // Far enough for a tree of two levels of indirect blocks.
    for at in [0u64, 1 << 20, 80 << 20, (80 << 20) + 4096, 3 << 30] {
        sparse.write_all_at(&[2; 5000], at).unwrap();
    }
    sparse.sync_all().unwrap();
    fs::write(root.join("tiny"), b"inline if anything is").unwrap();
    fs::write(root.join("empty"), b"").unwrap();
    fs::hard_link(name(1), root.join("d2/second name")).unwrap();
    std::os::unix::fs::symlink("late", root.join("d1/symlink")).unwrap();
    wide_and_deep(root);
    rustix::fs::sync();
}

fn wide_and_deep(root: &Path) {
    let wide = root.join("wide");
    fs::create_dir(&wide).unwrap();
    for i in 0..1500 {
        // Bytes above 127, where the sign of the hash matters; some of them not UTF-8.
        let name = [format!("näme-{i}-").as_bytes(), &[0xF0 + (i % 8) as u8]].concat();
        let path = wide.join(std::ffi::OsStr::from_bytes(&name));
        fs::write(path, if i % 10 == 0 { &b"some data"[..] } else { b"" }).unwrap();
    }
    let mut deep = root.to_owned();
    for i in 0..100 {
        deep.push(format!("deep{i}"));
        fs::create_dir(&deep).unwrap();
        fs::write(deep.join("leaf"), b"leaf").unwrap();
    }
}

/// The regular files below a directory, each once however many names it has.
pub fn files_below(root: &Path) -> Vec<PathBuf> {
    use std::os::unix::fs::MetadataExt as _;
    let (mut found, mut seen, mut todo) = (Vec::new(), std::collections::BTreeSet::new(), vec![root.to_owned()]);
    while let Some(directory) = todo.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() {
                todo.push(entry.path());
            } else if metadata.is_file() && seen.insert(metadata.ino()) {
                found.push(entry.path());
            }
        }
    }
    found
}

/// What `filefrag -v` lists: extents in blocks of so many bytes. Its lines are
/// `   0:        0..       3:      34304..     34307:      4:             last,eof`.
pub fn filefrag(path: &Path, block_bytes: u64) -> Vec<Extent> {
    let text = run("filefrag", &["-v", &format!("-b{block_bytes}"), path.to_str().unwrap_or_default()]);
    let mut extents = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(':').map(str::trim).collect();
        let Some(Ok(_)) = fields.first().map(|f| f.parse::<u64>()) else { continue };
        let range = |i: usize| fields[i].split("..").next().unwrap().trim().parse::<u64>().unwrap();
        let flags = fields.last().unwrap();
        extents.push(Extent {
            logical_bytes: range(1) * block_bytes,
            physical_bytes: range(2) * block_bytes,
            len_bytes: fields[3].parse::<u64>().unwrap() * block_bytes,
            flags: ExtentFlags {
                unwritten: flags.contains("unwritten"),
                inline: flags.contains("inline"),
                encoded: flags.contains("encoded"),
                shared: flags.contains("shared"),
                ..ExtentFlags::default()
            },
        });
    }
    extents
}

/// The layout score from the definition, block by block: blocks that follow, blocks that have a predecessor.
pub fn score_by_blocks(extents: &[Extent], block_bytes: u64) -> (u64, u64) {
    let placed = extents.iter().filter(|e| !e.flags.inline && !e.flags.encoded);
    let blocks: Vec<u64> =
        placed.flat_map(|e| (0..e.len_bytes / block_bytes).map(move |i| e.physical_bytes / block_bytes + i)).collect();
    let following = blocks.windows(2).filter(|pair| pair[1] == pair[0] + 1).count() as u64;
    (following, blocks.len().saturating_sub(1) as u64)
}

/// The number after a label in a tool's output.
pub fn number_after(text: &str, label: &str) -> f64 {
    let rest = text.split(label).nth(1).unwrap_or_else(|| panic!("no {label:?} in {text}"));
    let digits: String = rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().unwrap_or_else(|_| panic!("no number after {label:?} in {text}"))
}
