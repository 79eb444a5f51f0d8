//! Integers in the byte order of an image, and tables of fields.

use serde::Serialize;

/// Byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Version {
    /// 32-bit addresses, inodes of 128 bytes.
    Ufs1,
    /// 64-bit addresses, inodes of 256 bytes.
    Ufs2,
}

impl Version {
    /// Bytes of an inode.
    pub fn inode_bytes(self) -> u32 {
        match self {
            Version::Ufs1 => 128,
            Version::Ufs2 => 256,
        }
    }

    /// Bytes of a block pointer.
    pub fn pointer_bytes(self) -> u32 {
        match self {
            Version::Ufs1 => 4,
            Version::Ufs2 => 8,
        }
    }
}

/// How structures are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Layout {
    /// Format.
    pub version: Version,
    /// Byte order.
    pub endian: Endian,
}

/// A value as it is on disk. Bytes that are not there read as zeros and are not written: callers check lengths first.
pub(crate) trait Disk: Sized {
    const BYTES: usize;
    fn get(endian: Endian, bytes: &[u8], at: usize) -> Self;
    fn put(&self, endian: Endian, bytes: &mut [u8], at: usize);
}

macro_rules! integers {
    ($($int:ty),*) => {
        $(impl Disk for $int {
            const BYTES: usize = size_of::<$int>();
            #[inline]
            fn get(endian: Endian, bytes: &[u8], at: usize) -> $int {
                let raw = bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
                match endian {
                    Endian::Little => <$int>::from_le_bytes(raw),
                    Endian::Big => <$int>::from_be_bytes(raw),
                }
            }
            #[inline]
            fn put(&self, endian: Endian, bytes: &mut [u8], at: usize) {
                let raw = match endian {
                    Endian::Little => self.to_le_bytes(),
                    Endian::Big => self.to_be_bytes(),
                };
                if let Some(place) = bytes.get_mut(at..at + Self::BYTES) {
                    place.copy_from_slice(&raw);
                }
            }
        })*
    };
}
integers!(u8, i8, u16, i16, u32, i32, u64, i64);

impl<T: Disk + Copy + Default, const N: usize> Disk for [T; N] {
    const BYTES: usize = N * T::BYTES;
    fn get(endian: Endian, bytes: &[u8], at: usize) -> [T; N] {
        std::array::from_fn(|i| T::get(endian, bytes, at + i * T::BYTES))
    }
    fn put(&self, endian: Endian, bytes: &mut [u8], at: usize) {
        for (i, value) in self.iter().enumerate() {
            value.put(endian, bytes, at + i * T::BYTES);
        }
    }
}

/// A struct whose fields stand at fixed bytes: `0 name: type` in the order of the header it is taken from.
macro_rules! on_disk {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* $at:literal $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* }

        impl $name {
            /// Reads every field.
            pub(crate) fn get(endian: $crate::Endian, bytes: &[u8]) -> $name {
                $name { $($field: <$ty as $crate::format::Disk>::get(endian, bytes, $at),)* }
            }

            /// Writes every field, and leaves the bytes between them alone.
            pub(crate) fn put(&self, endian: $crate::Endian, bytes: &mut [u8]) {
                $($crate::format::Disk::put(&self.$field, endian, bytes, $at);)*
            }

            /// Every field with its place and value, in the order of the structure.
            pub fn fields(&self) -> Vec<$crate::format::Field> {
                vec![$($crate::format::Field { name: stringify!($field), at: $at, value: format!("{:?}", self.$field) },)*]
            }
        }
    };
}
pub(crate) use on_disk;
