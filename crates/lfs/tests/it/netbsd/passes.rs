//! What NetBSD's fsck_lfs (passes 0 to 5), its kernel's mount and its lfs_cleanerd look at or rely on, worked out anew
//! from the bytes of an image. Each function is named after whoever asks.

use super::raw::{
    Disk, Held, IFILE, Inode, NDADDR, ORPHAN, PAD, Partial, ROOT, SECTOR, SEGUSE_ACTIVE, SEGUSE_DIRTY, SEGUSE_EMPTY,
    SEGUSE_ERROR, SEGUSE_INVAL, SEGUSE_SUPERBLOCK, SS_CONT, Superblock, cksum, u16_at, u32_at,
};
use std::collections::{BTreeMap, BTreeSet};

/// Who wrote the image. What the format leaves open is asked of ours only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// `fsage`, from the beginning.
    Ours,
    /// NetBSD's kernel, on a file system that another program has begun; perhaps `fsage` after it.
    Other,
}

/// What is wrong.
#[derive(Default)]
struct Complaints(Vec<String>);

impl Complaints {
    fn unless(&mut self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.0.push(what());
        }
    }

    fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, is: T, should: T) {
        self.unless(is == should, || format!("{what}: {is:?}, should be {should:?}"));
    }
}

/// Everything that NetBSD would complain about. Of a file system that was not unmounted, as its older checkpoint has
/// it.
pub fn complaints(bytes: &[u8], writer: Writer) -> Vec<String> {
    let mut found = Complaints::default();
    let first = Superblock(&bytes[PAD as usize..][..512]);
    if first.magic() != 0x070_162 {
        return vec!["no superblock".into()];
    }
    superblocks(bytes, first, writer, &mut found);
    let second = Superblock(&bytes[(first.sboff(1) * first.fsize()) as usize..][..512]);
    if first.pflags() & second.pflags() & 1 == 1 {
        found.equal("serial of the second superblock of a clean file system", second.serial(), first.serial());
    }
    // `lfs_mountfs` takes the older of the two, which is surely complete, and the first of equal ones; fsck_lfs the
    // second.
    let older = if second.serial() < first.serial() { vec![second] } else { vec![first] };
    for sb in if first.serial() == second.serial() { vec![first, second] } else { older } {
        match Disk::open(bytes, sb) {
            Err(problem) => found.0.push(problem),
            Ok(disk) => {
                checkpoint(&disk, writer, &mut found);
                let newest = first.serial().max(second.serial());
                if sb.pflags() & 1 == 0 {
                    roll_forward(&disk, newest, &mut found);
                }
            }
        }
    }
    found.0
}

/// What a checkpoint leads to.
fn checkpoint(disk: &Disk<'_>, writer: Writer, found: &mut Complaints) {
    free_list(disk, writer, found);
    let tree = Tree::scan(disk, found);
    directories(disk, &tree, found);
    let log = Segments::scan(disk, writer, found);
    accounts(disk, &tree, writer, found);
    live_is_described(&tree, &log, found);
    log.chain(disk, found);
    mount(disk, writer, found);
}

/// The kernel's roll-forward from the older checkpoint (`check_segsum`) comes as far as the newer one, and what it
/// meets has complete directory operations up to there.
fn roll_forward(disk: &Disk<'_>, newest: u64, found: &mut Complaints) {
    let sb = &disk.sb;
    let (mut at, mut serial, mut open) = (sb.offset(), sb.serial(), false);
    let why = loop {
        if disk.base(disk.segment(at)) == at && disk.usage(disk.segment(at)).is(SEGUSE_SUPERBLOCK) {
            at += disk.frags(PAD);
        }
        // It takes segment 0's label for a summary: docs/lfs-format.md.
        if at < disk.frags(2 * PAD) {
            return;
        }
        let partial = match disk.partial(at) {
            Ok(partial) => partial,
            Err(problem) => break problem,
        };
        if partial.serial != serial + 1 || partial.create < sb.tstamp() {
            break format!("at {at} serial {} of {}", partial.serial, partial.create);
        }
        serial = partial.serial;
        open = partial.flags & SS_CONT != 0 && (open || serial <= newest);
        let segment = disk.segment(partial.end);
        at = partial.end;
        if disk.segment(at + disk.frags(sb.sumsize() + sb.bsize())) != segment {
            if disk.segment(partial.next) == segment {
                break format!("{segment} goes on in itself");
            }
            at = partial.next;
        }
    };
    found.unless(serial >= newest, || format!("roll-forward from {} to {serial}, not {newest}: {why}", sb.serial()));
    found.unless(!open || serial > newest, || "unfinished directory operations before a checkpoint".into());
}

/// Each superblock, and in each what follows from other fields: `check_sb`, `setup` and what `lfs_mountfs` refuses.
fn superblocks(bytes: &[u8], first: Superblock<'_>, writer: Writer, found: &mut Complaints) {
    let places: Vec<u64> = (0..10).map(|n| first.sboff(n)).take_while(|at| *at != 0).collect();
    found.unless(places.len() >= 2, || "one superblock only".into());
    found.equal("sboffs[0] in sectors", places[0] << first.fsbtodb(), PAD / SECTOR);
    found.unless(places.windows(2).all(|two| two[0] < two[1]), || format!("sboffs {places:?}"));
    let fits = |at: u64| at - PAD / first.fsize() > PAD / first.fsize();
    found.unless(places.iter().skip(1).all(|at| fits(*at)), || format!("sboffs {places:?}"));
    for (n, at) in places.iter().enumerate() {
        let sb = Superblock(&bytes[(at * first.fsize()) as usize..][..512]);
        let on_boundary = (at - first.s0addr()).is_multiple_of(first.fsbpseg());
        found.unless(n == 0 || on_boundary, || format!("superblock {n} at {at}, within a segment"));
        one_superblock(&sb, bytes.len() as u64, writer, found);
        // What never changes is the same in all.
        let (a, b) = (sb.0, first.0);
        for range in [0..32, 56..60, 80..228, 328..336, 344..352, 360..380] {
            found.unless(a[range.clone()] == b[range.clone()], || format!("superblock {n} differs in bytes {range:?}"));
        }
    }
}

fn one_superblock(sb: &Superblock<'_>, disk_bytes: u64, writer: Writer, found: &mut Complaints) {
    let (bsize, fsize) = (sb.bsize(), sb.fsize());
    found.equal("magic", sb.magic(), 0x070_162);
    found.equal("version", sb.version(), 2);
    found.equal("checksum", sb.cksum(), cksum(&sb.0[..508]).into());
    found.unless((512..=65536).contains(&bsize), || format!("bsize {bsize}"));
    found.equal("bsize", 1 << sb.bshift(), bsize);
    found.equal("fsize", 1 << sb.ffshift(), fsize);
    found.equal("frag", (sb.frag(), 1 << sb.fbshift()), (bsize / fsize, bsize / fsize));
    found.equal("masks", sb.masks(), [bsize - 1, fsize - 1, bsize / fsize - 1]);
    found.equal("blktodb", SECTOR << sb.blktodb(), bsize);
    found.equal("fsbtodb", SECTOR << sb.fsbtodb(), fsize);
    found.equal("fsbpseg", sb.fsbpseg() * fsize, sb.ssize());
    found.equal("inopf", sb.inopf(), SECTOR / 128);
    found.equal("inopb", sb.inopb(), sb.ibsize() / 128);
    found.equal("ifpb, sepb, nindir", (sb.ifpb(), sb.sepb(), sb.nindir()), (bsize / 20, bsize / 24, bsize / 4));
    found.equal("cleansz, segtabsz", (sb.cleansz(), sb.segtabsz()), (1, sb.nseg().div_ceil(sb.sepb())));
    found.equal("segmask, segshift, sushift", (sb.segmask(), sb.segshift(), sb.sushift()), (0, 0, 0));
    found.equal("ifile", sb.ifile(), IFILE.into());
    found.equal("maxsymlinklen", sb.maxsymlinklen(), 60);
    found.equal("sumsize", sb.sumsize(), fsize);
    found.equal("inodefmt, interleave", (sb.inodefmt(), sb.interleave()), (0, 0));
    found.unless(sb.minfree() <= 99, || format!("minfree {}", sb.minfree()));
    found.unless(sb.nseg() * sb.fsbpseg() <= sb.size() && sb.size() * fsize <= disk_bytes, || {
        format!("{} segments, {} fragments, {disk_bytes} bytes", sb.nseg(), sb.size())
    });
    found.unless(sb.minfreeseg() >= 2 && sb.minfreeseg() + 2 < sb.nseg() && sb.resvseg() <= sb.minfreeseg(), || {
        format!("minfreeseg {}, resvseg {} of {}", sb.minfreeseg(), sb.resvseg(), sb.nseg())
    });
    if writer == Writer::Ours {
        let n = sb.nindir();
        found.equal("maxfilesize", sb.maxfilesize(), (NDADDR + n + n * n + n * n * n) << sb.bshift());
        found.equal("nspf", sb.nspf(), fsize / SECTOR);
    }
}

/// Pass 0, and what the kernel does to a list that is not in ascending order: it sorts it in memory, and writes half of
/// it back.
fn free_list(disk: &Disk<'_>, writer: Writer, found: &mut Complaints) {
    let info = |at| u32_at(&disk.ifile, at);
    let (mut listed, mut last) = (BTreeSet::new(), 0);
    let mut ino = disk.sb.freehd() as u32;
    while ino != 0 {
        if ino >= disk.inodes() || !listed.insert(ino) {
            found.0.push(format!("ino {ino} out of range or already found on the free list (last was {last})"));
            break;
        }
        let entry = disk.entry(ino);
        let unmounted = disk.sb.pflags() & 1 == 1 && writer == Writer::Ours;
        found.unless(ino > last || !unmounted, || format!("ino {ino} behind {last} on the free list"));
        found.unless(entry.daddr == 0, || format!("ino {ino} with daddr {} is on the free list", entry.daddr));
        (last, ino) = (ino, entry.nextfree);
    }
    for ino in (ROOT + 1..disk.inodes()).filter(|ino| disk.entry(*ino).daddr == 0) {
        found.unless(listed.contains(&ino), || format!("ino {ino} free, but not on the free list"));
    }
    found.equal("free list head", u64::from(info(16)), disk.sb.freehd());
    found.equal("free list tail", info(20), last);
}

/// Every inode in use, and what it holds.
struct Tree<'a> {
    inodes: BTreeMap<u32, Inode<'a>>,
    held: Vec<(u32, Held)>,
    /// Where each inode is.
    places: BTreeMap<u32, u64>,
    /// Bytes found in each segment.
    nbytes: Vec<u64>,
}

impl<'a> Tree<'a> {
    /// Pass 1: inodes, their blocks and sizes.
    fn scan(disk: &Disk<'a>, found: &mut Complaints) -> Tree<'a> {
        let sb = &disk.sb;
        let nbytes = vec![0; sb.nseg() as usize];
        let mut tree = Tree { inodes: BTreeMap::new(), held: Vec::new(), places: BTreeMap::new(), nbytes };
        let mut blockmap = vec![false; sb.size() as usize];
        for ino in IFILE..disk.inodes() {
            let addr = if ino == IFILE { sb.idaddr() } else { disk.entry(ino).daddr };
            if addr == 0 {
                continue;
            }
            let Some(inode) = disk.inode_at(addr, ino) else {
                found.0.push(format!("inode {ino} not found at {addr}"));
                continue;
            };
            tree.nbytes[disk.segment(addr) as usize] += 128;
            tree.inode(disk, ino, inode, &mut blockmap, found);
            tree.inodes.insert(ino, inode);
            tree.places.insert(ino, addr);
        }
        found.unless(tree.inodes.contains_key(&ROOT), || "no root directory".into());
        tree
    }

    fn inode(&mut self, disk: &Disk<'_>, ino: u32, inode: Inode<'_>, blockmap: &mut [bool], found: &mut Complaints) {
        let sb = &disk.sb;
        if ino != IFILE {
            let entry = disk.entry(ino);
            found.equal(&format!("inode {ino}: di_gen"), inode.generation(), entry.version);
            // What was removed while it was open is freed by the next mount (`lfs_order_freelist`).
            let orphan = inode.nlink() == 0 && entry.nextfree == ORPHAN && sb.pflags() & 1 == 0;
            let named = inode.nlink() > 0 && entry.nextfree != ORPHAN;
            found.unless(orphan || named, || format!("inode {ino}: {} links, {entry:?}", inode.nlink()));
        }
        self.pointers(disk, ino, inode, found);
        let held = match disk.held(inode) {
            Ok(held) => held,
            Err(problem) => return found.0.push(format!("inode {ino}: {problem}")),
        };
        let mut blocks = 0;
        for block in held {
            let frags = block.bytes.div_ceil(sb.fsize());
            let range = block.addr..block.addr + frags;
            if range.start < disk.frags(2 * PAD) || range.end > sb.nseg() * sb.fsbpseg() + sb.s0addr() {
                found.0.push(format!("inode {ino}: BAD block {block:?}"));
                continue;
            }
            let inside = disk.segment(range.start) == disk.segment(range.end - 1);
            found.unless(inside && block.bytes > 0, || format!("inode {ino}: {block:?} in two segments"));
            for frag in range {
                let twice = std::mem::replace(&mut blockmap[frag as usize], true);
                found.unless(!twice, || format!("inode {ino}: DUP fragment {frag}"));
            }
            self.nbytes[disk.segment(block.addr) as usize] += block.bytes;
            blocks += frags;
            self.held.push((ino, block));
        }
        found.equal(&format!("inode {ino}: BLOCK COUNT"), inode.blocks(), blocks);
    }

    /// `checkinode`: pointers that a file of this size cannot have, types, sizes.
    fn pointers(&self, disk: &Disk<'_>, ino: u32, inode: Inode<'_>, found: &mut Complaints) {
        let sb = &disk.sb;
        let types = [0o010, 0o020, 0o040, 0o060, 0o100, 0o120, 0o140].map(|t: u16| t << 9);
        found.unless(types.contains(&inode.ifmt()), || format!("inode {ino}: UNKNOWN FILE TYPE {:o}", inode.mode()));
        let mut blocks = inode.size().div_ceil(sb.bsize());
        if [0o020_000, 0o060_000].contains(&inode.ifmt()) {
            blocks += 1;
        }
        if inode.ifmt() == 0o120_000 && inode.size() < sb.maxsymlinklen() {
            found.equal(&format!("inode {ino}: blocks of a short symbolic link"), inode.blocks(), 0);
            let target = &inode.0[40..][..60];
            let rest = &target[inode.size() as usize..];
            found.unless(rest.iter().all(|byte| *byte == 0), || format!("inode {ino}: garbage behind the target"));
            return;
        }
        let wrong = (blocks..NDADDR).find(|lbn| inode.db(*lbn) != 0);
        found.unless(wrong.is_none(), || format!("inode {ino}: bad direct addr for size {}: {wrong:?}", inode.size()));
        let (mut beyond, mut levels) = (blocks.saturating_sub(NDADDR), 0);
        while beyond > 0 && levels < 3 {
            levels += 1;
            beyond = beyond.saturating_sub(sb.nindir().pow(levels));
        }
        let wrong = (u64::from(levels)..3).find(|level| inode.ib(*level) != 0);
        found.unless(wrong.is_none(), || format!("inode {ino}: bad indirect addr for size {}", inode.size()));
        found.unless(inode.size() <= sb.maxfilesize(), || format!("inode {ino}: size {}", inode.size()));
        if [0o010_000, 0o140_000].contains(&inode.ifmt()) {
            found.equal(&format!("inode {ino}: size of a pipe or a socket"), inode.size(), 0);
        }
    }
}

/// Passes 2 to 4: directories, and how often each inode has a name.
fn directories(disk: &Disk<'_>, tree: &Tree<'_>, found: &mut Complaints) {
    let mut links: BTreeMap<u32, i64> = BTreeMap::new();
    let mut parents: BTreeMap<u32, u32> = BTreeMap::new();
    let mut dotdots: BTreeMap<u32, u32> = BTreeMap::new();
    let all = tree.inodes.iter().filter(|(ino, inode)| **ino != IFILE && inode.ifmt() == 0o040_000);
    for (dir, inode) in all {
        let content = directory(disk, tree, *dir, *inode, found);
        let mut names = BTreeSet::new();
        for (n, (ino, file_type, name)) in content.into_iter().enumerate() {
            let target = tree.inodes.get(&ino);
            found.unless(target.is_some() && ino != IFILE, || format!("directory {dir}: UNALLOCATED {ino} {name:?}"));
            let right = target.is_some_and(|target| u16::from(file_type) == target.ifmt() >> 12);
            found.unless(right, || format!("directory {dir}: BAD TYPE {file_type} of {name:?}"));
            found.unless(names.insert(name.clone()), || format!("directory {dir}: {name:?} twice"));
            *links.entry(ino).or_default() += 1;
            match name.as_slice() {
                b"." => found.unless(n == 0 && ino == *dir, || format!("directory {dir}: '.' is {ino}, entry {n}")),
                b".." => {
                    found.unless(n == 1, || format!("directory {dir}: '..' is entry {n}"));
                    dotdots.insert(*dir, ino);
                }
                _ if target.is_some_and(|target| target.ifmt() == 0o040_000) => {
                    let before = parents.insert(ino, *dir);
                    found.unless(before.is_none(), || format!("directory {ino} has two names"));
                }
                _ => {}
            }
        }
        found.unless(names.contains(&b"."[..]) && names.contains(&b".."[..]), || format!("directory {dir}: MISSING"));
    }
    for (dir, dotdot) in dotdots {
        let parent = if dir == ROOT { Some(&ROOT) } else { parents.get(&dir) };
        found.equal(&format!("directory {dir}: '..'"), Some(&dotdot), parent);
    }
    for (ino, inode) in tree.inodes.iter().filter(|(ino, _)| **ino != IFILE) {
        let count = links.get(ino).copied().unwrap_or(0);
        found.equal(&format!("inode {ino}: LINK COUNT"), i64::from(inode.nlink()), count);
    }
    // Every directory leads up to the root.
    for dir in parents.keys() {
        let mut at = *dir;
        let steps = (0..=parents.len()).take_while(|_| {
            at = parents.get(&at).copied().unwrap_or(at);
            at != ROOT
        });
        found.unless(steps.count() <= parents.len(), || format!("directory {dir} is in a circle"));
    }
}

/// Entries of a directory: inode, type, name.
fn directory(
    disk: &Disk<'_>,
    tree: &Tree<'_>,
    dir: u32,
    inode: Inode<'_>,
    found: &mut Complaints,
) -> Vec<(u32, u8, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut blocks: Vec<&Held> =
        tree.held.iter().filter(|(ino, held)| *ino == dir && held.lbn >= 0).map(|(_, held)| held).collect();
    blocks.sort_unstable_by_key(|held| held.lbn);
    for held in blocks {
        found.equal(
            &format!("directory {dir}: CONTAINS EMPTY BLOCKS"),
            held.lbn as u64 * disk.sb.bsize(),
            bytes.len() as u64,
        );
        bytes.extend_from_slice(disk.piece(held.addr, held.bytes));
    }
    found.unless(inode.size() > 0 && inode.size().is_multiple_of(512) && inode.size() <= bytes.len() as u64, || {
        format!("directory {dir}: {} bytes in blocks of {}", inode.size(), bytes.len())
    });
    bytes.truncate(inode.size() as usize);
    let mut entries = Vec::new();
    for (n, chunk) in bytes.chunks_exact(512).enumerate() {
        let mut at = 0;
        while at < 512 {
            let (ino, reclen) = (u32_at(chunk, at), u64::from(u16_at(chunk, at + 4)));
            let (file_type, namlen) = (chunk[at as usize + 6], u64::from(chunk[at as usize + 7]));
            let least = (8 + namlen + 1).next_multiple_of(4);
            let name = chunk.get(at as usize + 8..(at + 8 + namlen) as usize).unwrap_or_default();
            let right = reclen >= 12 && reclen % 4 == 0 && at + reclen <= 512 && (ino == 0 || least <= reclen);
            if !right {
                found.0.push(format!("directory {dir}, chunk {n}: DIRECTORY CORRUPTED at {at}"));
                break;
            }
            if ino != 0 {
                let clean = namlen > 0 && !name.contains(&0) && !name.contains(&b'/');
                let ended = chunk.get((at + 8 + namlen) as usize) == Some(&0);
                found.unless(clean && ended, || format!("directory {dir}: bad name {name:?}"));
                entries.push((ino, file_type, name.to_vec()));
            }
            at += reclen;
        }
    }
    entries
}

/// Pass 5: usage of segments, and what is counted over all of them.
fn accounts(disk: &Disk<'_>, tree: &Tree<'_>, writer: Writer, found: &mut Complaints) {
    let sb = &disk.sb;
    let frag = |bytes: u64| disk.frags(bytes) as i64;
    let (mut nclean, mut avail, mut lower, mut upper, mut dmeta) = (0, 0, 0, 0, 0);
    for segment in 0..sb.nseg() {
        let usage = disk.usage(segment);
        let holds = tree.nbytes[segment as usize];
        let superblock = (0..10).any(|n| sb.sboff(n) != 0 && disk.segment(sb.sboff(n)) == segment);
        found.equal(&format!("segment {segment}: SUPERBLOCK"), usage.is(SEGUSE_SUPERBLOCK), superblock);
        found.equal(&format!("segment {segment}: EMPTY"), usage.is(SEGUSE_EMPTY), usage.nbytes == 0);
        let never = SEGUSE_ERROR | SEGUSE_INVAL;
        found.unless(!usage.is(never), || format!("segment {segment}: flags {:#x}", usage.flags));
        if !usage.is(SEGUSE_DIRTY) {
            found.unless(holds == 0, || format!("{holds} bytes contained in 'clean' segment {segment}"));
            found.equal(
                &format!("segment {segment}, clean: usage"),
                (usage.nbytes, usage.is(SEGUSE_ACTIVE)),
                (0, false),
            );
            if writer == Writer::Ours {
                found.equal(&format!("segment {segment}, clean: summaries"), (usage.nsums, usage.ninos), (0, 0));
            }
            nclean += 1;
            avail += sb.fsbpseg() as i64;
            avail -= if superblock { frag(PAD) } else { 0 };
            avail -= if segment == 0 { frag(PAD) - sb.s0addr() as i64 } else { 0 };
            continue;
        }
        found.unless(usage.nbytes == holds, || format!("segment {segment} claims {usage:?} but has {holds}"));
        let sums = usage.nsums * sb.sumsize();
        lower += frag(usage.nbytes + sums);
        upper += frag(usage.nbytes + sums + usage.ninos * sb.ibsize());
        dmeta += frag(sums) + frag(usage.ninos * sb.ibsize());
    }
    avail += disk.base(disk.segment(sb.offset()) + 1) as i64 - sb.offset() as i64;
    avail -= ((sb.minfreeseg() - sb.minfreeseg() / 2) * sb.fsbpseg()) as i64;
    let label = frag(PAD) - sb.s0addr() as i64;
    let (low, high) = (sb.dsize() as i64 - upper - label, sb.dsize() as i64 - lower - label);
    let info = |at| u32_at(&disk.ifile, at);
    found.equal("dmeta", sb.dmeta(), dmeta);
    found.equal("nclean", sb.nclean(), nclean);
    found.equal("cleaner information", (info(0), info(4)), (nclean as u32, (sb.nseg() - nclean) as u32));
    if writer == Writer::Ours {
        // Whoever has begun a foreign image has held some of both back.
        found.equal("avail", sb.avail(), avail);
        found.unless((low..=high).contains(&sb.bfree()), || format!("bfree {}, from {low} to {high}", sb.bfree()));
        found.equal("uinodes", sb.uinodes(), 0);
    }
    found.unless(sb.avail() <= avail && sb.bfree() <= high, || {
        format!("avail {} of {avail}, bfree {} of {high}", sb.avail(), sb.bfree())
    });
    // newfs_lfs counts neither the ifile nor the root, and no check looks.
    let files = tree.inodes.len() as u64;
    let right = if writer == Writer::Ours { sb.nfiles() == files } else { sb.nfiles() <= files };
    found.unless(right, || format!("nfiles {} of {files}", sb.nfiles()));
    found.equal("cleaner information: flags", info(24), 0);
}

/// The log of every segment that is not clean.
struct Segments {
    partials: BTreeMap<u64, Vec<Partial>>,
}

impl Segments {
    /// lfs_cleanerd's `load_segment`, as far as the usage table says that there is something.
    fn scan(disk: &Disk<'_>, writer: Writer, found: &mut Complaints) -> Segments {
        let mut partials = BTreeMap::new();
        for segment in 0..disk.sb.nseg() {
            let usage = disk.usage(segment);
            if !usage.is(SEGUSE_DIRTY) {
                continue;
            }
            let mut all: Vec<Partial> = Vec::new();
            let mut at = disk.log_start(segment);
            for _ in 0..usage.nsums {
                match disk.partial(at) {
                    Ok(partial) => {
                        at = partial.end;
                        all.push(partial);
                    }
                    Err(_) if all.iter().any(|partial| partial.serial > disk.sb.serial()) => break,
                    Err(problem) => {
                        found.0.push(format!("segment {segment}: {problem}"));
                        break;
                    }
                }
            }
            // Empty by both checkpoints, it may have been written again since this one.
            let again = usage.nbytes == 0 && all.iter().any(|partial| partial.serial > disk.sb.serial());
            if again && disk.sb.pflags() & 1 == 0 {
                continue;
            }
            let in_order = all.windows(2).all(|two| two[1].serial == two[0].serial + 1);
            found.unless(in_order, || format!("segment {segment}: serial numbers out of order"));
            found.unless(all.windows(2).all(|two| two[0].create <= two[1].create), || {
                format!("segment {segment}: a later partial segment with an earlier time")
            });
            let ninos: usize = all.iter().map(|partial| partial.inode_blocks.len()).sum();
            found.equal(&format!("segment {segment}: ninos"), usage.ninos, ninos as u64);
            if let Some(last) = all.last() {
                found.equal(&format!("segment {segment}: lastmod"), usage.lastmod, last.create);
                found.unless(disk.segment(last.next) != segment, || format!("segment {segment}: goes on in itself"));
                let current = disk.base(segment) == disk.sb.curseg();
                found.unless(!current || last.end == disk.sb.offset(), || format!("offset {}", disk.sb.offset()));
                if writer == Writer::Ours {
                    let full = last.end == disk.base(segment + 1);
                    found.unless(!full, || format!("segment {segment} is full to the last fragment"));
                }
            }
            partials.insert(segment, all);
        }
        Segments { partials }
    }

    /// The kernel's roll-forward could go from each segment to the next: `check_segsum`.
    fn chain(&self, disk: &Disk<'_>, found: &mut Complaints) {
        let sb = &disk.sb;
        let firsts: BTreeMap<u64, u64> =
            self.partials.iter().filter_map(|(segment, all)| Some((all.first()?.serial, *segment))).collect();
        let mut serials = BTreeSet::new();
        for (segment, all) in &self.partials {
            let right = all.iter().all(|partial| serials.insert(partial.serial) && partial.serial <= sb.serial());
            found.unless(right, || format!("segment {segment}: serial numbers twice or beyond the checkpoint's"));
            let Some(last) = all.last() else { continue };
            let Some(next) = firsts.get(&(last.serial + 1)) else { continue };
            found.equal(&format!("segment {segment}: next"), last.next, disk.base(*next));
            let room = last.end + disk.frags(sb.sumsize() + sb.bsize());
            found.unless(disk.segment(room) != *segment, || format!("segment {segment}: left with room in it"));
            let create = self.partials.get(next).and_then(|all| all.first()).map_or(0, |partial| partial.create);
            found.unless(create >= last.create, || format!("segment {next}: older than the one before it"));
        }
        // The last partial segment of the log is the checkpoint's, and none of a clean log is left open.
        if let Some(last) = self.partials.values().flatten().find(|partial| partial.serial == sb.serial()) {
            let current = disk.segment(last.end - 1) == disk.segment(sb.curseg());
            let offset = if current { last.end } else { disk.log_start(disk.segment(sb.curseg())) };
            found.equal("offset", sb.offset(), offset);
            found
                .unless(last.flags & SS_CONT == 0, || "the checkpoint is in the middle of directory operations".into());
            found.unless(last.create <= sb.tstamp(), || format!("tstamp {} before {}", sb.tstamp(), last.create));
        } else {
            found.0.push(format!("no partial segment has the checkpoint's serial number {}", sb.serial()));
        }
    }
}

/// lfs_cleanerd finds everything that is live through summaries: what is not there would be lost with its segment.
fn live_is_described(tree: &Tree<'_>, log: &Segments, found: &mut Complaints) {
    let mut described: BTreeMap<(u32, u64), (u32, Held)> = BTreeMap::new();
    let mut inode_blocks: BTreeSet<u64> = BTreeSet::new();
    for partial in log.partials.values().flatten() {
        inode_blocks.extend(&partial.inode_blocks);
        described.extend(partial.blocks.iter().map(|(ino, version, held)| ((*ino, held.addr), (*version, *held))));
    }
    for (ino, held) in &tree.held {
        let version = tree.inodes.get(ino).map(Inode::generation).unwrap_or_default();
        let should = Some(&(version, *held));
        found.equal(&format!("inode {ino}: in a summary"), described.get(&(*ino, held.addr)), should);
    }
    for (ino, place) in &tree.places {
        found.unless(inode_blocks.contains(place), || format!("inode {ino}: in no summary's inode block"));
    }
}

/// What `lfs_mountfs` takes over as it is: where the log goes on.
fn mount(disk: &Disk<'_>, writer: Writer, found: &mut Complaints) {
    let sb = &disk.sb;
    for (name, addr) in [("curseg", sb.curseg()), ("nextseg", sb.nextseg()), ("lastseg", sb.lastseg())] {
        let on_boundary = addr == disk.base(disk.segment(addr)) && disk.segment(addr) < sb.nseg();
        found.unless(on_boundary, || format!("{name} {addr} is no segment's beginning"));
    }
    let (current, next) = (disk.segment(sb.curseg()), disk.segment(sb.nextseg()));
    found.unless(current != next, || "curseg is nextseg".into());
    found.unless(!disk.usage(next).is(SEGUSE_DIRTY), || format!("nextseg: segment {next} is dirty"));
    found.unless(disk.usage(current).is(SEGUSE_DIRTY), || format!("curseg: segment {current} is clean"));
    let active: Vec<u64> = (0..sb.nseg()).filter(|segment| disk.usage(*segment).is(SEGUSE_ACTIVE)).collect();
    found.unless(writer == Writer::Other || active == [current], || format!("active: {active:?}, curseg {current}"));
    let within = (disk.log_start(current)..disk.base(current + 1)).contains(&sb.offset());
    found.unless(within, || format!("offset {} is not in segment {current}", sb.offset()));
    // `LFS_PARTIAL_FITS`: the kernel writes its next partial segment there.
    let room = disk.base(current + 1) - sb.offset();
    found.unless(room > disk.frags(sb.bsize()), || format!("offset {}: {room} fragments are left", sb.offset()));
}
