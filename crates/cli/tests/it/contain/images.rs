//! Images, copied out of.
//!
//! Each is a sound file system with a few changes to its directories and inodes; what else guards them (the check
//! hashes of UFS2, the superblock's checksum of LFS) is right.

use super::stage::{Stage, User, open_directory};
use super::{Dice, Seeds};
use crate::common::{code, stderr};
use ffs::format::{DIRBLKSIZ, DirFormat, RawEntry, check_hashes, flags};
use ffs::mkfs::{GroupSize, MkfsOptions};
use ffs::{Endian, Ino, InsertOptions, Search, Version};
use lfs::format::{DIR_FORMAT, IFILE_INO};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use ufs::mode;

const BYTES: usize = 2 << 20;
/// 2001, so that nothing depends on the clock.
const DATE_NS: i64 = 1_000_000_000_000_000_000;
/// The usual setting.
const NAMES: u64 = 3_000;
/// Bytes of an entry before its name.
const HEAD: usize = 8;

/// What is copied into each image first. Names that are links here and directories or files there are what an attack
/// begins with.
fn tree(outside: &Path) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let victim = outside.join("victim");
    for below in ["", "outside", "outside/victim", "victim", "victim/dir", "L"] {
        let at = directory.path().join(below);
        fs::create_dir_all(at.join("M")).expect("a new directory");
        for (name, bytes) in [("prog", 700), ("secret", 30), ("deep", 60_000)] {
            fs::write(at.join(name), vec![b'!'; bytes]).expect("a new file");
            fs::write(at.join("M").join(name), b"!").expect("a new file");
        }
        fs::set_permissions(at.join("prog"), fs::Permissions::from_mode(0o6755)).expect("a mode");
        fs::hard_link(at.join("secret"), at.join("also")).expect("a second name");
        symlink(&victim, at.join("N")).expect("a new link");
        symlink("../outside/victim", at.join("O")).expect("a new link");
        symlink("x/".repeat(90), at.join("long")).expect("a new link");
        let fifo = at.join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).expect("a new FIFO");
    }
    directory
}

/// A sound image, and where what is worth changing is.
#[derive(Clone)]
struct Image {
    bytes: Vec<u8>,
    format: Format,
    inodes: Vec<(u32, usize)>,
    links: Vec<usize>,
    chunks: Vec<usize>,
}

#[derive(Clone, Copy)]
enum Format {
    Ffs(ffs::Geometry),
    Lfs,
}

impl Format {
    fn directories(&self) -> DirFormat {
        match self {
            Format::Ffs(g) => g.dir_format(),
            Format::Lfs => DIR_FORMAT,
        }
    }
}

const KEEP_OWNERS: InsertOptions = InsertOptions { owner: Some((0, 0)), overwrite: false, latest_s: None };

/// UFS2 keeps check hashes, as FreeBSD has it.
fn ufs(tree: &Path, version: Version, endian: Endian) -> Image {
    let options = MkfsOptions {
        bsize: 4096,
        fsize: 512,
        group: Some(GroupSize::Fragments(1024)),
        ipg: Some(256),
        endian,
        ..MkfsOptions::new(version, BYTES as u64)
    };
    let mut store = ffs::MemoryStore(vec![0; BYTES]);
    ffs::mkfs(&mut store, &options).expect("sound options");
    let mut inserter = ffs::Inserter::open(store, ffs::policy::Options::default(), DATE_NS).expect("a new image");
    inserter.insert(&tree.join("."), b"/", KEEP_OWNERS, &mut |_| true).expect("room");
    let (mut store, _) = inserter.finish().expect("room");
    if version == Version::Ufs2 {
        let image = ffs::Image::open(store.clone(), Search::Standard).expect("sound");
        let (mut sb, at) = (image.superblock().clone(), image.superblock_at());
        sb.f.flags |= flags::METACKHASH;
        sb.f.metackhash = check_hashes::SUPERBLOCK | check_hashes::GROUP | check_hashes::INODE;
        put(&mut store.0, at as usize, &sb.encode());
    }
    let image = ffs::Image::open(store.clone(), Search::Standard).expect("sound");
    let g = *image.geometry();
    let (mut inodes, mut links, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
    for ino in (ffs::format::ROOT_INO.0..g.inodes()).map(Ino) {
        let inode = image.inode(ino).expect("sound");
        if inode.mode == 0 {
            continue;
        }
        let at = g.inode_at(ino).expect("an inode that was read") as usize;
        put(&mut store.0, at, &inode.encode(&g));
        inodes.push((ino.0, at));
        links.extend(inode.is_short_symlink(&g).then_some(at));
        if inode.is_dir() {
            let runs = image.runs(ino, &inode, &mut |run| {
                let begin = g.byte_of(run.addr) as usize;
                chunks.extend((begin..begin + run.bytes as usize).step_by(DIRBLKSIZ));
                Ok(())
            });
            runs.expect("sound");
        }
    }
    for group in (0..g.ncg).map(ffs::GroupNo) {
        let sound = image.group(group).expect("sound");
        put(&mut store.0, g.byte_of(g.group_block(group)) as usize, &sound.encode(&g));
    }
    let report = ffs::fsck(&mut store.clone(), &mut |_| true).expect("readable");
    assert!(report.is_clean(), "{:?}", report.problems);
    Image { bytes: store.0, format: Format::Ffs(g), inodes, links, chunks }
}

fn log(tree: &Path, bsize: u32, fsize: u32) -> Image {
    let options =
        lfs::mkfs::MkfsOptions { bsize, fsize, ssize: Some(65536), ..lfs::mkfs::MkfsOptions::new(2 * BYTES as u64) };
    let mut store = lfs::MemoryStore(vec![0; 2 * BYTES]);
    lfs::mkfs(&mut store, &options).expect("sound options");
    let mut inserter = lfs::Inserter::open(store, lfs::Options::default(), DATE_NS).expect("a new image");
    inserter.insert(&tree.join("."), b"/", KEEP_OWNERS, &mut |_| true).expect("room");
    let (store, _) = inserter.finish().expect("room");
    let image = lfs::Image::open(store.clone(), lfs::Checkpoint::Newer).expect("sound");
    let g = *image.geometry();
    let (mut inodes, mut links, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
    for (ino, entry) in image.ifile().in_use().filter(|(ino, _)| *ino != IFILE_INO) {
        let inode = image.inode(ino).expect("sound");
        let begin = g.byte_of(lfs::format::FragAddr(entry.daddr)) as usize;
        let places = (begin..begin + g.ibsize as usize).step_by(lfs::format::DINODE_BYTES as usize);
        let is_here = |at: &usize| lfs::format::Dinode::decode(&store.0[*at..]).inumber == ino.0;
        let at = places.rev().find(is_here).expect("an inode that was read");
        inodes.push((ino.0, at));
        links.extend(inode.is_short_symlink(g.maxsymlinklen).then_some(at));
        if inode.is_dir() {
            let blocks = image.blocks(ino, &inode, &mut |block| {
                let (begin, of_file) = (g.byte_of(block.addr) as usize, block.lbn as u64 * u64::from(g.bsize));
                let bytes = u64::from(block.bytes).min(inode.size - of_file) as usize;
                chunks.extend((begin..begin + bytes).step_by(DIRBLKSIZ));
                Ok(())
            });
            blocks.expect("sound");
        }
    }
    Image { bytes: store.0, format: Format::Lfs, inodes, links, chunks }
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

/// A change of an inode, in whatever format.
enum Change {
    Mode(u16),
    Links(i16),
    Size(u64),
    /// Where a link leads.
    Target(Vec<u8>),
    /// The number of a device, the first block of a file.
    First(i64),
    Indirect(i64),
    Owner(u32),
    Modified(ufs::Time),
}

/// Both formats' inodes have fields of the same names.
macro_rules! change {
    ($inode:ident, $change:expr, $target:expr) => {
        match $change {
            Change::Mode(to) => $inode.mode = to,
            Change::Links(to) => $inode.nlink = to,
            Change::Size(to) => $inode.size = to,
            Change::First(to) => $inode.db[0] = to,
            Change::Indirect(to) => $inode.ib = [to; 3],
            Change::Owner(to) => ($inode.uid, $inode.gid) = (to, to),
            Change::Modified(to) => ($inode.atime, $inode.mtime) = (to, to),
            Change::Target(to) => {
                $inode.size = to.len() as u64;
                $target(&mut $inode, &to);
            }
        }
    };
}

impl Image {
    fn change_inode(&mut self, at: usize, change: Change) {
        let old = &self.bytes[at..];
        let new = match &self.format {
            Format::Ffs(g) => {
                let mut inode = ffs::Dinode::decode(old, g);
                change!(inode, change, |inode: &mut ffs::Dinode, to: &[u8]| inode.set_pointer_area(to, g));
                inode.encode(g)
            }
            Format::Lfs => {
                let mut inode = lfs::format::Dinode::decode(old);
                change!(inode, change, |inode: &mut lfs::format::Dinode, to: &[u8]| inode.set_pointer_area(to));
                let mut bytes = vec![0; lfs::format::DINODE_BYTES as usize];
                inode.encode(&mut bytes);
                bytes
            }
        };
        put(&mut self.bytes, at, &new);
    }

    fn mode(&self, at: usize) -> u16 {
        match &self.format {
            Format::Ffs(g) => ffs::Dinode::decode(&self.bytes[at..], g).mode,
            Format::Lfs => lfs::format::Dinode::decode(&self.bytes[at..]).mode,
        }
    }

    /// Changes an inode at random.
    fn any_inode(&mut self, dice: &mut Dice, outside: &str) {
        let (_, at) = dice.one_of(&self.inodes);
        let old = self.mode(at);
        let change = match dice.below(9) {
            0 | 1 => Change::Mode(old & mode::IFMT | dice.one_of(&[0, 0o4755, 0o6777, 0o2111, 0o1777, 0o7000])),
            2 => {
                let kinds = [0, 0o010_000, 0o020_000, 0o040_000, 0o060_000, 0o100_000, 0o120_000, 0o140_000, 0o160_000];
                Change::Mode(old & mode::PERMISSIONS | dice.one_of(&kinds))
            }
            3 => Change::Size(dice.one_of(&[0, 1, 511, 512, 1 << 20, 1 << 33, 1 << 62, u64::MAX, u64::MAX / 2])),
            4 | 5 if !self.links.is_empty() => {
                let at = dice.one_of(&self.links);
                let to = dice.one_of(&[outside, "../outside/victim", "/", "..", ".", "", "prog", "\0", "L/N/M"]);
                let to = to.as_bytes()[..to.len().min(59)].to_vec();
                return self.change_inode(at, Change::Target(to));
            }
            6 => Change::Links(dice.one_of(&[0, 1, 2, -1, i16::MAX])),
            7 => dice.one_of(&[Change::First as fn(i64) -> Change, Change::Indirect])(dice.one_of(&[
                0x0103,
                0x0800,
                -1,
                i64::MAX,
                8,
                100,
            ])),
            _ if dice.below(2) == 0 => Change::Owner(dice.one_of(&[0, 1000, u32::MAX, u32::MAX - 1])),
            _ => Change::Modified(
                dice.one_of(&[ufs::Time { s: i64::MAX, ns: i32::MAX }, ufs::Time { s: i64::MIN, ns: -1 }]),
            ),
        };
        self.change_inode(at, change);
    }

    /// The entries of a chunk that are in use: where each is.
    fn entries(&self, chunk: usize) -> Vec<usize> {
        let (format, bytes) = (self.format.directories(), &self.bytes[chunk..chunk + DIRBLKSIZ]);
        let (mut found, mut at) = (Vec::new(), 0);
        while at < DIRBLKSIZ {
            let head = RawEntry::get(bytes, at, format);
            if !head.leads_on(at, DIRBLKSIZ) {
                break;
            }
            found.extend((head.ino != 0).then_some(at));
            at += usize::from(head.reclen);
        }
        found
    }

    fn name(&self, at: usize, head: RawEntry) -> Vec<u8> {
        self.bytes[at + HEAD..at + HEAD + usize::from(head.namlen)].to_vec()
    }

    /// Gives an entry another name, inode or kind.
    fn any_entry(&mut self, dice: &mut Dice, outside: &str) {
        let chunk = dice.one_of(&self.chunks);
        let entries = self.entries(chunk);
        if entries.is_empty() {
            return;
        }
        let (format, at) = (self.format.directories(), dice.one_of(&entries));
        let mut head = RawEntry::get(&self.bytes[chunk..], at, format);
        let mut name = None;
        match dice.below(6) {
            0 | 1 => {
                let other = dice.one_of(&entries);
                name = Some(self.name(chunk + other, RawEntry::get(&self.bytes[chunk..], other, format)));
            }
            2 => {
                let hostile =
                    ["..", ".", "", "/", "../x", "a/b", "N/secret", "../outside", "a\0b", outside, "\u{1b}[2J"];
                name = Some(dice.one_of(&hostile).as_bytes().to_vec());
            }
            3 | 4 => {
                head.ino =
                    if dice.below(8) == 0 { dice.one_of(&[0, 1, 2, u32::MAX]) } else { dice.one_of(&self.inodes).0 }
            }
            _ => head.kind = dice.one_of(&[0, 1, 2, 4, 6, 8, 10, 12, 14, 255]),
        }
        if let Some(name) = name.filter(|name| HEAD + name.len() <= usize::from(head.reclen) && name.len() <= 255) {
            head.namlen = name.len() as u16;
            put(&mut self.bytes, chunk + at + HEAD, &name);
        }
        head.put(&mut self.bytes[chunk..chunk + DIRBLKSIZ], at, format);
    }
}

impl Image {
    /// A link to the outside, and behind it a directory, or what is in one, of the same name.
    fn plant(&mut self, dice: &mut Dice, outside: &str) {
        let (chunk, format) = (dice.one_of(&self.chunks), self.format.directories());
        let named: Vec<usize> =
            self.entries(chunk).into_iter().filter(|at| self.bytes[chunk + at + HEAD] != b'.').collect();
        if named.len() < 2 || self.links.is_empty() {
            return;
        }
        let first = dice.below(named.len() - 1);
        let second = first + 1 + dice.below(named.len() - first - 1);
        let link = dice.one_of(&self.links);
        let of_link = self.inodes.iter().find(|(_, at)| *at == link).expect("a link is an inode").0;
        let to = dice.one_of(&[outside, "../../../../outside/victim", "../outside/victim", "../../outside"]);
        let short = &to.as_bytes()[..to.len().min(59)];
        self.change_inode(link, Change::Target(short.to_vec()));
        let is_dir = |(_, at): &&(u32, usize)| self.mode(*at) & mode::IFMT == 0o040_000;
        let directories: Vec<u32> = self.inodes.iter().filter(is_dir).map(|(ino, _)| *ino).collect();
        for (at, ino) in [(named[first], of_link), (named[second], dice.one_of(&directories))] {
            let place = &mut self.bytes[chunk..chunk + DIRBLKSIZ];
            let head = RawEntry { ino, namlen: 1, ..RawEntry::get(place, at, format) };
            head.put(place, at, format);
            place[at + HEAD] = b'N';
        }
    }
}

/// Counts what was made, sees that nothing of it is more than it may be, and makes it so that it can be removed.
fn look_over(path: &Path, special: bool, seed: u64) -> u64 {
    let Ok(made) = fs::symlink_metadata(path) else { return 0 };
    let kind = made.mode() & 0o170_000;
    if !special {
        assert!(kind != 0o060_000 && kind != 0o020_000, "seed {seed}: {} is a device", path.display());
        let bits = if kind == 0o120_000 { 0 } else { made.mode() & 0o6000 };
        assert_eq!(bits, 0, "seed {seed}: {} runs as somebody else", path.display());
    }
    if !made.is_dir() {
        return 1;
    }
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).expect("what was made is ours");
    let entries: Vec<_> =
        fs::read_dir(path).expect("a directory").map(|entry| entry.expect("an entry").path()).collect();
    1 + entries.iter().map(|entry| look_over(entry, special, seed)).sum::<u64>()
}

fn nothing_happens_outside(user: User) {
    let mut stage = Stage::new(user);
    let directory = open_directory();
    let file = directory.path().join("hostile.img");
    let (sound, outside) = (tree(&stage.at("outside")), stage.at("outside/victim"));
    let (sound, outside) = (sound.path(), outside.to_str().expect("a plain path"));
    stage.note();
    let images = [
        ufs(sound, Version::Ufs1, Endian::Little),
        ufs(sound, Version::Ufs2, Endian::Little),
        ufs(sound, Version::Ufs2, Endian::Big),
        log(sound, 4096, 512),
        log(sound, 8192, 1024),
    ];
    let may_give_away = user == User::Same && rustix::process::geteuid().is_root();
    let (mut whole, mut refused) = (0, 0);
    let mut seeds = Seeds::new(NAMES);
    while let Some(seed) = seeds.next() {
        let mut dice = Dice::new(seed);
        let mut image = images[seed as usize % images.len()].clone();
        for _ in 0..1 + dice.below(6) {
            match dice.below(5) {
                0 | 1 => image.any_entry(&mut dice, outside),
                2 => image.plant(&mut dice, outside),
                _ => image.any_inode(&mut dice, outside),
            }
        }
        fs::write(&file, &image.bytes).expect("a new file");
        let from = dice.one_of(&["/", "/", "/", "/outside", "/L", "/N", "/prog"]);
        let options: &[&str] = match dice.below(3) {
            0 if may_give_away => &["--owners", "--special"],
            1 if may_give_away => &["--owners"],
            _ => &[],
        };
        let to = stage.at("target/out");
        let mut command = stage.fsage();
        command.arg("cp").args(options).arg(format!("{}:{from}", file.display())).arg(&to);
        let output = stage.run(&mut command);
        match code(&output) {
            // 1: all but links that lead nowhere, which are named.
            0 | 1 => whole += 1,
            // The image has no such name any more.
            2 if from != "/" => refused += 1,
            // What one image asks for, this file system may not have: a name twice, a file of 2^62 bytes.
            3 | 4 => refused += 1,
            code => panic!("seed {seed}: exit code {code}: {}", stderr(&output)),
        }
        // One file counts as well: it was tried.
        seeds.made += look_over(&to, options.contains(&"--special"), seed).max(1);
        let _ = fs::remove_dir_all(&to).or_else(|_| fs::remove_file(&to));
        assert_eq!(crate::common::names(&stage.at("target")), Vec::<String>::new(), "seed {seed}");
        stage.check();
    }
    println!("{} names as {user:?}: {whole} images copied, {refused} refused", seeds.made);
    assert!(seeds.only || whole > 0 && refused > 0, "every image had the same end");
}

#[test]
fn hostile_images_touch_nothing_outside() {
    nothing_happens_outside(User::Same);
}

#[test]
fn hostile_images_touch_nothing_of_an_ordinary_user() {
    if testkit::need(testkit::Need::Root) {
        nothing_happens_outside(User::Nobody);
    }
}
