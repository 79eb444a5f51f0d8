//! The files alive, and the groups of them that arrived together.

use super::tree::Dir;
use crate::NodeId;

/// A file alive, by its place in the population. Places are used again; `generation` tells the uses apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileRef {
    /// Place.
    pub slot: u32,
    /// Which use of the place.
    pub generation: u32,
}

/// What is known of a file.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Its node now (a replaced file gets a new one).
    pub node: NodeId,
    /// Where it is.
    pub dir: Dir,
    /// Its length now, bytes.
    pub size: u64,
    /// Its length once it is written, bytes.
    pub full: u64,
    /// Which stream.
    pub stream: u8,
    /// Its stratum in the stream's quota, if it is a lasting file.
    pub stratum: Option<u8>,
    /// The group it belongs to.
    pub group: Option<u32>,
    /// When it was made.
    pub born_ns: u64,
    /// The day on which it is to die.
    pub dies_day: u32,
    /// It was there at the beginning.
    pub from_the_start: bool,
}

/// A file and its place in the lists.
#[derive(Clone, Copy, Debug)]
struct Held {
    file: File,
    /// Its place in the stream's list.
    place: u32,
    generation: u32,
}

/// Files that arrived together.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// In order of arrival; some may be gone, or their places used again.
    pub files: Vec<FileRef>,
    /// Directories made for them, each after its parent.
    pub dirs: Vec<Dir>,
    /// How many files are alive.
    pub alive: u32,
    /// The group is complete.
    pub complete: bool,
    generation: u32,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Population {
    files: Vec<Option<Held>>,
    generations: Vec<u32>,
    free: Vec<u32>,
    streams: Vec<Vec<u32>>,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
}

impl Population {
    /// None yet, of so many streams.
    pub fn new(streams: usize) -> Population {
        Population { streams: vec![Vec::new(); streams], ..Population::default() }
    }

    /// The files of a stream: their places, in no order that means anything.
    pub fn of_stream(&self, stream: usize) -> &[u32] {
        self.streams.get(stream).map_or(&[], |s| s)
    }

    /// All files, by place.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.files.iter().flatten().map(|held| &held.file)
    }

    /// A new file.
    pub fn add(&mut self, file: File) -> FileRef {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.files.push(None);
            self.generations.push(0);
            u32::try_from(self.files.len() - 1).expect("a workload has fewer than 2^32 files alive")
        });
        let generation = self.generations.get(slot as usize).copied().unwrap_or(0);
        let list = self.streams.get_mut(usize::from(file.stream));
        let place = list.map_or(0, |list| {
            list.push(slot);
            list.len() as u32 - 1
        });
        if let Some(at) = self.files.get_mut(slot as usize) {
            *at = Some(Held { file, place, generation });
        }
        let group = file.group;
        let file = FileRef { slot, generation };
        if let Some(group) = group.and_then(|g| self.groups.get_mut(g as usize)) {
            group.alive += 1;
            group.files.push(file);
        }
        file
    }

    fn held(&self, at: FileRef) -> Option<&Held> {
        self.files.get(at.slot as usize)?.as_ref().filter(|held| held.generation == at.generation)
    }

    /// A file, if it is alive.
    pub fn get(&self, at: FileRef) -> Option<&File> {
        self.held(at).map(|held| &held.file)
    }

    /// The same, to change it.
    pub fn get_mut(&mut self, at: FileRef) -> Option<&mut File> {
        let held = self.files.get_mut(at.slot as usize)?.as_mut().filter(|held| held.generation == at.generation);
        held.map(|held| &mut held.file)
    }

    /// The file at a place.
    pub fn at_slot(&self, slot: u32) -> Option<FileRef> {
        let held = self.files.get(slot as usize)?.as_ref()?;
        Some(FileRef { slot, generation: held.generation })
    }

    /// Takes a file out.
    pub fn remove(&mut self, at: FileRef) -> Option<File> {
        let Held { file, place, .. } = *self.held(at)?;
        if let Some(slot) = self.files.get_mut(at.slot as usize) {
            *slot = None;
        }
        if let Some(generation) = self.generations.get_mut(at.slot as usize) {
            *generation = generation.wrapping_add(1);
        }
        self.free.push(at.slot);
        if let Some(list) = self.streams.get_mut(file.stream as usize) {
            list.swap_remove(place as usize);
            if let Some(moved) = list.get(place as usize).copied()
                && let Some(Some(moved)) = self.files.get_mut(moved as usize)
            {
                moved.place = place;
            }
        }
        if let Some(group) = file.group.and_then(|g| self.groups.get_mut(g as usize)) {
            group.alive -= 1;
        }
        Some(file)
    }

    /// A new group; its number and which use of the number this is.
    pub fn add_group(&mut self) -> (u32, u32) {
        let id = self.free_groups.pop().unwrap_or_else(|| {
            self.groups.push(Group::default());
            u32::try_from(self.groups.len() - 1).expect("a workload has fewer than 2^32 groups alive")
        });
        (id, self.groups.get(id as usize).map_or(0, |g| g.generation))
    }

    /// A group.
    pub fn group_mut(&mut self, id: u32) -> Option<&mut Group> {
        self.groups.get_mut(id as usize)
    }

    /// The files of a group, if this use of its number is still on.
    pub fn group_files(&self, id: u32, generation: u32) -> Option<&[FileRef]> {
        let group = self.groups.get(id as usize).filter(|g| g.generation == generation && g.complete)?;
        Some(&group.files)
    }

    /// Ends a group that is complete and has no file left: its directories, each after its parent.
    pub fn end_group_if_empty(&mut self, id: u32) -> Option<Vec<Dir>> {
        let group = self.groups.get_mut(id as usize).filter(|g| g.complete && g.alive == 0)?;
        let dirs = std::mem::take(&mut group.dirs);
        group.files.clear();
        group.complete = false;
        group.generation = group.generation.wrapping_add(1);
        self.free_groups.push(id);
        Some(dirs)
    }
}
