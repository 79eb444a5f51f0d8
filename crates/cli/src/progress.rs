//! Progress on standard error: a bar where a person is watching, and a line now and then where a file or a pipe is.

use indicatif::style::ProgressTracker;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A bar of `total` steps (0: a spinner); where standard error is no terminal, a line now and then.
pub fn bar(total: u64, what: &str) -> ProgressBar {
    let target = if io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::term_like_with_hz(Box::new(Lines::new(say)), 1)
    };
    let bar = ProgressBar::with_draw_target((total > 0).then_some(total), target);
    bar.set_style(style(total > 0));
    bar.set_message(what.to_owned());
    if total == 0 {
        bar.enable_steady_tick(if io::stderr().is_terminal() { Duration::from_millis(200) } else { FIRST });
    }
    bar
}

/// The same for work that says itself in its message what is left: nothing is reckoned beside that.
pub fn bounded(total: u64, what: &str) -> ProgressBar {
    let bar = bar(total, what);
    let template =
        if io::stderr().is_terminal() { "{prefix}{msg} {wide_bar} {percent} %" } else { "{prefix}{msg}: {percent} %" };
    bar.set_style(ProgressStyle::with_template(template).expect("the template is well formed"));
    bar
}

/// How a bar looks, or a line.
fn style(has_total: bool) -> ProgressStyle {
    let template = match (io::stderr().is_terminal(), has_total) {
        (true, true) => "{prefix}{msg} {wide_bar} {percent} % {left}",
        (true, false) => "{spinner} {prefix}{msg} {elapsed}",
        (false, true) => "{prefix}{msg}: {percent} %, {left}",
        (false, false) => "{prefix}{msg}: for {elapsed}",
    };
    let style = ProgressStyle::with_template(template).expect("the templates are well formed");
    style.with_key("left", Left::default())
}

/// How long a stage still takes if its other steps take as long as those behind it, on average. indicatif's own
/// estimate weighs the latest steps most and grows while one lasts: where steps differ (experiments) it said days where
/// there were seconds.
#[derive(Clone, Debug, Default)]
struct Left {
    /// Where the stage was when it was first looked at, and when.
    began: Option<(u64, Instant)>,
    last: u64,
    now: Option<Instant>,
}

impl Left {
    fn look(&mut self, at: u64, now: Instant) {
        if self.began.is_none() || at < self.last {
            self.began = Some((at, now));
        }
        (self.last, self.now) = (at, Some(now));
    }

    fn at(&self, at: u64, total: u64) -> Option<Duration> {
        let ((from, began), now) = (self.began?, self.now?);
        let done = at.saturating_sub(from);
        let each_s = now.duration_since(began).as_secs_f64() / done as f64;
        (done > 0).then(|| Duration::from_secs_f64(each_s * total.saturating_sub(at) as f64))
    }
}

impl ProgressTracker for Left {
    fn clone_box(&self) -> Box<dyn ProgressTracker> {
        Box::new(self.clone())
    }

    fn tick(&mut self, state: &ProgressState, now: Instant) {
        self.look(state.pos(), now);
    }

    fn reset(&mut self, state: &ProgressState, now: Instant) {
        *self = Left::default();
        self.look(state.pos(), now);
    }

    fn write(&self, state: &ProgressState, text: &mut dyn fmt::Write) {
        // A word that cannot be written is not shown.
        let _ = match self.at(state.pos(), state.len().unwrap_or(0)) {
            Some(left) => write!(text, "about {:#} left", HumanDuration(left)),
            None => write!(text, "time left not known yet"),
        };
    }
}

/// A line on standard error about what is going on.
pub fn note(text: &str) {
    say(&units::text::printable(text));
}

/// The same of what is printable. Where nobody can be told (a full disk, a terminal that is gone), the work goes on.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "fsage: {text}");
}

/// Moves a bar to `done` of `total` steps of a stage; a spinner becomes a bar once the total is known.
pub fn update(bar: &ProgressBar, stage: &str, done: u64, total: Option<u64>) {
    let next_stage = bar.message() != stage;
    if next_stage {
        bar.set_message(stage.to_owned());
    }
    if next_stage || bar.length() != total {
        match total {
            Some(total) => bar.set_length(total),
            None => bar.unset_length(),
        }
        bar.set_style(style(total.is_some()));
    }
    bar.set_position(done);
}

/// The first line comes after so long: what is shorter is not worth one.
const FIRST: Duration = Duration::from_secs(10);
/// And the next ones at this distance.
const BETWEEN: Duration = Duration::from_secs(30);

/// What a bar draws on where nothing can be drawn: it keeps what was drawn last, and says it now and then.
#[derive(Debug)]
struct Lines {
    state: Mutex<State>,
    say: fn(&str),
}

#[derive(Debug)]
struct State {
    drawn: String,
    due: Instant,
}

impl Lines {
    fn new(say: fn(&str)) -> Lines {
        Lines { state: Mutex::new(State { drawn: String::new(), due: Instant::now() + FIRST }), say }
    }

    fn draw(&self, text: &str) {
        if let Ok(mut state) = self.state.lock() {
            state.drawn.push_str(text);
        }
    }

    /// Says what is drawn, if it is time to.
    fn say_at(&self, now: Instant) {
        let Ok(mut state) = self.state.lock() else { return };
        let drawn = std::mem::take(&mut state.drawn);
        let text = drawn.trim();
        if now >= state.due && !text.is_empty() {
            state.due = now + BETWEEN;
            (self.say)(&units::text::printable(text));
        }
    }
}

impl TermLike for Lines {
    fn width(&self) -> u16 {
        u16::MAX
    }

    fn move_cursor_up(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.draw(text);
        Ok(())
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.draw(text);
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        if let Ok(mut state) = self.state.lock() {
            state.drawn.clear();
        }
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.say_at(Instant::now());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All experiments at once said "84 %, about 3d left" when there was a minute.
    #[test]
    fn a_long_step_does_not_make_what_is_left_long() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut left = Left::default();
        left.look(0, began);
        assert_eq!(left.at(0, 45), None, "nothing is behind it");
        left.look(38, after(152));
        assert_eq!(left.at(38, 45), Some(Duration::from_secs(28)));
        left.look(38, after(304));
        assert_eq!(left.at(38, 45), Some(Duration::from_secs(56)), "in proportion to all of the time");
        // Another stage, and one that is gone on with in the middle.
        left.look(2, after(400));
        assert_eq!(left.at(2, 10), None);
        left.look(4, after(410));
        assert_eq!(left.at(4, 10), Some(Duration::from_secs(30)));
    }

    /// A run of hours into a file said nothing at all.
    #[test]
    fn a_line_comes_now_and_then_where_nothing_can_be_drawn() {
        static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let lines = Lines::new(|text| SAID.lock().expect("one thread").push(text.to_owned()));
        let begin = lines.state.lock().expect("one thread").due - FIRST;
        for (second, percent) in [(1, 1), (9, 5), (11, 7), (20, 10), (42, 20), (60, 30)] {
            lines.clear_line().expect("nothing can fail");
            lines.write_str(&format!("replaying: {percent} %")).expect("nothing can fail");
            lines.say_at(begin + Duration::from_secs(second));
        }
        assert_eq!(*SAID.lock().expect("one thread"), ["replaying: 7 %", "replaying: 20 %"]);
    }
}
