//! Directories, the same in FFS and LFS: their chunks as bytes, and a whole directory in memory.

mod chunk;
mod live;

pub use chunk::{
    DIRBLKSIZ, DirEntry, DirFormat, NAME_MAX, RawEntry, entry_bytes, fresh_chunk, insert, name_problem, parse_chunk,
    remove,
};
pub use live::{Directory, Found, Slot};
