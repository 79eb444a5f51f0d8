//! Sizes drawn without luck: a deck has a card for each of many equal parts of a distribution, and is shuffled when it
//! is used up.
//!
//! A few large files hold most bytes; independent draws would leave their number, and with it every published sum, to
//! chance.

use crate::model::{Rng, SizeModel, SizeParameters};
use stats::random::{shuffle, unit};

/// A deck of sizes.
#[derive(Clone, Debug)]
pub(super) struct Deck {
    sizes: SizeModel,
    cards: Vec<u32>,
    drawn: usize,
}

impl Deck {
    /// Fewer `cards` keep a short run of draws closer to the distribution.
    pub(super) fn new(parameters: SizeParameters, capacity_bytes: f64, cards: u32) -> Deck {
        let sizes = SizeModel::new(parameters, parameters.max_share * capacity_bytes);
        Deck { sizes, cards: (0..cards).collect(), drawn: cards as usize }
    }

    /// The next size, at least a byte.
    pub(super) fn draw(&mut self, rng: &mut Rng) -> u64 {
        let share = self.draw_share(rng);
        self.sizes.quantile(share).max(1)
    }

    /// The next place in the distribution, 0 to 1.
    pub(super) fn draw_share(&mut self, rng: &mut Rng) -> f64 {
        if self.drawn >= self.cards.len() {
            self.drawn = 0;
            shuffle(rng, &mut self.cards);
        }
        let card = self.cards.get(self.drawn).copied().unwrap_or(0);
        self.drawn += 1;
        (f64::from(card) + unit(rng)) / self.cards.len() as f64
    }
}
