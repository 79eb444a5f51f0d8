//! What runs a file system, and so whose time passes.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What the laboratory calls its kernel, before its version: how files tell it from others.
const LABORATORY: &str = "fsage laboratory";

/// The kernel that a file system runs in. In files it is a text, which is read once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Kernel {
    /// That of a machine, as `uname -sr` says it; empty where it is not known.
    Host(String),
    /// The laboratory's, in virtual time; what its text has behind the name.
    Laboratory(String),
}

impl Kernel {
    /// The laboratory's, which simulates a machine; empty where that has no name.
    pub fn laboratory(version: &str, machine: &str) -> Kernel {
        let machine = if machine.is_empty() { String::new() } else { format!(", machine {machine}") };
        Kernel::Laboratory(format!(" {version}{machine}"))
    }

    /// Whether times are virtual: the same calls take the same time, always, and one run says all there is to say.
    pub fn is_in_virtual_time(&self) -> bool {
        matches!(self, Kernel::Laboratory(_))
    }

    /// What is to be said above times measured there; empty where they are what everybody takes them for.
    pub fn whose_times(&self) -> &'static str {
        if self.is_in_virtual_time() { "All times are virtual." } else { "" }
    }
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel::Host(String::new())
    }
}

impl From<String> for Kernel {
    fn from(text: String) -> Kernel {
        match text.strip_prefix(LABORATORY) {
            Some(behind) => Kernel::Laboratory(behind.to_owned()),
            None => Kernel::Host(text),
        }
    }
}

impl From<Kernel> for String {
    fn from(kernel: Kernel) -> String {
        match kernel {
            Kernel::Host(text) => text,
            Kernel::Laboratory(behind) => format!("{LABORATORY}{behind}"),
        }
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from(self.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_written_as_it_was_read() {
        for (text, is_virtual) in [
            ("Linux 6.12.30", false),
            ("", false),
            ("fsage laboratory 0.1.0", true),
            ("fsage laboratory 0.1.0, machine today", true),
        ] {
            let json = format!("{text:?}");
            let kernel: Kernel = serde_json::from_str(&json).unwrap();
            assert_eq!((kernel.is_in_virtual_time(), serde_json::to_string(&kernel).unwrap()), (is_virtual, json));
        }
        assert_eq!(Kernel::laboratory("1.2", "today").to_string(), "fsage laboratory 1.2, machine today");
    }
}
