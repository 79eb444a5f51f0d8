//! Pipes, sockets and devices.

use crate::FileType;

/// What has a name but no data. Devices with their number: major × 256 + minor, which every system reads alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// A pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice(u16),
    /// A block device.
    BlockDevice(u16),
}

impl Special {
    /// Its kind, and the number that is in the place of its first block.
    pub fn parts(self) -> (FileType, u16) {
        match self {
            Special::Fifo => (FileType::Fifo, 0),
            Special::Socket => (FileType::Socket, 0),
            Special::CharDevice(number) => (FileType::CharDevice, number),
            Special::BlockDevice(number) => (FileType::BlockDevice, number),
        }
    }
}
