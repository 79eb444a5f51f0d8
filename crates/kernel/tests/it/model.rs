//! Random calls on a disk that fills up, against files in memory: contents, lengths, and space to the last block.

use crate::common::{free_machine, lab_with};
use device::fixed::FixedDevice;
use kernel::payload::Image;
use kernel::testing::{MemVolume, Metadata};
use posix::{At, Call, Errno, FileSystem, Mode, OpenFlags};
use proptest::prelude::*;
use std::collections::BTreeMap;

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 60;
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[derive(Clone, Debug)]
enum Op {
    Write {
        name: usize,
        offset: u64,
        len: u64,
        fill: u8,
        append: bool,
        sync: bool,
    },
    Truncate {
        name: usize,
        len: u64,
    },
    Unlink {
        name: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    Read {
        name: usize,
        offset: u64,
        len: u64,
    },
    /// Open, unlink, and write on.
    Orphan {
        name: usize,
        len: u64,
    },
    Mkdir,
    Forget,
    Pause,
}

fn op() -> impl Strategy<Value = Op> {
    let name = 0..NAMES.len();
    let offset = 0..20 * BLOCK;
    prop_oneof![
        6 => (name.clone(), offset.clone(), 1..6 * BLOCK, any::<u8>(), any::<bool>(),
            prop::bool::weighted(0.1)).prop_map(
            |(name, offset, len, fill, append, sync)| Op::Write { name, offset, len, fill, append, sync }
        ),
        2 => (name.clone(), 0..20 * BLOCK).prop_map(|(name, len)| Op::Truncate { name, len }),
        3 => name.clone().prop_map(|name| Op::Unlink { name }),
        1 => (name.clone(), name.clone()).prop_map(|(from, to)| Op::Rename { from, to }),
        3 => (name.clone(), offset, 1..9 * BLOCK).prop_map(|(name, offset, len)| Op::Read { name, offset, len }),
        1 => (name, 1..9 * BLOCK).prop_map(|(name, len)| Op::Orphan { name, len }),
        1 => Just(Op::Mkdir),
        1 => Just(Op::Forget),
        1 => Just(Op::Pause),
    ]
}

struct Pair {
    lab: kernel::Lab<MemVolume>,
    files: BTreeMap<usize, Vec<u8>>,
}

impl Pair {
    fn call(&mut self, call: Call<'_>) -> Result<posix::Reply, Errno> {
        self.lab.call(&call).result
    }

    /// Has the descriptor closed whatever comes of it.
    fn with<T>(&mut self, name: usize, flags: OpenFlags, act: impl FnOnce(&mut Pair, posix::Fd) -> T) -> Option<T> {
        let fd = self.lab.call(&Call::Open { at: NAMES[name].into(), flags, mode: Mode(0o644) }).fd().ok()?;
        let result = act(self, fd);
        self.call(Call::Close { fd }).unwrap();
        Some(result)
    }

    fn write(&mut self, fd: posix::Fd, offset: u64, bytes: &[u8]) -> Result<u64, Errno> {
        let call = Call::Write { fd, offset: Some(offset), len_bytes: bytes.len() as u64, data: Some(bytes) };
        self.lab.call(&call).count()
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match *op {
            Op::Write { name, offset, len, fill, append, sync } => {
                let flags = OpenFlags { create: true, append, sync, ..OpenFlags::WRITE };
                let bytes: Vec<u8> = (0..len).map(|n| fill.wrapping_add(n as u8)).collect();
                let known = self.files.contains_key(&name);
                let Some(written) = self.with(name, flags, |pair, fd| pair.write(fd, offset, &bytes)) else {
                    // No inode, or no block for the directory.
                    prop_assert!(!known && self.lab.usage().unwrap().free_bytes < 3 * BLOCK);
                    return Ok(());
                };
                let file = self.files.entry(name).or_default();
                let at = if append { file.len() } else { offset as usize };
                match written {
                    Ok(written) => {
                        prop_assert!(written > 0 && written <= len);
                        prop_assert!(written == len || self.lab.usage().unwrap().free_bytes < 2 * BLOCK);
                        let end = at + written as usize;
                        file.resize(file.len().max(end), 0);
                        file[at..end].copy_from_slice(&bytes[..written as usize]);
                    }
                    Err(errno) => prop_assert_eq!(errno, Errno::ENOSPC),
                }
            }
            Op::Truncate { name, len } => {
                let result = self.call(Call::Truncate { at: NAMES[name].into(), len_bytes: len });
                match self.files.get_mut(&name) {
                    Some(file) => {
                        prop_assert!(result.is_ok());
                        file.resize(len as usize, 0);
                    }
                    None => prop_assert_eq!(result, Err(Errno::ENOENT)),
                }
            }
            Op::Unlink { name } => {
                let result = self.call(Call::Unlink { at: NAMES[name].into() });
                prop_assert_eq!(result.is_ok(), self.files.remove(&name).is_some());
            }
            Op::Rename { from, to } => {
                let (old, new): (At<'_>, At<'_>) = (NAMES[from].into(), NAMES[to].into());
                let result = self.call(Call::Rename { from: old, to: new, noreplace: false, exchange: false });
                match self.files.remove(&from) {
                    Some(file) if result.is_ok() => _ = self.files.insert(to, file),
                    Some(file) => {
                        prop_assert_eq!(result, Err(Errno::ENOSPC));
                        self.files.insert(from, file);
                    }
                    None => prop_assert_eq!(result, Err(Errno::ENOENT)),
                }
            }
            Op::Read { name, offset, len } => {
                let found = self.with(name, OpenFlags::READ, |pair, fd| {
                    let count =
                        pair.lab.call(&Call::Read { fd, offset: Some(offset), len_bytes: len }).count().unwrap();
                    let mut bytes = vec![0; len as usize];
                    let got = pair.lab.read_into(fd, offset, &mut bytes).unwrap();
                    assert_eq!(got as u64, count);
                    bytes.truncate(got);
                    bytes
                });
                let expected = self.files.get(&name).map(|file| {
                    let end = file.len().min((offset + len) as usize);
                    file.get(offset as usize..end).unwrap_or_default().to_vec()
                });
                // Not `assert_eq`: nobody wants to read that many bytes.
                let (found_len, len) = (found.as_ref().map(Vec::len), expected.as_ref().map(Vec::len));
                prop_assert!(found == expected, "{:?} bytes read, {:?} expected, or their contents", found_len, len);
            }
            Op::Orphan { name, len } => {
                self.with(name, OpenFlags::READ_WRITE, |pair, fd| {
                    pair.call(Call::Unlink { at: NAMES[name].into() }).unwrap();
                    let bytes = vec![7; len as usize];
                    if let Ok(written) = pair.write(fd, 0, &bytes) {
                        let mut back = vec![0; written as usize];
                        assert_eq!(pair.lab.read_into(fd, 0, &mut back), Ok(back.len()));
                        assert!(back.iter().all(|b| *b == 7));
                    }
                });
                self.files.remove(&name);
            }
            Op::Mkdir => {
                if self.call(Call::Mkdir { at: "dir".into(), mode: Mode(0o755) }).is_err() {
                    let _ = self.call(Call::Rmdir { at: "dir".into() });
                }
            }
            Op::Forget => _ = self.lab.drop_caches().unwrap(),
            Op::Pause => self.lab.pause_ns(17_000_000_000),
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]
    #[test]
    fn a_full_disk_loses_nothing(
        ops in prop::collection::vec(op(), 1..150),
        cache_blocks in 2u64..40,
        all in any::<bool>(),
        synchronous in any::<bool>(),
    ) {
        let metadata = if synchronous { Metadata::Synchronous } else { Metadata::Delayed };
        let volume = MemVolume::new(BLOCKS * BLOCK, BLOCK as u32, 9, metadata);
        let image = if all { Image::full_in_memory(BLOCKS * BLOCK) } else { Image::of_given() };
        let device = FixedDevice::new(BLOCKS * BLOCK, 1_000_000);
        let mut lab = lab_with(volume, device, free_machine(cache_blocks * BLOCK), image);
        let at_first = lab.usage().unwrap();
        let mut pair = Pair { lab, files: BTreeMap::new() };
        for op in &ops {
            pair.step(op)?;
            let usage = pair.lab.usage().unwrap();
            let free: u64 = pair.lab.free_extents().unwrap().iter().map(|e| e.len_bytes).sum();
            prop_assert_eq!(usage.free_bytes, free);
        }
        for name in NAMES {
            let _ = pair.call(Call::Unlink { at: name.into() });
        }
        let _ = pair.call(Call::Rmdir { at: "dir".into() });
        let at_last = pair.lab.usage().unwrap();
        prop_assert_eq!(at_last.free_inodes, at_first.free_inodes);
        // The root directory keeps its block.
        prop_assert!(at_last.free_bytes >= at_first.free_bytes - BLOCK);
        pair.lab.unmount().unwrap();
    }
}

/// A block that is changed while it is being read, in the same call, was given up with the change when memory was
/// short.
#[test]
fn a_block_changed_while_it_is_read_is_not_lost() {
    let volume = MemVolume::new(BLOCKS * BLOCK, BLOCK as u32, 9, Metadata::Delayed);
    let device = FixedDevice::new(BLOCKS * BLOCK, 1_000_000);
    let lab = lab_with(volume, device, free_machine(2 * BLOCK), Image::of_given());
    let mut pair = Pair { lab, files: BTreeMap::new() };
    let write = |offset, len| Op::Write { name: 0, offset, len, fill: 0, append: false, sync: false };
    for op in [write(26_702, 10_163), write(24_577, 4096), Op::Read { name: 0, offset: 0, len: 24_579 }] {
        pair.step(&op).unwrap();
    }
}
