//! The hinge: [`posix::FileSystem`] of a laboratory.

use super::{EXPIRE_NS, Lab, percent_of};
use crate::engine::ActorId;
use crate::{BlockId, Durability, Lbn, Volume};
use posix::{
    CacheDrop, CacheState, Call, Contained, Environment, Errno, Extent, Fd, FileKind, FileSystem, FreeExtent, FsUsage,
    MemoryLimits, Outcome, Process, Shape, Unavailable,
};
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;

impl<V: Volume> FileSystem for Lab<V> {
    fn call(&mut self, call: &Call<'_>) -> Outcome {
        let start_ns = self.engine.now_ns();
        let result = self.perform(call);
        let end_ns = self.run_program(ActorId(0));
        Outcome { start_ns, dur_ns: end_ns - start_ns, result }
    }

    fn now_ns(&self) -> u64 {
        self.engine.now_ns()
    }

    fn date_ns(&self) -> i64 {
        self.setup.epoch_ns.saturating_add(i64::try_from(self.engine.now_ns()).unwrap_or(i64::MAX))
    }

    fn advance_date(&mut self, to_ns: i64) {
        let missing_ns = to_ns.saturating_sub(self.date_ns()).max(0);
        self.setup.epoch_ns = self.setup.epoch_ns.saturating_add(missing_ns);
        self.cx.epoch_ns = self.setup.epoch_ns;
    }

    fn pause_ns(&mut self, ns: u64) {
        self.engine.wake_at(ActorId(0), self.engine.now_ns().saturating_add(ns));
        self.run_until(ActorId(0));
    }

    fn run(&mut self, processes: Vec<Box<dyn Process + '_>>) -> io::Result<()> {
        self.run_processes(processes)
    }

    fn contained(&mut self, work: &mut Contained<'_>) -> io::Result<()> {
        let before = std::mem::replace(&mut self.contained, true);
        work(self);
        self.contained = before;
        Ok(())
    }

    fn read_into(&mut self, fd: Fd, offset: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let description = self.descriptors.get(fd)?;
        description.readable()?;
        if description.kind == FileKind::Directory {
            return Err(Errno::EISDIR);
        }
        let size_bytes = self.volume.attributes(description.ino)?.size_bytes;
        let len = usize::try_from(size_bytes.saturating_sub(offset)).unwrap_or(usize::MAX).min(buffer.len());
        self.untimed(|lab| lab.copy_out(description.ino, offset, &mut buffer[..len]))?;
        Ok(len)
    }

    fn entries(&mut self, fd: Fd) -> Result<Vec<(OsString, FileKind)>, Errno> {
        let description = self.descriptors.get(fd)?;
        if description.kind != FileKind::Directory {
            return Err(Errno::ENOTDIR);
        }
        self.untimed(|lab| {
            let mut entries = Vec::new();
            lab.volume.readdir(&mut lab.cx, description.ino, 0, &mut |entry| {
                if entry.name != b"." && entry.name != b".." {
                    entries.push((OsString::from_vec(entry.name.to_vec()), entry.kind));
                }
                true
            })?;
            Ok(entries)
        })
    }

    fn drop_caches(&mut self) -> io::Result<CacheState> {
        self.begin();
        while let Some(ino) = self.cx.nodes.evict_idle() {
            self.volume.unload(&mut self.cx, ino);
        }
        self.names.clear();
        self.volume.sync(&mut self.cx, Durability::All)?;
        self.run_program(ActorId(0));
        self.engine.settle(&mut self.cx);
        self.trouble()?;
        self.drop_clean_blocks();
        Ok(if self.cx.cache.blocks() == 0 { CacheState::Cold } else { CacheState::Unverified })
    }

    fn drop_caches_explained(&mut self) -> io::Result<CacheDrop> {
        let data = self.drop_caches()?;
        let open = self.cx.nodes.len();
        let names = if open == 0 { data } else { CacheState::Unverified };
        let mut why = String::new();
        if data != CacheState::Cold {
            why = format!("{} blocks stay in memory", self.cx.cache.blocks());
        } else if open > 0 {
            why = format!("the attributes of {open} open files stay in memory");
        }
        Ok(CacheDrop { data, names, checked_files: 0, why })
    }

    fn evict(&mut self, fd: Fd) -> io::Result<CacheState> {
        let description = self.descriptors.get(fd)?;
        self.begin();
        self.volume.fsync(&mut self.cx, description.ino, Durability::Data)?;
        self.run_program(ActorId(0));
        self.trouble()?;
        self.drop_clean_data(description.ino, 0, u64::MAX);
        Ok(if self.has_data(description.ino) { CacheState::Unverified } else { CacheState::Cold })
    }

    fn generation(&mut self, fd: Fd) -> Result<u32, Unavailable> {
        let what = "the inode's generation";
        let description = self.descriptors.get(fd).map_err(|errno| Unavailable::Failed { what, errno })?;
        let attributes = self.volume.attributes(description.ino);
        attributes.map(|attributes| attributes.generation).map_err(|errno| Unavailable::Failed { what, errno })
    }

    fn usage(&mut self) -> io::Result<FsUsage> {
        Ok(self.volume.usage())
    }

    fn extents(&mut self, fd: Fd) -> Result<Vec<Extent>, Unavailable> {
        let extents = self.descriptors.get(fd).and_then(|description| self.volume.extents(description.ino));
        extents.map_err(|errno| Unavailable::Failed { what: "a file's extents", errno })
    }

    fn free_extents(&mut self) -> Result<Vec<FreeExtent>, Unavailable> {
        Ok(self.volume.free_extents())
    }

    fn environment(&self) -> Environment {
        let usage = self.volume.usage();
        let used = usage.total_bytes.saturating_sub(usage.free_bytes);
        Environment {
            target: self.setup.target.clone(),
            kernel: posix::Kernel::laboratory(env!("CARGO_PKG_VERSION"), ""),
            cpu: self.setup.machine.cpu.model.clone(),
            cpus: self.setup.machine.cpu.count,
            memory_bytes: self.setup.machine.memory.bytes.value,
            fs_type: self.volume.type_name().into(),
            mount_options: self.volume.options(),
            mkfs: String::new(),
            device: self.setup.drive.clone(),
            total_bytes: usage.total_bytes,
            used_share: used as f64 / usage.total_bytes.max(1) as f64,
        }
    }

    fn is_deterministic(&self) -> bool {
        true
    }

    fn duplicate(&self) -> Option<Box<dyn FileSystem>> {
        Some(Box::new(Lab::duplicate(self)?))
    }

    fn shape(&self) -> Option<Shape> {
        Some(self.volume.shape())
    }

    fn memory(&self) -> Option<MemoryLimits> {
        let machine = &self.setup.machine;
        let cache_bytes = machine.memory.buffer_cache_bytes.value;
        Some(MemoryLimits {
            available_bytes: cache_bytes,
            name_entries: machine.memory.name_cache_entries.value,
            attribute_inodes: machine.memory.attribute_cache_inodes.value,
            dirty_background_bytes: percent_of(cache_bytes, machine.write_back.background_percent.value),
            dirty_limit_bytes: percent_of(cache_bytes, machine.write_back.limit_percent.value),
            dirty_expire_ns: EXPIRE_NS,
        })
    }
}

impl<V: Volume> Lab<V> {
    /// Does something that costs no time and leaves no program: looking, not using. The cache may have changed, as if
    /// everything had been there.
    fn untimed<T>(&mut self, look: impl FnOnce(&mut Self) -> Result<T, Errno>) -> Result<T, Errno> {
        self.begin();
        let counters = self.cx.cache.counters;
        let result = look(self);
        for step in std::mem::take(&mut self.cx.program) {
            if let crate::program::Step::Start { io, .. } = step {
                self.cx.complete(io);
            }
        }
        self.make_room();
        self.cx.cache.counters = counters;
        result
    }

    /// Gives up every block that is neither dirty nor on its way.
    fn drop_clean_blocks(&mut self) {
        let leaving: Vec<u32> = self.cx.cache.leaving().collect();
        for slot in leaving {
            let buffer = self.cx.cache.get(slot);
            if !buffer.dirty && buffer.io.is_none() {
                self.cx.drop_slot(slot);
            }
        }
    }

    /// A file's bytes, as far as they are known.
    pub(super) fn copy_out(&mut self, ino: crate::Ino, offset: u64, out: &mut [u8]) -> Result<(), Errno> {
        let size = u64::from(self.volume.block_bytes());
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let within = at % size;
            let len = usize::try_from(size - within).unwrap_or(usize::MAX).min(out.len() - done);
            let lbn = Lbn((at / size) as i64);
            let mapped = self.volume.map(&mut self.cx, ino, lbn, 0)?;
            let mut block = vec![0; size as usize];
            let place = mapped.map(|mapped| (mapped.pbn, mapped.bytes));
            self.cx.bytes_of(BlockId { ino, lbn }, place, at - within, &mut block);
            out[done..done + len].copy_from_slice(&block[within as usize..within as usize + len]);
            done += len;
        }
        Ok(())
    }
}
