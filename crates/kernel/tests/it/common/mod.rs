use device::fixed::FixedDevice;
use kernel::payload::Image;
use kernel::testing::{MemVolume, Metadata};
use kernel::{Lab, Machine, Setup};
use posix::{Call, Errno, Fd, FileSystem, Mode, OpenFlags, Reply};

pub const MB: u64 = 1 << 20;

/// A machine whose processor takes no time, with room for `cache_bytes`.
pub fn free_machine(cache_bytes: u64) -> Machine {
    let mut machine = Machine::load("pentium-120").unwrap();
    let costs = &mut machine.costs;
    for figure in [
        &mut costs.call_ns,
        &mut costs.component_ns,
        &mut costs.entry_ns,
        &mut costs.open_ns,
        &mut costs.attributes_ns,
        &mut costs.inode_ns,
        &mut costs.name_ns,
        &mut costs.block_ns,
        &mut costs.allocate_ns,
        &mut costs.request_ns,
        &mut costs.copy_ps_per_byte,
    ] {
        figure.value = 0;
    }
    machine.memory.buffer_cache_bytes.value = cache_bytes;
    machine
}

pub fn setup(machine: Machine) -> Setup {
    Setup { machine, target: "memory@fixed".into(), drive: "fixed".into(), epoch_ns: 1_000_000_000_000_000_000 }
}

pub fn volume(size_bytes: u64, metadata: Metadata) -> MemVolume {
    MemVolume::new(size_bytes, 8192, 4096, metadata)
}

pub fn lab_with(volume: MemVolume, device: FixedDevice, machine: Machine, image: Image) -> Lab<MemVolume> {
    Lab::with_image(volume, Box::new(device), setup(machine), image).unwrap()
}

/// 64 MB, delayed metadata, 10 ms a request, 8 MB of cache, a processor that takes no time.
pub fn lab() -> Lab<MemVolume> {
    lab_with(
        volume(64 * MB, Metadata::Delayed),
        FixedDevice::new(64 * MB, 10_000_000),
        free_machine(8 * MB),
        Image::of_given(),
    )
}

pub fn open(fs: &mut impl FileSystem, path: &str, flags: OpenFlags) -> Result<Fd, Errno> {
    fs.call(&Call::Open { at: path.into(), flags, mode: Mode(0o644) }).fd()
}

pub fn create(fs: &mut impl FileSystem, path: &str) -> Fd {
    open(fs, path, OpenFlags { read: true, ..OpenFlags::CREATE_NEW }).unwrap()
}

pub fn call(fs: &mut impl FileSystem, call: Call<'_>) -> Result<Reply, Errno> {
    fs.call(&call).result
}

/// Makes a call that must succeed, and says how long it took.
pub fn timed(fs: &mut impl FileSystem, call: Call<'_>) -> u64 {
    let outcome = fs.call(&call);
    assert!(outcome.result.is_ok(), "{call:?}: {outcome:?}");
    outcome.dur_ns
}

pub fn write(fs: &mut impl FileSystem, fd: Fd, offset: u64, len_bytes: u64) -> u64 {
    timed(fs, Call::Write { fd, offset: Some(offset), len_bytes, data: None })
}

pub fn read(fs: &mut impl FileSystem, fd: Fd, offset: u64, len_bytes: u64) -> u64 {
    timed(fs, Call::Read { fd, offset: Some(offset), len_bytes })
}

/// What a device was asked for, and when.
pub type Asked = std::sync::Arc<std::sync::Mutex<Vec<(u64, device::Request)>>>;

/// A device that notes what it is asked for.
pub struct Noting {
    inner: FixedDevice,
    asked: Asked,
}

impl Noting {
    pub fn new(inner: FixedDevice) -> (Noting, Asked) {
        let asked = Asked::default();
        (Noting { inner, asked: asked.clone() }, asked)
    }
}

impl device::Device for Noting {
    fn duplicate(&self) -> Box<dyn device::Device> {
        Box::new(Noting { inner: self.inner.clone(), asked: self.asked.clone() })
    }
    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }
    fn capacity_sectors(&self) -> u64 {
        self.inner.capacity_sectors()
    }
    fn max_transfer_sectors(&self) -> u32 {
        self.inner.max_transfer_sectors()
    }
    fn supports_trim(&self) -> bool {
        false
    }
    fn submit(&mut self, now_ns: u64, tag: u64, request: device::Request) -> Result<(), device::RequestError> {
        self.asked.lock().unwrap().push((now_ns, request));
        self.inner.submit(now_ns, tag, request)
    }
    fn next_event_ns(&self) -> Option<u64> {
        self.inner.next_event_ns()
    }
    fn poll(&mut self, now_ns: u64, completions: &mut Vec<device::Completion>) {
        self.inner.poll(now_ns, completions);
    }
}

/// A laboratory whose device notes what it is asked for.
pub fn noting_lab(volume: MemVolume, device: FixedDevice, machine: Machine) -> (Lab<MemVolume>, Asked) {
    let (device, asked) = Noting::new(device);
    (Lab::new(volume, Box::new(device), setup(machine)).unwrap(), asked)
}

/// What was asked for since the last time: operation, first block of 8 KB counted from `from`, how many.
pub fn blocks_asked(asked: &Asked, from: u64, block_bytes: u64) -> Vec<(char, i64, u64)> {
    let per_block = block_bytes / 512;
    let letter = |operation| match operation {
        device::Operation::Read => 'r',
        device::Operation::Write => 'w',
        device::Operation::Flush => 'f',
        device::Operation::Trim => 't',
    };
    let requests = std::mem::take(&mut *asked.lock().unwrap());
    let block = |lbn: u64| (lbn / per_block) as i64 - (from / block_bytes) as i64;
    requests.iter().map(|(_, r)| (letter(r.operation), block(r.lbn.0), u64::from(r.sectors) / per_block)).collect()
}
