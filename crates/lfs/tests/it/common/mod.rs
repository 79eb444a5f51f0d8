//! What the tests of images share: the two that NetBSD's kernel wrote.

#![allow(dead_code, clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

/// Says on standard output why a test did not run.
pub fn skip(why: &str) {
    println!("skipped: {why}");
}

/// An image written by NetBSD (`clean` or `crashed`), as bytes; `None` and a message where it is not there.
pub fn netbsd(name: &str) -> Option<Vec<u8>> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/images");
    let packed = from.join(format!("lfs-netbsd-{name}.img.zst"));
    if !packed.exists() {
        skip("no images of other systems beside the repository");
        return None;
    }
    match Command::new("zstd").args(["-q", "-d", "-c"]).arg(packed).output() {
        Ok(output) if output.status.success() => Some(output.stdout),
        _ => {
            skip("zstd is not installed");
            None
        }
    }
}
