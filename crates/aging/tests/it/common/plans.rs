//! Plans made up for tests: every kind of operation, at a utilisation that rises and then stays.

use aging::format::{Placement, PlanMeta, Writer};
use aging::{AgingOp, DAY_NS, NodeId, OpKind};
use posix::FileKind;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::Path;

/// What a made-up plan is to be like.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub capacity_bytes: u64,
    /// Use to rise to over the first third, and to stay at.
    pub share: f64,
    pub operations: u64,
    pub days: u32,
    pub mean_bytes: u64,
    /// Names given by the plan, and taken again after deletion.
    pub named: bool,
    pub placement: Placement,
    pub seed: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            capacity_bytes: 256 << 20,
            share: 0.6,
            operations: 4000,
            days: 30,
            mean_bytes: 64 << 10,
            named: false,
            placement: Placement::Directories,
            seed: 1,
        }
    }
}

/// Alive nodes of the plan, in order of making.
struct Alive {
    dirs: Vec<NodeId>,
    files: Vec<NodeId>,
    free_names: Vec<(NodeId, Box<[u8]>)>,
}

/// Writes a plan.
pub fn write(path: &Path, shape: Shape) -> PlanMeta {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(shape.seed);
    let mut writer = Writer::create(path, shape.capacity_bytes, 4096).expect("a new plan");
    let mut alive = Alive { dirs: vec![NodeId::ROOT], files: Vec::new(), free_names: Vec::new() };
    let mut next = 1u64;
    let mut names = std::collections::HashMap::new();
    for i in 0..shape.operations {
        let t_ns = (u128::from(i) * u128::from(shape.days) * u128::from(DAY_NS) / u128::from(shape.operations)) as u64;
        let rising = (i as f64 / shape.operations as f64 * 3.0).min(1.0);
        let goal = (shape.capacity_bytes as f64 * shape.share * rising) as u64;
        let op = choose(&mut random, &writer, &mut alive, &mut next, &mut names, goal, t_ns, shape);
        writer.push(op).expect("a possible operation");
    }
    let meta = PlanMeta { seed: shape.seed, days: shape.days, placement: shape.placement, ..PlanMeta::default() };
    writer.finish(meta).expect("a whole plan")
}

#[allow(clippy::too_many_arguments)]
fn choose(
    random: &mut Xoshiro256PlusPlus,
    writer: &Writer,
    alive: &mut Alive,
    next: &mut u64,
    names: &mut std::collections::HashMap<NodeId, (NodeId, Box<[u8]>)>,
    goal: u64,
    t_ns: u64,
    shape: Shape,
) -> AgingOp {
    let mut below = |n: u64| random.next_u64() % n.max(1);
    let tree = writer.tree();
    let op = |kind, node| AgingOp::new(t_ns, kind, node);
    if let Placement::Groups { count } = shape.placement
        && *next <= u64::from(count)
    {
        let node = NodeId(*next);
        *next += 1;
        alive.dirs.push(node);
        return op(OpKind::Mkdir, node);
    }
    let roll = below(100);
    let file = (!alive.files.is_empty()).then(|| below(alive.files.len() as u64) as usize);
    if let Some(at) = file
        && (writer.used_bytes() > goal || roll < 12)
    {
        let node = alive.files.swap_remove(at);
        if let Some(freed) = names.remove(&node) {
            alive.free_names.push(freed);
        }
        return op(OpKind::Delete, node);
    }
    if roll < 20 && alive.dirs.len() < 200 {
        let dir = alive.dirs[below(alive.dirs.len() as u64) as usize];
        let node = NodeId(*next);
        *next += 1;
        alive.dirs.push(node);
        return AgingOp { dir, ..op(OpKind::Mkdir, node) };
    }
    if roll < 22 && alive.dirs.len() > 10 && shape.placement == Placement::Directories {
        let at = 1 + below(alive.dirs.len() as u64 - 1) as usize;
        if tree.get(alive.dirs[at]).is_some_and(|n| n.children == 0) {
            let node = alive.dirs.swap_remove(at);
            alive.free_names.retain(|(dir, _)| *dir != node);
            return op(OpKind::Rmdir, node);
        }
    }
    if roll < 24 && alive.dirs.len() > 10 && shape.placement == Placement::Directories {
        // A directory moves to the root, which can never be inside it.
        let node = alive.dirs[1 + below(alive.dirs.len() as u64 - 1) as usize];
        return op(OpKind::Rename, node);
    }
    if let Some(at) = file.filter(|_| roll < 60) {
        let node = alive.files[at];
        let found = tree.get(node).expect("alive");
        let size = found.size_bytes;
        if found.kind == FileKind::File {
            match below(40) / 8 {
                0 => return AgingOp { size_bytes: 1 + below(shape.mean_bytes), ..op(OpKind::Append, node) },
                1 if size > 0 => {
                    let offset_bytes = below(size);
                    let size_bytes = 1 + below(size - offset_bytes);
                    return AgingOp { offset_bytes, size_bytes, ..op(OpKind::Overwrite, node) };
                }
                2 => return AgingOp { size_bytes: below(size + 1), ..op(OpKind::Truncate, node) },
                3 if size > 8192 => {
                    return AgingOp { offset_bytes: 4096, size_bytes: 4096, ..op(OpKind::PunchHole, node) };
                }
                4 if below(8) == 0 => return op(OpKind::Fsync, node),
                _ => {}
            }
        }
        let dir = alive.dirs[below(alive.dirs.len() as u64) as usize];
        names.remove(&node);
        return AgingOp { dir, ..op(OpKind::Rename, node) };
    }
    let node = NodeId(*next);
    *next += 1;
    alive.files.push(node);
    if shape.named
        && let Some((dir, name)) = alive.free_names.pop()
    {
        names.insert(node, (dir, name.clone()));
        return AgingOp { dir, name: Some(name), size_bytes: below(2 * shape.mean_bytes), ..op(OpKind::Create, node) };
    }
    let dir = alive.dirs[below(alive.dirs.len() as u64) as usize];
    let name = shape.named.then(|| format!("name {}.txt", node.0).into_bytes().into_boxed_slice());
    if let Some(name) = &name {
        names.insert(node, (dir, name.clone()));
    }
    if below(30) == 0 {
        return AgingOp { dir, name, size_bytes: 1 + below(60), ..op(OpKind::Symlink, node) };
    }
    AgingOp { dir, name, size_bytes: below(2 * shape.mean_bytes), ..op(OpKind::Create, node) }
}
