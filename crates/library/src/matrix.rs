//! Every workload on every system: predicted, and where it was, replayed.

use crate::{Library, LibraryError, Replayed};
use predict::pipeline::{self, CacheCounts, PredictError, PredictOptions, SystemPrediction};
use predict::rank::rank;
use serde::Serialize;
use system::SystemProfile;
use system::vector::parse_entry_name;

/// Workloads by systems.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Matrix {
    /// Version of fsage that predicted.
    pub version: String,
    /// Seed of the intervals.
    pub seed: u64,
    /// The workloads, by name.
    pub workloads: Vec<Listed>,
    /// The systems, by name.
    pub systems: Vec<Listed>,
    /// One for each workload and system, workload by workload.
    pub cells: Vec<Cell>,
}

/// A workload or a system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Listed {
    /// Its name: that of its file.
    pub name: String,
    /// What is known of it: what, and its value.
    pub facts: Vec<(String, String)>,
}

/// A workload on a system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Positions in the lists.
    pub workload: usize,
    #[allow(missing_docs)]
    pub system: usize,
    /// What is predicted.
    pub predicted: Option<CellPrediction>,
    /// Why nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// What a replay measured.
    pub replayed: Option<Replayed>,
}

/// What is predicted of a workload on a system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellPrediction {
    /// Time in the file system, nanoseconds, and its 95 % interval.
    pub total_ns: f64,
    #[allow(missing_docs)]
    pub low_ns: f64,
    #[allow(missing_docs)]
    pub high_ns: f64,
    /// Place among the systems from 1, and the share of draws in which it is the fastest.
    pub place: usize,
    #[allow(missing_docs)]
    pub p_fastest: f64,
    /// Whether it cannot be told from the fastest.
    pub ties_with_fastest: bool,
    /// By operation, the longest first.
    pub by_op: Vec<OpTime>,
    /// By class of elementary call: its name, what it means, how often, and time, nanoseconds; the longest first.
    pub by_class: Vec<(String, String, f64, f64)>,
    /// What the caches did.
    pub cache: CacheCounts,
    /// The data cache's size, bytes; 0: no limit.
    pub data_cache_bytes: u64,
}

/// Time of one operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpTime {
    /// Its name.
    pub op: String,
    /// Calls.
    pub calls: u64,
    /// Their time, nanoseconds.
    pub ns: f64,
}

/// Predicts every workload on every system. `watch` is told how many of how many cells are done.
///
/// # Errors
/// A file of the library is damaged, or there is nothing in it. A prediction that is refused is in its cell.
pub fn matrix(
    library: &Library,
    options: &PredictOptions,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Matrix, LibraryError> {
    let (workloads, systems) = (library.workloads()?, library.systems()?);
    let nothing = |what, todo| LibraryError::Nothing { folder: library.folder().to_owned(), what, todo };
    if workloads.is_empty() {
        return Err(nothing("workload", "add recordings with --add W.workload"));
    }
    if systems.is_empty() {
        return Err(nothing("system", "measure some with --on TARGET, or copy profiles into systems/"));
    }
    let profiles = systems.iter().map(|name| library.open_system(name)).collect::<Result<Vec<_>, _>>()?;
    let mut found = Matrix {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: options.seed,
        workloads: Vec::new(),
        systems: systems.iter().zip(&profiles).map(|(name, profile)| listed_system(name, profile)).collect(),
        cells: Vec::new(),
    };
    let of = (workloads.len() * systems.len()) as u64;
    for (w, workload) in workloads.iter().enumerate() {
        let reader = library.open_workload(workload)?;
        found.workloads.push(listed_workload(workload, reader.meta()));
        let mut predicted: Vec<Result<SystemPrediction, String>> = Vec::new();
        for (name, profile) in systems.iter().zip(&profiles) {
            watch(found.cells.len() as u64 + predicted.len() as u64, of);
            // Two profiles may bear one name; their files do not.
            let profile = SystemProfile { name: name.clone(), ..profile.clone() };
            let one = pipeline::predict(&reader, std::slice::from_ref(&profile), options);
            predicted.push(match one.map(|prediction| prediction.systems.into_iter().next()) {
                Ok(Some(prediction)) => Ok(prediction),
                Ok(None) => Err("nothing was predicted".to_owned()),
                // It is damaged, or we are to end: no cell says that.
                Err(PredictError::Workload(error)) => return Err(error.into()),
                Err(error) => Err(error.to_string()),
            });
        }
        let known: Vec<SystemPrediction> = predicted.iter().flatten().cloned().collect();
        let ranking = rank(&known, options.seed);
        for (s, prediction) in predicted.into_iter().enumerate() {
            let (predicted, refused) = match prediction {
                Ok(prediction) => {
                    let place = ranking.systems.iter().find(|place| place.system == prediction.system);
                    (place.map(|place| cell(&prediction, place)), None)
                }
                Err(why) => (None, Some(why)),
            };
            let replayed = library.replayed(workload, &systems[s])?;
            found.cells.push(Cell { workload: w, system: s, predicted, refused, replayed });
        }
    }
    Ok(found)
}

fn cell(prediction: &SystemPrediction, place: &predict::rank::Ranked) -> CellPrediction {
    let mut by_op: Vec<OpTime> =
        prediction.by_op.iter().map(|op| OpTime { op: op.op.clone(), calls: op.calls, ns: op.ns }).collect();
    by_op.sort_by(|a, b| b.ns.total_cmp(&a.ns).then_with(|| a.op.cmp(&b.op)));
    let mut by_class: Vec<(String, String, f64, f64)> = Vec::new();
    for share in &prediction.by_entry {
        let class = parse_entry_name(&share.entry).map(|(class, _)| class);
        let (name, meaning) = match class {
            Some(class) => (class.name().to_owned(), class.meaning().to_owned()),
            None => (share.entry.clone(), String::new()),
        };
        match by_class.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, _, weight, ns)) => (*weight, *ns) = (*weight + share.weight, *ns + share.ns),
            None => by_class.push((name, meaning, share.weight, share.ns)),
        }
    }
    by_class.sort_by(|a, b| b.3.total_cmp(&a.3).then_with(|| a.0.cmp(&b.0)));
    CellPrediction {
        total_ns: prediction.total_ns,
        low_ns: prediction.interval.low_ns,
        high_ns: prediction.interval.high_ns,
        place: place.place,
        p_fastest: place.p_fastest,
        ties_with_fastest: place.ties_with_fastest,
        by_op,
        by_class,
        cache: prediction.cache,
        data_cache_bytes: prediction.data_cache_bytes,
    }
}

fn listed_system(name: &str, profile: &SystemProfile) -> Listed {
    let facts = profile.environment.facts().into_iter().map(|(what, value)| (what.to_owned(), value)).collect();
    Listed { name: name.to_owned(), facts }
}

fn listed_workload(name: &str, meta: &trace::profile::Meta) -> Listed {
    let mut facts = vec![
        ("calls".to_owned(), units::show::count(meta.events)),
        ("recorded by".to_owned(), meta.tracer.name.clone()),
    ];
    if let Some(share) = meta.coverage_share {
        facts.push(("covered".to_owned(), units::show::share(share)));
    }
    if let Some(wall_ns) = meta.wall_ns {
        facts.push(("took when it was recorded".to_owned(), units::show::duration_ns(wall_ns as f64)));
    }
    Listed { name: name.to_owned(), facts }
}
