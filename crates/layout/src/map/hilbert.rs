//! Hilbert's curve: a way through a square of 2^k by 2^k cells that visits each once, each beside the one before it.
//!
//! Addresses laid along it keep their neighbourhood in two dimensions, so that a contiguous piece of a disk is a
//! compact patch. The curve begins at (0, 0) and ends at (2^k - 1, 0). Method: Hilbert 1891; the loop is the usual one
//! by quadrants, from the least significant pair of bits up.

/// The largest order with which positions fit 32 bits.
pub const ORDER_MAX: u8 = 31;

/// The cell `index` steps along the curve of an order, as (column, row). `index` is taken modulo 4^order; an order
/// above [`ORDER_MAX`] is taken as that.
pub fn position(order: u8, index: u64) -> (u32, u32) {
    let (mut x, mut y) = (0u32, 0u32);
    for level in 0..u32::from(order.min(ORDER_MAX)) {
        let side = 1u32 << level;
        let pair = index >> (2 * level) & 3;
        let right = pair >> 1 & 1 == 1;
        let down = (pair & 1 == 1) != right;
        (x, y) = turned(x, y, side, right, down);
        x += if right { side } else { 0 };
        y += if down { side } else { 0 };
    }
    (x, y)
}

/// How many steps along the curve a cell is: the inverse of [`position`]. Coordinates are taken modulo 2^order.
pub fn index(order: u8, column: u32, row: u32) -> u64 {
    let order = u32::from(order.min(ORDER_MAX));
    let (mut x, mut y) = (column & ((1u32 << order) - 1), row & ((1u32 << order) - 1));
    let mut index = 0u64;
    for level in (0..order).rev() {
        let side = 1u32 << level;
        let (right, down) = (x & side != 0, y & side != 0);
        let pair = match (right, down) {
            (false, false) => 0,
            (false, true) => 1,
            (true, true) => 2,
            (true, false) => 3,
        };
        index |= pair << (2 * level);
        (x, y) = turned(x & (side - 1), y & (side - 1), side, right, down);
    }
    index
}

/// A position within a quadrant, turned as the curve turns in that quadrant; its own inverse.
fn turned(x: u32, y: u32, side: u32, right: bool, down: bool) -> (u32, u32) {
    match (right, down) {
        (_, true) => (x, y),
        (true, false) => (side - 1 - y, side - 1 - x),
        (false, false) => (y, x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_curves_are_hilberts() {
        let curve = |order| (0..1u64 << (2 * order)).map(|i| position(order, i)).collect::<Vec<_>>();
        assert_eq!(curve(0), [(0, 0)]);
        assert_eq!(curve(1), [(0, 0), (0, 1), (1, 1), (1, 0)]);
        let second = [
            [(0, 0), (1, 0), (1, 1), (0, 1)],
            [(0, 2), (0, 3), (1, 3), (1, 2)],
            [(2, 2), (2, 3), (3, 3), (3, 2)],
            [(3, 1), (2, 1), (2, 0), (3, 0)],
        ];
        assert_eq!(curve(2), second.concat());
    }

    #[test]
    fn small_curves_visit_every_cell_and_step_to_a_neighbour() {
        for order in 0..=6u8 {
            let cells = 1u64 << (2 * order);
            let mut seen = vec![false; cells as usize];
            let mut before = None;
            for i in 0..cells {
                let (x, y) = position(order, i);
                let place = ((y as usize) << order) + x as usize;
                assert!(!std::mem::replace(&mut seen[place], true), "order {order}: ({x}, {y}) twice");
                if let Some((bx, by)) = before.replace((x, y)) {
                    assert_eq!(x.abs_diff(bx) + y.abs_diff(by), 1, "order {order}, step {i}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn position_and_index_are_inverse(order in 0u8..=ORDER_MAX, random: u64) {
            let i = random & ((1 << (2 * order)) - 1);
            let (x, y) = position(order, i);
            prop_assert_eq!(index(order, x, y), i);
        }

        #[test]
        fn neighbours_on_the_curve_are_neighbours_in_the_square(order in 1u8..=ORDER_MAX, random: u64) {
            let i = random & ((1 << (2 * order)) - 1);
            prop_assume!(i > 0);
            let ((ax, ay), (bx, by)) = (position(order, i - 1), position(order, i));
            prop_assert_eq!(ax.abs_diff(bx) + ay.abs_diff(by), 1);
        }
    }
}
