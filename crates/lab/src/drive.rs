//! The part behind the `@`: a drive, or an array of them.

use crate::OpenError;
use device::array::{Array, Level};
use device::{Device, Drive};
use posix::grammar::{self, Piece};
use std::fmt;

/// The drive of a target that names none: that of Smith and Seltzer, USENIX 1996.
pub(crate) const DEFAULT_DRIVE: &str = "st32430n";

/// A member's share of a stripe where the target does not say.
const DEFAULT_UNIT_BYTES: u64 = 64 << 10;

/// More members than any of these arrays had.
const MEMBERS_MAX: u32 = 64;

/// Arrays in arrays: every drive of each is a model of its own.
const LEVELS_MAX: u32 = 4;

/// Drives in all levels together.
const DRIVES_MAX: u32 = 256;

/// What a laboratory's bytes lie on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriveSpec {
    /// A drive of the catalogue, or the path of its file.
    One(String),
    /// Several, which may be arrays themselves.
    Array {
        /// How they are put together.
        level: Level,
        /// How many.
        members: u32,
        /// What each is.
        member: Box<DriveSpec>,
        /// A member's share of a stripe.
        unit_bytes: u64,
    },
}

/// What is wrong with a drive: where, what, what is accepted.
pub(crate) type Problem = (usize, String, &'static str);

const ACCEPTED: &str = "a drive is a name that `fsage drive list` shows, the path of a .toml file, or an array such as \
                        raid0:4xst32430n,unit=64K (raid0, raid1, raid5)";

impl DriveSpec {
    /// Reads `NAME`, `FILE.toml`, `raidL:NxDRIVE[,unit=SIZE]`; `start` is the position of the first character.
    pub(crate) fn parse(text: &str, start: usize) -> Result<DriveSpec, Problem> {
        let pieces = grammar::split(text, start, ',').map_err(|(at, problem)| (at, problem.to_owned(), ACCEPTED))?;
        let (first, rest) = match pieces.split_first() {
            Some((first, rest)) => (*first, rest),
            None => (Piece { text, position: start }, [].as_slice()),
        };
        let mut unit_bytes = DEFAULT_UNIT_BYTES;
        for piece in rest {
            let wrong = |offset: usize, problem: &str| (piece.position + offset, problem.to_owned(), ACCEPTED);
            let Some(size) = piece.text.strip_prefix("unit=") else {
                return Err(wrong(0, &format!("'{}' is no option of a drive", piece.text)));
            };
            unit_bytes =
                grammar::parse_size(size).map_err(|(offset, problem)| wrong("unit=".len() + offset, problem))?;
        }
        let name = grammar::words(first.text).concat();
        let found = member(&name, unit_bytes, Room { levels: LEVELS_MAX, drives: DRIVES_MAX })
            .map_err(|problem| (first.position, problem, ACCEPTED))?;
        match (&found, rest.first()) {
            (DriveSpec::One(_), Some(piece)) => Err((piece.position, "only an array has a unit".to_owned(), ACCEPTED)),
            _ => Ok(found),
        }
    }

    /// The device, new and idle.
    ///
    /// # Errors
    /// The drive's file, or the array, makes no sense.
    pub fn device(&self) -> Result<Box<dyn Device>, OpenError> {
        match self {
            DriveSpec::One(name) => Ok(Drive::find(name)?.device()),
            DriveSpec::Array { level, members, member, unit_bytes } => {
                let parts = (0..*members).map(|_| member.device()).collect::<Result<Vec<_>, _>>()?;
                let sector_bytes = parts.first().map_or(512, Device::sector_bytes);
                let array = Array::new(*level, parts, unit_bytes / u64::from(sector_bytes.max(1)));
                Ok(Box::new(array.map_err(|source| OpenError::Array { drive: self.to_string(), source })?))
            }
        }
    }
}

/// How much may still be nested.
#[derive(Clone, Copy)]
struct Room {
    levels: u32,
    drives: u32,
}

fn member(name: &str, unit_bytes: u64, room: Room) -> Result<DriveSpec, String> {
    let level = [("raid0:", Level::Raid0), ("raid1:", Level::Raid1), ("raid5:", Level::Raid5)];
    let array = level.into_iter().find_map(|(prefix, level)| Some((level, name.strip_prefix(prefix)?)));
    let Some((level, rest)) = array else { return one(name) };
    let Some((count, of)) = rest.split_once('x') else {
        return Err(format!("'{name}' does not say how many of what"));
    };
    let members = count.parse().ok().filter(|n| (1..=MEMBERS_MAX).contains(n));
    let members = members.ok_or_else(|| format!("'{count}' is no number of members from 1 to {MEMBERS_MAX}"))?;
    let Some(levels) = room.levels.checked_sub(1) else {
        return Err(format!("arrays are nested at most {LEVELS_MAX} deep"));
    };
    let drives = room.drives / members;
    if drives == 0 {
        return Err(format!("an array has at most {DRIVES_MAX} drives in all"));
    }
    let member = Box::new(member(of, unit_bytes, Room { levels, drives })?);
    Ok(DriveSpec::Array { level, members, member, unit_bytes })
}

fn one(name: &str) -> Result<DriveSpec, String> {
    let known = device::catalogue().iter().any(|(key, _)| *key == name);
    if known || name.contains('/') || name.ends_with(".toml") {
        Ok(DriveSpec::One(name.to_owned()))
    } else if name.is_empty() {
        Err("the drive is missing".to_owned())
    } else {
        let names: Vec<&str> = device::catalogue().iter().map(|(key, _)| *key).collect();
        let tip = units::similar::tip(name, names.iter().copied());
        Err(format!("there is no drive '{name}'; there are {}{tip}", names.join(", ")))
    }
}

/// As it is written behind the `@`.
impl fmt::Display for DriveSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn name(drive: &DriveSpec, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            match drive {
                DriveSpec::One(name) => f.write_str(name),
                DriveSpec::Array { level, members, member, .. } => {
                    let level = match level {
                        Level::Raid0 => "raid0",
                        Level::Raid1 => "raid1",
                        Level::Raid5 => "raid5",
                    };
                    write!(f, "{level}:{members}x")?;
                    name(member, f)
                }
            }
        }
        name(self, f)?;
        match self {
            DriveSpec::One(_) => Ok(()),
            DriveSpec::Array { unit_bytes, .. } => write!(f, ",unit={}K", unit_bytes / 1024),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_arrays() {
        let parsed = DriveSpec::parse("raid0:2xraid1:2xst32430n,unit=32K", 1).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(parsed.to_string(), "raid0:2xraid1:2xst32430n,unit=32K");
        let one = DriveSpec::One("st32430n".to_owned()).device().unwrap_or_else(|e| panic!("{e}"));
        let all = parsed.device().unwrap_or_else(|e| panic!("{e}"));
        let share = all.capacity_sectors() as f64 / (2 * one.capacity_sectors()) as f64;
        assert!(share > 0.999 && share <= 1.0, "{share}");
    }

    /// Two of each of 5,000 levels were made one by one.
    #[test]
    fn nesting_has_a_limit() {
        let nested = |levels: usize| format!("{}st32430n", "raid0:2x".repeat(levels));
        let refused = |text: &str| DriveSpec::parse(text, 1).err().map(|(_, problem, _)| problem);
        assert_eq!(refused(&nested(4)), None);
        assert_eq!(refused(&nested(5)).as_deref(), Some("arrays are nested at most 4 deep"));
        assert_eq!(refused(&nested(5000)).as_deref(), Some("arrays are nested at most 4 deep"));
        assert_eq!(refused("raid0:16xraid1:16xst32430n"), None);
        assert_eq!(refused("raid0:16xraid1:17xst32430n").as_deref(), Some("an array has at most 256 drives in all"));
    }

    #[test]
    fn errors_say_where() {
        for (text, position, says) in [
            ("", 1, "missing"),
            ("vax", 1, "dec-rz26"),
            ("raid0:4", 1, "how many"),
            ("raid0:0xst32430n", 1, "members"),
            ("raid0:2xvax", 1, "no drive 'vax'"),
            ("st32430n,unit=64K", 10, "only an array"),
            ("raid0:2xst32430n,unit=64Q", 25, "unit of size"),
            ("raid0:2xst32430n,speed=1", 18, "no option"),
        ] {
            let (at, problem, _) = DriveSpec::parse(text, 1).err().unwrap_or_else(|| panic!("{text}"));
            assert!(at == position && problem.contains(says), "{text}: {at} {problem}");
        }
        let few = DriveSpec::parse("raid5:2xst32430n", 1).unwrap_or_else(|e| panic!("{e:?}")).device();
        assert!(few.is_err_and(|e| e.to_string().contains("at least 3")));
    }
}
