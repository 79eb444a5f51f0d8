//! One planned operation.

/// A simulated day, in nanoseconds.
pub const DAY_NS: u64 = 86_400_000_000_000;

/// A file, symbolic link or directory of the aged tree. Numbers are never used twice in one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u64);

impl NodeId {
    /// The root of the aged tree, which is there before the first operation.
    pub const ROOT: NodeId = NodeId(0);
}

/// What an operation does. The fields of [`AgingOp`] that a kind does not name are zero or `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum OpKind {
    /// Makes directory `node` in directory `dir`.
    Mkdir,
    /// Removes directory `node`, which is empty.
    Rmdir,
    /// Makes file `node` in directory `dir` and writes its first `size_bytes` bytes in one go (none where 0).
    Create,
    /// Makes symbolic link `node` in directory `dir`; its target is `size_bytes` long.
    Symlink,
    /// Writes `size_bytes` bytes at the end of file `node`.
    Append,
    /// Writes `size_bytes` bytes over existing ones of file `node`, from `offset_bytes`; the range lies within the
    /// file.
    Overwrite,
    /// Sets the length of file `node` to `size_bytes`, which is not more than it has. A file that is rewritten is a
    /// truncation to 0 and an append.
    Truncate,
    /// Gives back the space of `size_bytes` bytes of file `node` from `offset_bytes`; the range lies within the file,
    /// its length stays.
    PunchHole,
    /// Moves node `node` into directory `dir` (or renames it there).
    Rename,
    /// Brings file `node` to stable storage.
    Fsync,
    /// Removes file or symbolic link `node`.
    Delete,
    /// Reads `size_bytes` bytes of file `node` from `offset_bytes`; the range lies within the file. For file systems
    /// that go by what is read.
    Read,
}

impl OpKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [OpKind; 12] = [
        OpKind::Mkdir,
        OpKind::Rmdir,
        OpKind::Create,
        OpKind::Symlink,
        OpKind::Append,
        OpKind::Overwrite,
        OpKind::Truncate,
        OpKind::PunchHole,
        OpKind::Rename,
        OpKind::Fsync,
        OpKind::Delete,
        OpKind::Read,
    ];

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            OpKind::Mkdir => "mkdir",
            OpKind::Rmdir => "rmdir",
            OpKind::Create => "create",
            OpKind::Symlink => "symlink",
            OpKind::Append => "append",
            OpKind::Overwrite => "overwrite",
            OpKind::Truncate => "truncate",
            OpKind::PunchHole => "punch_hole",
            OpKind::Rename => "rename",
            OpKind::Fsync => "fsync",
            OpKind::Delete => "delete",
            OpKind::Read => "read",
        }
    }

    /// The kind of a name.
    pub fn from_name(name: &str) -> Option<OpKind> {
        OpKind::ALL.into_iter().find(|k| k.name() == name)
    }

    /// The code in files: the place in [`OpKind::ALL`].
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The kind of a code.
    pub fn from_code(code: u8) -> Option<OpKind> {
        OpKind::ALL.get(usize::from(code)).copied()
    }
}

/// One planned operation, at a simulated time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgingOp {
    /// Simulated time since the beginning of the workload; never before the operation ahead of it.
    pub t_ns: u64,
    /// What is done.
    pub kind: OpKind,
    /// To which file, link or directory.
    pub node: NodeId,
    /// The directory of the new name (`Mkdir`, `Create`, `Symlink`, `Rename`), else [`NodeId::ROOT`].
    pub dir: NodeId,
    /// The new name's last component, where it is known; `None`: the replayer derives one from `node`.
    pub name: Option<Box<[u8]>>,
    /// Where in the file, bytes.
    pub offset_bytes: u64,
    /// How many bytes; see [`OpKind`].
    pub size_bytes: u64,
}

impl AgingOp {
    /// An operation on a node, all else zero.
    pub const fn new(t_ns: u64, kind: OpKind, node: NodeId) -> AgingOp {
        AgingOp { t_ns, kind, node, dir: NodeId::ROOT, name: None, offset_bytes: 0, size_bytes: 0 }
    }

    /// The name the node has in its directory where the plan gives none: `d` or `f` and the number in hexadecimal.
    /// [`Tree`](crate::Tree) refuses a name that is another node's.
    pub fn derived_name(node: NodeId, directory: bool) -> String {
        format!("{}{:x}", if directory { 'd' } else { 'f' }, node.0)
    }

    /// Bytes that the operation writes.
    pub const fn written_bytes(&self) -> u64 {
        match self.kind {
            OpKind::Create | OpKind::Append | OpKind::Overwrite => self.size_bytes,
            _ => 0,
        }
    }
}
