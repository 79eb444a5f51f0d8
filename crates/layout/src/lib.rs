//! Layout: how a file system has placed its files, and what is left of its free space.
//!
//! What lives here: the scores (`scores`, pure arithmetic on extents), the survey of a mounted directory through the
//! hinge trait ([`survey_file_system`]), the survey of an unmounted ext2/3/4 image by a reader of our own (`ext4`), the
//! map of a disk that a survey can make ([`map`]), the survey file, the comparison of two surveys, and the file of many
//! taken over time ([`series`]). What may not: anything that changes a file system.
//!
//! A figure that cannot be had is [`Available::Unavailable`] with the reason. Addresses of btrfs are its own unless
//! they were translated, and every survey says which ([`AddressSpace`]).

mod collect;
mod compare;
mod discover;
mod error;
pub mod ext4;
pub mod geometry;
mod listed;
pub mod map;
mod options;
mod places;
pub mod present;
pub mod scores;
#[cfg(test)]
#[path = "../tests/it/common/mod.rs"]
mod scratch;
pub mod series;
mod stored;
mod survey;
mod walk;

pub use compare::{Caution, Comparison, Difference, SizeDifference, compare};
pub use discover::{groups_of, groups_of_handle, in_surroundings, survey, survey_handle};
pub use error::LayoutError;
pub use listed::{Listed, ListedFile};
pub use map::{Map, MapOrder};
pub use options::{Progress, SurveyOptions};
pub use places::{Places, Translate};
pub use series::{Series, SeriesHeader, SeriesPoint, SeriesWriter};
pub use stored::{SCHEMA, load, save};
pub use survey::{AddressSpace, Available, FilesLayout, GroupCount, HotFiles, Method, Source, Survey, Walked};
pub use walk::{FreeList, Surroundings, survey_file_system};
