//! Progress on standard error, and only where a person is watching.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

/// A bar of `total` steps (0: a spinner), hidden unless standard error is a terminal.
pub fn bar(total: u64, what: &str) -> ProgressBar {
    let target =
        if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target((total > 0).then_some(total), target);
    let template = if total > 0 { "{msg} {wide_bar} {percent} % {eta}" } else { "{spinner} {msg} {elapsed}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    if total == 0 {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

/// A line on standard error about what is going on.
pub fn note(text: &str) {
    say(&units::text::printable(text));
}

/// The same of what is printable. Where nobody can be told (a full disk, a terminal that is gone), the work goes on.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "fsage: {text}");
}

/// Moves a bar to `done` of `total` steps of a stage; a spinner becomes a bar once the total is known.
pub fn update(bar: &ProgressBar, stage: &str, done: u64, total: Option<u64>) {
    if bar.is_hidden() {
        return;
    }
    if bar.message() != stage {
        bar.set_message(stage.to_owned());
    }
    if bar.length() != total {
        match total {
            Some(total) => bar.set_length(total),
            None => bar.unset_length(),
        }
        let template = if total.is_some() { "{msg} {wide_bar} {percent} % {eta}" } else { "{spinner} {msg} {elapsed}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
    }
    bar.set_position(done);
}
