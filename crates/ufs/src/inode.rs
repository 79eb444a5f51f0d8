//! What the inodes of FFS and LFS have in common (`struct dinode`).

use crate::indirect::{NDADDR, NIADDR, Pointer};
use crate::{Disk, Endian, FileType, Time, mode};

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident, $name_mut:ident: $ty:ty;)*) => {
        /// An inode in the form that a file system keeps it in. [`disk_inode!`](crate::disk_inode) makes a struct with
        /// these fields one.
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

/// Goes over the fields of an inode with their places, to read or to write them.
pub trait Fields {
    /// One of them.
    fn field<T: Disk>(&mut self, at: usize, value: &mut T);

    /// A value that is 32 bits wide on disk, sign-extended.
    fn narrow(&mut self, at: usize, value: &mut i64) {
        let mut on_disk = *value as i32;
        self.field(at, &mut on_disk);
        *value = on_disk.into();
    }

    /// A time with 32 bits of seconds.
    fn time(&mut self, at: usize, time: &mut Time) {
        self.narrow(at, &mut time.s);
        self.field(at + 4, &mut time.ns);
    }

    /// Those of 4.4BSD's 128 bytes (`struct ufs1_dinode`) that every inode in this form has, but for the owners.
    fn ufs1(&mut self, d: &mut impl DiskInode)
    where
        Self: Sized,
    {
        self.field(0, d.mode_mut());
        self.field(2, d.nlink_mut());
        self.field(8, d.size_mut());
        self.time(16, d.atime_mut());
        self.time(24, d.mtime_mut());
        self.time(32, d.ctime_mut());
        let (direct, indirect) = d.pointers_mut();
        for (i, pointer) in direct.iter_mut().chain(indirect).enumerate() {
            self.narrow(40 + 4 * i, pointer);
        }
        self.field(108, d.generation_mut());
    }
}

/// Reads them.
#[derive(Debug)]
pub struct ReadFields<'a>(pub Endian, pub &'a [u8]);

/// Writes them.
#[derive(Debug)]
pub struct WriteFields<'a>(pub Endian, pub &'a mut [u8]);

impl Fields for ReadFields<'_> {
    fn field<T: Disk>(&mut self, at: usize, value: &mut T) {
        *value = T::get(self.0, self.1, at);
    }
}

impl Fields for WriteFields<'_> {
    fn field<T: Disk>(&mut self, at: usize, value: &mut T) {
        value.put(self.0, self.1, at);
    }
}
