//! What a file is, told by its content: the one place where foreign forms are recognised.
//!
//! What lives here: [`recognise`], which looks at a file's first bytes. What may not: reading the forms; each has a
//! module of its own.

use crate::{fio, perf};

/// A form of file that `fsage import` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A recording not made into a profile yet ([`crate::spool`]).
    Spool,
    /// strace's text ([`crate::strace`]). Also what nothing else claims: its importer then says what it lacks.
    Strace,
    /// The text of `perf trace` ([`crate::perf`]).
    Perf,
    /// fio's log of I/O, version 2 or 3 ([`crate::fio`]).
    FioLog,
    /// The thesis's snapshot text ([`crate::text::snapshot`]).
    SnapshotText,
    /// The thesis's system vector: lines of a name and a number.
    SystemVector,
}

/// How many of a file's first bytes tell what it is.
pub const ENOUGH_BYTES: usize = 64 << 10;

/// The form of a file that begins with `head`; `None` if nothing tells.
pub fn recognise(head: &[u8]) -> Option<Form> {
    if head.starts_with(b"fsage.spool/") {
        return Some(Form::Spool);
    }
    if fio::is_log(head) {
        return Some(Form::FioLog);
    }
    // The last line may be cut.
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| head.get(..end).unwrap_or(head));
    let lines = || whole.split(|&b| b == b'\n').filter(|line| !line.is_empty()).take(200);
    // perf's first: its milliseconds since the machine started can look like strace's seconds since the epoch.
    if lines().any(perf::is_line) {
        return Some(Form::Perf);
    }
    if lines().any(crate::strace::is_line) {
        return Some(Form::Strace);
    }
    if lines().next().is_some_and(|line| line.first() == Some(&b'/'))
        && lines().any(|line| line == b"~" || is_entry(line))
    {
        return Some(Form::SnapshotText);
    }
    let values = || lines().filter(|line| line.first() != Some(&b'#'));
    (values().next().is_some() && values().all(is_value)).then_some(Form::SystemVector)
}

/// `17 d 4096 src`
fn is_entry(line: &[u8]) -> bool {
    let fields: Vec<&[u8]> = line.split(|&b| b == b' ').collect();
    let number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    matches!(fields.as_slice(), [inode, _, size, _, ..] if number(inode) && number(size))
}

/// `open 0.0017`
fn is_value(line: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(line) else { return false };
    let mut fields = text.split_whitespace();
    match (fields.next(), fields.next()) {
        (Some(name), Some(value)) => {
            name.starts_with(|c: char| c.is_ascii_alphabetic()) && value.parse::<f64>().is_ok_and(f64::is_finite)
        }
        (None, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_by_their_first_lines() {
        for (text, form) in [
            ("fio version 3 iolog\n1 x add\n", Some(Form::FioLog)),
            ("fio version 2 iolog\n", Some(Form::FioLog)),
            ("fsage.spool/1\n", Some(Form::Spool)),
            ("12 1700000000.123456 close(3</tmp/x>) = 0 <0.000012>\n", Some(Form::Strace)),
            ("strace: Process 3 attached\n[pid 3] 1700000000.123456 close(3) = 0 <0.000012>\n", Some(Form::Strace)),
            ("     0.072 ( 0.016 ms): sh/958 close(fd: 3)      = 0\n", Some(Form::Perf)),
            ("         ? (         ): sh/958  ... [continued]: execve())    = 0\n", Some(Form::Perf)),
            ("/ 2 512\n3 f 10 a\n~\n", Some(Form::SnapshotText)),
            ("/home/user\n17 d 4096 src\n~\n", Some(Form::SnapshotText)),
            ("# an old disk\nbc 1024\nopen 0.0017\n", Some(Form::SystemVector)),
            ("make: *** error\n", None),
            ("", None),
        ] {
            assert_eq!(recognise(text.as_bytes()), form, "{text}");
        }
    }
}
