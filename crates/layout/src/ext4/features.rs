//! Names of the features that a superblock sets, as `dumpe2fs` prints them (`lib/e2p/feature.c` of e2fsprogs).

/// The names of one field's bits.
struct Field {
    /// What the field is called.
    name: &'static str,
    /// By bit.
    bits: &'static [(u32, &'static str)],
}

const COMPAT: Field = Field {
    name: "compat",
    bits: &[
        (0x1, "dir_prealloc"),
        (0x2, "imagic_inodes"),
        (0x4, "has_journal"),
        (0x8, "ext_attr"),
        (0x10, "resize_inode"),
        (0x20, "dir_index"),
        (0x40, "lazy_bg"),
        (0x100, "snapshot_bitmap"),
        (0x200, "sparse_super2"),
        (0x400, "fast_commit"),
        (0x800, "stable_inodes"),
        (0x1000, "orphan_file"),
    ],
};

const INCOMPAT: Field = Field {
    name: "incompat",
    bits: &[
        (0x1, "compression"),
        (0x2, "filetype"),
        (0x4, "needs_recovery"),
        (0x8, "journal_dev"),
        (0x10, "meta_bg"),
        (0x40, "extent"),
        (0x80, "64bit"),
        (0x100, "mmp"),
        (0x200, "flex_bg"),
        (0x400, "ea_inode"),
        (0x1000, "dirdata"),
        (0x2000, "metadata_csum_seed"),
        (0x4000, "large_dir"),
        (0x8000, "inline_data"),
        (0x1_0000, "encrypt"),
        (0x2_0000, "casefold"),
    ],
};

const RO_COMPAT: Field = Field {
    name: "ro_compat",
    bits: &[
        (0x1, "sparse_super"),
        (0x2, "large_file"),
        (0x8, "huge_file"),
        (0x10, "uninit_bg"),
        (0x20, "dir_nlink"),
        (0x40, "extra_isize"),
        (0x80, "snapshot"),
        (0x100, "quota"),
        (0x200, "bigalloc"),
        (0x400, "metadata_csum"),
        (0x800, "replica"),
        (0x1000, "read-only"),
        (0x2000, "project"),
        (0x4000, "shared_blocks"),
        (0x8000, "verity"),
        (0x1_0000, "orphan_present"),
    ],
};

impl Field {
    /// The names of the bits that are set, the lowest first; one without a name is called by its field and number.
    fn names(&self, set: u32) -> impl Iterator<Item = String> {
        (0..u32::BITS).filter(move |bit| set >> bit & 1 == 1).map(|bit| {
            let known = self.bits.iter().find(|(mask, _)| *mask == 1 << bit);
            known.map_or_else(|| format!("{} bit {bit}", self.name), |(_, name)| (*name).to_owned())
        })
    }
}

/// All features of a file system, in the order of `dumpe2fs`, with a comma between two.
pub(super) fn of(compat: u32, incompat: u32, ro_compat: u32) -> String {
    let fields = [(&COMPAT, compat), (&INCOMPAT, incompat), (&RO_COMPAT, ro_compat)];
    fields.into_iter().flat_map(|(field, set)| field.names(set)).collect::<Vec<_>>().join(",")
}

/// Features by which a reader that does not know them must not read.
pub(super) fn incompatible(set: u32) -> String {
    INCOMPAT.names(set).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_their_names_and_those_without_their_place() {
        assert_eq!(COMPAT.names(0x2c).collect::<Vec<_>>(), ["has_journal", "ext_attr", "dir_index"]);
        assert_eq!(incompatible(0x2c2), "filetype,extent,64bit,flex_bg");
        assert_eq!(incompatible(0x8000_0001), "compression,incompat bit 31");
        assert_eq!(incompatible(0), "");
    }
}
