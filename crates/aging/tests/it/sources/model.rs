//! A file system in memory that lives: files and directories are made, written, moved and removed; inode numbers are
//! used again.

use aging::snapshot::{Builder, Inode, Snapshot, SnapshotMeta};
use posix::FileKind;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeMap;

pub struct Model {
    random: Xoshiro256PlusPlus,
    generations: bool,
    now_ns: i64,
    /// By path; the root is the empty path.
    names: BTreeMap<Vec<u8>, u64>,
    inodes: BTreeMap<u64, Inode>,
    free: Vec<u64>,
    next: u64,
    root: u64,
}

impl Model {
    pub fn new(seed: u64, generations: bool) -> Model {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut model = Model {
            random,
            generations,
            now_ns: 0,
            names: BTreeMap::new(),
            inodes: BTreeMap::new(),
            free: Vec::new(),
            next: 2,
            root: 2,
        };
        model.root = model.inode(FileKind::Directory, 0);
        model.names.insert(Vec::new(), model.root);
        model
    }

    /// The same with another root, at a later time.
    pub fn rooted(mut self, ino: u64, now_ns: i64) -> Model {
        let inode = Inode { ino, ..self.inodes[&self.root] };
        self.inodes = BTreeMap::from([(ino, inode)]);
        self.names.insert(Vec::new(), ino);
        self.now_ns = now_ns;
        self
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.random.next_u64() % n.max(1)
    }

    fn inode(&mut self, kind: FileKind, size_bytes: u64) -> u64 {
        let ino = self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        let asked = matches!(kind, FileKind::File | FileKind::Directory) && self.generations;
        let generation = asked.then(|| self.random.next_u64() as u32);
        let inode = Inode {
            kind,
            size_bytes,
            allocated_bytes: size_bytes,
            ino,
            generation,
            ctime_ns: self.now_ns,
            mtime_ns: self.now_ns,
            nlink: 1,
        };
        self.inodes.insert(ino, inode);
        ino
    }

    fn touch(&mut self, ino: u64, contents: bool) {
        let now = self.now_ns;
        let inode = self.inodes.get_mut(&ino).expect("an inode of ours");
        inode.ctime_ns = now;
        if contents {
            inode.mtime_ns = now;
        }
    }

    fn touch_directory_of(&mut self, path: &[u8]) {
        let ino = self.names[&parent(path)];
        self.touch(ino, true);
    }

    fn some_path(&mut self, kind: Option<FileKind>) -> Option<Vec<u8>> {
        let fits = |path: &Vec<u8>, ino: &u64, model: &Model| {
            !path.is_empty() && kind.is_none_or(|k| model.inodes[ino].kind == k)
        };
        let paths: Vec<Vec<u8>> =
            self.names.iter().filter(|(path, ino)| fits(path, ino, self)).map(|(path, _)| path.clone()).collect();
        let at = self.below(paths.len() as u64) as usize;
        paths.get(at).cloned()
    }

    fn new_path(&mut self) -> Vec<u8> {
        let mut path = match self.below(4) {
            0 => Vec::new(),
            _ => self.some_path(Some(FileKind::Directory)).unwrap_or_default(),
        };
        // Few names, so that they are used again; some that sort around the slash, some like the planner's own.
        let names: [&[u8]; 12] =
            [b"a", b"b", b"c", b"d", b"a-", b"a.b", b"~0-1", b"\xff\n", b"f1", b"d2", b"x y", b"z"];
        path.push(b'/');
        let at = self.below(names.len() as u64) as usize;
        path.extend_from_slice(names[at]);
        path
    }

    fn unlink(&mut self, path: &[u8]) {
        let ino = self.names.remove(path).expect("a name of ours");
        self.touch_directory_of(path);
        let inode = self.inodes.get_mut(&ino).expect("an inode of ours");
        inode.nlink -= 1;
        if inode.nlink == 0 {
            self.inodes.remove(&ino);
            self.free.push(ino);
        } else {
            self.touch(ino, false);
        }
    }

    fn is_directory(&self, path: &[u8]) -> bool {
        self.names.get(path).is_some_and(|ino| self.inodes[ino].kind == FileKind::Directory)
    }

    fn children(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let prefix = [path, b"/"].concat();
        self.names.keys().filter(|p| p.starts_with(&prefix)).cloned().collect()
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        let into_itself = to.starts_with(&[from, b"/"].concat()) || from == to;
        let over_other_kind = self.names.contains_key(to) && (self.is_directory(to) || self.is_directory(from));
        if into_itself || over_other_kind || !self.is_directory(&parent(to)) {
            return;
        }
        if self.names.get(to) == self.names.get(from) {
            return;
        }
        if self.names.contains_key(to) {
            self.unlink(to);
        }
        let mut moving = self.children(from);
        moving.push(from.to_vec());
        for path in moving {
            let ino = self.names.remove(&path).expect("a name of ours");
            self.names.insert([to, &path[from.len()..]].concat(), ino);
        }
        self.touch_directory_of(from);
        self.touch_directory_of(to);
        let ino = self.names[to];
        self.touch(ino, false);
    }

    /// Lives for so many steps, until a time just before `until_ns`.
    pub fn live(&mut self, steps: usize, until_ns: i64) {
        let step = (until_ns - 1 - self.now_ns) / (steps as i64 + 1);
        for _ in 0..steps {
            self.now_ns += step;
            self.step();
        }
        self.now_ns = until_ns;
    }

    /// Writes to every file until a time just before `until_ns`: over every other one, at the end of the rest.
    pub fn write_all(&mut self, until_ns: i64) {
        let is_file = |inode: &Inode| inode.kind == FileKind::File;
        let files: Vec<u64> = self.inodes.iter().filter(|(_, inode)| is_file(inode)).map(|(ino, _)| *ino).collect();
        let step = (until_ns - 1 - self.now_ns) / (files.len() as i64 + 1);
        for ino in files {
            self.now_ns += step;
            if let Some(inode) = self.inodes.get_mut(&ino).filter(|_| ino % 2 == 0) {
                inode.size_bytes += 5000;
                inode.allocated_bytes = inode.size_bytes;
            }
            self.touch(ino, true);
        }
        self.now_ns = until_ns;
    }

    fn step(&mut self) {
        let size = self.below(100_000);
        match self.below(20) {
            0..=5 => self.make(FileKind::File, size),
            6 | 7 => self.make(FileKind::Directory, 0),
            8 => self.make(FileKind::Symlink, 1 + size % 60),
            9 => self.make(FileKind::Special, 0),
            10 | 11 => {
                if let Some(path) = self.some_path(None).filter(|p| !self.is_directory(p)) {
                    self.unlink(&path);
                }
            }
            12 => {
                if let Some(path) = self.some_path(Some(FileKind::Directory)) {
                    let mut gone = self.children(&path);
                    gone.push(path);
                    // Children first: longer paths.
                    gone.sort_by_key(|p| std::cmp::Reverse(p.len()));
                    gone.iter().for_each(|p| self.unlink(p));
                }
            }
            13 | 14 => {
                let (from, to) = (self.some_path(None), self.new_path());
                if let Some(from) = from {
                    self.rename(&from, &to);
                }
            }
            15 => {
                // Two names exchanged.
                let (Some(a), Some(b)) = (self.some_path(None), self.some_path(None)) else { return };
                self.rename(&a, b"/exchange");
                self.rename(&b, &a);
                self.rename(b"/exchange", &b);
            }
            16 | 17 => {
                let Some(path) = self.some_path(Some(FileKind::File)) else { return };
                let ino = self.names[&path];
                let how = self.below(3);
                let inode = self.inodes.get_mut(&ino).expect("an inode of ours");
                match how {
                    0 => inode.size_bytes += size,
                    1 => inode.size_bytes = size,
                    _ => {}
                }
                inode.allocated_bytes = inode.size_bytes;
                self.touch(ino, true);
            }
            18 => {
                if let Some(path) = self.some_path(None) {
                    let ino = self.names[&path];
                    self.touch(ino, false);
                }
            }
            _ => {
                let (Some(old), new) = (self.some_path(Some(FileKind::File)), self.new_path()) else { return };
                if !self.names.contains_key(&new) {
                    let ino = self.names[&old];
                    self.names.insert(new.clone(), ino);
                    self.inodes.get_mut(&ino).expect("an inode of ours").nlink += 1;
                    self.touch(ino, false);
                    self.touch_directory_of(&new);
                }
            }
        }
    }

    fn make(&mut self, kind: FileKind, size_bytes: u64) {
        let path = self.new_path();
        if !self.names.contains_key(&path) {
            let ino = self.inode(kind, size_bytes);
            self.names.insert(path.clone(), ino);
            self.touch_directory_of(&path);
        }
    }

    /// A snapshot of what is there now.
    pub fn snapshot(&self) -> Snapshot {
        let mut paths: Vec<&Vec<u8>> = self.names.keys().collect();
        paths.sort_by(|a, b| trace::snapshot::path_order(a, b));
        let mut builder = Builder::default();
        for path in paths {
            let shown: &[u8] = if path.is_empty() { b"/" } else { path };
            builder.push(shown, self.inodes[&self.names[path]]).expect("a sound name");
        }
        let meta = SnapshotMeta {
            taken_ns: self.now_ns,
            began_ns: self.now_ns,
            simulated: true,
            fs_type: "ext4".into(),
            fs_id: Some("5".into()),
            total_bytes: 1 << 40,
            block_bytes: 4096,
            total_inodes: 2000,
            no_generations: (!self.generations).then(|| "none here".into()),
            ..SnapshotMeta::default()
        };
        builder.finish(meta).expect("a sound tree")
    }
}

fn parent(path: &[u8]) -> Vec<u8> {
    let slash = path.iter().rposition(|b| *b == b'/').unwrap_or(0);
    path[..slash].to_vec()
}
