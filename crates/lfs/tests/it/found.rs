//! What the model and crash tests have found, each by itself.

use kernel::{Durability, Ino, NewNode, ReadAhead, Transfers, Untimed, Volume, WriteRange, payload};
use lfs::mkfs::{MkfsOptions, mkfs};
use lfs::{Lfs, MemoryStore, Options};
use posix::{Errno, FileKind};
use std::sync::{Arc, Mutex};

const ROOT: Ino = Ino(2);

struct Live {
    live: Untimed<Lfs>,
    disk: Arc<Mutex<MemoryStore>>,
}

impl Live {
    fn new(mkfs_options: &MkfsOptions, words: &str) -> Live {
        let mut options = Options::default();
        assert!(words.split(',').all(|word| options.set(word)), "{words}");
        let mut store = MemoryStore(vec![0; mkfs_options.size_bytes as usize]);
        mkfs(&mut store, mkfs_options).unwrap();
        Live::mount(store, options)
    }

    fn mount(mut store: MemoryStore, options: Options) -> Live {
        let volume = Lfs::load(&mut store, options).unwrap();
        let disk = Arc::new(Mutex::new(store));
        let transfers = Transfers { largest_bytes: 65536, read_ahead: ReadAhead::Cluster, cluster_writes: true };
        let image = payload::Image::full(disk.clone());
        let mut live = Untimed::with_image(volume, 1 << 20, 64, transfers, 820_000_000_000_000_000, image);
        live.run(|volume, cx| volume.mount(cx)).unwrap();
        Live { live, disk }
    }

    fn make(&mut self, name: &str, kind: FileKind, target: &[u8]) -> Ino {
        let new = NewNode { kind, mode: 0o644, target };
        let ino = self.live.run(|volume, cx| volume.create(cx, ROOT, name.as_bytes(), &new)).unwrap();
        self.live.touch(ino);
        ino
    }

    fn write(&mut self, ino: Ino, offset: u64, len: usize) -> Result<u64, Errno> {
        let data = vec![7; len];
        let range = WriteRange { ino, offset, len_bytes: len as u64, data: Some(&data), sync: None };
        self.live.run(|volume, cx| volume.write(cx, &range))
    }

    fn remove(&mut self, name: &str, ino: Ino) {
        self.live.run(|volume, cx| volume.unlink(cx, ROOT, name.as_bytes(), ino)).unwrap();
        self.live.run(|volume, cx| volume.release(cx, ino));
        self.live.forget(ino);
    }

    fn sync(&mut self) {
        self.live.pause_ns(1_000_000_000);
        self.live.run(|volume, cx| volume.sync(cx, Durability::All)).unwrap();
    }

    /// Memory agrees with itself, and so does the disk.
    fn check(&self) {
        assert_eq!(self.live.volume().check(), []);
        let report = lfs::fsck(self.disk.lock().unwrap().clone(), &mut |_| true).unwrap();
        assert!(report.is_clean(), "{:#?}", report.problems);
    }
}

fn small() -> MkfsOptions {
    MkfsOptions { bsize: 4096, fsize: 4096, ssize: Some(128 << 10), ..MkfsOptions::new(30 * (128 << 10)) }
}

/// The target of a short symbolic link is where other files have their pointers. The cleaner took one whose characters
/// were the address of a block that had been another file's, of the same number, for that block (model test, seed 1036
/// with bytes).
#[test]
fn the_target_of_a_link_is_no_pointer() {
    let mut one = Live::new(&small(), "cleaner=greedy,low=60,high=80");
    let mut tried = 0;
    for round in 0..40 {
        let name = format!("file {round}");
        let file = one.make(&name, FileKind::File, b"");
        one.write(file, 0, 4096).unwrap();
        let other = one.make(&format!("other {round}"), FileKind::File, b"");
        one.write(other, 0, 4096).unwrap();
        one.sync();
        let extents = one.live.volume().extents(file).unwrap();
        let addr = extents[0].physical_bytes / 4096;
        one.remove(&name, file);
        let bytes = addr.to_le_bytes();
        let target = &bytes[..8 - addr.leading_zeros() as usize / 8];
        if target.iter().any(|byte| [0, b'/'].contains(byte)) {
            continue;
        }
        let link = one.make(&format!("link {round}"), FileKind::Symlink, target);
        assert_eq!(link, file, "the number is used again");
        tried += 1;
        one.sync();
        one.check();
    }
    assert!(tried > 20, "{tried}");
    assert!(one.live.volume().counters().cleaner.segments > 0);
    one.check();
}

/// The cleaner moved an indirect block that others point to without writing those (crash test, seed 1).
#[test]
fn what_is_above_an_indirect_block_moves_with_it() {
    let mut one = Live::new(&small(), "cleaner=greedy,low=40,high=60");
    for round in 0..120_u64 {
        let name = format!("file {}", round % 12);
        if round >= 12 && round % 3 == 0 {
            let ino = one.live.run(|volume, cx| volume.lookup(cx, ROOT, name.as_bytes())).unwrap().unwrap();
            one.remove(&name, ino);
        }
        let ino = match one.live.run(|volume, cx| volume.lookup(cx, ROOT, name.as_bytes())).unwrap() {
            Some(ino) => ino,
            None => one.make(&name, FileKind::File, b""),
        };
        one.live.touch(ino);
        // Behind double indirect blocks, in two places.
        one.write(ino, (5 + round % 7) << 20, 4096 * (1 + round as usize % 3)).unwrap();
        one.write(ino, (20 + round % 5) << 20, 9000).unwrap();
        one.sync();
        one.check();
    }
    assert!(one.live.volume().counters().cleaner.segments > 10);
}

/// Files that were made since the checkpoint were so many that the inode map had grown: the ifile that mounting wrote
/// was a block short, with its inode over the last (crash test, seed 13).
#[test]
fn an_inode_map_that_roll_forward_has_made_longer_is_written_whole() {
    let mut one = Live::new(&small(), "cleaner=greedy");
    one.sync();
    let files: Vec<Ino> = (0..300).map(|n| one.make(&format!("file {n}"), FileKind::File, b"")).collect();
    one.live.run(|volume, cx| volume.fsync(cx, files[0], Durability::All)).unwrap();
    let crashed = one.disk.lock().unwrap().clone();
    let again = Live::mount(crashed, Options::default());
    again.check();
    let after = again.disk.lock().unwrap().clone();
    let after = Live::mount(after, Options::default());
    after.check();
    let names: Vec<u64> = files.iter().map(|ino| after.live.volume().attributes(*ino).unwrap().size_bytes).collect();
    assert_eq!(names.len(), 300);
}

/// H: a file that was unlinked and open when the power failed has an inode in the checkpoint's map, marked or (as
/// NetBSD's newer kernels leave it) not. It was called damage, and `cp` refused to write.
#[test]
fn an_unlinked_inode_in_the_map_is_no_damage_and_is_freed() {
    let mut one = Live::new(&small(), "cleaner=greedy");
    let (kept, open) = (one.make("kept", FileKind::File, b""), one.make("open", FileKind::File, b""));
    one.write(kept, 0, 5000).unwrap();
    one.write(open, 0, 9000).unwrap();
    one.sync();
    one.live.run(|volume, cx| volume.unlink(cx, ROOT, b"open", open)).unwrap();
    one.sync();
    let crashed = one.disk.lock().unwrap().clone();
    let image = lfs::Image::open(crashed.clone(), lfs::Checkpoint::Newer).unwrap();
    let (g, ifile) = (*image.geometry(), image.ifile());
    assert_ne!(ifile.entry(open).unwrap().daddr, 0, "it is in the map");
    // The entry as other systems leave it: on no list, without a mark.
    let (lbn, place) = g.map_place(open);
    let mut block = None;
    image
        .blocks(lfs::format::IFILE_INO, &ifile.inode, &mut |b| {
            block = block.or((b.lbn == lbn as i64).then_some(b.addr));
            Ok(())
        })
        .unwrap();
    let at = g.byte_of(block.unwrap()) as usize + place + 8;
    for marked in [true, false] {
        let mut crashed = crashed.clone();
        if !marked {
            crashed.0[at..at + 4].fill(0);
        }
        let report = lfs::fsck(crashed.clone(), &mut |_| true).unwrap();
        assert!(report.is_clean(), "marked {marked}: {:#?}", report.problems);
        let from = tempfile::tempdir().unwrap();
        std::fs::write(from.path().join("new"), vec![3; 20_000]).unwrap();
        let mut inserter = lfs::Inserter::open(crashed, Options::default(), 820_000_000_000_000_000).unwrap();
        inserter.insert(&from.path().join("new"), b"/", lfs::InsertOptions::default(), &mut |_| true).unwrap();
        let (store, _) = inserter.finish().unwrap();
        let report = lfs::fsck(store.clone(), &mut |_| true).unwrap();
        assert!(report.is_clean(), "marked {marked}: {:#?}", report.problems);
        let image = lfs::Image::open(store, lfs::Checkpoint::Newer).unwrap();
        assert!(image.resolve(b"/kept").is_ok() && image.resolve(b"/new").is_ok());
        // Freed: the number is the new file's, or on the list.
        let number = open;
        assert!(image.resolve(b"/new").unwrap().0 == number || image.ifile().free_list().any(|ino| ino == number));
    }
}
