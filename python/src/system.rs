//! System profiles.

use crate::errors::Raised;
use crate::rows;
use crate::table::Table;
use crate::workload::json;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use system::{SystemProfile, bundled};

/// What one file system on one machine costs.
#[pyclass(frozen, module = "fsage._fsage")]
pub struct System {
    pub profile: SystemProfile,
}

#[pymethods]
impl System {
    /// Reads a profile.
    #[staticmethod]
    fn load(path: PathBuf) -> Result<System, Raised> {
        Ok(System { profile: SystemProfile::load(&path)? })
    }

    /// A profile from its text.
    #[staticmethod]
    fn parse(text: &str) -> Result<System, Raised> {
        Ok(System { profile: SystemProfile::parse(text, Path::new("the text"))? })
    }

    /// One of the profiles that are part of the program.
    #[staticmethod]
    fn bundled(name: &str) -> Result<Option<System>, Raised> {
        Ok(bundled::system(name)?.map(|profile| System { profile }))
    }

    /// Their names.
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
                    "entry": name, "class": class, "size_bytes": size_bytes, "mean_ns": entry.mean_ns, "low_ns": entry.low_ns,
                    "high_ns": entry.high_ns, "samples": entry.samples, "rounds_ns": entry.rounds_ns,
                })
            })
            .collect();
        Table::new(rows::table(&rows))
    }
}
