//! No order at all: every write is delayed. As fast as an order of writes could ever be made, and not safe: a crash may
//! leave what no check can put right.

use super::Mode;
use crate::Ffs;
use kernel::{BlockId, Cx};

/// The mode.
pub(crate) struct NoOrder;

impl Mode for NoOrder {
    fn in_order(_fs: &mut Ffs, _cx: &mut Cx, _id: BlockId) {}
}
