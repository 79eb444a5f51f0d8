//! What several tests need.
#![allow(dead_code)] // each test uses a part of it

use posix::{At, Call, Errno, Fd, FileSystem, Mode, Mounted, OpenFlags};
use std::path::Path;

/// Whether we are root; says that the test is skipped if not.
pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: {what} needs root");
    }
    root
}

/// Whether a program is installed; says that the test is skipped if not.
pub fn has_tool(name: &str) -> bool {
    let sbin = ["/usr/sbin", "/sbin"].map(std::path::PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).chain(sbin).any(|dir| dir.join(name).is_file());
    if !there {
        println!("skipped: {name} is not installed");
    }
    there
}

/// Whether loop devices can be attached here (root, and not a container without them).
pub fn can_make_scratch(target: &str) -> bool {
    let kind = target.split(':').next().unwrap_or_default();
    if !is_root(target) || !has_tool(&format!("mkfs.{kind}")) {
        return false;
    }
    let there = Path::new("/dev/loop-control").exists();
    if !there {
        println!("skipped: no /dev/loop-control");
    }
    there
}

pub fn open<'a>(fs: &mut Mounted, at: impl Into<At<'a>>, flags: OpenFlags) -> Result<Fd, Errno> {
    fs.call(&Call::Open { at: at.into(), flags, mode: Mode(0o644) }).fd()
}

pub fn create<'a>(fs: &mut Mounted, at: impl Into<At<'a>>) -> Result<Fd, Errno> {
    open(fs, at, OpenFlags { create: true, ..OpenFlags::READ_WRITE })
}

pub fn write(fs: &mut Mounted, fd: Fd, offset: Option<u64>, len_bytes: u64) -> Result<u64, Errno> {
    fs.call(&Call::Write { fd, offset, len_bytes, data: None }).count()
}

pub fn close(fs: &mut Mounted, fd: Fd) -> Result<(), Errno> {
    fs.call(&Call::Close { fd }).result.map(drop)
}

pub fn mkdir<'a>(fs: &mut Mounted, at: impl Into<At<'a>>) -> Result<(), Errno> {
    fs.call(&Call::Mkdir { at: at.into(), mode: Mode(0o755) }).result.map(drop)
}
