//! Objects as they were when the trace began, so far as the trace shows it.

/// What the trace shows of an object.
#[derive(Debug, Default)]
pub(super) struct AtStart {
    /// Whether it could be executed when the trace began: what the trace's first word on that says, `None` where it
    /// says nothing.
    pub executable: Option<bool>,
    /// Bytes of an attribute that was there when the trace began, as the trace's first word on the file's attributes
    /// shows; `None` where it says nothing.
    pub attribute_bytes: Option<u64>,
    /// Whether the trace has set or removed an attribute, so that what it says from then on is not of the beginning.
    pub attribute_changed: bool,
    /// Whether the trace has changed its data.
    pub changed: bool,
    /// Whether its initial data must really be there: it is read, overwritten or freed.
    pub needs_data: bool,
    /// Whether a name was found, missed or made in it.
    pub searched: bool,
    /// The rights that it was opened with.
    pub opened: u8,
    /// The rights to it that the traced user did not have: bits as in a mode.
    pub lacks: u8,
}
