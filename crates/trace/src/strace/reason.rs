//! Why a line is not understood.

/// Why a line is not understood. The message completes "line 12: ".
pub(super) type Reason = &'static str;

/// It is nothing that strace prints.
pub(super) const NO_CALL: Reason = "neither a call nor anything else strace prints";
