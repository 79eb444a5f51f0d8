//! What the targets of images share: a directory tree to copy into them, and changes to what they hold.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

/// 2001, so that nothing depends on the clock.
pub const DATE_NS: i64 = 1_000_000_000_000_000_000;

/// A small tree: fragments, indirect blocks, holes, links, a directory of several chunks.
pub fn tree() -> &'static PathBuf {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| {
        let root = std::env::temp_dir().join(format!("fsage-fuzz-tree-{}", std::process::id()));
        let write = |name: &str, bytes: usize| std::fs::write(root.join(name), vec![7; bytes]).expect("space");
        std::fs::create_dir_all(root.join("dir/below")).expect("a writable temporary directory");
        write("small", 700);
        write("indirect", 60_000);
        write("dir/below/file", 5_000);
        for n in 0..40 {
            write(&format!("dir/{}{n}", "n".repeat(n)), n * 10);
        }
        let sparse = std::fs::File::create(root.join("sparse")).expect("space");
        sparse.set_len(5 << 20).expect("space");
        std::os::unix::fs::symlink("small", root.join("short")).expect("space");
        std::os::unix::fs::symlink("x/".repeat(90), root.join("long")).expect("space");
        std::fs::hard_link(root.join("small"), root.join("dir/hard")).expect("space");
        root
    })
}

/// A change of eight bytes: which place, what is done, where, with what.
pub fn change(image: &mut [u8], places: &[Range<usize>], change: &[u8]) {
    let place = &places[usize::from(change[0]) % places.len()];
    let at = place.start + usize::from(u16::from_le_bytes([change[2], change[3]])) % place.len();
    let value = &change[4..];
    match change[1] % 5 {
        0 => image[at] ^= 1 << (value[0] % 8),
        1 => image[at / 4 * 4..at / 4 * 4 + 4].copy_from_slice(value),
        2 => image[at / 8 * 8..at / 8 * 8 + 4].fill(value[0]),
        3 => {
            let end = (at + usize::from(value[0])).min(image.len());
            image[at..end].fill(value[1]);
        }
        _ => {
            let from = &places[usize::from(value[0]) % places.len()];
            let from = (from.start + usize::from(u16::from_le_bytes([value[1], value[2]])) % from.len()) / 4 * 4;
            let n = usize::from(value[3]).min(image.len() - from.max(at));
            image.copy_within(from..from + n, at);
        }
    }
}
