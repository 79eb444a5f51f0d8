//! Rosenblum and Ousterhout, *The Design and Implementation of a Log-Structured File System*, TOCS 10(1), 1992.

pub(crate) mod micro;
pub(crate) mod simulator;
pub(crate) mod two_files;
pub(crate) mod write_cost;

/// The computer of the publication.
pub(crate) const MACHINE: &str = "workstation-1991";
/// A disk of its time; the publication's (a Wren IV) is described nowhere in enough detail.
pub(crate) const DRIVE: &str = "hp-97560";

/// How full the segments are that a greedy cleaner takes, three quarters full and used evenly.
fn cleaned_at(ours: f64) -> crate::Row {
    let what = "greedy, uniform, three quarters full: utilisation of segments cleaned";
    crate::Row::new(what, crate::Unit::Share, crate::Published::about(0.55), ours, crate::Explain::Agrees)
}
