//! Linux's own ufs driver, in user-mode Linux, on what mkfs makes and on what fsck has repaired: it mounts them, and
//! every file, mode and link count is what our reader sees.

use crate::common::{foreign_images, makefs, run, sample_tree};
use crate::damage::{Patient, damages};
use crate::journal;
use crate::lab;
use crate::live;
use crate::mutate;
use crate::snapshot;
use ffs::mkfs::MkfsOptions;
use ffs::policy::Options;
use ffs::{Endian, FileType, Image, InsertOptions, Inserter, MemoryStore, Overlay, Search, Version, fsck, mkfs};
use rand_core::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::{Tool, tool};

/// An image, and what is in it: path to type, mode, links, size, and hash or target.
struct Case {
    name: String,
    version: Version,
    store: MemoryStore,
}

type Listing = BTreeMap<String, String>;

/// What our reader sees, in the form that [`INIT`] prints.
fn ours(case: &Case, scratch: &Path) -> Listing {
    let image = Image::open(case.store.clone(), Search::Standard).unwrap();
    let mut listing = Listing::new();
    let mut to_hash = Vec::new();
    image
        .walk(ffs::format::ROOT_INO, &mut |path, ino, inode| {
            // As it comes through a terminal; repairs keep names of any bytes.
            let path = String::from_utf8_lossy(path).replace('\r', "");
            let (permissions, links, size) = (inode.permissions(), inode.nlink, inode.size);
            let line = match inode.file_type() {
                Some(FileType::Regular) => {
                    let file = scratch.join(format!("data{ino}"));
                    let mut bytes = vec![0; size as usize];
                    image.data(ino, inode, &mut |at, data| {
                        bytes[at as usize..at as usize + data.len()].copy_from_slice(data);
                        Ok(())
                    })?;
                    std::fs::write(&file, bytes).unwrap();
                    to_hash.push((path.clone(), file));
                    format!("f {permissions:o} {links} {size}")
                }
                Some(FileType::Directory) => format!("d {permissions:o} {links}"),
                Some(FileType::Symlink) => {
                    // Linux takes it up to a zero byte, which damage may have put there.
                    let mut target = image.symlink(ino, inode)?;
                    target.truncate(target.iter().position(|b| *b == 0).unwrap_or(target.len()));
                    format!("l {}", String::from_utf8_lossy(&target).replace('\r', ""))
                }
                Some(FileType::Fifo) => format!("p {permissions:o} {links}"),
                Some(FileType::Socket) => format!("s {permissions:o} {links}"),
                Some(kind @ (FileType::CharDevice | FileType::BlockDevice)) => {
                    let kind = if kind == FileType::CharDevice { "c" } else { "b" };
                    // Of UFS2's 64 bits Linux takes the first 32, which in big-endian order are the wrong ones.
                    let lost = case.version == Version::Ufs2 && image.geometry().endian() == Endian::Big;
                    let (major, minor) = if lost { (0, 0) } else { inode.device() };
                    format!("{kind} {permissions:o} {links} {major:x} {minor:x}")
                }
                _ => return Ok(()),
            };
            listing.insert(path, line);
            Ok(())
        })
        .unwrap();
    for pieces in to_hash.chunks(100) {
        let out = run(Command::new("sha256sum").args(pieces.iter().map(|(_, file)| file)));
        for (line, (path, _)) in out.lines().zip(pieces) {
            listing.get_mut(path).unwrap().push_str(&format!(" {}", &line[..64]));
        }
    }
    listing
}

/// Mounts each image read-only and prints its tree.
const INIT: &str = r#"#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t tmpfs tmp /mnt
insmod /usr/lib/uml/modules/$(uname -r)/kernel/fs/ufs/ufs.ko
mkdir /mnt/i
while read -r device type; do
    echo "@@image $device"
    mount -t ufs -o ro,ufstype=$type /dev/$device /mnt/i || { echo "@@failed $device"; continue; }
    cd /mnt/i
    find . -type f -printf '%p\tf %m %n %s\0' -o -type d -printf '%p\td %m %n\0' -o -type l -printf '%p\tl %l\0' \
        -o '(' -type p -o -type s ')' -printf '%p\t%y %m %n\0' | cat
    find . '(' -type c -o -type b ')' -printf '%p\t%y %m %n ' -exec stat --printf '%t %T\0' {} ';' | cat
    echo "@@hashes"
    find . -type f -exec sha256sum -z {} +
    cd /
    umount /mnt/i
done < LIST
echo "@@end"
poweroff -f
"#;

/// Executes a command that is told that there are no extended processor registers. The kernel in user mode keeps a
/// process's in a buffer of fixed size, which is too small where a processor has AMX; without them it saves the others.
/// A filter of system calls says so: EIO for `ptrace(PTRACE_GETREGSET, _, NT_X86_XSTATE, _)`. What runs in there has to
/// do without the others, then: [`WITHOUT_AVX`].
const WITHOUT_XSTATE: &str = r#"
import ctypes, os, struct, sys
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7fff0000, 0x00050000 | 5
NUMBER, FIRST, THIRD = 0, 16, 32
steps = [
    (LOAD, 0, 0, NUMBER), (EQUAL, 0, 5, 101),
    (LOAD, 0, 0, FIRST), (EQUAL, 0, 3, 0x4204),
    (LOAD, 0, 0, THIRD), (EQUAL, 0, 1, 0x202),
    (RETURN, 0, 0, REFUSE), (RETURN, 0, 0, ALLOW),
]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
for call in [(38, 1, 0), (22, 2, ctypes.addressof(program))]:
    if libc.prctl(*(ctypes.c_ulong(word) for word in (*call, 0, 0))):
        raise OSError(ctypes.get_errno(), "prctl")
os.execvp(sys.argv[1], sys.argv[1:])
"#;

/// The C library's functions for memory and strings use no registers that are not saved.
const WITHOUT_AVX: &str = "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX_Fast_Unaligned_Load";

/// Runs the kernel over the images; what it printed about each.
fn linux(uml: &Path, cases: &[Case], scratch: &Path) -> Vec<Listing> {
    let mut list = String::new();
    let mut devices = Vec::new();
    for (case, letter) in cases.iter().zip('a'..='p') {
        let file = scratch.join(format!("{letter}.img"));
        std::fs::write(&file, &case.store.0).unwrap();
        let kind = if case.version == Version::Ufs1 { "44bsd" } else { "ufs2" };
        list.push_str(&format!("ubd{letter} {kind}\n"));
        devices.push(format!("ubd{letter}r={}", file.display()));
    }
    let list_file = scratch.join("list");
    std::fs::write(&list_file, list).unwrap();
    let init = scratch.join("init");
    std::fs::write(&init, INIT.replace("LIST", list_file.to_str().unwrap())).unwrap();
    std::fs::set_permissions(&init, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new("python3")
        .args(["-c", WITHOUT_XSTATE, "timeout", "120"])
        .arg(uml)
        .args(["mem=256M", "rootfstype=hostfs", "rw", "quiet", "con0=null,fd:1", "con=null", "ssl=null"])
        .arg(WITHOUT_AVX)
        .arg(format!("init={}", init.display()))
        .args(&devices)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    assert!(
        text.contains("@@end"),
        "the kernel did not get to its end: {text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.split("@@image ").skip(1).map(parse).collect()
}

fn parse(section: &str) -> Listing {
    let section = section.split("@@end").next().unwrap();
    assert!(!section.contains("@@failed"), "Linux does not mount it: {section}");
    let (_, section) = section.split_once('\n').unwrap();
    let (names, hashes) = section.split_once("@@hashes\n").unwrap();
    let mut listing: Listing = names
        .split('\0')
        .filter_map(|line| line.split_once('\t'))
        .map(|(path, rest)| (path.to_owned(), rest.to_owned()))
        .collect();
    for (hash, path) in hashes.split('\0').filter_map(|line| line.split_once("  ")) {
        listing.get_mut(path).unwrap_or_else(|| panic!("{path:?} of {section:?}")).push_str(&format!(" {hash}"));
    }
    listing
}

fn made() -> Vec<Case> {
    let made = |version, endian, bsize: u32, parts: u32, lost_found| {
        let size = 16 << 20;
        let mut store = MemoryStore(vec![0; size]);
        let fsize = bsize / parts;
        let options =
            MkfsOptions { bsize, fsize, endian, lost_found, time_s: 86400, ..MkfsOptions::new(version, size as u64) };
        mkfs(&mut store, &options).unwrap();
        Case { name: format!("{options:?}"), version, store }
    };
    vec![
        made(Version::Ufs1, Endian::Little, 8192, 8, true),
        made(Version::Ufs1, Endian::Big, 4096, 1, false),
        made(Version::Ufs1, Endian::Little, 32768, 8, false),
        made(Version::Ufs2, Endian::Little, 16384, 8, true),
        made(Version::Ufs2, Endian::Big, 4096, 8, true),
        made(Version::Ufs2, Endian::Little, 32768, 8, false),
    ]
}

/// A few kinds of damage to each base, together, and repaired.
fn repaired(bases: Vec<(String, Version, MemoryStore)>) -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, version, base) in bases {
        for choice in [
            &["superblock zeroed", "group: everything", "entry: removed", "inode: link count up"][..],
            &["inode: shared indirect block", "directory: first block noise"],
            &["inode: block count", "entry: reclen 0"],
            &["inode: root cleared", "inode: size down"],
        ] {
            let mut patient = Patient::new(&base);
            for (what, damage, ..) in damages() {
                if choice.contains(&what) && what != "superblock zeroed" {
                    damage(&mut patient);
                }
            }
            if choice.contains(&"superblock zeroed") {
                // Last, for the others need it to find their way.
                let at = patient.sb_at;
                patient.store.0[at..at + 1376].fill(0);
            }
            let report = fsck(&mut patient.store, &mut |_| true).unwrap();
            assert!(!report.is_clean() && report.unrepaired == 0);
            cases.push(Case { name: format!("{name} after {choice:?}"), version, store: patient.store });
        }
    }
    cases
}

fn uml() -> Option<PathBuf> {
    let uml = tool(Tool::LinuxUml)?;
    let modules = Path::new("/usr/lib/uml/modules");
    let driver =
        modules.is_dir() && run(Command::new("find").arg(modules).args(["-name", "ufs.ko*"])).lines().next().is_some();
    if !driver || tool(Tool::Insmod).is_none() {
        testkit::skip("user-mode Linux has no ufs driver here (packages user-mode-linux and kmod)");
        return None;
    }
    Some(uml)
}

#[test]
fn linux_mounts_and_agrees() {
    let Some(uml) = uml() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let mut cases = made();
    if let Some(program) = tool(Tool::Makefs) {
        let from = scratch.path().join("tree");
        sample_tree(&from, 4096);
        let path = scratch.path().join("base.img");
        makefs(&program, &path, &from, 1, "be", 4096, 512);
        let base = MemoryStore(std::fs::read(&path).unwrap());
        cases.extend(repaired(vec![("makefs, version 1, be".to_owned(), Version::Ufs1, base)]));
    }
    for (name, path, _) in foreign_images(scratch.path()) {
        if name == "ufs2-linux" {
            let mut store = MemoryStore(std::fs::read(&path).unwrap());
            let image = Image::open(store.clone(), Search::Standard).unwrap();
            // All link counts wrong, all maps wrong, no superblock.
            let g = *image.geometry();
            for ino in (2..40).map(ffs::Ino) {
                let at = g.inode_at(ino).unwrap() as usize + 2;
                store.0[at] ^= 3;
            }
            let group = g.byte_of(g.group_block(ffs::GroupNo(0))) as usize;
            store.0[group + 168..group + 2000].fill(0xAA);
            store.0[65536..65536 + 1376].fill(0);
            assert!(!fsck(&mut store, &mut |_| true).unwrap().is_clean());
            cases.push(Case { name, version: Version::Ufs2, store });
        }
    }
    agrees(&uml, &cases, scratch.path());
}

/// As many as the kernel has disks at a time.
const DISKS: usize = 16;

fn agrees(uml: &Path, cases: &[Case], scratch: &Path) {
    for cases in cases.chunks(DISKS) {
        let seen = linux(uml, cases, scratch);
        assert_eq!(seen.len(), cases.len());
        for (case, listing) in cases.iter().zip(seen) {
            let expected = ours(case, scratch);
            let differs = listing.iter().find(|(path, line)| expected.get(*path) != Some(line));
            let differs = differs.map(|(path, line)| (path, line, expected.get(path)));
            assert_eq!(differs, None, "{}: a path, Linux's line, ours", case.name);
            assert_eq!(listing.len(), expected.len(), "{}: names", case.name);
        }
    }
}

/// Disks that a live file system has filled, emptied and filled again, as its writes have left them.
#[test]
fn linux_reads_what_the_live_file_system_wrote() {
    let Some(uml) = uml() else { return };
    let scratch = tempfile::tempdir().unwrap();
    // Linux has no fragments larger than a page.
    let known = live::cases(true).into_iter().filter(|case| case.mkfs.fsize <= 4096);
    let cases: Vec<Case> = known
        .map(|case| {
            let (name, version) = (format!("{case:?}"), case.mkfs.version);
            let mut run = live::Run::new(case);
            for _ in 0..800 {
                run.step();
            }
            Case { name, version, store: run.disk() }
        })
        .collect();
    agrees(&uml, &cases, scratch.path());
}

/// What a file system with a log leaves when it is unmounted, and what a replay makes of it after a crash. The log
/// itself is a file like others.
#[test]
fn linux_reads_what_was_journaled() {
    let Some(uml) = uml() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for layout in journal::LAYOUTS {
        let name = format!("{layout:?}");
        let mut replayed = journal::used(layout).crashed();
        assert!(ffs::log::replay(&mut replayed).unwrap().unwrap().transactions > 0);
        let unmounted = journal::used(layout).unmounted();
        cases.push(Case { name: format!("{name}, replayed"), version: layout.0, store: replayed });
        cases.push(Case { name: format!("{name}, unmounted"), version: layout.0, store: unmounted });
    }
    cases.iter().for_each(clean);
    agrees(&uml, &cases, scratch.path());
}

/// A disk with a snapshot: Linux reads everything but that, of which it knows nothing.
#[test]
fn linux_reads_all_but_a_snapshot() {
    let Some(uml) = uml() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for (seed, (version, endian, bsize, fsize)) in (1..).zip(snapshot::shapes()) {
        // Linux has no fragments larger than a page.
        let fsize = fsize.min(4096);
        let disk = snapshot::disk(version, endian, bsize, fsize, 12 << 20);
        let (wrong, store, _) = snapshot::aged(disk, "softdep", seed, None, [300, 600]);
        assert_eq!(wrong, None);
        cases.push(Case { name: format!("{version}, {endian:?}, {bsize}/{fsize}"), version, store });
    }
    cases.iter().for_each(clean);
    for (case, mut seen) in cases.iter().zip(linux(&uml, &cases, scratch.path())) {
        let mut expected = ours(case, scratch.path());
        for listing in [&mut seen, &mut expected] {
            assert!(listing.remove("./snap").is_some());
        }
        assert_eq!(seen, expected, "{}", case.name);
    }
}

fn empty(version: Version, endian: Endian, bsize: u32, fsize: u32) -> MemoryStore {
    let options = MkfsOptions { bsize, fsize, endian, density: Some(4096), ..MkfsOptions::new(version, 12 << 20) };
    let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
    mkfs(&mut store, &options).unwrap();
    store
}

fn clean(case: &Case) {
    let report = fsck(Overlay::new(&mut case.store.clone()), &mut |_| true).unwrap();
    assert!(report.is_clean() && report.marked_clean, "{}: {:?}", case.name, report.problems);
}

/// Disks that processes in the laboratory have aged through every layer of the kernel, some of them until not a byte
/// was to be had: of ours, of makefs, and of other kernels. What the processes read is what Linux reads.
#[test]
fn linux_reads_what_the_laboratory_aged() {
    let Some(uml) = uml() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let steps = testkit::parameter("FSAGE_FFS_UML_STEPS").unwrap_or(1000);
    let ours = [
        (Version::Ufs1, Endian::Little, 8192, 1024, "original,switch,bestfit,spread,conventional", false),
        (Version::Ufs1, Endian::Big, 4096, 512, "realloc,noswitch,smartfrags,dirpref,noorder", true),
        (Version::Ufs1, Endian::Little, 16384, 2048, "realloc,metaspace,bestfit,dirpref,conventional", true),
        (Version::Ufs2, Endian::Little, 4096, 512, "realloc,noswitch,smartfrags,spread,noorder,root", true),
        (Version::Ufs2, Endian::Big, 8192, 1024, "original,metaspace,smartfrags,dirpref,conventional", false),
        (Version::Ufs2, Endian::Little, 32768, 4096, "realloc,switch,bestfit,dirpref,noorder", true),
        (Version::Ufs1, Endian::Little, 8192, 1024, "realloc,switch,bestfit,dirpref,softdep", false),
        (Version::Ufs2, Endian::Little, 4096, 512, "original,noswitch,smartfrags,spread,softdep,root", true),
    ];
    let mut cases = Vec::new();
    for (seed, (version, endian, bsize, fsize, words, fill)) in (1..).zip(ours) {
        let aged = lab::age(empty(version, endian, bsize, fsize), words, steps, fill, seed);
        assert!(!fill || aged.out_of_space > 0, "{words}: it fills up");
        let name = format!("{version}, {endian:?}, {bsize}/{fsize}, {words}");
        cases.push(Case { name, version, store: aged.store });
    }
    let mut others = Vec::new();
    if let Some(program) = tool(Tool::Makefs) {
        let (from, path) = (scratch.path().join("tree"), scratch.path().join("base.img"));
        sample_tree(&from, 4096);
        for endian in ["le", "be"] {
            makefs(&program, &path, &from, 1, endian, 4096, 512);
            others.push((format!("makefs, {endian}"), Version::Ufs1, MemoryStore(std::fs::read(&path).unwrap())));
        }
    }
    for (name, path, _) in foreign_images(scratch.path()) {
        let version = if name.starts_with("ufs1") { Version::Ufs1 } else { Version::Ufs2 };
        others.push((name, version, MemoryStore(std::fs::read(&path).unwrap())));
    }
    for (seed, (name, version, store)) in (100..).zip(others) {
        let aged = lab::age(store, "realloc,noswitch,smartfrags,dirpref,noorder", 400, false, seed);
        cases.push(Case { name, version, store: aged.store });
    }
    cases.iter().for_each(clean);
    agrees(&uml, &cases, scratch.path());
}

/// Files of every kind on this machine.
fn tree_of_every_kind(at: &Path) {
    sample_tree(at, 4096);
    let sparse = std::fs::File::create(at.join("with holes")).unwrap();
    sparse.set_len(3 << 20).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, &[7; 5000], 1_500_000).unwrap();
    let make = |name: &str, kind, device| {
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mknodat(rustix::fs::CWD, at.join(name), kind, mode, device).is_ok()
    };
    assert!(make("pipe", rustix::fs::FileType::Fifo, 0));
    if !make("device", rustix::fs::FileType::CharacterDevice, rustix::fs::makedev(7, 200)) {
        testkit::skip("devices: making them needs root");
    }
}

/// Images that files were copied into: empty ones, aged ones, makefs's.
#[test]
fn linux_reads_what_was_copied_in() {
    let Some(uml) = uml() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let from = scratch.path().join("tree");
    tree_of_every_kind(&from);
    let mut bases = Vec::new();
    for (version, endian) in [
        (Version::Ufs1, Endian::Little),
        (Version::Ufs1, Endian::Big),
        (Version::Ufs2, Endian::Little),
        (Version::Ufs2, Endian::Big),
    ] {
        bases.push((format!("{version}, {endian:?}"), version, empty(version, endian, 8192, 1024)));
    }
    let aged = lab::age(empty(Version::Ufs1, Endian::Little, 4096, 512), "realloc,dirpref", 300, false, 5);
    bases.push(("aged".to_owned(), Version::Ufs1, aged.store));
    if let Some(program) = tool(Tool::Makefs) {
        let path = scratch.path().join("base.img");
        makefs(&program, &path, &from.join("dir"), 1, "be", 4096, 512);
        bases.push(("makefs".to_owned(), Version::Ufs1, MemoryStore(std::fs::read(&path).unwrap())));
    }
    let mut cases = Vec::new();
    for (name, version, store) in bases {
        let mut inserter = Inserter::open(store, Options::default(), 1_000_000_000_000_000_000).unwrap();
        let options = InsertOptions { owner: Some((7, 8)), ..InsertOptions::default() };
        inserter.insert(&from, b"/copied", options, &mut |_| true).unwrap();
        let (store, _) = inserter.finish().unwrap();
        let case = Case { name, version, store };
        clean(&case);
        cases.push(case);
    }
    agrees(&uml, &cases, scratch.path());
}

/// Random damage to what was aged, several kinds at once, repaired: `FSAGE_FFS_SEEDS=FROM..TO` for more than these.
#[test]
fn linux_mounts_what_was_damaged_at_random_and_repaired() {
    let Some(uml) = uml() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let bases = [
        (Version::Ufs1, Endian::Little, 4096, 512, "original,switch,bestfit,spread,conventional"),
        (Version::Ufs2, Endian::Little, 8192, 1024, "realloc,noswitch,smartfrags,dirpref,noorder"),
    ];
    let mut cases = Vec::new();
    for (version, endian, bsize, fsize, words) in bases {
        let options = MkfsOptions { bsize, fsize, endian, density: Some(4096), ..MkfsOptions::new(version, 4 << 20) };
        let mut store = MemoryStore(vec![0; options.size_bytes as usize]);
        mkfs(&mut store, &options).unwrap();
        let base = lab::age(store, words, 500, false, 3).store;
        let places = mutate::metadata(&base);
        for seed in mutate::seeds(8) {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut store = base.clone();
            mutate::damage(&mut store.0, &places, &mut random);
            let Ok(report) = fsck(&mut store, &mut |_| true) else { continue };
            if report.unrepaired == 0 {
                cases.push(Case { name: format!("{version}, seed {seed}"), version, store });
            }
        }
    }
    agrees(&uml, &cases, scratch.path());
}
