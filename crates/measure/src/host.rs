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

/// The memory limit of the control group this process is in, or of a group above it.
fn control_group_limit() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_of_groups(&own, Path::new("/sys/fs/cgroup"))
}

/// The limit of the groups in a text of `/proc/PID/cgroup`: of version 2 the least `memory.max` from there up; of
/// version 1 what the memory controller says of all above together.
fn limit_of_groups(own: &str, root: &Path) -> Option<u64> {
    let mut limits = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|name| name == "memory") {
            let stat = std::fs::read_to_string(root.join("memory").join(path).join("memory.stat")).unwrap_or_default();
            let limit =
                stat.lines().find_map(|line| line.strip_prefix("hierarchical_memory_limit ")?.parse::<u64>().ok());
            limits.extend(limit);
        }
        if controllers.is_empty() {
            let mut dir = root.join(path);
            while dir.starts_with(root) {
                let max = std::fs::read_to_string(dir.join("memory.max")).ok();
                limits.extend(max.and_then(|text| text.trim().parse::<u64>().ok()));
                if !dir.pop() {
                    break;
                }
            }
        }
    }
    limits.into_iter().min()
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

    /// Groups of version 1 were not asked: their limit, on the machines that have them, was taken for none.
    #[test]
    fn groups_of_both_versions_limit() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let of = |own: &str| limit_of_groups(own, root.path());
        put("a/memory.max", "300\n");
        put("a/b/memory.max", "max\n");
        put("memory/c/memory.stat", "cache 0\nhierarchical_memory_limit 200\nhierarchical_memsw_limit 100\n");
        assert_eq!(of("0::/a/b\n"), Some(300));
        assert_eq!(of("5:cpu,memory:/c\n1:name=systemd:/c\n0::/a/b\n"), Some(200));
        assert_eq!((of("4:cpu:/c\n0::/\n"), of("")), (None, None));
    }

    #[test]
    fn an_unreadable_machine_is_no_failure() {
        assert_eq!(Host::from_texts("", &|_| None, None, 0.0).memory_available_bytes, 0);
        assert_eq!(meminfo_bytes("MemFree: lots", "MemFree"), None);
    }
}
