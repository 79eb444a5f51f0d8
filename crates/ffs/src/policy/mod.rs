//! Where things should go: one policy of a paper, one file.
//!
//! What lives here: the choices ([`Options`]) and the code that each stands for, small enough to be read beside the
//! paper. What may not: how free space is searched and counted; that is `alloc`, which does what is asked here as well
//! as it can.
//!
//! | file | policy | source |
//! |---|---|---|
//! | `blkpref` | where a block of a file should go | McKusick et al., TOCS 2(3), 1984; `ffs_blkpref` |
//! | `directories` | which group a new directory goes to | the same (original); Orlov's `ffs_dirpref`, 2001 |
//! | `optim` | how much to ask for when a fragment grows | `ffs_realloccg` |
//! | `realloc` | moving a cluster into one piece before its write | Smith and Seltzer, USENIX 1996; `ffs_reallocblks` |
//! | `smartfrags` | fragments behind the last full block | Smith, PhD thesis, Harvard 2001, chapter 3 |

pub(crate) mod blkpref;
pub(crate) mod directories;
pub(crate) mod optim;
mod options;
mod realloc;
pub(crate) mod smartfrags;
mod tuning;

pub use crate::integrity::Integrity;
pub use options::{Clusters, DataOrder, Directories, Discard, Fragments, GroupSwitch, LateWrites, Options, Reserve};
pub use tuning::Tuning;
