//! The paths of entries: how they are written, their order, and what is below what.

/// The directory part of an absolute path; `None` for `/` and for what is not absolute.
pub fn parent_of(path: &[u8]) -> Option<&[u8]> {
    match memchr::memrchr(b'/', path)? {
        0 if path.len() == 1 => None,
        0 => Some(b"/"),
        slash => Some(&path[..slash]),
    }
}

/// Whether a path is written as those of entries are: from the root on, without `.`, `..`, and repeated slashes or one
/// at the end. One that is written in two ways would be two files.
pub fn is_plain(path: &[u8]) -> bool {
    let Some(names) = path.strip_prefix(b"/") else { return false };
    names.is_empty() || names.split(|&b| b == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

/// The order of entries: component-wise, so that `/a`, `/a/b`, `/a-b` stay in this order although `-` sorts before `/`.
pub fn path_order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    // Equal runs are skipped a chunk at a time: paths of one tree share long prefixes.
    const CHUNK: usize = 32;
    let same = a.chunks_exact(CHUNK).zip(b.chunks_exact(CHUNK)).take_while(|(x, y)| x == y).count() * CHUNK;
    // A slash sorts below every other byte: compare with slashes mapped to 0 (a path holds no NUL).
    let key = |&c: &u8| if c == b'/' { 0 } else { c };
    a[same..].iter().map(key).cmp(b[same..].iter().map(key))
}

/// Whether an absolute path is below a directory; no directory is below itself.
pub(crate) fn is_below(path: &[u8], directory: &[u8]) -> bool {
    if directory == b"/" {
        return path.len() > 1;
    }
    path.len() > directory.len() && path.starts_with(directory) && path[directory.len()] == b'/'
}
