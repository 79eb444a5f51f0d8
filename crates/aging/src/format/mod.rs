//! The aging workload's file, `NAME.aging`: one Parquet file, a row per operation, the description in its footer.
//!
//! The same operations and description give the same bytes. It is written to a temporary name beside the final one and
//! renamed when whole, and read a row group at a time, each verified against its checksum. docs/formats.md has it field
//! by field.

mod books;
mod columns;
mod meta;
mod reader;
mod writer;

use columnar::Format;

pub use meta::{Counts, DayUse, FitResult, Input, Placement, PlanMeta, Source};
pub use reader::{Batches, Reader};
pub use writer::Writer;

/// The version that is written. The first one, which is read too, had no reads.
pub const FORMAT_VERSION: u32 = 2;

/// The footer key under which the description ([`PlanMeta`], JSON) is.
pub const META_KEY: &str = "fsage.aging";

/// The format.
pub static FORMAT: Format = Format {
    name: "an aging workload",
    version: FORMAT_VERSION,
    oldest: 1,
    key: Some(META_KEY),
    missing: "`fsage plan` writes aging workloads",
    again: "plan it again",
};

/// Simulated days a workload may have: more than 500 years, and less than nanoseconds count. Each costs memory, whether
/// it holds an operation or not.
pub const DAYS_MAX: u32 = 200_000;

/// Rows of a row group: the unit of reading, of verifying, and of seeking on resumption.
pub const ROW_GROUP_ROWS: usize = 1 << 16;
