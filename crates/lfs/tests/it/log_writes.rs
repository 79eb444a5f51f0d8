//! A write to the log has a copy of its blocks (`lfs_writeseg` of 4.4BSD): nobody waits for it who wants to change
//! them.

use device::fixed::FixedDevice;
use kernel::{Lab, Machine, Setup};
use lfs::mkfs::MkfsOptions;
use lfs::{Lfs, Options};
use posix::{Call, Fd, FileSystem, Mode, OpenFlags};

/// A device that takes a second for each request.
const SERVICE_NS: u64 = 1_000_000_000;

fn laboratory() -> Lab<Lfs> {
    let size_bytes = 64 << 20;
    let volume = Lfs::format(&MkfsOptions::new(size_bytes), Options::default()).unwrap();
    let machine = Machine::load("pentium-120").unwrap();
    let setup =
        Setup { machine, target: "lfs@fixed".into(), drive: "fixed".into(), epoch_ns: 1_000_000_000_000_000_000 };
    Lab::new(volume, Box::new(FixedDevice::new(size_bytes, SERVICE_NS)), setup).unwrap()
}

fn create(lab: &mut Lab<Lfs>, path: &str) -> (Fd, u64) {
    let flags = OpenFlags::CREATE_NEW;
    let outcome = lab.call(&Call::Open { at: path.into(), flags, mode: Mode(0o644) });
    let took_ns = outcome.dur_ns;
    (outcome.fd().unwrap(), took_ns)
}

#[test]
fn blocks_on_their_way_to_the_log_may_be_changed() {
    let mut lab = laboratory();
    let (fd, _) = create(&mut lab, "first");
    // More than may be dirty: the log sets out, with the directory that the next call changes.
    let len_bytes = Machine::load("pentium-120").unwrap().memory.buffer_cache_bytes.value / 3;
    lab.call(&Call::Write { fd, offset: None, len_bytes, data: None }).result.unwrap();
    assert!(lab.volume().counters().partial_segments > 0, "nothing has set out");
    let (_, took_ns) = create(&mut lab, "second");
    assert!(took_ns < SERVICE_NS, "waited {took_ns} ns");
    let outcome = lab.call(&Call::Fsync { fd });
    outcome.result.unwrap();
    assert!(outcome.dur_ns >= SERVICE_NS, "fsync waits for the log, {} ns", outcome.dur_ns);
}
