//! Paths as system calls take them, converted before the clock starts.

use crate::Errno;
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A reused buffer that holds one path with its terminating NUL.
#[derive(Debug, Default)]
pub(crate) struct CPath {
    bytes: Vec<u8>,
}

impl CPath {
    /// Takes over a path made relative: leading slashes are stripped, and `/` alone is `.`.
    pub(crate) fn set(&mut self, path: &Path) -> Result<(), Errno> {
        self.fill(b"", path.as_os_str().as_bytes())
    }

    /// As [`set`](CPath::set), for the calls that take no directory descriptor: the path goes through
    /// `/proc/self/fd/N/`.
    pub(crate) fn set_below(&mut self, directory: i32, path: &Path) -> Result<(), Errno> {
        self.fill(format!("/proc/self/fd/{directory}/").as_bytes(), path.as_os_str().as_bytes())
    }

    /// Takes over bytes as they are (names of attributes, targets of symbolic links).
    pub(crate) fn set_verbatim(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        self.bytes.clear();
        self.push(bytes)
    }

    fn fill(&mut self, prefix: &[u8], path: &[u8]) -> Result<(), Errno> {
        self.bytes.clear();
        if path.is_empty() {
            return Err(Errno::ENOENT);
        }
        self.bytes.extend_from_slice(prefix);
        let relative = path.iter().position(|&b| b != b'/').and_then(|start| path.get(start..));
        self.push(relative.unwrap_or(b"."))
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.contains(&0) {
            return Err(Errno::EINVAL);
        }
        self.bytes.extend_from_slice(bytes);
        self.bytes.push(0);
        Ok(())
    }

    /// The path; scans it once, so call it before the clock starts.
    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.bytes).unwrap_or(c"")
    }
}

/// How deep below its start a path ends, component by component; `None` if `..` leads above `start_depth`
/// levels at any point. Symbolic links are not followed: they are the driver's concern.
pub(crate) fn depth_after(path: &Path, start_depth: u32) -> Option<u32> {
    let mut depth = start_depth;
    for component in path.as_os_str().as_bytes().split(|&b| b == b'/') {
        match component {
            b"" | b"." => {}
            b".." => depth = depth.checked_sub(1)?,
            _ => depth = depth.saturating_add(1),
        }
    }
    Some(depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    fn set(path: &str) -> Result<Vec<u8>, Errno> {
        let mut c = CPath::default();
        c.set(Path::new(path))?;
        Ok(c.as_c_str().to_bytes().to_vec())
    }

    #[test]
    fn leading_slashes_are_stripped() {
        assert_eq!(set("/a/b"), Ok(b"a/b".to_vec()));
        assert_eq!(set("///a//b/"), Ok(b"a//b/".to_vec()));
        assert_eq!(set("/"), Ok(b".".to_vec()));
        assert_eq!(set("a"), Ok(b"a".to_vec()));
        assert_eq!(set(""), Err(Errno::ENOENT));
    }

    #[test]
    fn a_nul_byte_is_refused() {
        assert_eq!(set("a\0b"), Err(Errno::EINVAL));
        assert_eq!(CPath::default().set_verbatim(b"\0"), Err(Errno::EINVAL));
    }

    #[test]
    fn a_path_may_be_any_bytes() {
        let mut c = CPath::default();
        let odd = b"new\nline/\xff\xfe";
        assert_eq!(c.set(Path::new(OsStr::from_bytes(odd))), Ok(()));
        assert_eq!(c.as_c_str().to_bytes(), odd);
    }

    #[test]
    fn climbing_above_the_start_is_noticed() {
        let after = |p: &str, d| depth_after(Path::new(p), d);
        assert_eq!(after("a/b", 0), Some(2));
        assert_eq!(after("a/../b/./c", 0), Some(2));
        assert_eq!(after("..", 0), None);
        assert_eq!(after("..", 1), Some(0));
        assert_eq!(after("a/../../b", 0), None);
        assert_eq!(after("/..", 0), None);
        assert_eq!(after("..a/...", 0), Some(2));
    }
}
