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

/// In words.
impl std::fmt::Display for Endian {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Endian::Little => "little-endian",
            Endian::Big => "big-endian",
        })
    }
}

/// A field of a structure, to be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its byte in the structure.
    pub at: usize,
    /// Its value.
    pub value: String,
}

/// The definition of a field of type `T` in the structure `S`: the one place that knows its name and byte.
#[derive(Debug)]
pub struct FieldDef<S, T> {
    /// Its name.
    pub name: &'static str,
    /// Its byte in the structure.
    pub at: u64,
    /// Its value.
    pub get: fn(&S) -> &T,
    /// The same, to be changed.
    pub get_mut: fn(&mut S) -> &mut T,
}

impl<S, T> Clone for FieldDef<S, T> {
    fn clone(&self) -> FieldDef<S, T> {
        *self
    }
}

impl<S, T> Copy for FieldDef<S, T> {}

impl<S, T> FieldDef<S, T> {
    /// Its name and byte, for messages.
    pub fn place(self) -> (&'static str, u64) {
        (self.name, self.at)
    }
}

/// A value as it is on disk. Bytes that are not there read as zeros and are not written: callers check lengths first.
pub trait Disk: Sized {
    /// How long it is.
    const BYTES: usize;
    /// Reads one at a byte.
    fn get(endian: Endian, bytes: &[u8], at: usize) -> Self;
    /// Writes it at a byte.
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
/// `NAME::field` is the [`FieldDef`](crate::FieldDef) of a field.
#[macro_export]
macro_rules! on_disk {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* $at:literal $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty,)* }

        #[allow(non_upper_case_globals)]
        impl $name {
            $(
                $(#[$field_doc])*
                pub const $field: $crate::FieldDef<$name, $ty> = $crate::FieldDef {
                    name: stringify!($field),
                    at: $at,
                    get: |of| &of.$field,
                    get_mut: |of| &mut of.$field,
                };
            )*
        }

        impl $name {
            /// Reads every field.
            pub fn get(endian: $crate::Endian, bytes: &[u8]) -> $name {
                $name { $($field: <$ty as $crate::Disk>::get(endian, bytes, $at),)* }
            }

            /// Writes every field, and leaves the bytes between them alone.
            pub fn put(&self, endian: $crate::Endian, bytes: &mut [u8]) {
                $($crate::Disk::put(&self.$field, endian, bytes, $at);)*
            }

            /// Every field with its place and value, in the order of the structure.
            pub fn fields(&self) -> Vec<$crate::Field> {
                vec![$($crate::Field { name: stringify!($field), at: $at, value: format!("{:?}", self.$field) },)*]
            }
        }
    };
}
