//! Which segment is worth cleaning most.

use super::CleanerPolicy;

/// What a policy knows of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    /// Bytes of a segment.
    pub(crate) segment_bytes: f64,
    /// Of them, live.
    pub(crate) live_bytes: f64,
    /// Of them, summaries.
    pub(crate) summary_bytes: f64,
    /// Since it was last written, seconds.
    pub(crate) age_s: f64,
}

/// How much cleaning a segment is worth; the greatest first.
pub(crate) fn value(policy: CleanerPolicy, c: &Candidate) -> f64 {
    let u = c.live_bytes / c.segment_bytes;
    match policy {
        // Without a cleaner nothing is worth anything.
        CleanerPolicy::Off => 0.0,
        CleanerPolicy::Greedy => 1.0 - u,
        // Rosenblum and Ousterhout, TOCS 10(1), 1992, section 3.5.
        CleanerPolicy::CostBenefit => (1.0 - u) * c.age_s / (1.0 + u),
        // `lfs_cleanerd` of NetBSD.
        CleanerPolicy::Netbsd => {
            let benefit = c.segment_bytes - c.live_bytes - c.summary_bytes;
            benefit * c.age_s / (c.segment_bytes + c.live_bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(u: f64, age_s: f64) -> Candidate {
        Candidate { segment_bytes: 1e6, live_bytes: u * 1e6, summary_bytes: 512.0, age_s }
    }

    #[test]
    fn old_segments_are_worth_cleaning_at_a_higher_utilisation() {
        let (cold, hot) = (candidate(0.75, 3600.0), candidate(0.15, 60.0));
        assert!(value(CleanerPolicy::Greedy, &hot) > value(CleanerPolicy::Greedy, &cold));
        for policy in [CleanerPolicy::CostBenefit, CleanerPolicy::Netbsd] {
            assert!(value(policy, &cold) > value(policy, &hot), "{policy:?}");
            assert!(value(policy, &candidate(0.2, 60.0)) > value(policy, &candidate(0.3, 60.0)), "{policy:?}");
        }
    }
}
