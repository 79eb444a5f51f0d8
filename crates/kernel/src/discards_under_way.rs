//! Discards that a device has not completed.

use crate::Pbn;
use crate::program::IoId;
use std::collections::BTreeMap;

/// Discards that are not complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discards {
    /// Whether the device takes any.
    pub(crate) supported: bool,
    /// By first place: the place behind the last, and the request. They never overlap.
    pub(crate) under_way: BTreeMap<Pbn, (Pbn, IoId)>,
}
