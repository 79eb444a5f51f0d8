//! What the tests of images share: the two that NetBSD's kernel wrote.

/// An image written by NetBSD (`clean` or `crashed`), as bytes.
pub fn netbsd(name: &str) -> Vec<u8> {
    testkit::fixture::unpacked(&format!("images/lfs-netbsd-{name}.img"))
}
