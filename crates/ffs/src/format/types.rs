//! Numbers that must not be confused.

use ufs::number;

number! {
    /// The address of a fragment: fragments from the beginning of the file system. 0 is never a file's.
    FragAddr(u64)
}
number! {
    /// A cylinder group.
    GroupNo(u32)
}

impl FragAddr {
    /// The fragment `frags` further on.
    pub fn plus(self, frags: u64) -> FragAddr {
        FragAddr(self.0.saturating_add(frags))
    }
}
