//! What is mounted where, as `/proc/self/mountinfo` tells (proc_pid_mountinfo(5)).

use rustix::fs;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A mount: one line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// Mount id, unique while mounted.
    pub id: u64,
    /// Device number of the file system, `major:minor`.
    pub device_number: String,
    /// Where it is mounted.
    pub point: PathBuf,
    /// Per-mount options.
    pub options: String,
    /// Type (`ext4`).
    pub fs_type: String,
    /// Device or other source.
    pub source: PathBuf,
    /// Options of the file system.
    pub super_options: String,
}

impl MountEntry {
    /// Both kinds of options, each once.
    pub(crate) fn all_options(&self) -> String {
        let mut options: Vec<&str> = self.options.split(',').collect();
        for option in self.super_options.split(',') {
            if !options.contains(&option) {
                options.push(option);
            }
        }
        options.join(",")
    }
}

/// The mount that a path lies in; `None` if the system does not tell.
///
/// # Errors
/// The path cannot be opened.
pub fn mount_of_path(path: &std::path::Path) -> std::io::Result<Option<MountEntry>> {
    let flags = fs::OFlags::PATH | fs::OFlags::CLOEXEC;
    let opened = fs::open(path, flags, fs::Mode::empty())?;
    Ok(mount_of(&opened))
}

/// Where this process sees the file system mounted that a path is on, besides where the path leads.
///
/// # Errors
/// The path cannot be opened.
pub fn other_mounts(path: &std::path::Path) -> std::io::Result<Vec<PathBuf>> {
    let Some(own) = mount_of_path(path)? else { return Ok(Vec::new()) };
    let others = mounts().into_iter().filter(|m| m.device_number == own.device_number && m.id != own.id);
    Ok(others.map(|mount| mount.point).collect())
}

/// All mounts that this process sees, in mounting order.
pub(crate) fn mounts() -> Vec<MountEntry> {
    let text = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    text.split(|&b| b == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|&b| b == b' ');
    let text = |field: &[u8]| String::from_utf8_lossy(&unescape(field)).into_owned();
    let path = |field: &[u8]| PathBuf::from(OsString::from_vec(unescape(field)));
    let id = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let device_number = text(fields.nth(1)?);
    let point = path(fields.nth(1)?);
    let options = text(fields.next()?);
    fields.find(|field| *field == b"-")?;
    let fs_type = text(fields.next()?);
    let source = path(fields.next()?);
    let super_options = fields.next().map(text).unwrap_or_default();
    Some(MountEntry { id, device_number, point, options, fs_type, source, super_options })
}

/// Undoes the octal escapes of mountinfo (`\040` is a space).
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail.get(..3).filter(|d| first == b'\\' && d.iter().all(|b| (b'0'..=b'7').contains(b)));
        if let Some(digits) = octal {
            let value = digits.iter().fold(0u32, |value, d| value * 8 + u32::from(d - b'0'));
            out.push(u8::try_from(value).unwrap_or(b'?'));
            rest = &tail[3..];
        } else {
            out.push(first);
            rest = tail;
        }
    }
    out
}

/// The mount that a directory lies in: by mount id where the kernel tells it, else by device number.
pub(crate) fn mount_of(directory: &OwnedFd) -> Option<MountEntry> {
    let fdinfo = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", std::os::fd::AsRawFd::as_raw_fd(directory)));
    let id =
        fdinfo.ok().and_then(|text| text.lines().find_map(|l| l.strip_prefix("mnt_id:")?.trim().parse::<u64>().ok()));
    let all = mounts();
    if let Some(entry) = all.iter().find(|entry| Some(entry.id) == id) {
        return Some(entry.clone());
    }
    let dev = fs::fstat(directory).ok()?.st_dev;
    let number = format!("{}:{}", fs::major(dev), fs::minor(dev));
    all.into_iter().rev().find(|entry| entry.device_number == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mountinfo_line_is_read() {
        let line = br"36 35 98:0 /mnt1 /mnt\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
        let entry = parse_line(line).unwrap();
        assert_eq!((entry.id, entry.device_number.as_str()), (36, "98:0"));
        assert_eq!(entry.point, PathBuf::from("/mnt 2"));
        assert_eq!((entry.fs_type.as_str(), entry.source), ("ext3", PathBuf::from("/dev/root")));
        let entry = parse_line(line).unwrap();
        assert_eq!(entry.all_options(), "rw,noatime,errors=continue");
    }

    #[test]
    fn a_broken_line_is_no_mount() {
        for line in ["", "x", "36 35 98:0", "36 35 98:0 / / rw shared:1 ext3 /dev/root rw"] {
            assert_eq!(parse_line(line.as_bytes()), None, "{line}");
        }
    }
}
