//! What giving up a file has to read.

use device::fixed::FixedDevice;
use kernel::{Lab, Machine, Setup};
use lfs::mkfs::MkfsOptions;
use lfs::{Lfs, Options};
use posix::{Call, FileSystem as _, Mode, OpenFlags};

/// Device reads of a removal from cold caches, of a file of so many bytes.
fn reads_of_removal(bytes: u64) -> u64 {
    let size_bytes = 32 << 20;
    let volume = Lfs::format(&MkfsOptions::new(size_bytes), Options::default()).unwrap();
    let setup = Setup {
        machine: Machine::load("pentium-120").unwrap(),
        target: "lfs".to_owned(),
        drive: "none".to_owned(),
        epoch_ns: 820_454_400_000_000_000,
    };
    let mut lab = Lab::new(volume, Box::new(FixedDevice::new(size_bytes, 1_000_000)), setup).unwrap();
    let open = Call::Open { at: "f".into(), flags: OpenFlags::CREATE_NEW, mode: Mode(0o644) };
    let fd = lab.call(&open).fd().unwrap();
    lab.call(&Call::Write { fd, offset: None, len_bytes: bytes, data: None }).result.unwrap();
    lab.call(&Call::Close { fd }).result.unwrap();
    lab.drop_caches().unwrap();
    let before = lab.counters().device.reads;
    lab.call(&Call::Unlink { at: "f".into() }).result.unwrap();
    lab.counters().device.reads - before
}

#[test]
fn an_indirect_block_is_read_to_be_given_up() {
    let direct = reads_of_removal(12 * 8192);
    assert_eq!(reads_of_removal(8192), direct, "what is pointed to directly is not read");
    assert_eq!(reads_of_removal(13 * 8192), direct + 1);
}
