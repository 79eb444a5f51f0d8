//! Records by number.

use super::record::{Kind, Number, Placed, Record, State};
use slotmap::SlotMap;

/// All records.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    records: SlotMap<Number, Record>,
    /// Records that there have been.
    made: u64,
}

impl Table {
    /// A new record, younger than all others.
    pub(super) fn add(&mut self, kind: Kind) -> Number {
        self.made += 1;
        self.records.insert(Record::new(self.made, kind))
    }

    pub(super) fn get(&self, number: Number) -> Option<&Record> {
        self.records.get(number)
    }

    pub(super) fn get_mut(&mut self, number: Number) -> Option<&mut Record> {
        self.records.get_mut(number)
    }

    pub(super) fn contains(&self, number: Number) -> bool {
        self.records.contains_key(number)
    }

    pub(super) fn remove(&mut self, number: Number) -> Option<Record> {
        self.records.remove(number)
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// All of them, in no order.
    pub(super) fn values(&self) -> impl Iterator<Item = &Record> {
        self.records.values()
    }

    /// The oldest first.
    pub(super) fn sort(&self, numbers: &mut [Number]) {
        numbers.sort_unstable_by_key(|number| self.get(*number).map(|record| record.age));
    }

    pub(super) fn is_held(&self, number: Number) -> bool {
        self.get(number).is_some_and(|record| record.state == State::Held)
    }

    /// Whether a record waits for nothing.
    pub(super) fn is_ready(&self, number: Number) -> bool {
        self.get(number).is_some_and(|record| record.waits.is_empty())
    }

    pub(super) fn set_written(&mut self, number: Number) {
        if let Some(record) = self.get_mut(number) {
            record.state = State::Written;
        }
    }

    pub(super) fn placed(&self, number: Number) -> Option<&Placed> {
        match &self.get(number)?.kind {
            Kind::Direct { placed, .. } | Kind::Indirect { placed, .. } => Some(placed),
            _ => None,
        }
    }
}
