//! The steps of an interval in an order in which each is possible, and as near to their times as that allows.
//!
//! Of the steps that wait for nothing, the earliest is done next. Where the rest wait for each other in a circle (names
//! exchanged, a directory moved into its former child), one of them is a move: its node is set aside under a name of
//! the planner's, which lets those that wait for its old place go on. With every moved node set aside no circle is
//! left, so this ends.

use super::interval::{Interval, What};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A step, by its index.
    Do(u32),
    /// Moves the node of a step (a move) out of the way.
    SetAside(u32),
}

/// Hands out the steps in order, each with its time, which never goes back.
pub(super) fn in_order<E>(
    interval: &Interval,
    from_ns: u64,
    mut each: impl FnMut(u64, Next) -> Result<(), E>,
) -> Result<(), E> {
    let steps = &interval.steps;
    let mut order = Order::new(interval);
    let mut now_ns = from_ns;
    if interval.directory_moves.len() > 1 {
        for index in &interval.directory_moves {
            each(now_ns, Next::SetAside(*index))?;
            order.release(*index);
        }
    }
    let mut done = 0;
    let mut next_move = 0;
    loop {
        while let Some(Reverse((t_ns, index))) = order.ready.pop() {
            now_ns = now_ns.max(t_ns);
            each(now_ns, Next::Do(index))?;
            order.release(index);
            done += 1;
        }
        if done == steps.len() {
            return Ok(());
        }
        let stuck = (next_move..steps.len() as u32).find(|i| order.is_stuck_move(*i));
        debug_assert!(stuck.is_some(), "a circle of steps without a move");
        let Some(index) = stuck else { return Ok(()) };
        next_move = index + 1;
        each(now_ns, Next::SetAside(index))?;
        order.release(index);
    }
}

struct Order<'a> {
    interval: &'a Interval,
    /// Steps that wait for step `i` are `waiting[starts[i]..starts[i + 1]]`.
    starts: Vec<u32>,
    waiting: Vec<u32>,
    /// How many steps each still waits for.
    missing: Vec<u32>,
    released: Vec<bool>,
    ready: BinaryHeap<Reverse<(u64, u32)>>,
}

impl<'a> Order<'a> {
    fn new(interval: &'a Interval) -> Order<'a> {
        let n = interval.steps.len();
        let mut missing = vec![0; n];
        let mut starts = vec![0u32; n + 1];
        for (first, then) in &interval.before {
            starts[*first as usize + 1] += 1;
            missing[*then as usize] += 1;
        }
        for i in 0..n {
            starts[i + 1] += starts[i];
        }
        let mut fill = starts.clone();
        let mut waiting = vec![0; interval.before.len()];
        for (first, then) in &interval.before {
            let at = &mut fill[*first as usize];
            waiting[*at as usize] = *then;
            *at += 1;
        }
        let free = (0u32..).zip(&interval.steps).zip(&missing).filter(|(_, missing)| **missing == 0);
        let ready = free.map(|((i, step), _)| Reverse((step.t_ns, i))).collect();
        Order { interval, starts, waiting, missing, released: vec![false; n], ready }
    }

    /// Lets go what waits for a step; the second time (a move set aside before) does nothing.
    fn release(&mut self, index: u32) {
        let i = index as usize;
        if std::mem::replace(&mut self.released[i], true) {
            return;
        }
        for at in self.starts[i]..self.starts[i + 1] {
            let then = self.waiting[at as usize];
            let missing = &mut self.missing[then as usize];
            *missing -= 1;
            if *missing == 0 {
                self.ready.push(Reverse((self.interval.steps[then as usize].t_ns, then)));
            }
        }
    }

    fn is_stuck_move(&self, index: u32) -> bool {
        let i = index as usize;
        let is_move = matches!(self.interval.steps.get(i).map(|s| s.what), Some(What::Move { .. }));
        is_move && !self.released[i] && self.missing[i] > 0
    }
}
