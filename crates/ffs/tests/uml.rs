//! Linux's own ufs driver, in user-mode Linux, on what mkfs makes and on what fsck has repaired: it mounts them, and every
//! file, mode and link count is what our reader sees.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/damage.rs"]
mod damage;
mod live;

use common::{foreign_images, makefs, run, sample_tree, skip, tool};
use damage::{Patient, damages};
use ffs::mkfs::MkfsOptions;
use ffs::{Endian, FileType, Image, MemoryStore, Search, Version, fsck, mkfs};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
            let path = String::from_utf8(path.to_vec()).unwrap();
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
                    format!("l {}", String::from_utf8(image.symlink(ino, inode)?).unwrap())
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
    find . -type f -printf '%p\tf %m %n %s\n' -o -type d -printf '%p\td %m %n\n' -o -type l -printf '%p\tl %l\n'
    echo "@@hashes"
    find . -type f -exec sha256sum {} +
    cd /
    umount /mnt/i
done < LIST
echo "@@end"
poweroff -f
"#;

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
    let output = Command::new("timeout")
        .arg("120")
        .arg(uml)
        .args(["mem=256M", "rootfstype=hostfs", "rw", "quiet", "con0=null,fd:1", "con=null", "ssl=null"])
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
    let (names, hashes) = section.split_once("@@hashes\n").unwrap();
    let mut listing: Listing = names
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once('\t'))
        .map(|(path, rest)| (path.to_owned(), rest.to_owned()))
        .collect();
    for (hash, path) in hashes.lines().filter_map(|line| line.split_once("  ")) {
        listing.get_mut(path).unwrap().push_str(&format!(" {hash}"));
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
    let uml = tool("linux.uml")?;
    let modules = Path::new("/usr/lib/uml/modules");
    let driver =
        modules.is_dir() && run(Command::new("find").arg(modules).args(["-name", "ufs.ko*"])).lines().next().is_some();
    if !driver || tool("insmod").is_none() {
        skip("user-mode Linux has no ufs driver here (packages user-mode-linux and kmod)");
        return None;
    }
    Some(uml)
}

#[test]
fn linux_mounts_and_agrees() {
    let Some(uml) = uml() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let mut cases = made();
    if let Some(program) = tool("makefs") {
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
    let seen = linux(&uml, &cases, scratch.path());
    assert_eq!(seen.len(), cases.len());
    for (case, listing) in cases.iter().zip(seen) {
        let expected = ours(case, scratch.path());
        assert_eq!(listing, expected, "{}", case.name);
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
    let seen = linux(&uml, &cases, scratch.path());
    assert_eq!(seen.len(), cases.len());
    for (case, listing) in cases.iter().zip(seen) {
        assert_eq!(listing, ours(case, scratch.path()), "{}", case.name);
    }
}
