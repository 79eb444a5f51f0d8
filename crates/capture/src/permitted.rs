//! Whether recording in the kernel is possible and permitted here, and what is missing if not.

use std::fmt;
use std::path::Path;

/// `CAP_SYS_PTRACE` of `<linux/capability.h>`
const CAP_SYS_PTRACE: u32 = 19;
/// `CAP_SYS_ADMIN`
const CAP_SYS_ADMIN: u32 = 21;
/// `CAP_PERFMON`
const CAP_PERFMON: u32 = 38;
/// `CAP_BPF`
const CAP_BPF: u32 = 39;
/// The first kernel that has all we use: `bpf_loop` came with 5.17.
const OLDEST: (u32, u32) = (5, 17);

/// The namespace in which all processes have the numbers that the kernel tells (`PROC_PID_INIT_INO` of
/// `<linux/proc_ns.h>`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// What recording in the kernel lacks here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Each thing that is missing, as a sentence with what to do.
    pub reasons: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reasons.join("; "))
    }
}

impl std::error::Error for Missing {}

/// Whether recording in the kernel can be tried here.
///
/// # Errors
/// Something is missing: all of it is listed. The kernel may still refuse for a reason of its own; loading then says
/// which.
pub fn permitted() -> Result<(), Missing> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let pid_namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default().to_string_lossy().into_owned();
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let reasons = missing(&Facts {
        machine: std::env::consts::ARCH,
        release: &release,
        has_btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        status: &status,
        lockdown: &lockdown,
        pid_namespace: &pid_namespace,
    });
    if reasons.is_empty() { Ok(()) } else { Err(Missing { reasons }) }
}

/// What the machine says of itself.
struct Facts<'a> {
    machine: &'a str,
    release: &'a str,
    has_btf: bool,
    status: &'a str,
    lockdown: &'a str,
    pid_namespace: &'a str,
}

fn missing(facts: &Facts<'_>) -> Vec<String> {
    let mut reasons = Vec::new();
    if facts.machine != "x86_64" {
        reasons.push(format!("the recorder in the kernel is made for x86_64, and this is {}", facts.machine));
    }
    if version(facts.release).is_some_and(|version| version < OLDEST) {
        reasons.push(format!(
            "Linux {} is too old: {}.{} or later is needed",
            facts.release.trim(),
            OLDEST.0,
            OLDEST.1
        ));
    }
    if !facts.has_btf {
        reasons.push(
            "the kernel does not describe its types: /sys/kernel/btf/vmlinux is not there (CONFIG_DEBUG_INFO_BTF; in a \
             container, mount /sys)"
                .into(),
        );
    }
    if !facts.pid_namespace.is_empty() && facts.pid_namespace != FIRST_PID_NAMESPACE {
        reasons.push(
            "fsage runs in a PID namespace of its own (a container), where processes have other numbers than the \
             kernel tells: run fsage on the host; it records what runs in containers from there"
                .into(),
        );
    }
    let capabilities = effective(facts.status);
    let has = |capability: u32| capabilities.is_none_or(|set| set >> capability & 1 == 1);
    // CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON, which were taken out of it.
    let mut lacking: Vec<&str> = Vec::new();
    if !has(CAP_BPF) && !has(CAP_SYS_ADMIN) {
        lacking.push("CAP_BPF");
    }
    if !has(CAP_PERFMON) && !has(CAP_SYS_ADMIN) {
        lacking.push("CAP_PERFMON");
    }
    if !has(CAP_SYS_PTRACE) {
        lacking.push("CAP_SYS_PTRACE");
    }
    if !lacking.is_empty() {
        reasons.push(format!(
            "fsage lacks {}: be root, or give it the capabilities once (setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep \
             FSAGE)",
            lacking.join(", ")
        ));
    }
    if facts.lockdown.contains("[confidentiality]") {
        reasons.push(
            "the kernel is locked down (confidentiality): it lets no program read kernel memory; see \
             /sys/kernel/security/lockdown"
                .into(),
        );
    }
    reasons
}

/// `CapEff` of `/proc/self/status`.
fn effective(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.trim().split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Facts<'_> = Facts {
        machine: "x86_64",
        release: "6.1.0-18-amd64",
        has_btf: true,
        status: "CapEff:\t000001ffffffffff\n",
        lockdown: "[none] integrity confidentiality\n",
        pid_namespace: FIRST_PID_NAMESPACE,
    };

    #[test]
    fn root_on_a_recent_kernel_lacks_nothing() {
        assert_eq!(missing(&ALL), Vec::<String>::new());
    }

    #[test]
    fn the_three_capabilities_suffice() {
        let three = 1u64 << CAP_BPF | 1 << CAP_PERFMON | 1 << CAP_SYS_PTRACE;
        let status = format!("CapEff:\t{three:016x}\n");
        assert_eq!(missing(&Facts { status: &status, ..ALL }), Vec::<String>::new());
        for (capability, name) in
            [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON"), (CAP_SYS_PTRACE, "CAP_SYS_PTRACE")]
        {
            let status = format!("CapEff:\t{:016x}\n", three & !(1 << capability));
            let reasons = missing(&Facts { status: &status, ..ALL });
            assert!(matches!(&reasons[..], [one] if one.contains(&format!("lacks {name}:"))), "{reasons:?}");
        }
    }

    #[test]
    fn each_thing_missing_is_named() {
        let nothing = Facts {
            machine: "aarch64",
            release: "5.10.0",
            has_btf: false,
            status: "CapEff:\t0000000000000000\n",
            lockdown: "none integrity [confidentiality]\n",
            pid_namespace: "pid:[4026532201]",
        };
        let reasons = missing(&nothing);
        for word in [
            "aarch64",
            "5.10.0",
            "/sys/kernel/btf/vmlinux",
            "CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE",
            "locked down",
            "PID namespace",
        ] {
            assert!(reasons.iter().any(|reason| reason.contains(word)), "{word} in {reasons:?}");
        }
    }
}
