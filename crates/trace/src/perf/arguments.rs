//! perf's arguments (`dfd: CWD, flags: RDONLY|CLOEXEC`) in strace's notation (`AT_FDCWD, O_RDONLY|O_CLOEXEC`).
//!
//! perf prints the kernel's names of arguments, and leaves out those that are zero; so each call's arguments stand here
//! in the kernel's order (`/sys/kernel/tracing/events/syscalls/sys_enter_*/format`, which a test compares).

use std::io::Write as _;

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A descriptor.
    Fd,
    /// The directory that the path behind it starts in.
    Dir,
    Path,
    Number,
    /// Names without their common prefix.
    Flags(&'static str),
    /// `IRUGO|IWUSR`
    Mode,
    /// `RW`
    Access,
    /// An address of something that perf does not show and we do not need.
    Address,
    /// The address of an offset.
    Offset,
    /// `clone`'s flags, which strace labels.
    CloneFlags,
    /// `openat2`'s structure.
    How,
}

use Kind::{Access, Address, CloneFlags, Dir, Fd, Flags, How, Mode, Number, Offset, Path};

type Arguments = &'static [(&'static str, Kind)];

const OPEN: Kind = Flags("O_");
const AT: Kind = Flags("AT_");
const VECTOR: Arguments = &[("fd", Fd), ("vec", Address), ("vlen", Number)];
const VECTOR_AT: Arguments = &[("fd", Fd), ("vec", Address), ("vlen", Number), ("pos_l", Number)];
const VECTOR_AT_FLAGS: Arguments =
    &[("fd", Fd), ("vec", Address), ("vlen", Number), ("pos_l", Number), ("flags", Flags("RWF_"))];
const BUFFER: Arguments = &[("fd", Fd), ("buf", Address), ("count", Number)];
const BUFFER_AT: Arguments = &[("fd", Fd), ("buf", Address), ("count", Number), ("pos", Number)];
const FD: Arguments = &[("fd", Fd)];
const FILE: Arguments = &[("filename", Path)];
const NAME: Arguments = &[("pathname", Path)];
const TWO_NAMES: Arguments = &[("oldname", Path), ("newname", Path)];
const TWO_AT: Arguments = &[("olddfd", Dir), ("oldname", Path), ("newdfd", Dir), ("newname", Path)];

/// Arguments by system call, as far as strace's decoder asks for them.
#[rustfmt::skip]
pub(super) const CALLS: &[(&str, Arguments)] = &[
    ("open", &[("filename", Path), ("flags", OPEN), ("mode", Mode)]),
    ("openat", &[("dfd", Dir), ("filename", Path), ("flags", OPEN), ("mode", Mode)]),
    ("openat2", &[("dfd", Dir), ("filename", Path), ("how", How)]),
    ("creat", &[("pathname", Path), ("mode", Mode)]),
    ("close", FD),
    ("close_range", &[("fd", Fd), ("max_fd", Number), ("flags", Flags("CLOSE_RANGE_"))]),
    ("read", BUFFER), ("write", BUFFER), ("pread64", BUFFER_AT), ("pwrite64", BUFFER_AT),
    ("readv", VECTOR), ("writev", VECTOR), ("preadv", VECTOR_AT), ("pwritev", VECTOR_AT),
    ("preadv2", VECTOR_AT_FLAGS), ("pwritev2", VECTOR_AT_FLAGS),
    ("lseek", &[("fd", Fd), ("offset", Number), ("whence", Flags("SEEK_"))]),
    ("fsync", FD), ("fdatasync", FD), ("syncfs", FD), ("sync", &[]),
    ("sync_file_range", &[("fd", Fd), ("offset", Number), ("nbytes", Number), ("flags", Flags("SYNC_FILE_RANGE_"))]),
    ("msync", &[("start", Address), ("len", Number)]),
    ("truncate", &[("path", Path), ("length", Number)]),
    ("ftruncate", &[("fd", Fd), ("length", Number)]),
    ("fallocate", &[("fd", Fd), ("mode", Flags("FALLOC_FL_")), ("offset", Number), ("len", Number)]),
    ("copy_file_range", &[("fd_in", Fd), ("off_in", Offset), ("fd_out", Fd), ("off_out", Offset), ("len", Number)]),
    ("splice", &[("fd_in", Fd), ("off_in", Offset), ("fd_out", Fd), ("off_out", Offset), ("len", Number)]),
    ("sendfile", &[("out_fd", Fd), ("in_fd", Fd), ("offset", Offset), ("count", Number)]),
    ("sendfile64", &[("out_fd", Fd), ("in_fd", Fd), ("offset", Offset), ("count", Number)]),
    ("fadvise64", &[("fd", Fd), ("offset", Number), ("len", Number), ("advice", Flags("POSIX_FADV_"))]),
    ("readahead", &[("fd", Fd), ("offset", Number), ("count", Number)]),
    ("stat", FILE), ("lstat", FILE), ("fstat", FD),
    ("newfstatat", &[("dfd", Dir), ("filename", Path), ("statbuf", Address), ("flag", AT)]),
    ("statx", &[("dfd", Dir), ("filename", Path), ("flags", AT)]),
    ("statfs", NAME), ("fstatfs", FD),
    ("access", &[("filename", Path), ("mode", Access)]),
    ("faccessat", &[("dfd", Dir), ("filename", Path), ("mode", Access)]),
    ("faccessat2", &[("dfd", Dir), ("filename", Path), ("mode", Access), ("flags", AT)]),
    ("readlink", &[("path", Path), ("buf", Address), ("bufsiz", Number)]),
    ("readlinkat", &[("dfd", Dir), ("pathname", Path), ("buf", Address), ("bufsiz", Number)]),
    ("getdents", &[("fd", Fd), ("dirent", Address), ("count", Number)]),
    ("getdents64", &[("fd", Fd), ("dirent", Address), ("count", Number)]),
    ("mkdir", &[("pathname", Path), ("mode", Mode)]),
    ("mkdirat", &[("dfd", Dir), ("pathname", Path), ("mode", Mode)]),
    ("rmdir", NAME), ("unlink", NAME),
    ("unlinkat", &[("dfd", Dir), ("pathname", Path), ("flag", AT)]),
    ("rename", TWO_NAMES), ("renameat", TWO_AT),
    ("renameat2", &[("olddfd", Dir), ("oldname", Path), ("newdfd", Dir), ("newname", Path),
        ("flags", Flags("RENAME_"))]),
    ("link", TWO_NAMES),
    ("linkat", &[("olddfd", Dir), ("oldname", Path), ("newdfd", Dir), ("newname", Path), ("flags", AT)]),
    ("symlink", TWO_NAMES),
    ("symlinkat", &[("oldname", Path), ("newdfd", Dir), ("newname", Path)]),
    ("mknod", &[("filename", Path), ("mode", Mode)]),
    ("mknodat", &[("dfd", Dir), ("filename", Path), ("mode", Mode)]),
    ("chmod", &[("filename", Path), ("mode", Mode)]),
    ("fchmodat", &[("dfd", Dir), ("filename", Path), ("mode", Mode)]),
    ("fchmodat2", &[("dfd", Dir), ("filename", Path), ("mode", Mode), ("flags", AT)]),
    ("fchmod", &[("fd", Fd), ("mode", Mode)]),
    ("chown", FILE), ("lchown", FILE), ("fchown", FD),
    ("fchownat", &[("dfd", Dir), ("filename", Path), ("user", Number), ("group", Number), ("flag", AT)]),
    ("utime", FILE), ("utimes", FILE),
    ("utimensat", &[("dfd", Dir), ("filename", Path), ("utimes", Address), ("flags", AT)]),
    ("futimesat", &[("dfd", Dir), ("filename", Path)]),
    ("setxattr", NAME), ("lsetxattr", NAME), ("fsetxattr", FD), ("getxattr", NAME), ("lgetxattr", NAME),
    ("fgetxattr", FD), ("listxattr", NAME), ("llistxattr", NAME), ("flistxattr", FD), ("removexattr", NAME),
    ("lremovexattr", NAME), ("fremovexattr", FD),
    ("mmap", &[("addr", Address), ("len", Number), ("prot", Flags("PROT_")), ("flags", Flags("MAP_")), ("fd", Fd),
        ("off", Number)]),
    ("dup", &[("fildes", Fd)]),
    ("dup2", &[("oldfd", Fd), ("newfd", Fd)]),
    ("dup3", &[("oldfd", Fd), ("newfd", Fd), ("flags", OPEN)]),
    ("fcntl", &[("fd", Fd), ("cmd", Flags("F_")), ("arg", OPEN)]),
    ("flock", FD),
    ("ioctl", &[("fd", Fd), ("cmd", Flags("")), ("arg", Number)]),
    ("chdir", FILE), ("fchdir", FD),
    ("execve", FILE),
    ("execveat", &[("fd", Dir), ("filename", Path)]),
    ("clone", &[("clone_flags", CloneFlags)]),
    ("unshare", &[("unshare_flags", Flags("CLONE_"))]),
];

/// What could not be said of a call's arguments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unread {
    /// Paths given as addresses.
    pub names: u64,
    /// Offsets given as addresses.
    pub offset: bool,
}

/// Writes the arguments of a call as strace would, up to the bracket, into `out`. `shows(fd)`: whether perf's word for
/// what is behind that descriptor is wanted.
pub(super) fn translate(name: &[u8], args: &[u8], shows: &dyn Fn(i32) -> bool, out: &mut Vec<u8>) -> Unread {
    out.clear();
    let mut unread = Unread::default();
    let given = split(args);
    let Some((_, wanted)) = CALLS.iter().find(|(call, _)| call.as_bytes() == name) else {
        // A call that is not modelled counts if its first argument is a file.
        if let Some((key, value)) = given.first()
            && (*key == b"fd" || *key == b"dfd")
        {
            descriptor(value, shows, out);
        }
        out.push(b')');
        return unread;
    };
    let value = |key: &str| given.iter().find(|(name, _)| *name == key.as_bytes()).map(|(_, value)| *value);
    let is_empty_path = wanted.iter().any(|&(key, kind)| kind == AT && value(key).is_some_and(has_empty_path));
    let mut on_fd = false;
    for (i, &(key, kind)) in wanted.iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        match (kind, value(key)) {
            (Kind::Dir, Some(b"CWD")) => out.extend_from_slice(b"AT_FDCWD"),
            (Kind::Fd | Kind::Dir, Some(value)) => descriptor(value, shows, out),
            (Kind::Path, None) => out.extend_from_slice(b"NULL"),
            // With AT_EMPTY_PATH the call is about the descriptor; nobody gives a path besides.
            (Kind::Path, Some(_)) if is_empty_path && on_fd => out.extend_from_slice(b"\"\""),
            (Kind::Path, Some(value)) => unread.names += u64::from(!path(value, out)),
            (Kind::Flags(_), Some(b"CLOEXEC")) if name == b"fcntl" => out.extend_from_slice(b"FD_CLOEXEC"),
            (Kind::Flags(_), Some(value)) if name == b"ioctl" && request(value).is_some() => {
                drop(write!(out, "{:#x}", request(value).unwrap_or_default()));
            }
            (Kind::Flags(prefix), Some(value)) => flags(value, prefix, out),
            (Kind::Mode, Some(value)) => drop(write!(out, "0{:o}", mode(value))),
            (Kind::Access, Some(value)) => access(value, out),
            (Kind::CloneFlags, value) => {
                out.extend_from_slice(b"flags=");
                flags(value.unwrap_or(b"0"), "CLONE_", out);
            }
            // An access mode that does not exist: neither reading nor writing is known.
            (Kind::How, _) => out.extend_from_slice(b"{flags=3}"),
            (Kind::Offset, Some(_)) => {
                unread.offset = true;
                out.extend_from_slice(b"NULL");
            }
            (Kind::Offset, None) => out.extend_from_slice(b"NULL"),
            (Kind::Address, _) => out.extend_from_slice(b"0x0"),
            (Kind::Number, Some(value)) => number(value, out),
            (_, None) => out.push(b'0'),
        }
        on_fd = kind == Kind::Dir && value(key) != Some(b"CWD");
    }
    out.push(b')');
    unread
}

/// The value of one argument.
pub(super) fn argument<'a>(args: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    split(args).into_iter().find(|(name, _)| *name == key).map(|(_, value)| value)
}

/// `key: value` pairs. A value ends where a comma, a blank and another key follow; a quoted one, a structure and one
/// with a path in angle brackets only behind their ends.
fn split(args: &[u8]) -> Vec<(&[u8], &[u8])> {
    let mut pairs = Vec::new();
    let mut rest = args;
    while let Some(key) = key_bytes(rest) {
        let (name, value) = (rest.get(..key).unwrap_or_default(), rest.get(key + 2..).unwrap_or_default());
        let mut end = value.len();
        let mut from = 0;
        while let Some(comma) = value.get(from..).and_then(|text| memchr::memmem::find(text, b", ")) {
            let comma = from + comma;
            if key_bytes(value.get(comma + 2..).unwrap_or_default()).is_some()
                && is_closed(value.get(..comma).unwrap_or_default())
            {
                end = comma;
                break;
            }
            from = comma + 2;
        }
        pairs.push((name, value.get(..end).unwrap_or_default()));
        rest = value.get(end + 2..).unwrap_or_default();
    }
    pairs
}

/// The length of the key that a text begins with: a name, a colon and a blank behind it.
fn key_bytes(text: &[u8]) -> Option<usize> {
    let name = text.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    (name > 0 && text.get(name..)?.starts_with(b": ")).then_some(name)
}

fn is_closed(value: &[u8]) -> bool {
    match value.first() {
        Some(b'"') => value.len() > 1 && value.last() == Some(&b'"'),
        Some(b'{') => value.last() == Some(&b'}'),
        Some(b'0'..=b'9') if value.contains(&b'<') => value.last() == Some(&b'>'),
        _ => true,
    }
}

/// `4`, `4</tmp/x>`, `-1`.
fn descriptor(value: &[u8], shows: &dyn Fn(i32) -> bool, out: &mut Vec<u8>) {
    let end = value.iter().position(|&b| b == b'<').unwrap_or(value.len());
    let (plain, behind) = value.split_at(end);
    number(plain, out);
    let fd = std::str::from_utf8(plain).ok().and_then(|text| text.trim().parse().ok());
    if let Some(inner) = behind.strip_prefix(b"<").and_then(|text| text.strip_suffix(b">"))
        && fd.is_some_and(shows)
    {
        out.push(b'<');
        escaped(inner, out);
        out.push(b'>');
    }
}

/// A path in quotes, or bare where perf had it from its `vfs_getname` probe. `false`: an address.
fn path(value: &[u8], out: &mut Vec<u8>) -> bool {
    let is_number = value.strip_prefix(b"-").unwrap_or(value).iter().all(u8::is_ascii_digit);
    let (text, known) = match value.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")) {
        Some(text) => (text, true),
        None => (value, !value.starts_with(b"0x") && !is_number && !value.starts_with(b"\"")),
    };
    if known {
        out.push(b'"');
        escaped(text, out);
        out.push(b'"');
    } else {
        out.extend_from_slice(b"0x1");
    }
    known
}

/// As strace escapes: what could end a string or a decoration, and what does not print.
fn escaped(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        if byte.is_ascii_graphic() && !b"\"\\<>".contains(&byte) || byte == b' ' {
            out.push(byte);
        } else {
            drop(write!(out, "\\{byte:03o}"));
        }
    }
}

/// A number as it stands; anything else as 0.
fn number(value: &[u8], out: &mut Vec<u8>) {
    let text = value.strip_prefix(b"-").unwrap_or(value);
    let hex = text.strip_prefix(b"0x").unwrap_or_default();
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit)
        || !hex.is_empty() && hex.iter().all(u8::is_ascii_hexdigit);
    out.extend_from_slice(if is_number { value } else { b"0" });
}

/// `RDONLY|CLOEXEC|0x8000` with the prefix that perf leaves out.
fn flags(value: &[u8], prefix: &str, out: &mut Vec<u8>) {
    for (i, word) in value.split(|&b| b == b'|').enumerate() {
        if i > 0 {
            out.push(b'|');
        }
        let name = word.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
        if !name || word.is_empty() || word.first().is_some_and(u8::is_ascii_digit) {
            number(word, out);
            continue;
        }
        if !word.starts_with(prefix.as_bytes()) {
            out.extend_from_slice(prefix.as_bytes());
        }
        out.extend_from_slice(word);
    }
}

/// A request of ioctl as perf takes it apart, `(WRITE, 0x94, 0x9, 0x4)`: direction, type, number and size, put together
/// as `_IOC` of `<asm-generic/ioctl.h>` does.
fn request(value: &[u8]) -> Option<u32> {
    let inner = std::str::from_utf8(value).ok()?.strip_prefix('(')?.strip_suffix(')')?;
    let (direction, rest) = inner.split_once(", ")?;
    let direction = direction.split('|').try_fold(0u32, |bits, word| match word {
        "NONE" | "0" => Some(bits),
        "WRITE" => Some(bits | 1),
        "READ" => Some(bits | 2),
        _ => None,
    })?;
    let mut parts = rest.split(", ").map(|part| u32::from_str_radix(part.strip_prefix("0x").unwrap_or(part), 16).ok());
    let (kind, number, size) = (parts.next()??, parts.next()??, parts.next()??);
    let fits = kind < 1 << 8 && number < 1 << 8 && size < 1 << 14 && parts.next().is_none();
    fits.then_some(direction << 30 | size << 16 | kind << 8 | number)
}

fn has_empty_path(value: &[u8]) -> bool {
    value.split(|&b| b == b'|').any(|word| {
        let number = std::str::from_utf8(word).ok().and_then(|text| match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        });
        word.ends_with(b"EMPTY_PATH") || number.is_some_and(|bits| bits & 0x1000 != 0)
    })
}

/// `RW` to `R_OK|W_OK`.
fn access(value: &[u8], out: &mut Vec<u8>) {
    let mut bits = 0;
    for byte in value {
        bits |= match byte {
            b'R' => 4,
            b'W' => 2,
            b'X' => 1,
            _ => 0,
        };
    }
    drop(write!(out, "{bits}"));
}

/// `IRUGO|IWUSR` as permission bits and type.
fn mode(value: &[u8]) -> u32 {
    let word = |word: &[u8]| match word.strip_prefix(b"S_").unwrap_or(word) {
        b"IALLUGO" => 0o7777,
        b"IRWXUGO" => 0o777,
        b"IRUGO" => 0o444,
        b"IWUGO" => 0o222,
        b"IXUGO" => 0o111,
        b"IRWXU" => 0o700,
        b"IRUSR" => 0o400,
        b"IWUSR" => 0o200,
        b"IXUSR" => 0o100,
        b"IRWXG" => 0o70,
        b"IRGRP" => 0o40,
        b"IWGRP" => 0o20,
        b"IXGRP" => 0o10,
        b"IRWXO" => 0o7,
        b"IROTH" => 0o4,
        b"IWOTH" => 0o2,
        b"IXOTH" => 0o1,
        b"ISUID" => 0o4000,
        b"ISGID" => 0o2000,
        b"ISVTX" => 0o1000,
        b"IFSOCK" => 0o140_000,
        b"IFLNK" => 0o120_000,
        b"IFREG" => 0o100_000,
        b"IFBLK" => 0o060_000,
        b"IFDIR" => 0o040_000,
        b"IFCHR" => 0o020_000,
        b"IFIFO" => 0o010_000,
        other => std::str::from_utf8(other).ok().map_or(0, |text| match text.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).unwrap_or(0),
            None => text.parse().unwrap_or(0),
        }),
    };
    value.split(|&b| b == b'|').map(word).fold(0, |all, bits| all | bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strace(name: &str, args: &str) -> (String, Unread) {
        let mut out = Vec::new();
        let unread = translate(name.as_bytes(), args.as_bytes(), &|fd| fd == 4, &mut out);
        (String::from_utf8(out).unwrap(), unread)
    }

    #[test]
    fn in_straces_notation() {
        for (name, args, want, names) in [
            (
                "openat",
                "dfd: CWD, filename: \"/tmp/a, b: c\", flags: CREAT|TRUNC|WRONLY, mode: IRUGO|IWUGO",
                "AT_FDCWD, \"/tmp/a, b: c\", O_CREAT|O_TRUNC|O_WRONLY, 0666)",
                0,
            ),
            ("openat", "dfd: CWD, filename: 0x46b1fed0, flags: O_RDONLY", "AT_FDCWD, 0x1, O_RDONLY, 0)", 1),
            ("open", "filename: /etc/passwd, flags: CLOEXEC", "\"/etc/passwd\", O_CLOEXEC, 0)", 0),
            ("newfstatat", "dfd: 4</x>, filename: 0x2b80c99, statbuf: 0x7f, flag: 4096", "4</x>, \"\", 0x0, 4096)", 0),
            ("newfstatat", "dfd: CWD, filename: \"\", statbuf: 0x7f, flag: 4096", "AT_FDCWD, \"\", 0x0, 4096)", 0),
            ("unlinkat", "dfd: 3</x>, pathname: 0xee, flag: 512", "3, 0x1, 512)", 1),
            ("lseek", "whence: CUR", "0, 0, SEEK_CUR)", 0),
            ("read", "fd: 4</a b<>, buf: 0x1, count: 832", "4</a b\\074>, 0x0, 832)", 0),
            ("fcntl", "fd: 1</x>, cmd: DUPFD, arg: 10</dev/null>", "1, F_DUPFD, 0)", 0),
            ("ioctl", "fd: 4</x>, cmd: (WRITE, 0x94, 0x9, 0x4), arg: 0x3", "4</x>, 0x40049409, 0x3)", 0),
            ("access", "filename: \"a\"\", mode: RW", "\"a\\042\", 6)", 0),
            ("clone", "clone_flags: VM|FILES|0x11", "flags=CLONE_VM|CLONE_FILES|0x11)", 0),
            ("utimensat", "dfd: 5", "5, NULL, 0x0, 0)", 0),
            ("mmap", "len: 258, prot: READ, flags: PRIVATE, fd: 4", "0x0, 258, PROT_READ, MAP_PRIVATE, 4, 0)", 0),
            (
                "renameat2",
                "olddfd: CWD, oldname: \"a\", newdfd: CWD, newname: \"b\", flags: NOREPLACE",
                "AT_FDCWD, \"a\", AT_FDCWD, \"b\", RENAME_NOREPLACE)",
                0,
            ),
            ("symlinkat", "oldname: -294017968, newdfd: 3, newname: 0xee", "0x1, 3, 0x1)", 2),
        ] {
            let (text, unread) = strace(name, args);
            assert_eq!((text.as_str(), unread.names), (want, names), "{name}({args})");
        }
        assert!(strace("copy_file_range", "fd_in: 3, off_in: 0x7f, fd_out: 4, len: 5").1.offset);
    }

    /// The kernel's own names and order of arguments judge the table.
    #[test]
    fn the_kernel_names_arguments_so() {
        if !testkit::needs(&[testkit::Need::Root, testkit::Need::Mount]) {
            return;
        }
        // Of a tracefs that is mounted for this alone: whether another is, depends on what ran before.
        let dir = tempfile::tempdir().unwrap();
        let listed = std::process::Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c"])
            .arg("mount -t tracefs none \"$1\" && cd \"$1/events/syscalls\" && grep -H field: sys_enter_*/format")
            .args(["sh".as_ref(), dir.path()])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&listed.stderr);
        assert!(listed.status.success(), "what the kernel calls arguments cannot be read: {said}");
        let mut events = std::collections::HashMap::<&str, Vec<&str>>::new();
        let lines = std::str::from_utf8(&listed.stdout).unwrap();
        for (event, line) in lines.lines().map(|line| line.split_once("/format:").unwrap()) {
            let field = line.trim().strip_prefix("field:").and_then(|field| field.split(';').next()).unwrap();
            let name = field.rsplit([' ', '*']).next().unwrap();
            if !name.starts_with("common_") && !name.starts_with("__syscall") {
                events.entry(event).or_default().push(name);
            }
        }
        let mut compared = 0;
        for &(name, arguments) in CALLS {
            let event = match name {
                "stat" | "lstat" | "fstat" => format!("sys_enter_new{name}"),
                _ => format!("sys_enter_{name}"),
            };
            // What this kernel lacks (sendfile by its other name) has no say.
            let Some(kernel) = events.get(event.as_str()) else { continue };
            let mut from = 0;
            for (key, _) in arguments {
                let at = kernel.iter().skip(from).position(|name| name == key);
                from += 1 + at.unwrap_or_else(|| panic!("{name}: no {key} behind {from} of {kernel:?}"));
            }
            compared += 1;
        }
        assert!(compared > 80, "only {compared} calls compared");
    }
}
