//! What the benchmark programs share. They print ratios measured in one run; no test depends on them.

pub mod ageing;
pub mod synthetic;

/// The largest resident set of this process so far, bytes (`VmHWM`); 0 where the system does not tell.
pub fn peak_resident_bytes() -> u64 {
    status_bytes("VmHWM:")
}

/// The resident set of this process now, bytes (`VmRSS`).
pub fn resident_bytes() -> u64 {
    status_bytes("VmRSS:")
}

fn status_bytes(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix(field));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// Time this thread has been on a processor, seconds: what a speed on one core is measured in where other programs run beside.
/// 0 where the system does not tell.
pub fn on_cpu_s() -> f64 {
    let status = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = status.split(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    ns as f64 / 1e9
}

/// The same of all threads of this process, those that have ended included.
pub fn all_on_cpu_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
