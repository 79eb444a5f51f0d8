//! What the benchmark programs share. They print ratios measured in one run; no test depends on them.

pub mod ageing;
pub mod synthetic;

use anyhow::Context as _;
use std::str::FromStr;

/// The arguments of the program, one after the other.
pub struct CommandLine {
    rest: std::iter::Skip<std::env::Args>,
    last: String,
}

impl CommandLine {
    /// All behind its name.
    pub fn of_program() -> CommandLine {
        CommandLine { rest: std::env::args().skip(1), last: String::new() }
    }

    /// What stands behind the last option.
    pub fn value(&mut self) -> anyhow::Result<String> {
        self.rest.next().with_context(|| format!("{} needs a value", self.last))
    }

    /// The same, read as a number.
    pub fn number<N: FromStr<Err: std::error::Error + Send + Sync + 'static>>(&mut self) -> anyhow::Result<N> {
        self.value()?.parse().with_context(|| self.last.clone())
    }
}

impl Iterator for CommandLine {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        self.last = self.rest.next()?;
        Some(self.last.clone())
    }
}

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

/// Time this thread has been on a processor, seconds: what a speed on one core is measured in where other programs run
/// beside. 0 where the system does not tell.
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
