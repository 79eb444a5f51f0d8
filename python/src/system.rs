//! System profiles.

use crate::errors::Raised;
use crate::rows;
use crate::table::Table;
use crate::workload::json;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use system::{SystemProfile, bundled, called};

/// What one file system on one machine costs.
#[pyclass(frozen, module = "fsage._fsage")]
pub struct System {
    pub profile: SystemProfile,
}

#[pymethods]
impl System {
    /// The profile that a word names: a bundled one's name, or a file.
    #[staticmethod]
    fn load(word: PathBuf) -> Result<System, Raised> {
        match &mut called(&word)?[..] {
            [one] => Ok(System { profile: std::mem::take(&mut one.profile) }),
            several => {
                let names: Vec<&str> = several.iter().map(|called| called.stem.as_str()).collect();
                let message =
                    format!("{}: is {} of them ({}); name one", word.display(), names.len(), names.join(", "));
                Err(Raised::usage(message))
            }
        }
    }

    /// A profile from its text.
    #[staticmethod]
    fn parse(text: &str) -> Result<System, Raised> {
        Ok(System { profile: SystemProfile::parse(text, Path::new("the text"))? })
    }

    /// Names of the profiles that are part of the program.
    #[staticmethod]
    fn bundled_names() -> Vec<&'static str> {
        bundled::names().collect()
    }

    #[getter]
    fn name(&self) -> &str {
        &self.profile.name
    }

    /// The same under another name.
    fn renamed(&self, name: String) -> System {
        System { profile: SystemProfile { name, ..self.profile.clone() } }
    }

    /// The same with another cost of an entry, nanoseconds.
    fn with_cost(&self, entry: &str, ns: f64) -> Result<System, Raised> {
        Ok(System { profile: self.profile.with_override(entry, ns).map_err(|wrong| Raised::usage(wrong.to_string()))? })
    }

    /// Everything as JSON.
    fn json(&self) -> Result<String, Raised> {
        json(&self.profile)
    }

    /// As the text of a `.system` file.
    fn text(&self) -> Result<String, Raised> {
        self.profile.to_text().map_err(Raised::usage)
    }

    /// Writes it; a file that is there is replaced by the whole new one.
    fn save(&self, path: PathBuf) -> Result<(), Raised> {
        Ok(self.profile.save(&path)?)
    }

    /// The vector: a row for each entry.
    fn entries(&self) -> Table {
        let rows: Vec<Value> = self
            .profile
            .entries
            .iter()
            .map(|(name, entry)| {
                let found = system::vector::parse_entry_name(name);
                let class = found.map(|(class, _)| class.name());
                let size_bytes = found.and_then(|(class, size)| class.is_curve().then_some(size));
                json!({
                    "entry": name, "class": class, "size_bytes": size_bytes, "mean_ns": entry.mean_ns,
                    "low_ns": entry.low_ns,
                    "high_ns": entry.high_ns, "samples": entry.samples, "rounds_ns": entry.rounds_ns,
                })
            })
            .collect();
        Table::new(rows::table(&rows))
    }
}
