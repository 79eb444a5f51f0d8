//! What is recorded beside every result: kernel, processor, memory, mount and device.

use super::Shared;
use crate::{Environment, FsType, Kernel};
use rustix::fs;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
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

/// Everything about the handle's surroundings. What cannot be found out is left empty.
pub(super) fn environment(shared: &Shared) -> Environment {
    let uname = rustix::system::uname();
    let mount = mount_of(&shared.root).or_else(|| shared.origin.mount.clone());
    let usage = super::usage(&shared.root).ok();
    let total_bytes = usage.map_or(0, |u| u.total_bytes);
    let used_bytes = usage.map_or(0, |u| u.total_bytes.saturating_sub(u.free_bytes));
    Environment {
        target: shared.origin.target.clone(),
        kernel: Kernel::Host(format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy())),
        cpu: cpu_model(),
        cpus: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        memory_bytes: memory_bytes(),
        fs_type: mount.as_ref().map_or_else(FsType::default, |m| m.fs_type.as_str().into()),
        mount_options: mount.as_ref().map_or_else(String::new, MountEntry::all_options),
        mkfs: shared.origin.mkfs.clone(),
        device: if shared.origin.device.is_empty() {
            mount.as_ref().map_or_else(String::new, |m| m.source.display().to_string())
        } else {
            shared.origin.device.clone()
        },
        total_bytes,
        used_share: if total_bytes == 0 { 0.0 } else { used_bytes as f64 / total_bytes as f64 },
    }
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':')).map(str::trim)
    };
    // x86 says "model name"; ARM boards say "Model" or "Hardware"; RISC-V says "uarch".
    let known = ["model name", "Model", "Hardware", "uarch"].into_iter().find_map(field);
    known.map_or_else(|| std::env::consts::ARCH.to_string(), str::to_string)
}

fn memory_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    meminfo_bytes(&text, "MemTotal:").unwrap_or(0)
}

/// A field of `/proc/meminfo`.
pub(crate) fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let kib = text.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix("kB")?.trim().parse::<u64>();
    kib.ok()?.checked_mul(1024)
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

    #[test]
    fn the_surroundings_of_a_directory_are_found() {
        let mounted = super::super::Mounted::open(std::path::Path::new("/")).unwrap();
        let e = crate::FileSystem::environment(&mounted);
        assert!(
            e.kernel.to_string().starts_with("Linux ") && e.memory_bytes > 1 << 20 && e.cpus > 0 && !e.cpu.is_empty(),
            "{e:?}"
        );
        assert!(!e.fs_type.is_unknown() && e.mount_options.starts_with('r'), "{e:?}");
    }
}
