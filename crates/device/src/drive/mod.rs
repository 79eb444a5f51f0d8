//! Drives as TOML files: the figures of a model, each with its source.
//!
//! A file names the drive and has a `[disk]` or an `[ssd]` table; `[sources]` says where each figure is from, by the
//! longest beginning of its key (`"disk.seek"` speaks for `disk.seek.table`). A source that begins with `[estimate]`
//! marks figures that nobody has published. A file may name another drive as its `base` and give only what differs. A
//! key that is not known, a value that cannot be, a figure without a source and a source without a figure are errors
//! that name file and key. docs/devices.md has the keys.

mod catalogue;
mod description;
mod error;
mod figures;
mod overlay;
mod written;

pub use catalogue::catalogue;
pub use description::{Description, Fact, Quantity, ZoneFact};
pub use error::DriveError;
pub use figures::Figure;
pub(crate) use written::leaves;
pub use written::written;

use crate::Device;
use crate::disk::spec::DiskSpec;
use crate::disk::{Disk, QueuedDisk};
use crate::ssd::{Ssd, SsdSpec};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A drive's file, read and checked.
#[derive(Clone, Debug)]
pub struct Drive {
    /// How it is called on the command line.
    pub key: String,
    /// Maker and model.
    pub name: String,
    /// What it is, in a sentence.
    pub summary: String,
    /// The model's figures.
    pub model: Model,
    /// Every figure of the file with its source, by key.
    pub figures: Vec<Figure>,
    /// What can be and is seldom meant, by key, with what it leads to.
    pub warnings: Vec<String>,
}

/// What kind of drive, with its figures.
#[derive(Clone, Debug)]
pub enum Model {
    /// A hard disk.
    Disk(Box<DiskSpec>),
    /// A flash drive.
    Ssd(Box<SsdSpec>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DriveFile {
    name: String,
    summary: String,
    #[serde(default)]
    disk: Option<DiskSpec>,
    #[serde(default)]
    ssd: Option<SsdSpec>,
    sources: BTreeMap<String, String>,
}

/// No drive's file is longer.
const FILE_BYTES_MAX: u64 = 4 << 20;

impl Drive {
    /// A drive by its key in the catalogue, or else by the path of its file.
    pub fn find(name: &str) -> Result<Drive, DriveError> {
        match catalogue().iter().find(|(key, _)| *key == name) {
            Some((key, text)) => Drive::parse(key, key, text),
            None if name.ends_with(".toml") || name.contains('/') => Drive::load(Path::new(name)),
            None => Err(DriveError::Unknown {
                name: name.to_owned(),
                known: catalogue().iter().map(|(key, _)| *key).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// A drive from its file.
    pub fn load(path: &Path) -> Result<Drive, DriveError> {
        let file = path.display().to_string();
        let io = |source| DriveError::Io { file: file.clone(), source };
        let text = posix::input::read_text(path, FILE_BYTES_MAX).map_err(io)?;
        let key = path.file_stem().map_or_else(|| file.clone(), |stem| stem.to_string_lossy().into_owned());
        Drive::parse(&key, &file, &text)
    }

    /// A drive from the text of its file; `file` is for messages.
    pub fn parse(key: &str, file: &str, text: &str) -> Result<Drive, DriveError> {
        let syntax = |error: toml::de::Error| {
            let (line, column) = units::text::line_and_column(text, error.span().map_or(0, |span| span.start));
            DriveError::Syntax {
                file: file.to_owned(),
                message: format!(
                    "line {line}, column {column} ({}): {}",
                    text.lines().nth(line - 1).unwrap_or_default().trim(),
                    error.message()
                ),
            }
        };
        let mut table: toml::Table = toml::from_str(text).map_err(syntax)?;
        let parsed: DriveFile = match table.remove("base") {
            None => toml::from_str(text).map_err(syntax)?,
            Some(base) => {
                table = overlay::over_base(&base, table).map_err(|(key, why)| DriveError::Invalid {
                    file: file.to_owned(),
                    key,
                    why,
                })?;
                table.clone().try_into().map_err(syntax)?
            }
        };
        let invalid = |(key, why): (String, String)| DriveError::Invalid { file: file.to_owned(), key, why };
        let mut warnings = Vec::new();
        let model = match (parsed.disk, parsed.ssd) {
            (Some(disk), None) => {
                disk.check().map_err(|(key, why)| invalid((format!("disk.{key}"), why)))?;
                let traps = disk.traps().into_iter();
                warnings.extend(traps.map(|(key, why)| format!("{file}: disk.{key}: {why}")));
                Model::Disk(Box::new(disk))
            }
            (None, Some(ssd)) => {
                ssd.check().map_err(|(key, why)| invalid((format!("ssd.{key}"), why)))?;
                Model::Ssd(Box::new(ssd))
            }
            _ => return Err(invalid(("disk".into(), "one of [disk] and [ssd] must be there, and not both".into()))),
        };
        let figures = figures::figures(&table, &parsed.sources).map_err(invalid)?;
        Ok(Drive { key: key.to_owned(), name: parsed.name, summary: parsed.summary, model, figures, warnings })
    }

    /// The device it describes.
    pub fn device(&self) -> Box<dyn Device> {
        match &self.model {
            Model::Disk(spec) => Box::new(QueuedDisk::new(Disk::new((**spec).clone()))),
            Model::Ssd(spec) => Box::new(Ssd::new((**spec).clone())),
        }
    }
}
