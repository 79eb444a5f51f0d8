//! A directory tree to copy into images.

use std::path::PathBuf;
use std::sync::OnceLock;

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
