//! Limits of the shell (`ulimit`) that are a command's, and hold for us as well.
//!
//! What records a command needs memory, processor time and descriptors of its own. So we raise our limits as far as we
//! may, and a command that we hold and let go ([`held`](crate::held)) has those that were.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// The limits that are raised.
const RAISED: [Resource; 4] = [Resource::As, Resource::Data, Resource::Cpu, Resource::Nofile];
/// Descriptors that are enough for everything. Their number cannot be without limit.
const DESCRIPTORS: u64 = 1024;

/// The limits before [`raise`].
static INHERITED: OnceLock<[Rlimit; RAISED.len()]> = OnceLock::new();

/// What we are limited to; `None`: not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Address space, bytes (`ulimit -v`).
    pub address_space_bytes: Option<u64>,
    /// Data, bytes (`ulimit -d`).
    pub data_bytes: Option<u64>,
    /// Processor time of a process, seconds (`ulimit -t`).
    pub processor_time_s: Option<u64>,
}

/// Raises our limits as far as we may. Says what is left of them.
pub fn raise() -> Limits {
    let was = RAISED.map(getrlimit);
    let _ = INHERITED.set(was);
    for (resource, was) in RAISED.into_iter().zip(was) {
        for limit in wanted(resource, &was) {
            // The first takes CAP_SYS_RESOURCE.
            if setrlimit(resource, limit).is_ok() {
                break;
            }
        }
    }
    Limits {
        address_space_bytes: getrlimit(Resource::As).current,
        data_bytes: getrlimit(Resource::Data).current,
        processor_time_s: getrlimit(Resource::Cpu).current,
    }
}

/// What a limit is to be, and what it is to be where that is not permitted.
fn wanted(resource: Resource, was: &Rlimit) -> Vec<Rlimit> {
    let Some(current) = was.current else { return Vec::new() };
    let most = Rlimit { current: was.maximum, maximum: was.maximum };
    if resource != Resource::Nofile {
        return vec![Rlimit { current: None, maximum: None }, most];
    }
    if current >= DESCRIPTORS {
        return Vec::new();
    }
    let maximum = was.maximum.map(|maximum| maximum.max(DESCRIPTORS));
    vec![Rlimit { current: Some(DESCRIPTORS), maximum }, most]
}

/// Between fork and exec: gives the limits back. System calls alone, as signal-safety(7) allows; none can fail, as
/// limits go down.
pub(crate) fn restore() {
    if let Some(inherited) = INHERITED.get() {
        for (resource, was) in RAISED.into_iter().zip(inherited) {
            let _ = setrlimit(resource, *was);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_limit_is_left_alone_and_descriptors_have_a_number() {
        let of = |current, maximum| Rlimit { current, maximum };
        assert_eq!(wanted(Resource::Cpu, &of(None, None)), Vec::new());
        assert_eq!(wanted(Resource::Cpu, &of(Some(5), Some(9))), [of(None, None), of(Some(9), Some(9))]);
        assert_eq!(wanted(Resource::Nofile, &of(Some(4096), Some(4096))), Vec::new());
        assert_eq!(
            wanted(Resource::Nofile, &of(Some(20), Some(30))),
            [of(Some(1024), Some(1024)), of(Some(30), Some(30))]
        );
        assert_eq!(wanted(Resource::Nofile, &of(Some(20), None)), [of(Some(1024), None), of(None, None)]);
    }
}
