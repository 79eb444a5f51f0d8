//! Concurrent processes, interleaved in virtual time.

use super::Lab;
use crate::Volume;
use crate::engine::{ActorId, Event};
use posix::{Errno, Outcome, Process, Reply, Step, interrupt};
use std::io;

/// How often a signal is looked for, in events.
const POLL_EVENTS: u32 = 4096;

/// A process of a run.
struct Running<'p> {
    process: Box<dyn Process + 'p>,
    /// The call under way: when it began, what it will answer.
    call: Option<(u64, Result<Reply, Errno>)>,
    /// Whether a pause is under way.
    pausing: bool,
    blocked: bool,
    ended: bool,
}

impl<V: Volume> Lab<V> {
    pub(super) fn run_processes(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        let mut running: Vec<Running<'_>> = processes
            .into_iter()
            .map(|process| Running { process, call: None, pausing: false, blocked: false, ended: false })
            .collect();
        let ran = self.run_all(&mut running);
        if ran.is_err() {
            self.abandon(&running);
        }
        ran
    }

    fn run_all(&mut self, running: &mut [Running<'_>]) -> io::Result<()> {
        let now_ns = self.engine.now_ns();
        for number in 0..running.len() {
            self.engine.wake_at(actor(number)?, now_ns);
        }
        let mut events = 0u32;
        while running.iter().any(|one| !one.ended) {
            events = events.wrapping_add(1);
            if events.is_multiple_of(POLL_EVENTS) && interrupt::requested() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
            }
            match self.engine.next(&mut self.cx) {
                Event::Ready { actor, at_ns } => match running.get(actor.0 as usize) {
                    Some(one) if !one.ended => self.go_on(running, actor, at_ns)?,
                    Some(_) => {}
                    None => self.daemon_ready(actor),
                },
                Event::Arrived => self.writes_arrived(),
                Event::Nothing => return Err(deadlock(running)),
            }
        }
        Ok(())
    }

    /// The processes get no further. Requests that their programs have not handed over yet are, so that nobody waits
    /// for them for ever.
    fn abandon(&mut self, running: &[Running<'_>]) {
        for number in 0..running.len() as u32 {
            self.engine.hand_over_rest(&mut self.cx, ActorId(number));
        }
        self.engine.forget_processes(&mut self.cx);
    }

    /// A process's call, pause or wait is over: asks for its next steps, until something takes time in which others do
    /// something.
    fn go_on(&mut self, running: &mut [Running<'_>], actor: ActorId, mut at_ns: u64) -> io::Result<()> {
        let number = actor.0 as usize;
        loop {
            let one = &mut running[number];
            let last = one.call.take().map(|(start_ns, result)| Outcome { start_ns, dur_ns: at_ns - start_ns, result });
            let progress = last.is_some() | std::mem::take(&mut one.pausing);
            let step = one.process.next(last.as_ref());
            match step {
                Step::Call(call) => {
                    let result = self.perform(&call);
                    one.call = Some((at_ns, result));
                    self.wake_blocked(running, actor, progress, at_ns);
                    let done = self.engine.start(&mut self.cx, actor);
                    let Some(done_ns) = done else { return Ok(()) };
                    if self.engine.is_preceded(done_ns, actor) {
                        self.engine.wake_at(actor, done_ns);
                        return Ok(());
                    }
                    at_ns = done_ns;
                }
                Step::PauseNs(ns) => {
                    one.pausing = true;
                    self.engine.wake_at(actor, at_ns.saturating_add(ns));
                    self.wake_blocked(running, actor, progress, at_ns);
                    return Ok(());
                }
                Step::Blocked => {
                    one.blocked = true;
                    self.wake_blocked(running, actor, progress, at_ns);
                    let stuck = running.iter().all(|one| one.ended || one.blocked);
                    return if stuck { Err(deadlock(running)) } else { Ok(()) };
                }
                Step::Done => {
                    one.ended = true;
                    self.wake_blocked(running, actor, true, at_ns);
                    return Ok(());
                }
            }
        }
    }

    /// A process has got on: those that wait for that are asked again.
    fn wake_blocked(&mut self, running: &mut [Running<'_>], by: ActorId, progress: bool, at_ns: u64) {
        if !progress {
            return;
        }
        for (number, one) in (0..).zip(running) {
            if ActorId(number) != by && std::mem::take(&mut one.blocked) {
                self.engine.wake_at(ActorId(number), at_ns);
            }
        }
    }
}

fn actor(number: usize) -> io::Result<ActorId> {
    u32::try_from(number)
        .ok()
        .map(ActorId)
        .filter(|actor| *actor < ActorId::TIMER)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "too many processes"))
}

fn deadlock(running: &[Running<'_>]) -> io::Error {
    let live = running.iter().filter(|one| !one.ended).count();
    let message = format!("{live} processes wait for one another and none can go on");
    io::Error::new(io::ErrorKind::Deadlock, message)
}
