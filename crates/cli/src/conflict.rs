//! Why two arguments do not go together: what clap's refusal is told with.
//!
//! A conflict is declared where its argument is. Its reason stands here, and a test holds this list to those
//! declarations.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Arguments that exclude each other, and why.
struct Reason {
    /// The command's words behind `fsage`.
    command: &'static str,
    /// As a user writes it, without its value.
    argument: &'static str,
    /// Any of these with it; none: it stands alone.
    others: &'static [&'static str],
    /// Why, and what to do instead.
    why: &'static str,
}

const fn reason(
    command: &'static str,
    argument: &'static str,
    others: &'static [&'static str],
    why: &'static str,
) -> Reason {
    Reason { command, argument, others, why }
}

/// What a tree that has been benchmarked is not.
const BENCH_LEAVES_TRACES: &str = "a benchmark leaves traces in the aged file system, and what was kept would not be \
     what the plan leads to; run it twice, once with --bench and once without: one plan and one seed age alike";
const ONE_SUBJECT: &str = "a recording has one subject: a command that it starts, processes that run (--pid), a \
     control group (--cgroup), or a mount (--mount); record each by itself";
const ONE_VIEW: &str = "each shows something else of a file; run it once for each";
const ONE_MODE: &str = "each does something else with a sweep; run it once for each";
const SWEEP_MODES: &[&str] = &["--status", "--report", "--tasks", "--collect", "--dask"];

#[rustfmt::skip]
const REASONS: &[Reason] = &[
    reason("age", "--bench", &["--keep", "--image"], BENCH_LEAVES_TRACES),
    reason("age", "--bench", &["--resume"],
        "what is gone on with is kept, and a benchmark leaves traces in it; when it has ended, run fsage bench on it \
         and on a fresh one, and fsage bench --compare"),
    reason("age", "--like", &["--plan"], "a run has one plan: --plan names it, --like has it made; leave one out"),
    reason("age", "--years", &["--days"], "both say how long it is aged; leave one out"),
    reason("age", "--resume",
        &["TARGET", "--plan", "--like", "--data", "--writers", "--chunk", "--on-full", "--days", "--look-ahead",
            "--room", "--real-time",
          "--checkpoint-every", "--survey-every", "--snapshots-every", "--snapshots-blocks", "--seed", "--keep",
          "--output"],
        "a run goes on as it was begun: target, plan and options are in its state; leave them out"),
    reason("bench", "--compare", &["seqfile", "hotfiles", "scan", "COMMAND"],
        "--compare is about results that are there; run the benchmark first, with --json or -o"),
    reason("bench hotfiles", "--share", &["--newer-days", "--list"], "each says which files are hot; leave one out"),
    reason("bench hotfiles", "--list", &["--newer-days"], "each says which files are hot; leave one out"),
    reason("bench netnews", "--whole", &["--quick"], "--whole is the study's size, --quick a small one; leave one out"),
    reason("crash", "--state", &["--states"], "--state makes one state again, --states ends a search for many; leave \
        one out"),
    reason("crash", "--longest", &["--ops", "--workload"],
        "--longest is about sequences that are drawn; --ops and --workload say which operations there are; leave it \
         out"),
    reason("export", "--anonymise", &["--format"], "it writes a profile again, and that has one format; export what it \
        wrote with --format"),
    reason("fsck", "-n", &["--repair"], "-n changes nothing; leave one out"),
    reason("fsck", "--copy", &["--in-place"], "--copy repairs a copy, --in-place the image itself; leave one out"),
    reason("fsck", "--revert", &["--repair", "-n"], "--revert takes a repair back and checks nothing; run it by \
        itself"),
    reason("fsck", "--background", &["--repair", "-n"],
        "the check in the background gives back what a crash of Soft Updates has left, in the image itself; for \
         anything else unmount it and leave --background out"),
    reason("fsck", "--background", &["--revert"], "--revert takes a repair back and checks nothing; run it by itself"),
    reason("inspect", "--snapshot", &["--rows"], ONE_VIEW),
    reason("inspect", "--latency", &["--rows", "--snapshot"], ONE_VIEW),
    reason("inspect", "--against", &["--rows", "--snapshot", "--latency"], ONE_VIEW),
    reason("layout", "--compare", &["TARGET"], "--compare names its two targets itself: --compare A B"),
    reason("layout", "--series", &["TARGET", "--compare"], "--series shows surveys that are there; run it by itself"),
    reason("layout", "--output", &["--compare"], "-o writes one survey, and a comparison has two; survey each with -o, \
        then compare the files"),
    reason("measure", "--quick", &["--full"], "each says how thorough it is; leave one out"),
    reason("mkfs ffs", "--cpg", &["--fpg"], "each says how large a cylinder group is; leave one out"),
    reason("mkfs ffs", "--ipg", &["--density"], "each says how many inodes there are; leave one out"),
    reason("mount", "--snapshot", &["--read-only"], "a snapshot is a new file; mount the image for writing"),
    reason("mount", "--log", &["--foreground"], "in the foreground messages go to standard error; send that to the \
        file: 2> FILE"),
    reason("plan geriatrix", "--converge", &["--churn-bytes", "--turnovers"], "each says when to stop; leave one out"),
    reason("plan geriatrix", "--turnovers-max", &["--churn-bytes", "--turnovers"], "it is a limit for --converge; \
        leave it out"),
    reason("plan geriatrix", "--turnovers", &["--churn-bytes"], "each says when to stop; leave one out"),
    reason("plan personality", "--personality", &["NAME"], "both name the personality; leave one out"),
    reason("plan personality", "--list", &[], "it prints what there is and makes no plan; run it by itself"),
    reason("plan personality", "--show", &[], "it prints a personality's file and makes no plan; run it by itself"),
    reason("plan personality", "--years", &["--days"], "both say how long the plan is; leave one out"),
    reason("plan personality", "--fill", &["--utilisation"], "both say how full it is at the end; leave one out"),
    reason("plan personality", "--operations-per-day", &["--churn"], "both say how much is done in a day; leave one \
        out"),
    reason("predict", "--check", &["--stages-in", "--initial", "--pace"],
        "a check replays the recorded calls from cold caches and as fast as possible, and so must the prediction be; \
         leave it out"),
    reason("predict", "--stages-in", &["--stages-out", "--cache-sizes", "--processors"],
        "what is in the directory is priced as it is: no stage runs that could be written out or have other caches, \
         and no run time is predicted; leave one out"),
    reason("record", "--pid", &["CMD"], ONE_SUBJECT),
    reason("record", "--cgroup", &["CMD", "--pid"], ONE_SUBJECT),
    reason("record", "--mount", &["CMD", "--pid", "--cgroup"], ONE_SUBJECT),
    reason("reproduce", "--full", &["--quick"], "--full varies more of what was not published, --quick hardly \
        anything; leave one out"),
    reason("reproduce", "--list", &["KEY", "--quick", "--full", "--seed", "--seeds"], "--list shows what there is, and \
        runs nothing; leave one out"),
    reason("sweep", "--list", &["--dry-run", "--status", "--report", "--tasks", "--collect", "--dask"], ONE_MODE),
    reason("sweep", "--dry-run", SWEEP_MODES, ONE_MODE),
    reason("sweep", "--status", &["--report", "--tasks", "--collect", "--dask"], ONE_MODE),
    reason("sweep", "--report", &["--tasks", "--collect", "--dask"], ONE_MODE),
    reason("sweep", "--tasks", &["--collect", "--dask"], ONE_MODE),
    reason("sweep", "--collect", &["--dask"], ONE_MODE),
    reason("snapshot", "--into", &["--output"], "--into chooses the name, --output is one; leave one out"),
    reason("snapshot", "--quiet", &["--json"], "--quiet prints nothing, --json a result; leave one out"),
];

/// Adds to a refusal of arguments that exclude each other why they do, and what to do instead.
pub fn explain(mut error: clap::Error) -> clap::Error {
    if error.kind() == ErrorKind::ArgumentConflict {
        let whys: Vec<_> = reasons(&error).into_iter().map(Into::into).collect();
        if !whys.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(whys));
        }
    }
    error
}

/// The reasons of a refusal, each once.
fn reasons(error: &clap::Error) -> Vec<&'static str> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(one)) => vec![name(one)],
        Some(ContextValue::Strings(several)) => several.iter().map(|one| name(one)).collect(),
        _ => Vec::new(),
    };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let (mut these, those) = (text(ContextKind::InvalidArg), text(ContextKind::PriorArg));
    these.extend(text(ContextKind::InvalidSubcommand));
    let mut found = Vec::new();
    for reason in REASONS.iter().filter(|reason| is_of(&usage, reason.command)) {
        let is_met = match reason.others {
            [] => these.contains(&reason.argument),
            _ => these.iter().any(|a| those.iter().any(|b| reason.is_of(a, b))),
        };
        if is_met && !found.contains(&reason.why) {
            found.push(reason.why);
        }
    }
    found
}

/// Whether a usage is that of a command, whatever the program is called.
fn is_of(usage: &str, command: &str) -> bool {
    let words = usage.trim_start().trim_start_matches("Usage: ").split_once(' ').map_or("", |(_, words)| words);
    words.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// An argument as clap shows it, without its value: `--keep [<IMAGE>]` is `--keep`, and `[TARGET]` is `TARGET`.
fn name(shown: &str) -> &str {
    let first = shown.split([' ', '=']).next().unwrap_or_default();
    let first = if first.starts_with('-') { first.split('[').next().unwrap_or_default() } else { first };
    first.trim_matches(['[', ']', '<', '>', '.'])
}

impl Reason {
    fn is_of(&self, a: &str, b: &str) -> bool {
        let one_way = |a: &str, b: &str| self.argument == a && self.others.contains(&b);
        one_way(a, b) || one_way(b, a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    /// Every two arguments that are declared to exclude each other, by command.
    fn declared(path: &str, command: &clap::Command, found: &mut Vec<(String, String, String)>) {
        for argument in command.get_arguments() {
            let shown = argument.to_string();
            if argument.is_exclusive_set() {
                found.push((path.to_owned(), name(&shown).to_owned(), String::new()));
            }
            for other in command.get_arg_conflicts_with(argument) {
                found.push((path.to_owned(), name(&shown).to_owned(), name(&other.to_string()).to_owned()));
            }
        }
        for below in command.get_subcommands() {
            declared(format!("{path} {}", below.get_name()).trim_start(), below, found);
        }
    }

    #[test]
    fn every_conflict_has_its_reason_and_every_reason_its_conflict() {
        let mut command = crate::args::Cli::command();
        command.build();
        let mut all = Vec::new();
        declared("", &command, &mut all);
        assert!(all.len() > 40, "{all:?}");
        let has = |reason: &Reason, (command, a, b): &(String, String, String)| {
            reason.command == command
                && if b.is_empty() { reason.argument == a && reason.others.is_empty() } else { reason.is_of(a, b) }
        };
        for pair in &all {
            assert_eq!(REASONS.iter().filter(|reason| has(reason, pair)).count(), 1, "{pair:?}");
        }
        for reason in REASONS.iter().filter(|reason| (reason.command, reason.argument) != ("bench", "--compare")) {
            let others = if reason.others.is_empty() { &[""][..] } else { reason.others };
            for other in others {
                let declares = |(command, a, b): &(String, String, String)| {
                    command == reason.command
                        && ((a == reason.argument && b == other) || (b == reason.argument && a == other))
                };
                assert!(all.iter().any(declares), "{} {} {other}", reason.command, reason.argument);
            }
        }
    }
}
