//! Stage 4: the dot product of a call's requests with a system vector.

use super::fallback::{Resolved, resolve};
use super::request::Request;
use system::vector::Class;
use system::{Distance, PricePoint, PriceTable, SystemProfile};
use trace::Op;

/// Prices the calls of one system and counts its entries.
#[derive(Clone, Debug)]
pub struct Pricer {
    table: PriceTable,
    resolved: Vec<Resolved>,
    /// How often each entry was charged, by its number.
    weights: Vec<f64>,
    /// Requests that were priced by a stand-in, by class number.
    substituted: Vec<u64>,
    /// Requests that could not be priced: class, operation, count.
    missing: Vec<(Class, Op, u64)>,
}

/// What changes all of a call's price.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Context {
    /// Multiplies its latency: write-back in the background, syncs of other threads.
    pub factor: f64,
    /// How far back the last call of its kind is.
    pub distance: Distance,
    /// Another thread is in a call.
    pub beside: bool,
}

/// A price, and the entry that made most of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Nanoseconds.
    pub ns: f64,
    /// Number of the entry with the largest share.
    pub dominant: u16,
}

/// A class that was priced by another.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Fallback {
    /// The class without entries.
    pub class: String,
    /// What stood in for it; empty: it was left out.
    pub instead: Vec<String>,
    /// Requests priced so.
    pub requests: u64,
}

impl Context {
    /// By what an entry's weight is multiplied.
    #[inline]
    fn of(self, entry: usize, table: &PriceTable) -> f64 {
        let beside = if self.beside { table.beside(entry) } else { 1.0 };
        self.factor * table.reused(entry, self.distance) * beside
    }
}

impl Pricer {
    /// Prepares a profile.
    pub fn new(profile: &SystemProfile) -> Pricer {
        let table = PriceTable::new(profile);
        Pricer {
            resolved: resolve(&table),
            weights: vec![0.0; table.names().len()],
            substituted: vec![0; Class::ALL.len()],
            missing: Vec::new(),
            table,
        }
    }

    /// Whether the profile has a class.
    pub fn has(&self, class: Class) -> bool {
        self.table.has(class)
    }

    /// What one operation of a class takes at a size, nanoseconds, whatever is around it; `None` where the profile has
    /// none.
    pub fn alone_ns(&self, class: Class, size: u64) -> Option<f64> {
        let point = self.table.point(class, size)?;
        let means = self.table.means_ns();
        Some(point.terms().map(|term| term.weight * means.get(usize::from(term.entry)).unwrap_or(&0.0)).sum())
    }

    /// Prices a call.
    #[inline]
    pub fn price(&mut self, op: Op, requests: &[Request], context: Context) -> Price {
        let mut price = Price { ns: 0.0, dominant: 0 };
        let mut largest = f64::NEG_INFINITY;
        for request in requests {
            let number = request.class as usize;
            if matches!(self.resolved.get(number), Some(Resolved::Own)) {
                self.charge(request.class, request.size, (request.weight, context), &mut price, &mut largest);
            } else {
                self.charge_other(op, request, context, &mut price, &mut largest);
            }
        }
        price
    }

    fn charge_other(&mut self, op: Op, request: &Request, context: Context, price: &mut Price, largest: &mut f64) {
        let number = request.class as usize;
        match self.resolved.get(number).cloned() {
            Some(Resolved::Instead(parts)) => {
                if let Some(count) = self.substituted.get_mut(number) {
                    *count += 1;
                }
                for part in parts {
                    let size = part.at.size(request.size);
                    self.charge(part.class, size, (request.weight, context), price, largest);
                }
            }
            _ => match self.missing.iter_mut().find(|m| m.0 == request.class && m.1 == op) {
                Some(missing) => missing.2 += 1,
                None => self.missing.push((request.class, op, 1)),
            },
        }
    }

    #[inline]
    fn charge(
        &mut self,
        class: Class,
        size: u64,
        (weight, context): (f64, Context),
        price: &mut Price,
        largest: &mut f64,
    ) {
        let Some(point) = self.table.point(class, size) else { return };
        let mut sum = 0.0;
        let means = self.table.means_ns();
        for term in point.terms() {
            let entry = usize::from(term.entry);
            let times = term.weight * weight * context.of(entry, &self.table);
            if let (Some(count), Some(mean)) = (self.weights.get_mut(entry), means.get(entry)) {
                *count += times;
                sum += times * mean;
            }
        }
        price.ns += sum;
        if sum > *largest {
            *largest = sum;
            price.dominant = point.first.entry;
        }
    }

    /// The entries that make a call's price, as [`price`](Pricer::price) charges them: number and weight of each.
    /// Charges nothing.
    pub fn terms(&self, requests: &[Request], context: Context, each: &mut dyn FnMut(u16, f64)) {
        let mut point = |class, size, weight: f64| {
            let terms = self.table.point(class, size);
            for term in terms.iter().flat_map(PricePoint::terms) {
                let factor = context.of(usize::from(term.entry), &self.table);
                each(term.entry, term.weight * weight * factor);
            }
        };
        for request in requests {
            match self.resolved.get(request.class as usize) {
                Some(Resolved::Own) => point(request.class, request.size, request.weight),
                Some(Resolved::Instead(parts)) => {
                    parts.iter().for_each(|p| point(p.class, p.at.size(request.size), request.weight));
                }
                _ => {}
            }
        }
    }

    /// Entry names by number.
    pub fn names(&self) -> &[String] {
        self.table.names()
    }

    /// How often each entry was charged, by number.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Mean costs by number, nanoseconds.
    pub fn means_ns(&self) -> &[f64] {
        self.table.means_ns()
    }

    /// The stand-ins that were used, in the order of the vector.
    pub fn fallbacks(&self) -> Vec<Fallback> {
        let used = Class::ALL.iter().zip(&self.resolved).zip(&self.substituted).filter(|(_, n)| **n > 0);
        used.filter_map(|((class, resolved), &requests)| {
            let Resolved::Instead(parts) = resolved else { return None };
            let instead = parts.iter().map(|p| p.class.name().to_owned()).collect();
            Some(Fallback { class: class.name().to_owned(), instead, requests })
        })
        .collect()
    }

    /// What could not be priced: class, operation, how many requests.
    pub fn missing(&self) -> &[(Class, Op, u64)] {
        &self.missing
    }
}
