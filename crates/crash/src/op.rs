//! Operations, as text and as calls.

use crate::CrashError;
use std::fmt;
use std::str::FromStr;

/// Something that a process does. Paths begin in the root.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Op {
    /// Makes an empty file; it must be new.
    Create {
        path: String,
    },
    Mkdir {
        path: String,
    },
    Symlink {
        target: String,
        path: String,
    },
    /// Writes so many bytes from a byte of the file on.
    Write {
        path: String,
        at_byte: u64,
        len_bytes: u64,
    },
    /// Sets the length.
    Truncate {
        path: String,
        len_bytes: u64,
    },
    Rename {
        from: String,
        to: String,
    },
    Link {
        from: String,
        to: String,
    },
    Unlink {
        path: String,
    },
    Rmdir {
        path: String,
    },
    Fsync {
        path: String,
    },
    Sync,
    /// Time passes: the kernel writes back what is old.
    Wait {
        ms: u64,
    },
}

impl Op {
    /// Whether it promises that something is on the disk.
    pub fn is_promise(&self) -> bool {
        matches!(self, Op::Fsync { .. } | Op::Sync)
    }
}

/// As [`Op::from_str`] reads it: `rename a d/b`. Names with blanks or semicolons are escaped.
impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = |name: &str| escaped(name);
        match self {
            Op::Create { path } => write!(f, "create {}", e(path)),
            Op::Mkdir { path } => write!(f, "mkdir {}", e(path)),
            Op::Symlink { target, path } => write!(f, "symlink {} {}", e(target), e(path)),
            Op::Write { path, at_byte, len_bytes } => write!(f, "write {} {at_byte} {len_bytes}", e(path)),
            Op::Truncate { path, len_bytes } => write!(f, "truncate {} {len_bytes}", e(path)),
            Op::Rename { from, to } => write!(f, "rename {} {}", e(from), e(to)),
            Op::Link { from, to } => write!(f, "link {} {}", e(from), e(to)),
            Op::Unlink { path } => write!(f, "unlink {}", e(path)),
            Op::Rmdir { path } => write!(f, "rmdir {}", e(path)),
            Op::Fsync { path } => write!(f, "fsync {}", e(path)),
            Op::Sync => f.write_str("sync"),
            Op::Wait { ms } => write!(f, "wait {ms}"),
        }
    }
}

/// Percent signs, blanks, semicolons, quotes and what a terminal would obey, as `%41`.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() || "/._-+=,@:".contains(c) {
            text.push(c);
        } else {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
        }
    }
    text
}

fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        rest = others;
        if *first == b'%' {
            let (digits, others) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = others;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

impl FromStr for Op {
    type Err = CrashError;

    fn from_str(text: &str) -> Result<Op, CrashError> {
        let wrong = |problem: &str| CrashError::Op { text: text.trim().to_owned(), problem: problem.to_owned() };
        let words: Vec<&str> = text.split_whitespace().collect();
        let path = |at: usize| -> Result<String, CrashError> {
            let name = words.get(at).and_then(|word| unescaped(word)).filter(|name| !name.is_empty());
            name.ok_or_else(|| wrong("a name is missing, or wrongly escaped"))
        };
        let number = |at: usize| -> Result<u64, CrashError> {
            words.get(at).and_then(|word| word.parse().ok()).ok_or_else(|| wrong("a whole number is missing"))
        };
        let (op, used) = match words.first().copied().unwrap_or_default() {
            "create" => (Op::Create { path: path(1)? }, 2),
            "mkdir" => (Op::Mkdir { path: path(1)? }, 2),
            "symlink" => (Op::Symlink { target: path(1)?, path: path(2)? }, 3),
            "write" => (Op::Write { path: path(1)?, at_byte: number(2)?, len_bytes: number(3)? }, 4),
            "truncate" => (Op::Truncate { path: path(1)?, len_bytes: number(2)? }, 3),
            "rename" => (Op::Rename { from: path(1)?, to: path(2)? }, 3),
            "link" => (Op::Link { from: path(1)?, to: path(2)? }, 3),
            "unlink" => (Op::Unlink { path: path(1)? }, 2),
            "rmdir" => (Op::Rmdir { path: path(1)? }, 2),
            "fsync" => (Op::Fsync { path: path(1)? }, 2),
            "sync" => (Op::Sync, 1),
            "wait" => (Op::Wait { ms: number(1)? }, 2),
            _ => {
                return Err(wrong(
                    "there are create, mkdir, symlink, write, truncate, rename, link, unlink, rmdir, fsync, sync and \
                     wait",
                ));
            }
        };
        if words.len() > used {
            return Err(wrong("there is too much of it"));
        }
        if let Op::Write { at_byte, len_bytes, .. } = &op
            && (*len_bytes == 0 || at_byte.checked_add(*len_bytes).is_none())
        {
            return Err(wrong("nothing is written, or too far"));
        }
        Ok(op)
    }
}

/// Reads operations separated by semicolons: `create a; write a 0 4096; fsync a`.
///
/// # Errors
/// One of them is not understood.
pub fn parse_ops(text: &str) -> Result<Vec<Op>, CrashError> {
    text.split([';', '\n']).filter(|part| !part.trim().is_empty()).map(str::parse).collect()
}

/// The reverse.
pub fn shown_ops(ops: &[Op]) -> String {
    ops.iter().map(Op::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_back() {
        let text = "create a; mkdir d; symlink a%20b d/l; write a 512 3000; truncate a 7; rename a d/b; link d/b c; \
                    unlink c; rmdir d; fsync d/b; sync; wait 31000";
        let ops = parse_ops(text).unwrap();
        assert_eq!(shown_ops(&ops), text);
        assert!(matches!(&ops[2], Op::Symlink { target, .. } if target == "a b"));
        for wrong in
            ["creat a", "create", "write a 1", "write a 0 0", "sync now", "create %4", "write a 18446744073709551615 2"]
        {
            assert!(parse_ops(wrong).is_err(), "{wrong}");
        }
    }
}
