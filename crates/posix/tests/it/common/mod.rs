//! What several tests need.
use posix::{At, Call, Errno, Fd, FileSystem, Mode, Mounted, OpenFlags};
use testkit::{Need, Tool};

/// Whether a scratch target can be made here; where not, the test is skipped.
pub fn can_make_scratch(target: &str) -> bool {
    let mkfs = match target.split(':').next() {
        Some("ext4") => Tool::MkfsExt4,
        Some("xfs") => Tool::MkfsXfs,
        Some("btrfs") => Tool::MkfsBtrfs,
        other => panic!("{other:?} is not made here"),
    };
    testkit::needs(&[Need::LoopDevices, Need::Tool(mkfs)])
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
