//! Aging plans: read, and written from operations that Python makes.

use crate::errors::Raised;
use crate::interrupt::long;
use crate::table::Table;
use crate::workload::{json, read};
use aging::format::{PlanMeta, Reader, Source, Writer};
use aging::{AgingOp, DAY_NS, NodeId, OpKind};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// An aging workload on disk.
#[pyclass(frozen, module = "fsage._fsage")]
pub struct Plan {
    pub reader: Reader,
}

#[pymethods]
impl Plan {
    #[new]
    fn open(path: PathBuf) -> Result<Plan, Raised> {
        Ok(Plan { reader: Reader::open(&path)? })
    }

    /// What it says of itself, as JSON.
    fn meta(&self) -> Result<String, Raised> {
        json(self.reader.meta())
    }

    /// A row for each operation.
    #[pyo3(signature = (columns = Vec::new()))]
    fn operations(&self, py: Python<'_>, columns: Vec<String>) -> PyResult<Table> {
        read(py, self.reader.file(), &columns)
    }

    /// Goes through it and checks that each operation follows from those before it.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        long(py, |_| Ok(self.reader.verify()?))
    }
}

/// One operation as Python gives it: time, kind, node, directory, name, offset, size.
type Given = (u64, String, u64, u64, Option<Vec<u8>>, u64, u64);

/// Writes a plan, an operation at a time, each checked against the tree made so far.
#[pyclass(frozen, module = "fsage._fsage")]
pub struct PlanWriter {
    /// The writer and the time of the last operation; `None` once it is finished.
    open: Mutex<Option<(Writer, u64)>>,
}

impl PlanWriter {
    fn locked<T>(&self, act: impl FnOnce(&mut Option<(Writer, u64)>) -> Result<T, Raised>) -> Result<T, Raised> {
        act(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn finished() -> Raised {
    Raised::usage("this plan is finished")
}

#[pymethods]
impl PlanWriter {
    /// Begins a file; one of that name is replaced when the new one is whole.
    #[new]
    fn create(path: PathBuf, capacity_bytes: u64, block_bytes: u64) -> Result<PlanWriter, Raised> {
        if capacity_bytes == 0 || block_bytes == 0 {
            return Err(Raised::usage("capacity and block: more than 0 bytes"));
        }
        let writer = Writer::create(&path, capacity_bytes, block_bytes)?;
        Ok(PlanWriter { open: Mutex::new(Some((writer, 0))) })
    }

    /// Adds operations in their order.
    fn push(&self, operations: Vec<Given>) -> Result<(), Raised> {
        self.locked(|open| {
            let (writer, last_ns) = open.as_mut().ok_or_else(finished)?;
            for (t_ns, kind, node, dir, name, offset_bytes, size_bytes) in operations {
                let Some(kind) = OpKind::from_name(&kind) else {
                    let all: Vec<&str> = OpKind::ALL.into_iter().map(OpKind::name).collect();
                    return Err(Raised::usage(format!("{kind:?} is no operation; there are {}", all.join(", "))));
                };
                let name = name.map(Vec::into_boxed_slice);
                let (node, dir) = (NodeId(node), NodeId(dir));
                writer.push(AgingOp { t_ns, kind, node, dir, name, offset_bytes, size_bytes })?;
                *last_ns = t_ns;
            }
            Ok(())
        })
    }

    /// Ends the file and gives it its name; what it says of itself, as JSON.
    fn finish(
        &self,
        name: String,
        description: String,
        parameters: &str,
        seed: u64,
        days: Option<u32>,
    ) -> Result<String, Raised> {
        let parameters = serde_json::from_str(parameters).map_err(|error| Raised::usage(error.to_string()))?;
        let (writer, last_ns) = self.locked(|open| open.take().ok_or_else(finished))?;
        let least = u32::try_from(last_ns / DAY_NS + 1).unwrap_or(u32::MAX);
        let source = Source { kind: "python".to_owned(), name, description, inputs: Vec::new(), parameters };
        let meta = PlanMeta { source, seed, days: days.unwrap_or(least), ..PlanMeta::default() };
        json(&writer.finish(meta)?)
    }

    /// Drops what was written, unless it is finished.
    fn abandon(&self) -> Result<(), Raised> {
        self.locked(|open| {
            *open = None;
            Ok(())
        })
    }
}
