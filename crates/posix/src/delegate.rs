//! Methods that a layer leaves to the file system below it, written once.

/// Methods of a [`FileSystem`](crate::FileSystem) that go through to another one, within an `impl` of it: those that
/// are named, or all.
///
/// ```
/// struct Counted<F> {
///     fs: F,
///     calls: u64,
/// }
///
/// impl<F: posix::FileSystem> posix::FileSystem for Counted<F> {
///     fn call(&mut self, call: &posix::Call<'_>) -> posix::Outcome {
///         self.calls += 1;
///         self.fs.call(call)
///     }
///     posix::delegate! { |me| me.fs =>
///         now_ns, pause_ns, run, contained, read_into, entries, drop_caches, usage, extents, free_extents, environment
///     }
/// }
/// ```
#[macro_export]
macro_rules! delegate {
    (|$me:ident| $to:expr) => {
        $crate::delegate! { |$me| $to =>
            call, now_ns, date_ns, advance_date, pause_ns, run, contained, read_into, entries, drop_caches,
            drop_caches_explained, evict, generation, mount, usage, finish_removals, extents, free_extents,
            environment, is_deterministic, duplicate, core_probe_ns, host_path, shape, memory
        }
    };
    (|$me:ident| $to:expr => $($method:ident),+ $(,)?) => {
        $($crate::delegate_one! { $me $to; $method })+
    };
}

/// One method of [`delegate!`]: its signature first, then the method itself.
#[doc(hidden)]
#[macro_export]
macro_rules! delegate_one {
    (@ $me:ident $to:expr; $name:ident(& $(, $argument:ident: $type:ty)*) -> $result:ty) => {
        #[inline]
        fn $name(&self $(, $argument: $type)*) -> $result {
            let $me = self;
            $crate::FileSystem::$name(&$to $(, $argument)*)
        }
    };
    (@ $me:ident $to:expr; $name:ident(&mut $(, $argument:ident: $type:ty)*) -> $result:ty) => {
        #[inline]
        fn $name(&mut self $(, $argument: $type)*) -> $result {
            let $me = self;
            $crate::FileSystem::$name(&mut $to $(, $argument)*)
        }
    };
    ($me:ident $to:expr; now_ns) => { $crate::delegate_one! { @ $me $to; now_ns(&) -> u64 } };
    ($me:ident $to:expr; date_ns) => { $crate::delegate_one! { @ $me $to; date_ns(&) -> i64 } };
    ($me:ident $to:expr; advance_date) => { $crate::delegate_one! { @ $me $to; advance_date(&mut, to_ns: i64) -> () } };
    ($me:ident $to:expr; pause_ns) => { $crate::delegate_one! { @ $me $to; pause_ns(&mut, ns: u64) -> () } };
    ($me:ident $to:expr; run) => {
        $crate::delegate_one! { @ $me $to; run(&mut,
            processes: Vec<Box<dyn $crate::Process + '_>>) -> std::io::Result<()> }
    };
    ($me:ident $to:expr; contained) => {
        $crate::delegate_one! { @ $me $to; contained(&mut, work: &mut $crate::Contained<'_>) -> std::io::Result<()> }
    };
    ($me:ident $to:expr; read_into) => {
        $crate::delegate_one! { @ $me $to; read_into(&mut, fd: $crate::Fd, offset: u64,
            buffer: &mut [u8]) -> Result<usize, $crate::Errno> }
    };
    ($me:ident $to:expr; entries) => {
        $crate::delegate_one! { @ $me $to; entries(&mut, fd: $crate::Fd) -> Result<Vec<(std::ffi::OsString,
            $crate::FileKind)>, $crate::Errno> }
    };
    ($me:ident $to:expr; drop_caches) => {
        $crate::delegate_one! { @ $me $to; drop_caches(&mut) -> std::io::Result<$crate::CacheState> }
    };
    ($me:ident $to:expr; drop_caches_explained) => {
        $crate::delegate_one! { @ $me $to; drop_caches_explained(&mut) -> std::io::Result<$crate::CacheDrop> }
    };
    ($me:ident $to:expr; evict) => {
        $crate::delegate_one! { @ $me $to; evict(&mut, fd: $crate::Fd) -> std::io::Result<$crate::CacheState> }
    };
    ($me:ident $to:expr; generation) => {
        $crate::delegate_one! { @ $me $to; generation(&mut, fd: $crate::Fd) -> Result<u32, $crate::Unavailable> }
    };
    ($me:ident $to:expr; mount) => {
        $crate::delegate_one! { @ $me $to; mount(&mut, fd: $crate::Fd,
            name: Option<&std::ffi::OsStr>) -> Option<$crate::MountId> }
    };
    ($me:ident $to:expr; usage) => {
        $crate::delegate_one! { @ $me $to; usage(&mut) -> std::io::Result<$crate::FsUsage> }
    };
    ($me:ident $to:expr; finish_removals) => { $crate::delegate_one! { @ $me $to; finish_removals(&mut) -> bool } };
    ($me:ident $to:expr; extents) => {
        $crate::delegate_one! { @ $me $to; extents(&mut, fd: $crate::Fd) -> Result<Vec<$crate::Extent>,
            $crate::Unavailable> }
    };
    ($me:ident $to:expr; free_extents) => {
        $crate::delegate_one! { @ $me $to; free_extents(&mut) -> Result<Vec<$crate::FreeExtent>, $crate::Unavailable> }
    };
    ($me:ident $to:expr; environment) => { $crate::delegate_one! { @ $me $to; environment(&) -> $crate::Environment } };
    ($me:ident $to:expr; is_deterministic) => { $crate::delegate_one! { @ $me $to; is_deterministic(&) -> bool } };
    ($me:ident $to:expr; duplicate) => {
        $crate::delegate_one! { @ $me $to; duplicate(&) -> Option<Box<dyn $crate::FileSystem>> }
    };
    ($me:ident $to:expr; core_probe_ns) => { $crate::delegate_one! { @ $me $to; core_probe_ns(&) -> Option<f64> } };
    ($me:ident $to:expr; host_path) => {
        $crate::delegate_one! { @ $me $to; host_path(&) -> Option<&std::path::Path> }
    };
    ($me:ident $to:expr; shape) => { $crate::delegate_one! { @ $me $to; shape(&) -> Option<$crate::Shape> } };
    ($me:ident $to:expr; memory) => { $crate::delegate_one! { @ $me $to; memory(&) -> Option<$crate::MemoryLimits> } };
    ($me:ident $to:expr; call) => {
        $crate::delegate_one! { @ $me $to; call(&mut, call: &$crate::Call<'_>) -> $crate::Outcome }
    };
}
