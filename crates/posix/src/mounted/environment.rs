//! What is recorded beside every result: kernel, processor, memory, mount and device.

use super::Shared;
use crate::mounts::{MountEntry, mount_of};
use crate::{Environment, FsType, Kernel};

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

/// This machine in a line: its kernel, its processors and its memory.
pub fn machine() -> String {
    let uname = rustix::system::uname();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!(
        "{} {}, {cpus} x {}, {:.1} GiB",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy(),
        cpu_model(),
        memory_bytes() as f64 / (1u64 << 30) as f64
    )
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
