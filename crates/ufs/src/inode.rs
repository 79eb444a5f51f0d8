//! What the inodes of FFS and LFS have in common (`struct dinode`).

use crate::indirect::{NDADDR, NIADDR, Pointer};
use crate::{FileType, Time, mode};

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident, $name_mut:ident: $ty:ty;)*) => {
        /// An inode in the form that a file system keeps it in. [`disk_inode!`](crate::disk_inode) makes a struct with these
        /// fields one.
        pub trait DiskInode {
            $($(#[$doc])* fn $name(&self) -> $ty;
            /// The same, to be changed.
            fn $name_mut(&mut self) -> &mut $ty;)*

            /// Direct blocks.
            fn direct(&self) -> &[Pointer; NDADDR];

            /// Direct and indirect blocks, to be changed.
            fn pointers_mut(&mut self) -> (&mut [Pointer; NDADDR], &mut [Pointer; NIADDR]);

            /// What it is; `None` where its mode says nothing known.
            fn file_type(&self) -> Option<FileType> {
                FileType::of(self.mode())
            }

            /// Permissions with set-id and sticky bits.
            fn permissions(&self) -> u16 {
                self.mode() & mode::PERMISSIONS
            }

            /// Its data has changed.
            fn stamp_modified(&mut self, now: Time) {
                (*self.mtime_mut(), *self.ctime_mut()) = (now, now);
            }
        }
    };
}

fields! {
    /// Type and permissions.
    mode, mode_mut: u16;
    /// Links.
    nlink, nlink_mut: i16;
    /// Owner.
    uid, uid_mut: u32;
    /// Group.
    gid, gid_mut: u32;
    /// Bytes of the file.
    size, size_mut: u64;
    /// Last read.
    atime, atime_mut: Time;
    /// Last modified.
    mtime, mtime_mut: Time;
    /// Last changed.
    ctime, ctime_mut: Time;
    /// Generation.
    generation, generation_mut: u32;
}

/// Implements [`DiskInode`](crate::DiskInode) for a struct that has the fields.
#[macro_export]
macro_rules! disk_inode {
    ($name:ty) => {
        $crate::disk_inode! { $name: mode mode_mut u16, nlink nlink_mut i16, uid uid_mut u32, gid gid_mut u32,
        size size_mut u64, atime atime_mut $crate::Time, mtime mtime_mut $crate::Time, ctime ctime_mut $crate::Time,
        generation generation_mut u32 }
    };
    ($name:ty: $($field:ident $field_mut:ident $ty:ty),*) => {
        impl $crate::DiskInode for $name {
            $(
                #[inline]
                fn $field(&self) -> $ty {
                    self.$field
                }
                #[inline]
                fn $field_mut(&mut self) -> &mut $ty {
                    &mut self.$field
                }
            )*
            #[inline]
            fn direct(&self) -> &[$crate::indirect::Pointer; $crate::indirect::NDADDR] {
                &self.db
            }
            #[inline]
            fn pointers_mut(
                &mut self,
            ) -> (
                &mut [$crate::indirect::Pointer; $crate::indirect::NDADDR],
                &mut [$crate::indirect::Pointer; $crate::indirect::NIADDR],
            ) {
                (&mut self.db, &mut self.ib)
            }
        }
    };
}
