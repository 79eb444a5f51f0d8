//! What a command of ours starts, to be ended with it.
//!
//! A process whose parent has ended becomes init's, and nobody who waits for the parent hears of it. While
//! [`Offspring`] lives it becomes ours instead, so that it can be found.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, waitpid};

/// Everything that is started by us, or by whom we started, from now on.
#[derive(Debug)]
pub struct Offspring {
    /// Children that were there before, which are somebody else's to wait for.
    before: Vec<u32>,
}

impl Offspring {
    /// Takes in what is started from now on.
    ///
    /// # Errors
    /// The kernel knows no such thing (before Linux 3.4).
    pub fn adopt() -> std::io::Result<Offspring> {
        set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(Offspring { before: descendants() })
    }

    /// Kills what runs of it. Who waits for one of them is told of its end.
    pub fn kill(&self) {
        for pid in self.now() {
            let _ = kill_process(pid, Signal::KILL);
        }
    }

    fn now(&self) -> Vec<Pid> {
        let new = descendants().into_iter().filter(|pid| !self.before.contains(pid));
        new.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).collect()
    }
}

impl Drop for Offspring {
    /// Kills what runs of it, and waits until it is gone: each was waited for by whom it belongs to before, or by
    /// nobody.
    fn drop(&mut self) {
        loop {
            let now = self.now();
            self.kill();
            // What was killed leaves its own children to us, so there may be more to wait for the next time.
            let waited =
                now.iter().filter(|&&pid| matches!(waitpid(Some(pid), WaitOptions::empty()), Ok(Some(_)))).count();
            if waited == 0 {
                break;
            }
        }
        let _ = set_child_subreaper(None);
    }
}

/// Processes below this one, whoever started them.
fn descendants() -> Vec<u32> {
    below(&[std::process::id()], None).split_off(1)
}

/// These processes, and behind them all that run below them now, but for one and those below it.
pub fn below(pids: &[u32], without: Option<u32>) -> Vec<u32> {
    let mut parents: Vec<(u32, u32)> = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent| (pid, parent)).filter(|_| Some(pid) != without));
    }
    let mut all = pids.to_vec();
    let mut from = 0;
    while let Some(&parent) = all.get(from) {
        let children: Vec<u32> =
            parents.iter().filter(|&&(pid, of)| of == parent && !all.contains(&pid)).map(|&(pid, _)| pid).collect();
        all.extend(children);
        from += 1;
    }
    all
}
