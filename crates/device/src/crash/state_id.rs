//! The name of a state that a power failure leaves.

use std::fmt;
use std::str::FromStr;

/// The name of a state: with the log and the plan it is made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId {
    /// Entries of the log that are complete.
    pub point: u32,
    /// Which of the point's choices.
    pub choice: u32,
}

/// `12.3`: the third choice at the moment when twelve requests are complete.
impl fmt::Display for StateId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.point, self.choice)
    }
}

impl FromStr for StateId {
    type Err = String;

    fn from_str(text: &str) -> Result<StateId, String> {
        let parts = text.split_once('.').and_then(|(point, choice)| Some((point.parse().ok()?, choice.parse().ok()?)));
        let (point, choice) = parts.ok_or_else(|| format!("'{text}' names no state; they look like 12.3"))?;
        Ok(StateId { point, choice })
    }
}
