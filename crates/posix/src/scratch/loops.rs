//! Loop devices (`loop(4)`), attached with autoclear and direct I/O.
#![allow(unsafe_code)]

use rustix::fs::{self, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// `struct loop_info64` (linux/loop.h).
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` (linux/loop.h).
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

const LOOP_GET_STATUS64: libc::c_ulong = 0x4C05;
const LOOP_CONFIGURE: libc::c_ulong = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::c_ulong = 0x4C82;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// An attached loop device, held open: with autoclear it detaches when this and the mount are gone.
#[derive(Debug)]
pub(super) struct LoopDevice {
    /// Held for its effect only.
    _file: OwnedFd,
    path: PathBuf,
    direct_io: bool,
    identity: Identity,
}

/// Enough to tell, later, whether a loop device is still attached to our image: a path would not do, as an image that
/// stays is renamed.
#[derive(Debug)]
pub(super) struct Identity {
    number: i32,
    /// The image's device and inode, as the kernel tells them.
    device: u64,
    inode: u64,
}

impl LoopDevice {
    /// Attaches an image to a free device.
    pub(super) fn attach(image: &OwnedFd) -> io::Result<LoopDevice> {
        const ATTEMPTS: u32 = 64;
        let control = fs::open("/dev/loop-control", OFlags::RDWR | OFlags::CLOEXEC, fs::Mode::empty())?;
        let mut flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
        for _ in 0..ATTEMPTS {
            // SAFETY: this request takes no argument.
            let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE as _) };
            if number < 0 {
                return Err(io::Error::last_os_error());
            }
            let path = PathBuf::from(format!("/dev/loop{number}"));
            let file = fs::open(&path, OFlags::RDWR | OFlags::CLOEXEC, fs::Mode::empty())?;
            match configure(&file, image, flags) {
                Ok(()) => {
                    let info = status(&file)?;
                    let identity = Identity { number, device: info.device, inode: info.inode };
                    let direct_io = info.flags & LO_FLAGS_DIRECT_IO != 0;
                    return Ok(LoopDevice { _file: file, path, direct_io, identity });
                }
                // Somebody else was faster.
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => {}
                // Some kernels refuse direct I/O instead of leaving it out.
                Err(e) if e.raw_os_error() == Some(libc::EINVAL) && flags & LO_FLAGS_DIRECT_IO != 0 => {
                    flags &= !LO_FLAGS_DIRECT_IO;
                }
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "other programs took every free loop device"))
    }

    /// The device file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the image is read and written past the page cache.
    pub(super) fn direct_io(&self) -> bool {
        self.direct_io
    }

    /// Gives up our hold on the device.
    pub(super) fn release(self) -> Identity {
        self.identity
    }
}

impl Identity {
    /// Whether the device is (still) attached to our image, not to one of somebody else. What cannot be told is taken
    /// for attached.
    pub(super) fn is_attached(&self) -> bool {
        let number = self.number;
        let attached = match fs::access(format!("/sys/block/loop{number}/loop"), fs::Access::EXISTS) {
            Ok(()) => fs::open(self.name(), OFlags::RDONLY | OFlags::CLOEXEC, fs::Mode::empty())
                .map_err(io::Error::from)
                .and_then(|device| status(&device)),
            Err(error) => Err(error.into()),
        };
        match attached {
            Ok(info) => (info.device, info.inode) == (self.device, self.inode),
            // ENOENT: there is no device, or nothing is attached to it; ENXIO: it has just been detached.
            Err(error) => !matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENXIO)),
        }
    }

    /// `/dev/loopN`
    pub(super) fn name(&self) -> String {
        format!("/dev/loop{}", self.number)
    }
}

fn configure(device: &OwnedFd, image: &OwnedFd, flags: u32) -> io::Result<()> {
    let config = LoopConfig {
        fd: image.as_raw_fd().unsigned_abs(),
        // 0: the kernel's choice, which follows what direct I/O on the image asks for.
        block_size: 0,
        info: LoopInfo { flags, ..no_info() },
        reserved: [0; 8],
    };
    // SAFETY: the request reads a struct loop_config, which `config` is; it outlives the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE as _, &raw const config) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn status(device: &OwnedFd) -> io::Result<LoopInfo> {
    let mut info = no_info();
    // SAFETY: the request writes a struct loop_info64, which `info` is; it outlives the call.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64 as _, &raw mut info) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(info) }
}

fn no_info() -> LoopInfo {
    LoopInfo {
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        size_limit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: 0,
        file_name: [0; 64],
        crypt_name: [0; 64],
        encrypt_key: [0; 32],
        init: [0; 2],
    }
}

// The kernel's layouts.
const _: () = assert!(size_of::<LoopInfo>() == 232 && size_of::<LoopConfig>() == 304);
