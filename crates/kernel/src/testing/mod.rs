//! For tests and benchmarks of the kernel itself: a small file system, and a device whose times can be worked out in the head.

mod device;
mod volume;

pub use device::{Choice, FixedDevice};
pub use volume::{MemVolume, Metadata};
