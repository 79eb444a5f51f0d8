//! The first report anybody sees: what was done, the ranking, and what would change it.

use document::{Cell, Document, Table};
use posix::CacheState;
use predict::answer::Answer;
use predict::pipeline::Prediction;
use predict::present as prediction;
use predict::present::{by_entry_of, by_op_table, ranking_table};
use serde::Serialize;
use system::{Drift, SystemProfile};
use units::show;

/// What a quickstart did, beside its prediction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Quickstart {
    /// Whether the workload was recorded on this machine.
    pub recorded: bool,
    /// Why the bundled recording was used instead; empty where it was not.
    pub bundled_because: String,
    /// Where the bundled profiles come from.
    pub bundled: Vec<Origin>,
    /// Where the workload and the profile of what is here are kept; empty where -o says it, or where they are not.
    pub kept: String,
    /// The prediction here against a replay here.
    pub checked: Option<Checked>,
    /// Why there is no such check; empty where there is one.
    pub unchecked_because: String,
}

/// Where a bundled profile was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Origin {
    /// Its name.
    pub name: String,
    /// Kernel.
    pub kernel: String,
    /// Processors.
    pub cpu: String,
    /// Device or backing.
    pub device: String,
}

impl From<&SystemProfile> for Origin {
    fn from(profile: &SystemProfile) -> Origin {
        let e = &profile.environment;
        Origin {
            name: profile.name.clone(),
            kernel: e.kernel.to_string(),
            cpu: format!("{} x {}", e.cpus, e.cpu),
            device: e.device.clone(),
        }
    }
}

/// A prediction held against a replay.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Predicted total, nanoseconds, for the machine as it was measured.
    pub predicted_ns: f64,
    /// For the machine as it was just before the replays (median): carried over by the profile's references.
    pub predicted_now_ns: Option<f64>,
    /// How far it had moved by then.
    pub drift: Option<Drift>,
    /// Replayed total, the median of the replays, nanoseconds.
    pub replayed_ns: f64,
    /// The replays, in the order made, nanoseconds.
    pub replays_ns: Vec<f64>,
    /// How sure the replay is of its cold caches.
    pub cache_state: CacheState,
    /// Outcomes unlike the recorded ones.
    pub differences: u64,
    /// Calls replayed.
    pub calls: u64,
}

/// From the least to the most of the replays, as a share of the median, where it is said that they differ.
const BUSY: f64 = 0.3;

/// For the terminal: one screen or two.
pub fn short(said: &Quickstart, here: &Prediction, elsewhere: &Answer) -> Document {
    let mut document = Document::new("A small development workload, predicted and replayed here");
    document.paragraph(introduction(said));
    let here: Vec<_> = here.systems.iter().collect();
    document.heading("Where the time goes here").table(by_op_table(&here, 6));
    if let Some(system) = here.first() {
        document.table(by_entry_of(system, 6));
    }
    document.heading("Is it true?").paragraph(checked(said));
    document.heading("Which file system?").paragraph(origin(said)).table(ranking_table(&elsewhere.ranking));
    document.paragraph(prediction::ties(&elsewhere.ranking));
    document.table(prediction::tipping_table(&elsewhere.tipping, 4));
    document.heading("Next").list(next(said));
    document
}

/// For files: everything, after the same introduction.
pub fn full(said: &Quickstart, here: Document, elsewhere: Document) -> Document {
    let mut document = Document::new("fsage quickstart");
    document.paragraph(introduction(said));
    document.heading("Is it true?").paragraph(checked(said));
    document.append(titled("Here", here));
    let mut origins = Table::new(
        "bundled",
        "Where the bundled profiles were measured.",
        &[("Profile", "profile"), ("Kernel", "kernel"), ("Processors", "cpu"), ("Device", "device")],
    );
    for origin in &said.bundled {
        let cell = |text: &str| Cell::from(text);
        origins.row(vec![cell(&origin.name), cell(&origin.kernel), cell(&origin.cpu), cell(&origin.device)]);
    }
    document.heading("Which file system?").paragraph(origin(said)).table(origins);
    document.append(titled("On another machine", elsewhere));
    document
}

fn titled(title: &str, document: Document) -> Document {
    Document { title: title.to_owned(), ..document }
}

fn introduction(said: &Quickstart) -> String {
    if said.recorded {
        "The workload was recorded on this machine just now, and the file system here was measured just now.".to_owned()
    } else {
        format!(
            "The workload is the bundled recording, made on another machine ({}). The file system here was measured \
             just now.",
            said.bundled_because
        )
    }
}

/// The bundled profiles stand beside nothing that was measured elsewhere.
fn origin(said: &Quickstart) -> String {
    let origin = said.bundled.first().map_or(String::new(), |o| format!(" ({}, {})", o.cpu, o.kernel));
    format!(
        "The same workload on bundled profiles, which were all measured on one other machine{origin}: they are \
         compared with each other, and not with what is here. To compare file systems on this machine, measure them \
         here: as root, fsage measure ext4:8G, xfs:8G, btrfs:8G."
    )
}

fn next(said: &Quickstart) -> Vec<String> {
    let mut steps = Vec::new();
    if !said.kept.is_empty() {
        let directory = &said.kept;
        steps.push(format!(
            "explore it: the workload and the profile are in {directory}: fsage inspect \
             {directory}/quickstart.workload; fsage predict {directory}/quickstart.workload {directory}/here.system \
             --details"
        ));
    }
    steps.push("record your own: fsage record -o my.workload my-command".to_owned());
    steps.push(
        "then: fsage predict my.workload with profiles made by fsage measure on the systems you choose between"
            .to_owned(),
    );
    steps
}

fn checked(said: &Quickstart) -> String {
    let Some(c) = &said.checked else {
        return format!("The prediction could not be checked by a replay here: {}.", said.unchecked_because);
    };
    let predicted_ns = c.predicted_now_ns.unwrap_or(c.predicted_ns);
    let error = if c.replayed_ns > 0.0 { predicted_ns / c.replayed_ns - 1.0 } else { 0.0 };
    let now = match (c.predicted_now_ns, &c.drift) {
        (Some(now_ns), Some(drift)) => format!(
            ", and {} for the machine as it was just before the replays (times as long as when it was measured: {})",
            show::duration_ns(now_ns),
            drift.told()
        ),
        _ => String::new(),
    };
    let caches = match c.cache_state {
        CacheState::Cold => "caches cold, verified",
        CacheState::Warm => "caches warm",
        CacheState::Unverified => "caches asked to be cold; without root that cannot be verified",
    };
    let (least, most) =
        c.replays_ns.iter().fold((f64::INFINITY, 0.0f64), |(least, most), &ns| (least.min(ns), most.max(ns)));
    let spread = if c.replayed_ns > 0.0 { (most - least) / c.replayed_ns } else { 0.0 };
    let busy = if spread > BUSY {
        format!(
            " The replays took {} to {}: something else keeps this machine busy, and neither number is worth more than \
             that.",
            show::duration_ns(least),
            show::duration_ns(most)
        )
    } else {
        String::new()
    };
    format!(
        "Here the prediction says {}{now}; {} of the {} just took {} in the median ({} off; {caches}; {} unlike the \
         recorded {}).{busy}",
        show::duration_ns(c.predicted_ns),
        show::counted(c.replays_ns.len() as u64, "replay", "replays"),
        show::counted(c.calls, "call", "calls"),
        show::duration_ns(c.replayed_ns),
        show::signed_share(error),
        show::counted(c.differences, "outcome", "outcomes"),
        if c.differences == 1 { "one" } else { "ones" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use system::{Moved, Reference};

    fn quickstart(predicted_now_ns: Option<f64>, drift: Option<Drift>) -> Quickstart {
        let checked = Checked {
            predicted_ns: 100e6,
            predicted_now_ns,
            drift,
            replayed_ns: 125e6,
            replays_ns: vec![120e6, 125e6, 130e6],
            cache_state: CacheState::Cold,
            differences: 0,
            calls: 50_343,
        };
        Quickstart { checked: Some(checked), ..Quickstart::default() }
    }

    #[test]
    fn the_error_is_that_of_the_prediction_for_the_machine_as_it_was() {
        let moved = Moved { reference: Reference::Sync, then_ns: 100.0, now_ns: 120.0 };
        let said = checked(&quickstart(Some(120e6), Some(Drift { references: vec![moved] })));
        for part in ["says 100 ms, and 120 ms for", "sync 1.20", "took 125 ms in the median (-4.0 % off"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = checked(&quickstart(None, None));
        assert!(said.contains("says 100 ms; 3 replays") && said.contains("(-20.0 % off"), "{said}");
    }
}
