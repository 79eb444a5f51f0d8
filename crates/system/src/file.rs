//! Reading and writing `NAME.system`.
//!
//! Written in one order always: the header, then the entries in the vector's order and by size. Read strictly: an
//! unknown version, field or entry name is refused with its place, since people write these files too.

use super::edit::nearest_entry;
use super::{
    Behaviour, Entry, FORMAT_VERSION, Parameters, Reference, Reuse, SyncBeside, SystemProfile, SystemProfileError,
    WriteLoad,
};
use crate::vector::{Class, entry_name, parse_entry_name};
use posix::{CacheState, Environment};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use stats::QUANTILES;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use toml::Spanned;
use units::text::line_and_column;

/// No profile comes near this; a file that does is something else.
const FILE_BYTES_MAX: u64 = 64 << 20;

impl SystemProfile {
    /// Reads a profile and checks every value.
    pub fn load(path: &Path) -> Result<SystemProfile, SystemProfileError> {
        let io = |source| SystemProfileError::Io { path: path.to_owned(), source };
        let bytes = posix::input::read(path, FILE_BYTES_MAX).map_err(io)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => SystemProfile::parse(text, path),
            Err(e) => {
                let valid = String::from_utf8_lossy(bytes.get(..e.valid_up_to()).unwrap_or_default());
                let (line, column) = line_and_column(&valid, valid.len());
                let message = "not UTF-8 text, so not a system profile".to_owned();
                Err(SystemProfileError::Syntax { path: path.to_owned(), line, column, message })
            }
        }
    }

    /// Reads a profile from text; `path` is what errors name.
    pub fn parse(text: &str, path: &Path) -> Result<SystemProfile, SystemProfileError> {
        let syntax = |e: toml::de::Error| {
            let (line, column) = line_and_column(text, e.span().map_or(0, |span| span.start));
            SystemProfileError::Syntax { path: path.to_owned(), line, column, message: e.message().to_owned() }
        };
        let versioned: Versioned = toml::from_str(text).map_err(syntax)?;
        if versioned.format_version != u64::from(FORMAT_VERSION) {
            let (found, expected) = (versioned.format_version, FORMAT_VERSION);
            return Err(SystemProfileError::Version { path: path.to_owned(), found, expected });
        }
        let written: Written = toml::from_str(text).map_err(syntax)?;
        let mut entries = BTreeMap::new();
        for (name, entry) in written.entries {
            if !is_canonical(name.get_ref()) {
                let (line, column) = line_and_column(text, name.span().start);
                let (suggestion, name) = (nearest_entry(name.get_ref()), name.into_inner());
                return Err(SystemProfileError::UnknownEntry { path: path.to_owned(), line, column, name, suggestion });
            }
            entries.insert(name.into_inner(), entry.0);
        }
        let profile = SystemProfile {
            format_version: FORMAT_VERSION,
            name: written.name,
            provenance: written.provenance,
            measured_unix_s: written.measured_unix_s,
            environment: written.environment,
            parameters: written.parameters,
            behaviour: written.behaviour,
            write_load: written.write_load,
            sync_beside: written.sync_beside,
            entries,
            missing: written.missing,
            references: written.references.into_iter().map(|(reference, entry)| (reference, entry.0)).collect(),
        };
        profile.validate().map_err(|(what, problem)| SystemProfileError::Value {
            path: path.to_owned(),
            what,
            problem,
        })?;
        Ok(profile)
    }

    /// Writes the profile through a new file beside it, so that a failed write leaves an older profile whole.
    pub fn save(&self, path: &Path) -> Result<(), SystemProfileError> {
        let text = self.to_text().map_err(|problem| SystemProfileError::Value {
            path: path.to_owned(),
            what: "profile".to_owned(),
            problem,
        })?;
        posix::output::write_durably(path, text.as_bytes())
            .map_err(|source| SystemProfileError::Io { path: path.to_owned(), source })
    }

    /// The profile as TOML. Fails where a value is out of range (see [`SystemProfile::validate`]).
    pub fn to_text(&self) -> Result<String, String> {
        self.validate().map_err(|(what, problem)| format!("{what}: {problem}"))?;
        let header = Header {
            format_version: self.format_version,
            name: &self.name,
            provenance: &self.provenance,
            measured_unix_s: self.measured_unix_s,
            environment: &self.environment,
            parameters: &self.parameters,
            behaviour: &self.behaviour,
            write_load: &self.write_load,
            sync_beside: &self.sync_beside,
            missing: &self.missing,
        };
        let mut text = String::from("# A system profile of fsage; docs/formats.md explains every field.\n");
        text += &toml::to_string(&header).map_err(|e| e.to_string())?;
        for (reference, entry) in &self.references {
            text += &format!("\n[references.{}]\n", reference.name());
            text += &toml::to_string(entry).map_err(|e| e.to_string())?;
        }
        let mut ordered: Vec<((Class, u64), &Entry)> =
            self.entries.iter().filter_map(|(name, entry)| Some((parse_entry_name(name)?, entry))).collect();
        ordered.sort_by_key(|&(key, _)| key);
        for ((class, at), entry) in ordered {
            text += &format!("\n[entries.{}]\n", entry_name(class, at));
            text += &toml::to_string(entry).map_err(|e| e.to_string())?;
        }
        Ok(text)
    }

    /// Whether every value is one that can be measured; otherwise the field and the problem.
    pub fn validate(&self) -> Result<(), (String, String)> {
        let wrong = |what: &str, problem: &str| Err((what.to_owned(), problem.to_owned()));
        let p = &self.parameters;
        if !(1..=1 << 30).contains(&p.block_bytes) || !(1..=p.block_bytes).contains(&p.fragment_bytes) {
            return wrong("parameters.block_bytes", "a block has 1 byte to 1 GB, and a fragment no more than a block");
        }
        for (what, value) in [
            ("parameters.writeback_bytes_per_s", p.writeback_bytes_per_s),
            ("parameters.writeback_files_per_s", p.writeback_files_per_s),
            ("parameters.timer_overhead_ns", p.timer_overhead_ns),
            ("environment.used_share", self.environment.used_share),
        ] {
            if !is_cost(value) {
                return wrong(what, "must be a finite number and not negative");
            }
        }
        let mut load_before = -1.0;
        for (at, point) in self.write_load.iter().enumerate() {
            let what = format!("write_load[{at}]");
            if ![point.load_bytes_per_s, point.time_s, point.slowdown].into_iter().all(is_cost) {
                return wrong(&what, "must be finite numbers and not negative");
            }
            if point.load_bytes_per_s <= load_before {
                return wrong(&what, "loads must rise");
            }
            load_before = point.load_bytes_per_s;
        }
        let mut others_before = 0;
        for (at, point) in self.sync_beside.iter().enumerate() {
            let what = format!("sync_beside[{at}]");
            if !is_cost(point.slowdown) {
                return wrong(&what, "slowdown must be a finite number and not negative");
            }
            if point.others <= others_before {
                return wrong(&what, "numbers of others must rise, from 1 on");
            }
            others_before = point.others;
        }
        if let Some(name) = self.entries.keys().find(|name| !is_canonical(name)) {
            return wrong(&format!("entries.{name}"), "not an entry of the system vector");
        }
        let entries = self.entries.iter().map(|(name, entry)| (format!("entries.{name}"), entry));
        let references = self.references.iter();
        let references = references.map(|(reference, entry)| (format!("references.{}", reference.name()), entry));
        for (what, entry) in entries.chain(references) {
            let values = [entry.mean_ns, entry.low_ns, entry.high_ns];
            if !values.iter().chain(&entry.quantiles_ns).chain(&entry.rounds_ns).copied().all(is_cost) {
                return wrong(&what, "times must be finite numbers and not negative");
            }
            if entry.reuse.is_some_and(|r| !(r.distance.is_finite() && r.distance >= 1.0 && is_cost(r.power))) {
                return wrong(
                    &what,
                    "reuse_distance must be at least 1, and reuse_power a finite number and not negative",
                );
            }
            if entry.low_ns > entry.high_ns {
                return wrong(&what, "low_ns is above high_ns");
            }
            if !matches!(entry.quantiles_ns.len(), 0) && entry.quantiles_ns.len() != QUANTILES.len() {
                return wrong(
                    &what,
                    "quantiles_ns must have 10 values (1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9 %) or none",
                );
            }
            if !entry.quantiles_ns.is_sorted() {
                return wrong(&what, "quantiles_ns must rise");
            }
        }
        Ok(())
    }
}

fn is_cost(value: f64) -> bool {
    value.is_finite() && value >= 0.0
}

/// Whether the name is an entry's and written as we write it (`rdc_4096`, not `rdc_04096`: that would be a second
/// point).
fn is_canonical(name: &str) -> bool {
    parse_entry_name(name).is_some_and(|(class, at)| entry_name(class, at) == name)
}

#[derive(Deserialize)]
struct Versioned {
    format_version: u64,
}

fn is_unknown(behaviour: &&Behaviour) -> bool {
    behaviour.is_unknown()
}

#[derive(Serialize)]
struct Header<'a> {
    format_version: u32,
    name: &'a str,
    provenance: &'a str,
    measured_unix_s: u64,
    environment: &'a Environment,
    parameters: &'a Parameters,
    #[serde(skip_serializing_if = "is_unknown")]
    behaviour: &'a Behaviour,
    write_load: &'a [WriteLoad],
    #[serde(skip_serializing_if = "<[SyncBeside]>::is_empty")]
    sync_beside: &'a [SyncBeside],
    missing: &'a BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    // Read by `Versioned`; named here so that it is not an unknown field.
    #[serde(rename = "format_version")]
    _format_version: u64,
    name: String,
    #[serde(default)]
    provenance: String,
    #[serde(default)]
    measured_unix_s: u64,
    #[serde(default)]
    environment: Environment,
    #[serde(default)]
    parameters: Parameters,
    #[serde(default)]
    behaviour: Behaviour,
    #[serde(default)]
    write_load: Vec<WriteLoad>,
    #[serde(default)]
    sync_beside: Vec<SyncBeside>,
    #[serde(default)]
    missing: BTreeMap<String, String>,
    #[serde(default)]
    references: BTreeMap<Reference, WrittenEntry>,
    #[serde(default)]
    entries: BTreeMap<Spanned<String>, WrittenEntry>,
}

/// An entry as written: a table, or just a duration (`open = "1.5us"`).
struct WrittenEntry(Entry);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryTable {
    mean_ns: f64,
    low_ns: Option<f64>,
    high_ns: Option<f64>,
    #[serde(default)]
    samples: u64,
    #[serde(default)]
    quantiles_ns: Vec<f64>,
    #[serde(default)]
    rounds_ns: Vec<f64>,
    reuse_distance: Option<f64>,
    reuse_power: Option<f64>,
    cache: Option<CacheState>,
}

impl<'de> Deserialize<'de> for WrittenEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = WrittenEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"1.5us\", or a table with mean_ns")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<WrittenEntry, E> {
        let ns = units::duration_ns(text.trim()).map_err(|wrong| {
            let shown: String = text.chars().take(40).collect();
            E::custom(format!(
                "{shown:?} is not a duration ({wrong}); write a number with a unit: ns, us, ms or s (\"1.5us\")"
            ))
        })?;
        Ok(WrittenEntry(Entry::exactly(ns)))
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<WrittenEntry, M::Error> {
        let table = EntryTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let reuse = match (table.reuse_distance, table.reuse_power) {
            (Some(distance), Some(power)) => Some(Reuse { distance, power }),
            (None, None) => None,
            _ => return Err(de::Error::custom("reuse_distance and reuse_power go together")),
        };
        Ok(WrittenEntry(Entry {
            mean_ns: table.mean_ns,
            low_ns: table.low_ns.unwrap_or(table.mean_ns),
            high_ns: table.high_ns.unwrap_or(table.mean_ns),
            samples: table.samples,
            quantiles_ns: table.quantiles_ns,
            rounds_ns: table.rounds_ns,
            reuse,
            cache: table.cache,
        }))
    }
}
