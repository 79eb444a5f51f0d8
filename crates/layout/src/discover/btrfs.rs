//! Around a mounted btrfs: chunks, device space and free space from its trees (`BTRFS_IOC_TREE_SEARCH_V2`, root only).
//!
//! FIEMAP gives btrfs's logical addresses. The chunk tree says where on which device each chunk of them is. Addresses
//! are translated where that has one meaning: a single device, and profiles that keep a chunk in one piece (single,
//! DUP, RAID1 and its kin; the first copy). Otherwise they stay logical and the survey says so.
//!
//! Free space is that inside data block groups, from the free space tree, or where there is none from the gaps of the
//! extent tree. Device space that belongs to no chunk yet is counted apart.

use crate::Surroundings;
use crate::geometry::{GroupKind, Groups, InodeRule, Ranges};
use crate::map::Span;
use crate::places::Translate;
use crate::walk::FreeList;
use posix::{BtrfsKey, Errno, Extent, FreeExtent, btrfs_tree_search};
use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};

// Trees and item types of linux/btrfs_tree.h.
const EXTENT_TREE: u64 = 2;
const CHUNK_TREE: u64 = 3;
const DEV_TREE: u64 = 4;
const FREE_SPACE_TREE: u64 = 10;
const EXTENT_ITEM: u8 = 168;
const METADATA_ITEM: u8 = 169;
const FREE_SPACE_EXTENT: u8 = 199;
const FREE_SPACE_BITMAP: u8 = 200;
const DEV_EXTENT: u8 = 204;
const DEV_ITEM: u8 = 216;
const CHUNK_ITEM: u8 = 228;
const DATA: u64 = 1;
/// RAID0, RAID10, RAID5 and RAID6 cut a chunk into stripes.
const STRIPED: u64 = 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8;
/// `BTRFS_DEVICE_RANGE_RESERVED`: never given to a chunk.
const RESERVED_BYTES: u64 = 1 << 20;

/// A piece of the logical address space and where its first copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    logical: u64,
    len: u64,
    kind: u64,
    device: u64,
    physical: u64,
}

/// A device of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Device {
    id: u64,
    bytes: u64,
}

/// What the trees say.
#[derive(Debug)]
pub(super) struct Trees {
    chunks: Result<Vec<Chunk>, String>,
    /// Length of the device, where there is one only.
    device_bytes: Option<u64>,
    /// Why addresses are not translated.
    translation: Result<(), String>,
    free: Result<FreeList, String>,
}

fn u64_le(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn why(errno: Errno) -> String {
    let hint = if errno == Errno::EPERM { "; reading btrfs's trees needs root" } else { "" };
    format!("btrfs's trees cannot be read: {errno}{hint}")
}

impl Trees {
    /// Reads them.
    pub(super) fn read(handle: &File) -> Trees {
        let fd = handle.as_fd();
        let chunks = chunks(fd).map_err(why);
        let translation = match &chunks {
            Ok(chunks) => one_device(chunks),
            Err(why) => Err(why.clone()),
        };
        let devices = devices(fd).map_err(why);
        let device_bytes = match devices.as_deref() {
            Ok([one]) => Some(one.bytes),
            _ => None,
        };
        let free = chunks.clone().and_then(|chunks| free_space(fd, &chunks, &devices?).map_err(why));
        let mut trees = Trees { chunks, device_bytes, translation, free };
        if trees.translation.is_ok() {
            trees.free_to_device();
        }
        trees
    }

    fn data_chunks(&self) -> Vec<Chunk> {
        self.chunks.iter().flatten().filter(|c| c.kind & DATA != 0).copied().collect()
    }

    /// Brings free space into the addresses that extents will have.
    fn free_to_device(&mut self) {
        let Ok(free) = &self.free else { return };
        let mut moved = Vec::with_capacity(free.extents.len());
        for extent in &free.extents {
            let piece = Extent {
                logical_bytes: 0,
                physical_bytes: extent.physical_bytes,
                len_bytes: extent.len_bytes,
                flags: posix::ExtentFlags::default(),
            };
            let mut out = Vec::new();
            self.translate(&piece, &mut out);
            moved.extend(out.iter().map(|e| FreeExtent { physical_bytes: e.physical_bytes, len_bytes: e.len_bytes }));
        }
        self.free = Ok(FreeList { extents: moved, ..free.clone() });
    }

    /// The addresses that extents will have: a device's, or those from the first chunk to the last.
    fn span(&self) -> Option<Span> {
        if self.translation.is_ok() {
            return self.device_bytes.map(|len_bytes| Span { start_bytes: 0, len_bytes });
        }
        let chunks = self.chunks.as_ref().ok()?;
        let start_bytes = chunks.iter().map(|c| c.logical).min()?;
        let end = chunks.iter().map(|c| c.logical.saturating_add(c.len)).max()?;
        Some(Span { start_bytes, len_bytes: end.saturating_sub(start_bytes) })
    }
}

impl Translate for Trees {
    fn translate(&self, extent: &Extent, out: &mut Vec<Extent>) -> bool {
        let Ok(chunks) = &self.chunks else { return false };
        let (mut at, end) = (extent.physical_bytes, extent.physical_bytes.saturating_add(extent.len_bytes));
        while at < end {
            let index = chunks.partition_point(|c| c.logical <= at);
            let chunk = index.checked_sub(1).and_then(|i| chunks.get(i)).filter(|c| at - c.logical < c.len);
            let Some(chunk) = chunk else { return false };
            let to = end.min(chunk.logical.saturating_add(chunk.len));
            out.push(Extent {
                logical_bytes: extent.logical_bytes.saturating_add(at - extent.physical_bytes),
                physical_bytes: chunk.physical.saturating_add(at - chunk.logical),
                len_bytes: to - at,
                flags: extent.flags,
            });
            at = to;
        }
        true
    }
}

/// What the survey needs to know of them.
pub(super) fn surroundings(trees: &Trees) -> Surroundings<'_> {
    let translated = trees.translation.is_ok();
    let groups = trees.chunks.as_ref().map_err(Clone::clone).map(|_| {
        let mut ranges: Vec<(u64, u64)> =
            trees.data_chunks().iter().map(|c| (if translated { c.physical } else { c.logical }, c.len)).collect();
        ranges.sort_unstable();
        Groups {
            kind: GroupKind::BtrfsDataBlockGroups,
            ranges: Ranges::Listed(ranges),
            inodes: InodeRule::Unknown,
            per_flex: 1,
        }
    });
    let mut notes = Vec::new();
    if let Err(why) = &trees.translation {
        notes.push(format!("addresses are btrfs's own, not a device's: {why}"));
    }
    Surroundings {
        groups,
        split: Err("btrfs inodes belong to no allocation group".to_owned()),
        translate: translated.then_some(trees as &dyn Translate),
        // Of gaps between chunks on a device there is no place among addresses that are not the device's.
        free: Some(trees.free.clone().map(|free| match translated {
            true => free,
            false => FreeList { unallocated: Vec::new(), ..free },
        })),
        span: trees.span(),
        notes,
    }
}

/// Whether every chunk is in one piece on one and the same device.
fn one_device(chunks: &[Chunk]) -> Result<(), String> {
    if chunks.iter().any(|c| c.kind & STRIPED != 0) {
        return Err("a striped profile (RAID0, 10, 5, 6) spreads each chunk over several devices".to_owned());
    }
    let first = chunks.first().map(|c| c.device);
    if chunks.iter().any(|c| Some(c.device) != first) {
        return Err("the file system is on several devices".to_owned());
    }
    Ok(())
}

fn items(fd: BorrowedFd<'_>, tree: u64, each: &mut dyn FnMut(BtrfsKey, &[u8])) -> Result<(), Errno> {
    btrfs_tree_search(fd, tree, BtrfsKey::MIN, BtrfsKey::MAX, each)
}

/// The chunks, by logical address.
fn chunks(fd: BorrowedFd<'_>) -> Result<Vec<Chunk>, Errno> {
    let mut chunks = Vec::new();
    items(fd, CHUNK_TREE, &mut |key, data| {
        // struct btrfs_chunk: length, owner, stripe_len, type; its stripes (devid, offset, uuid) begin at byte 48.
        let fields = (u64_le(data, 0), u64_le(data, 24), u64_le(data, 48), u64_le(data, 56));
        if let (CHUNK_ITEM, (Some(len), Some(kind), Some(device), Some(physical))) = (key.item_type, fields) {
            chunks.push(Chunk { logical: key.offset, len, kind, device, physical });
        }
    })?;
    Ok(chunks)
}

/// Free space in data block groups (logical), and device space that no chunk has.
fn free_space(fd: BorrowedFd<'_>, chunks: &[Chunk], devices: &[Device]) -> Result<FreeList, Errno> {
    let mut free = Vec::new();
    for chunk in chunks.iter().filter(|c| c.kind & DATA != 0) {
        match from_free_space_tree(fd, chunk, &mut free) {
            Err(Errno::ENOENT) => from_extent_tree(fd, chunk, &mut free)?,
            other => other?,
        }
    }
    let unallocated = unallocated(fd, devices)?;
    let unallocated_bytes = unallocated.iter().fold(0, |sum: u64, gap| sum.saturating_add(gap.len_bytes));
    Ok(FreeList { extents: free, unallocated_bytes: Some(unallocated_bytes), unallocated })
}

fn keys_of(chunk: &Chunk) -> (BtrfsKey, BtrfsKey) {
    let from = BtrfsKey { object: chunk.logical, item_type: 0, offset: 0 };
    let last = chunk.logical.saturating_add(chunk.len.saturating_sub(1));
    (from, BtrfsKey { object: last, ..BtrfsKey::MAX })
}

fn from_free_space_tree(fd: BorrowedFd<'_>, chunk: &Chunk, free: &mut Vec<FreeExtent>) -> Result<(), Errno> {
    let (from, to) = keys_of(chunk);
    btrfs_tree_search(fd, FREE_SPACE_TREE, from, to, &mut |key, data| match key.item_type {
        FREE_SPACE_EXTENT => free.push(FreeExtent { physical_bytes: key.object, len_bytes: key.offset }),
        FREE_SPACE_BITMAP => push_bitmap(key, data, free),
        _ => {}
    })
}

/// A bit for each sector of a bitmap item's range, set where it is free. The sector follows from range and bits:
/// a bitmap has no more bytes than its sectors need, and sectors are powers of two from 4 KiB.
fn push_bitmap(key: BtrfsKey, data: &[u8], free: &mut Vec<FreeExtent>) {
    let bits = (data.len() as u64).saturating_mul(8);
    let Some(exact) = key.offset.checked_div(bits).filter(|n| *n > 0) else { return };
    // A range that is no multiple of eight sectors leaves padding bits, and makes the quotient too small.
    let sector = exact.next_power_of_two().max(4096);
    for bit in 0..bits.min(key.offset / sector) {
        let byte = usize::try_from(bit / 8).ok().and_then(|i| data.get(i)).copied().unwrap_or(0);
        if byte >> (bit % 8) & 1 == 0 {
            continue;
        }
        let at = key.object.saturating_add(bit * sector);
        match free.last_mut() {
            Some(last) if last.physical_bytes + last.len_bytes == at => last.len_bytes += sector,
            _ => free.push(FreeExtent { physical_bytes: at, len_bytes: sector }),
        }
    }
}

/// The gaps between a data block group's extents.
fn from_extent_tree(fd: BorrowedFd<'_>, chunk: &Chunk, free: &mut Vec<FreeExtent>) -> Result<(), Errno> {
    let (from, to) = keys_of(chunk);
    let mut at = chunk.logical;
    btrfs_tree_search(fd, EXTENT_TREE, from, to, &mut |key, _| {
        let len = match key.item_type {
            EXTENT_ITEM => key.offset,
            // Tree blocks, in mixed block groups only; their length is not in the item, and is 4 KiB there.
            METADATA_ITEM => 4096,
            _ => return,
        };
        if key.object > at {
            free.push(FreeExtent { physical_bytes: at, len_bytes: key.object - at });
        }
        at = at.max(key.object.saturating_add(len));
    })?;
    let end = chunk.logical.saturating_add(chunk.len);
    if end > at {
        free.push(FreeExtent { physical_bytes: at, len_bytes: end - at });
    }
    Ok(())
}

/// The devices of the file system.
fn devices(fd: BorrowedFd<'_>) -> Result<Vec<Device>, Errno> {
    let mut devices = Vec::new();
    items(fd, CHUNK_TREE, &mut |key, data| {
        // struct btrfs_dev_item: devid, total_bytes, ...
        if let (DEV_ITEM, Some(id), Some(bytes)) = (key.item_type, u64_le(data, 0), u64_le(data, 8)) {
            devices.push(Device { id, bytes });
        }
    })?;
    Ok(devices)
}

/// Device space in no chunk, device by device, without what is never given out.
fn unallocated(fd: BorrowedFd<'_>, devices: &[Device]) -> Result<Vec<FreeExtent>, Errno> {
    let mut given: Vec<(u64, u64, u64)> = Vec::new();
    items(fd, DEV_TREE, &mut |key, data| {
        // struct btrfs_dev_extent: chunk_tree, chunk_objectid, chunk_offset, length.
        if let (DEV_EXTENT, Some(bytes)) = (key.item_type, u64_le(data, 24)) {
            given.push((key.object, key.offset, bytes));
        }
    })?;
    given.sort_unstable();
    let mut gaps = Vec::new();
    for device in devices {
        let mut at = RESERVED_BYTES;
        let mut gap_to = |next: u64, then: u64| {
            if next > at {
                gaps.push(FreeExtent { physical_bytes: at, len_bytes: next - at });
            }
            at = at.max(then);
        };
        for (_, start, len) in given.iter().filter(|(id, ..)| *id == device.id) {
            gap_to(*start, start.saturating_add(*len));
        }
        gap_to(device.bytes, device.bytes);
    }
    Ok(gaps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trees(kinds: [u64; 2], devices: [u64; 2]) -> Trees {
        let chunk =
            |i: usize, logical, physical| Chunk { logical, len: 100, kind: kinds[i], device: devices[i], physical };
        let chunks = vec![chunk(0, 1000, 5000), chunk(1, 1100, 300)];
        let translation = one_device(&chunks);
        Trees { chunks: Ok(chunks), device_bytes: Some(6000), translation, free: Ok(FreeList::default()) }
    }

    #[test]
    fn an_extent_is_cut_where_chunks_end() {
        let extent = Extent { logical_bytes: 0, physical_bytes: 1090, len_bytes: 20, flags: Default::default() };
        let mut out = Vec::new();
        assert!(trees([1, 1], [1, 1]).translate(&extent, &mut out));
        let pieces: Vec<_> = out.iter().map(|e| (e.logical_bytes, e.physical_bytes, e.len_bytes)).collect();
        assert_eq!(pieces, [(0, 5090, 10), (10, 300, 10)]);
        assert!(!trees([1, 1], [1, 1]).translate(&Extent { physical_bytes: 1195, ..extent }, &mut out));
    }

    #[test]
    fn stripes_and_second_devices_stay_logical() {
        assert!(trees([1, 1 << 5 | 4], [1, 1]).translation.is_ok());
        assert!(trees([1, 1 << 3 | 1], [1, 1]).translation.is_err());
        assert!(trees([1, 1], [1, 2]).translation.is_err());
        assert!(surroundings(&trees([1, 1], [1, 2])).notes.iter().any(|n| n.contains("several devices")));
    }

    #[test]
    fn bitmaps_of_any_length() {
        let mut free = Vec::new();
        let key = BtrfsKey { object: 1 << 20, item_type: FREE_SPACE_BITMAP, offset: 12 * 4096 };
        push_bitmap(key, &[0b1000_0110, 0b1111_0001], &mut free);
        let found: Vec<_> = free.iter().map(|e| ((e.physical_bytes - (1 << 20)) / 4096, e.len_bytes / 4096)).collect();
        // Bits 12 to 15 are padding.
        assert_eq!(found, [(1, 2), (7, 2)]);
    }

    /// The bytes at the translated place on the device are the file's: the only proof of a translation.
    #[test]
    fn translated_addresses_hold_the_data() {
        use posix::{Call, FileSystem as _, OpenFlags};
        use std::os::unix::fs::FileExt as _;
        if !crate::scratch::can_run(&[testkit::Tool::MkfsBtrfs, testkit::Tool::Btrfs]) {
            return;
        }
        let mut scratch = crate::scratch::Scratch::make(512 << 20, &["mkfs.btrfs", "-q", "-f"]);
        let point = scratch.mount("");
        let content: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        std::fs::write(point.join("file"), &content).unwrap();
        // mkfs gives the first chunks equal addresses on both sides; moving them does not.
        crate::scratch::run("btrfs", &["balance", "start", "-d", point.to_str().unwrap()]);
        let mut fs = posix::Mounted::open(&point).unwrap();
        fs.call(&Call::SyncFs).result.unwrap();
        let open = Call::Open { at: "file".into(), flags: OpenFlags::READ, mode: posix::Mode(0) };
        let fd = fs.call(&open).fd().unwrap();
        let trees = Trees::read(&File::open(&point).unwrap());
        assert_eq!(trees.translation, Ok(()));
        let mut pieces = Vec::new();
        let mut moved = false;
        for extent in fs.extents(fd).unwrap() {
            let before = pieces.len();
            assert!(trees.translate(&extent, &mut pieces));
            moved |= pieces.get(before).is_some_and(|piece: &Extent| piece.physical_bytes != extent.physical_bytes);
        }
        drop(fs);
        scratch.unmount();
        let device = File::open(scratch.image()).unwrap();
        let mut found = vec![0; content.len()];
        for piece in &pieces {
            let mut bytes = vec![0; piece.len_bytes as usize];
            device.read_exact_at(&mut bytes, piece.physical_bytes).unwrap();
            let rest = found.get_mut(piece.logical_bytes as usize..).unwrap();
            let len = rest.len().min(bytes.len());
            rest[..len].copy_from_slice(&bytes[..len]);
        }
        assert!(found == content, "{pieces:?}");
        assert!(moved, "the translation changes nothing, so the test shows nothing");
    }
}
