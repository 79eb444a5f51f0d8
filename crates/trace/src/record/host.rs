//! The machine and the file systems of a recording.

use crate::Snapshot;
use crate::profile::{Host, TracedFileSystem, escape};
use crate::snapshot::View;
use crate::track::{is_foreign, unescape_into};
use std::collections::BTreeMap;
use std::fs::read_to_string;

/// This machine.
pub(super) fn host() -> Host {
    let name = rustix::system::uname();
    let text = |s: &std::ffi::CStr| s.to_string_lossy().into_owned();
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = field(&read_to_string("/proc/meminfo").unwrap_or_default(), "MemTotal");
    let memory_kib = memory.and_then(|m| m.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0);
    Host {
        name: text(name.nodename()),
        kernel: format!("{} {}", text(name.sysname()), text(name.release())),
        cpu: field(&cpuinfo, "model name").unwrap_or_default(),
        cpus: std::thread::available_parallelism().map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        memory_bytes: memory_kib * 1024,
    }
}

/// Which time this machine is up; empty where it does not say.
pub(super) fn boot_id() -> String {
    read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The file systems that the names of a snapshot are on, in the order of their devices.
pub(super) fn file_systems(view: &View, snapshot: &Snapshot) -> Vec<TracedFileSystem> {
    let mounts = mounts(&view.mounts());
    let mut by_device: BTreeMap<u64, &[u8]> = BTreeMap::new();
    for entry in &snapshot.entries {
        if entry.dev != 0 && !is_foreign(&entry.path) {
            by_device.entry(entry.dev).or_insert(&entry.path);
        }
    }
    let mut found = Vec::new();
    for (dev, path) in by_device {
        // The deepest mount above the name; of several on one point, the last is on top.
        let above = mounts.iter().filter(|m| is_at_or_below(path, &m.point)).max_by_key(|m| m.point.len());
        if let Some(mount) = above {
            found.push(TracedFileSystem {
                fs_type: mount.fs_type.clone(),
                mount_point: escape(&mount.point).into_owned(),
                device: mount.source.clone(),
                options: mount.options.clone(),
                dev,
            });
        }
    }
    found
}

struct Mount {
    point: Vec<u8>,
    fs_type: String,
    source: String,
    options: String,
}

/// Reads `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
fn mounts(text: &str) -> Vec<Mount> {
    let mut mounts = Vec::new();
    for line in text.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let mut left = left.split(' ').skip(4);
        let (Some(point), Some(own)) = (left.next(), left.next()) else { continue };
        let mut right = right.split(' ');
        let (Some(fs_type), Some(source)) = (right.next(), right.next()) else { continue };
        let mut path = Vec::new();
        unescape_into(point.as_bytes(), &mut path);
        let mut options = own.to_owned();
        for option in right.next().unwrap_or_default().split(',') {
            if !option.is_empty() && !options.split(',').any(|o| o == option) {
                options.push(',');
                options.push_str(option);
            }
        }
        mounts.push(Mount { point: path, fs_type: fs_type.into(), source: source.into(), options });
    }
    mounts
}

fn is_at_or_below(path: &[u8], directory: &[u8]) -> bool {
    match path.strip_prefix(directory) {
        Some(rest) => rest.is_empty() || rest[0] == b'/' || directory == b"/",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo() {
        let text = "36 35 98:0 / /mnt\\040a rw,noatime master:1 - ext4 /dev/sda1 rw,errors=continue\nbad line\n";
        let mounts = mounts(text);
        assert_eq!(mounts.len(), 1);
        assert_eq!(mounts[0].point, b"/mnt a");
        assert_eq!((&mounts[0].fs_type[..], &mounts[0].source[..]), ("ext4", "/dev/sda1"));
        assert_eq!(mounts[0].options, "rw,noatime,errors=continue");
    }

    #[test]
    fn below() {
        assert!(is_at_or_below(b"/a/b", b"/a"));
        assert!(is_at_or_below(b"/a", b"/a"));
        assert!(is_at_or_below(b"/a", b"/"));
        assert!(!is_at_or_below(b"/ab", b"/a"));
    }
}
