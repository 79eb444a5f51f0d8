//! Which member holds which sector of an array.

/// How an array spreads its sectors (Patterson, Gibson and Katz, "A Case for Redundant Arrays of Inexpensive Disks",
/// SIGMOD 1988).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Striped, without redundancy.
    Raid0,
    /// Every member holds everything.
    Raid1,
    /// Striped, with parity that moves from stripe to stripe (left-symmetric).
    Raid5,
}

impl Level {
    /// The fewest members.
    pub fn least_members(self) -> usize {
        match self {
            Level::Raid0 => 1,
            Level::Raid1 => 2,
            Level::Raid5 => 3,
        }
    }
}

/// Sectors of the array on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// First sector of the array.
    pub array_lbn: u64,
    /// Member.
    pub member: usize,
    /// First sector on the member.
    pub member_lbn: u64,
    /// How many.
    pub sectors: u64,
    /// Stripe.
    pub stripe: u64,
}

/// The arithmetic of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How it spreads its sectors.
    pub level: Level,
    /// Members.
    pub members: usize,
    /// Sectors of a stripe on one member.
    pub unit_sectors: u64,
    /// Sectors of a member that the array uses: whole units.
    pub member_sectors: u64,
}

impl Layout {
    /// Members of a stripe that hold data.
    fn data_members(&self) -> u64 {
        match self.level {
            Level::Raid0 => self.members as u64,
            Level::Raid1 => 1,
            Level::Raid5 => self.members as u64 - 1,
        }
    }

    /// Sectors of the array.
    pub fn capacity_sectors(&self) -> u64 {
        self.member_sectors * self.data_members()
    }

    /// Member that holds a stripe's parity.
    pub fn parity_member(&self, stripe: u64) -> Option<usize> {
        let members = self.members as u64;
        (self.level == Level::Raid5).then(|| (members - 1 - stripe % members) as usize)
    }

    /// Where a sector is; for a mirror on member 0, and at the same place on the others.
    pub fn place(&self, lbn: u64) -> (usize, u64, u64) {
        if self.level == Level::Raid1 {
            return (0, lbn, lbn / self.unit_sectors);
        }
        let (unit, within) = (lbn / self.unit_sectors, lbn % self.unit_sectors);
        let (stripe, column) = (unit / self.data_members(), unit % self.data_members());
        let member = match self.parity_member(stripe) {
            // Left-symmetric: data begin behind the parity and go round.
            Some(parity) => (parity + 1 + column as usize) % self.members,
            None => column as usize,
        };
        (member, stripe * self.unit_sectors + within, stripe)
    }

    /// Sectors of the array in runs that are consecutive on one member.
    pub fn pieces(&self, lbn: u64, sectors: u64) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut next, end) = (lbn, lbn + sectors);
        while next < end {
            let (member, member_lbn, stripe) = self.place(next);
            let sectors = match self.level {
                Level::Raid1 => end - next,
                _ => (self.unit_sectors - next % self.unit_sectors).min(end - next),
            };
            pieces.push(Piece { array_lbn: next, member, member_lbn, sectors, stripe });
            next += sectors;
        }
        pieces
    }
}
