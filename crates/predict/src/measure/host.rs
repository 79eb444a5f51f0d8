//! What the machine says of itself: memory and the kernel's write-back thresholds.

use std::path::Path;

/// Settings of the machine that a profile's parameters take over, as told (not measured).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Memory that caches can grow into, bytes; 0 if unknown.
    pub memory_available_bytes: u64,
    /// Dirty data at which background write-back starts, bytes.
    pub dirty_background_bytes: u64,
    /// Dirty data at which writers are made to wait, bytes.
    pub dirty_limit_bytes: u64,
    /// Age at which dirty data is written back, nanoseconds.
    pub dirty_expire_ns: u64,
    /// Cost of reading the clock, which `dur_ns` is already free of, nanoseconds.
    pub timer_overhead_ns: f64,
}

impl Host {
    /// The machine this runs on. What cannot be read takes the kernel's defaults (10 %, 20 %, 30 s).
    pub fn of_this_machine(timer_overhead_ns: f64) -> Host {
        let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let vm = |name: &str| {
            let text = std::fs::read_to_string(Path::new("/proc/sys/vm").join(name)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let group_limit = control_group_limit();
        Host::from_texts(&meminfo, &vm, group_limit, timer_overhead_ns)
    }

    /// A machine in virtual time, whose clock costs nothing to read.
    pub fn of_limits(limits: &posix::MemoryLimits) -> Host {
        Host {
            memory_available_bytes: limits.available_bytes,
            dirty_background_bytes: limits.dirty_background_bytes,
            dirty_limit_bytes: limits.dirty_limit_bytes,
            dirty_expire_ns: limits.dirty_expire_ns,
            timer_overhead_ns: 0.0,
        }
    }

    fn from_texts(
        meminfo: &str,
        vm: &dyn Fn(&str) -> Option<u64>,
        group_limit_bytes: Option<u64>,
        timer_overhead_ns: f64,
    ) -> Host {
        let field = |name| meminfo_bytes(meminfo, name).unwrap_or(0);
        let within = |bytes: u64| group_limit_bytes.map_or(bytes, |limit| bytes.min(limit));
        // mm/page-writeback.c, global_dirtyable_memory(): free pages and the page cache. Its reserve is left out: well
        // under one percent of the memory.
        let dirtyable = field("MemFree") + field("Active(file)") + field("Inactive(file)");
        let threshold = |bytes: &str, ratio: &str, default_percent: u64| match vm(bytes) {
            Some(set) if set > 0 => set,
            _ => dirtyable / 100 * vm(ratio).unwrap_or(default_percent),
        };
        let limit = threshold("dirty_bytes", "dirty_ratio", 20);
        let background = threshold("dirty_background_bytes", "dirty_background_ratio", 10);
        Host {
            memory_available_bytes: within(field("MemAvailable")),
            // domain_dirty_limits(): the background threshold stays below the limit.
            dirty_background_bytes: if background >= limit { limit / 2 } else { background },
            dirty_limit_bytes: limit,
            dirty_expire_ns: vm("dirty_expire_centisecs").unwrap_or(3000).saturating_mul(10_000_000),
            timer_overhead_ns,
        }
    }
}

fn meminfo_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The memory limit of the control group (version 2) this process is in, or of a group above it.
fn control_group_limit() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mut dir = Path::new("/sys/fs/cgroup").join(path);
    let mut least: Option<u64> = None;
    while dir.starts_with("/sys/fs/cgroup") {
        let limit = std::fs::read_to_string(dir.join("memory.max")).ok().and_then(|text| text.trim().parse().ok());
        least = match (least, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if !dir.pop() {
            break;
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMINFO: &str = "MemTotal:       24000000 kB\nMemFree:        20000000 kB\nMemAvailable:   22000000 kB\n\
                           Active(anon):     100000 kB\nActive(file):    1000000 kB\nInactive(file):  1000000 kB\n";

    #[test]
    fn ratios_are_of_dirtyable_memory() {
        let host = Host::from_texts(MEMINFO, &|_| None, None, 20.0);
        assert_eq!(host.dirty_limit_bytes, 22_000_000 * 1024 / 100 * 20);
        assert_eq!(host.dirty_background_bytes, 22_000_000 * 1024 / 100 * 10);
        assert_eq!(host.dirty_expire_ns, 30_000_000_000);
        assert_eq!(host.memory_available_bytes, 22_000_000 * 1024);
    }

    #[test]
    fn bytes_take_precedence_and_groups_limit() {
        let vm = |name: &str| match name {
            "dirty_bytes" => Some(1000),
            "dirty_background_bytes" => Some(5000),
            _ => None,
        };
        let host = Host::from_texts(MEMINFO, &vm, Some(1 << 30), 0.0);
        assert_eq!((host.dirty_limit_bytes, host.dirty_background_bytes), (1000, 500));
        assert_eq!(host.memory_available_bytes, 1 << 30);
    }

    #[test]
    fn an_unreadable_machine_is_no_failure() {
        assert_eq!(Host::from_texts("", &|_| None, None, 0.0).memory_available_bytes, 0);
        assert_eq!(meminfo_bytes("MemFree: lots", "MemFree"), None);
    }
}
