//! What `fsage quickstart` carries with it: the workload's script, a recording of it, and measured profiles.

pub mod bundled;
pub mod present;
pub mod recording;
