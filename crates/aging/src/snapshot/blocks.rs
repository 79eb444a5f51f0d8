//! Block lists: where the data of each file lay when the snapshot was taken, as extents.
//!
//! In memory a list is a few bytes for each extent: lengths and distances, seven bits a byte. What a list may not say
//! is checked where it is taken in ([`Lists::add`]), whoever made it.

use layout::geometry::Groups;
use layout::map::Span;
use layout::{AddressSpace, Available, Method};
use posix::{Extent, ExtentFlags};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// No file system has an address or a length beyond this one (`loff_t`).
pub(super) const BYTES_MAX: u64 = i64::MAX as u64;

/// A file of more extents has no list: a row is decoded as a whole.
pub const EXTENTS_MAX: usize = 1 << 22;

/// Reasons why there is no list are sentences, and few: each is kept once.
const REASONS_MAX: u32 = 1000;
const REASON_BYTES_MAX: usize = 4096;

/// What the block lists of a snapshot are, in its footer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlocksMeta {
    /// How they were had.
    pub method: Method,
    /// Mount options, or what an image was made with.
    pub options: String,
    /// What the addresses are.
    pub addresses: AddressSpace,
    /// The unit that a layout score counts, bytes.
    pub block_bytes: u32,
    /// The addresses in use.
    pub span: Span,
    /// The allocation groups, or why they are not known.
    pub groups: Available<Groups>,
    /// Why groups cannot be compared with inodes; `None` where they can.
    pub no_split: Option<String>,
    /// Why there is no list at all; `None` where there are lists.
    pub unavailable: Option<String>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// What is known of where the data behind a name lay.
#[derive(Clone, Debug)]
pub enum Blocks<'a> {
    /// Nothing is kept of symbolic links and special files.
    NotKept,
    /// Its extents, in file order. None of an empty file, or of one that is a hole.
    Known(Extents<'a>),
    /// It could not be had, and why.
    Unknown(&'a str),
}

impl Blocks<'_> {
    /// How many extents are known.
    pub(super) fn len(&self) -> usize {
        match self {
            Blocks::Known(extents) => extents.len(),
            Blocks::NotKept | Blocks::Unknown(_) => 0,
        }
    }
}

/// Where a name's list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListAt {
    NotKept,
    Known { start: usize, extents: u32 },
    Unknown(u32),
}

/// A name in the listing of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Where it stood, from 0.
    pub position: u32,
    pub at: ListAt,
}

/// Lists and reasons, one behind the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Lists {
    bytes: Vec<u8>,
    reasons: Vec<String>,
    by_reason: FxHashMap<String, u32>,
}

impl Lists {
    /// Takes in a list, in file order.
    ///
    /// # Errors
    /// What it says that cannot be, as the end of a sentence that begins with "extent N".
    pub(super) fn add(&mut self, extents: impl Iterator<Item = Extent>) -> Result<ListAt, String> {
        let start = self.bytes.len();
        let (mut logical_end, mut physical_end) = (0, 0);
        let mut number = 0u32;
        for extent in extents {
            let added = self.push(&extent, &mut logical_end, &mut physical_end);
            if let Err(why) = added {
                self.bytes.truncate(start);
                return Err(format!("extent {number} {why}"));
            }
            number += 1;
            if number as usize > EXTENTS_MAX {
                self.bytes.truncate(start);
                return Err(format!("extent {number} is one too many: a list has at most {EXTENTS_MAX}"));
            }
        }
        Ok(ListAt::Known { start, extents: number })
    }

    fn push(&mut self, extent: &Extent, logical_end: &mut u64, physical_end: &mut u64) -> Result<(), String> {
        let Extent { logical_bytes, physical_bytes, len_bytes, flags } = *extent;
        let end_of = |at: u64| at.checked_add(len_bytes).filter(|end| *end <= BYTES_MAX);
        let end = end_of(logical_bytes)
            .ok_or_else(|| format!("of {len_bytes} bytes at byte {logical_bytes} ends beyond every file"))?;
        let place_end = end_of(physical_bytes)
            .ok_or_else(|| format!("of {len_bytes} bytes at address {physical_bytes} ends beyond every device"))?;
        let hole = logical_bytes
            .checked_sub(*logical_end)
            .ok_or_else(|| format!("begins at byte {logical_bytes}, before the end of the one before it"))?;
        self.bytes.push(bits_of(flags));
        varint(&mut self.bytes, hole);
        varint(&mut self.bytes, len_bytes);
        // Addresses are below 2^63, so that their distance is a number with a sign.
        let distance = physical_bytes as i64 - *physical_end as i64;
        varint(&mut self.bytes, ((distance << 1) ^ (distance >> 63)) as u64);
        (*logical_end, *physical_end) = (end, place_end);
        Ok(())
    }

    /// Takes in why there is none, as somebody says it.
    ///
    /// # Errors
    /// It is longer than a reason, or one too many.
    pub(super) fn told(&mut self, why: &str) -> Result<ListAt, String> {
        if let Some(known) = self.by_reason.get(why) {
            return Ok(ListAt::Unknown(*known));
        }
        if why.len() > REASON_BYTES_MAX {
            return Err(format!("a reason of {} bytes, where the longest has {REASON_BYTES_MAX}", why.len()));
        }
        let number = u32::try_from(self.reasons.len()).ok().filter(|n| *n < REASONS_MAX);
        let number = number.ok_or_else(|| format!("a reason more than the {REASONS_MAX} that a snapshot gives"))?;
        self.reasons.push(why.to_owned());
        self.by_reason.insert(why.to_owned(), number);
        Ok(ListAt::Unknown(number))
    }

    /// The same of what a file system said, which is never so much.
    pub(super) fn unknown(&mut self, why: &str) -> ListAt {
        self.told(why).unwrap_or(ListAt::Unknown(0))
    }

    /// What is there.
    pub(super) fn get(&self, at: ListAt) -> Blocks<'_> {
        match at {
            ListAt::NotKept => Blocks::NotKept,
            ListAt::Unknown(number) => {
                Blocks::Unknown(self.reasons.get(number as usize).map_or("not known", String::as_str))
            }
            ListAt::Known { start, extents } => {
                let bytes = self.bytes.get(start..).unwrap_or_default();
                Blocks::Known(Extents { bytes, left: extents, logical_end: 0, physical_end: 0 })
            }
        }
    }

    /// Whether two are alike.
    pub(super) fn same(&self, a: ListAt, b: ListAt) -> bool {
        a == b
            || match (self.get(a), self.get(b)) {
                (Blocks::Known(a), Blocks::Known(b)) => a.eq(b),
                _ => false,
            }
    }

    /// What they take of memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// The extents of a list, in file order.
#[derive(Clone, Debug)]
pub struct Extents<'a> {
    bytes: &'a [u8],
    left: u32,
    logical_end: u64,
    physical_end: u64,
}

impl Iterator for Extents<'_> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        self.left = self.left.checked_sub(1)?;
        let (bits, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let logical_bytes = self.logical_end.checked_add(self.number()?)?;
        let len_bytes = self.number()?;
        let zigzag = self.number()?;
        let distance = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        let physical_bytes = self.physical_end.checked_add_signed(distance)?;
        self.logical_end = logical_bytes.checked_add(len_bytes)?;
        self.physical_end = physical_bytes.checked_add(len_bytes)?;
        Some(Extent { logical_bytes, physical_bytes, len_bytes, flags: flags_of(*bits).unwrap_or_default() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl ExactSizeIterator for Extents<'_> {}

impl Extents<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        out.push(value as u8 & 0x7f | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Flags as bits of the column `flags`.
pub(super) fn bits_of(flags: ExtentFlags) -> u8 {
    let ExtentFlags { unwritten, inline, delayed, encoded, shared, unknown, logical_address } = flags;
    [unwritten, inline, delayed, encoded, shared, unknown, logical_address]
        .iter()
        .enumerate()
        .fold(0, |bits, (i, set)| bits | u8::from(*set) << i)
}

/// The flags of some bits; `None` where a bit means nothing.
pub(super) fn flags_of(bits: u8) -> Option<ExtentFlags> {
    let has = |i: u8| bits & (1 << i) != 0;
    (!has(7)).then(|| ExtentFlags {
        unwritten: has(0),
        inline: has(1),
        delayed: has(2),
        encoded: has(3),
        shared: has(4),
        unknown: has(5),
        logical_address: has(6),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extent(logical_bytes: u64, physical_bytes: u64, len_bytes: u64) -> Extent {
        Extent { logical_bytes, physical_bytes, len_bytes, flags: ExtentFlags::default() }
    }

    #[test]
    fn what_a_list_may_not_say() {
        let mut lists = Lists::default();
        let mut add = |extents: &[Extent]| lists.add(extents.iter().copied());
        assert!(add(&[extent(0, BYTES_MAX - 5, 5), extent(BYTES_MAX - 7, 0, 7)]).is_ok());
        for (extents, part) in [
            (vec![extent(0, 50, 10), extent(9, 70, 10)], "extent 1 begins at byte 9, before the end"),
            (vec![extent(10, 50, 10), extent(0, 70, 10)], "extent 1 begins at byte 0"),
            (vec![extent(u64::MAX, 50, 10)], "ends beyond every file"),
            (vec![extent(0, u64::MAX, 10)], "ends beyond every device"),
            (vec![extent(0, BYTES_MAX, 1)], "ends beyond every device"),
        ] {
            let error = add(&extents).expect_err(part);
            assert!(error.contains(part), "{error}");
        }
        // Nothing is left of what was refused.
        let ListAt::Known { start, .. } = lists.add([extent(0, 1, 2)].into_iter()).expect("a list") else { panic!() };
        let Blocks::Known(first) = lists.get(ListAt::Known { start: 0, extents: 2 }) else { panic!() };
        assert_eq!((first.count(), lists.bytes() - start), (2, 4));
    }

    #[test]
    fn a_list_of_too_many_is_none() {
        let one = |i: usize| extent(i as u64, 2 * i as u64, 1);
        let mut lists = Lists::default();
        assert!(lists.add((0..EXTENTS_MAX).map(one)).is_ok());
        let before = lists.bytes();
        assert!(lists.add((0..=EXTENTS_MAX).map(one)).is_err_and(|why| why.contains("too many")));
        assert_eq!(lists.bytes(), before);
    }

    proptest! {
        #[test]
        fn lists_are_read_back_as_they_were(
            lists in proptest::collection::vec(proptest::collection::vec((0u64..1 << 40, 0u64..1 << 62, 0u64..1 << 40,
                0u8..128), 0..20), 1..8)
        ) {
            let mut kept = Lists::default();
            let mut all = Vec::new();
            for list in lists {
                let mut end = 0;
                let extents: Vec<Extent> = list
                    .into_iter()
                    .map(|(hole, physical, len, bits)| {
                        let logical = end + hole;
                        end = logical + len;
                        Extent { flags: flags_of(bits).expect("seven bits"), ..extent(logical, physical, len) }
                    })
                    .collect();
                all.push((kept.add(extents.iter().copied()).expect("sound"), extents));
            }
            for (at, extents) in all {
                let Blocks::Known(read) = kept.get(at) else { panic!("a list") };
                prop_assert_eq!(read.len(), extents.len());
                prop_assert_eq!(read.collect::<Vec<_>>(), extents);
            }
        }
    }
}
