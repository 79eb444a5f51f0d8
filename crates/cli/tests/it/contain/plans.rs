//! Aging workloads, replayed.

use super::stage::{Stage, User, open_directory};
use super::{Dice, Seeds};
use crate::common::plan_file::{self, Row};
use crate::common::{code, stderr};
use aging::{AgingOp, DAY_NS, NodeId, OpKind, Tree};

/// Rows of a row group, which is refused whole: what is before it has been done by then.
const GROUP_ROWS: usize = 50;
/// Rows of one plan.
const ROWS_OF_ONE: usize = 600;
/// The usual setting.
const ROWS: u64 = 30 * ROWS_OF_ONE as u64;

/// Names that no plan may give, as they stand in a file; the outside's own is added.
const HOSTILE: [&str; 14] = [
    "..",
    ".",
    "",
    "a/b",
    "../outside/victim/secret",
    "../../outside",
    "../../outside/victim/secret",
    "../../outside/victim/new",
    "/",
    "..\\x2foutside",
    "\\x2e\\x2e",
    "a\\x00b",
    "\\x",
    "a/../../outside/victim/dir",
];
/// Names that it may give: what a link leads to is one of them.
const PLAIN: [&str; 12] = ["a", "b", "c", "L", "M", "outside", "victim", "secret", "...", "x", "xxxxxxxxxxxxxxxx", "~"];

struct Planner {
    dice: Dice,
    outside: String,
    tree: Tree,
    made: u64,
    now_ns: u64,
    /// One row in so many breaks a rule, if it comes to that.
    breaks_one_in: usize,
}

impl Planner {
    fn node(&mut self) -> NodeId {
        NodeId(self.dice.below(usize::try_from(self.made).expect("few nodes") + 2) as u64)
    }

    /// A row at random, and whether the rules allow it after those before.
    fn row(&mut self) -> (Row, bool) {
        use OpKind::{Append, Create, Delete, Mkdir, Overwrite, Rename, Symlink, Truncate};
        let mostly = [Mkdir, Create, Create, Symlink, Symlink, Rename, Rename, Append, Overwrite, Truncate, Delete];
        let kind = if self.dice.below(4) == 0 { self.dice.one_of(&OpKind::ALL) } else { self.dice.one_of(&mostly) };
        let makes = matches!(kind, Mkdir | Create | Symlink);
        let mut op = AgingOp::new(self.now_ns, kind, if makes { NodeId(self.made + 1) } else { self.node() });
        let mut name = None;
        if makes || kind == Rename {
            op.dir = self.node();
            name = (self.dice.below(3) > 0).then(|| self.dice.one_of(&PLAIN).to_owned());
            op.name = name.as_deref().map(|name| name.as_bytes().into());
        }
        op.size_bytes = self.dice.one_of(&[0, 1, 16, 255, 4096, 100_000]);
        if kind == OpKind::Overwrite {
            op.size_bytes = 1;
        }
        let mut allowed = true;
        match self.dice.below(100) {
            0..=29 if name.is_some() => {
                let hostile = self.dice.below(HOSTILE.len() + 1);
                let hostile = HOSTILE.get(hostile).map_or(self.outside.clone(), |name| (*name).to_owned());
                // But for its name it would be done, as near to the outside as may be.
                op.dir = if self.dice.below(2) == 0 { NodeId::ROOT } else { op.dir };
                op.name = Some(hostile.as_bytes().into());
                if self.tree.clone().apply(&op).is_err() {
                    return self.row();
                }
                name = Some(hostile);
                allowed = false;
            }
            30 => {
                op.t_ns = self.dice.one_of(&[0, u64::MAX, DAY_NS]);
                allowed = false;
            }
            31 => {
                op.offset_bytes = self.dice.one_of(&[1, u64::MAX, 1 << 40]);
                op.size_bytes = self.dice.one_of(&[u64::MAX, u64::MAX / 2, 1 << 60]);
                allowed = false;
            }
            _ => {}
        }
        let signed = |number: u64| i64::from_ne_bytes(number.to_ne_bytes());
        let row = Row {
            t_ns: signed(op.t_ns),
            op: kind.name(),
            file_id: signed(op.node.0),
            dir_id: signed(op.dir.0),
            name: name.map(|name| name.into_bytes().into()),
            offset_bytes: signed(op.offset_bytes),
            size_bytes: signed(op.size_bytes),
        };
        allowed = allowed && self.tree.apply(&op).is_ok();
        if allowed {
            self.now_ns += 1_000_000;
            self.made += u64::from(makes);
        }
        (row, allowed)
    }

    fn rows(&mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        while rows.len() < ROWS_OF_ONE {
            let (row, allowed) = self.row();
            // Most that is impossible is so in no way that would lead anywhere: the replay ends there.
            let named =
                row.name.as_ref().is_some_and(|name| !PLAIN.iter().any(|plain| plain.as_bytes() == name.data()));
            let one_in = self.breaks_one_in.saturating_mul(if named { 1 } else { 30 });
            if allowed || self.dice.below(one_in) == 0 {
                rows.push(row);
            }
        }
        rows
    }
}

fn nothing_happens_outside(user: User) {
    let mut stage = Stage::new(user);
    let directory = open_directory();
    let plan = directory.path().join("hostile.aging");
    let (mut done, mut refused) = (0, 0);
    let mut seeds = Seeds::new(ROWS);
    while let Some(seed) = seeds.next() {
        let outside = stage.at("outside/victim/secret").display().to_string();
        // Some plans break no rule: what they do is all done.
        let breaks_one_in = [usize::MAX, 500, 20][seed as usize % 3];
        let mut planner =
            Planner { dice: Dice::new(seed), outside, tree: Tree::new(), made: 0, now_ns: 0, breaks_one_in };
        let rows = planner.rows();
        let groups: Vec<Vec<Row>> = rows.chunks(GROUP_ROWS).map(<[Row]>::to_vec).collect();
        plan_file::write(&plan, &groups, 1);
        let mut command = stage.fsage();
        command.arg("age").arg(stage.at("target")).arg("--plan").arg(&plan).args(["--json", "--room", "64M"]);
        let output = stage.run(&mut command);
        match code(&output) {
            0 => done += 1,
            4 => refused += 1,
            code => panic!("seed {seed}: exit code {code}: {}", stderr(&output)),
        }
        let left = crate::common::names(&stage.at("target"));
        assert!(left.iter().all(|name| !name.starts_with("fsage-")), "seed {seed}: left behind: {left:?}");
        seeds.made += rows.len() as u64;
    }
    println!("{} operations as {user:?}: {done} plans done, {refused} refused", seeds.made);
    assert!(seeds.only || done > 0 && refused > 0, "every plan had the same end");
}

#[test]
fn hostile_plans_touch_nothing_outside() {
    nothing_happens_outside(User::Same);
}

#[test]
fn hostile_plans_touch_nothing_of_an_ordinary_user() {
    if testkit::need(testkit::Need::Root) {
        nothing_happens_outside(User::Nobody);
    }
}
