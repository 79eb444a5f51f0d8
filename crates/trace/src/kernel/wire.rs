//! The records of the recorder in the kernel: the one Rust definition of their layout. The one C definition is
//! `crates/capture/src/bpf/wire.h`; a test of `crates/capture` compares the two. What may not be here: what records
//! mean.
//!
//! Little-endian; every record begins with its length, kind and flags, and is a multiple of 8 bytes long.

/// The layout's version, in the first record of a recording.
pub const VERSION: u32 = 3;
/// The oldest that is read. Version 2 added [`file_flag::BELOW`], version 3 [`Turn`] and [`Own`].
pub const VERSION_READ: u32 = 1;

/// Bytes of the head that begins every record.
pub const HEAD_BYTES: usize = 8;
/// A record is never longer; what says so is damaged.
pub const RECORD_BYTES_MAX: usize = 64 * 1024;

/// A field that was not known ([`Call::iov_bytes`]).
pub const UNKNOWN: u64 = u64::MAX;
/// Bytes copied from memory that an argument points to, when the call begins.
pub const IN_BYTES: usize = 32;
/// The same when it returns.
pub const OUT_BYTES: usize = 64;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Kind {
    /// The clocks; the first record.
    Start = 1,
    /// A call that returned.
    Call = 2,
    /// A call that began and waits, or takes effect before it returns. Its `Call` follows.
    Enter = 3,
    /// What an id stands for from here on.
    File = 4,
    /// A thread or process came to be.
    Fork = 5,
    /// A process runs another program.
    Exec = 6,
    /// A thread ended.
    Exit = 7,
    /// Records are missing here.
    Lost = 8,
    /// A thread's root directory.
    Root = 9,
    /// An access through a mapping.
    Fault = 10,
    /// An io_uring request that completed.
    Request = 11,
    /// A thread was off the processor, and has it again; or it has ended.
    Turn = 12,
    /// What the recorder itself took of a thread's time.
    Own = 13,
}

impl Kind {
    /// All kinds with their names in `wire.h`.
    pub const ALL: &'static [(Kind, &'static str)] = &[
        (Kind::Start, "WIRE_START"),
        (Kind::Call, "WIRE_CALL"),
        (Kind::Enter, "WIRE_ENTER"),
        (Kind::File, "WIRE_FILE"),
        (Kind::Fork, "WIRE_FORK"),
        (Kind::Exec, "WIRE_EXEC"),
        (Kind::Exit, "WIRE_EXIT"),
        (Kind::Lost, "WIRE_LOST"),
        (Kind::Root, "WIRE_ROOT"),
        (Kind::Fault, "WIRE_FAULT"),
        (Kind::Request, "WIRE_REQUEST"),
        (Kind::Turn, "WIRE_TURN"),
        (Kind::Own, "WIRE_OWN"),
    ];

    fn of(number: u16) -> Option<Kind> {
        Kind::ALL.iter().map(|&(kind, _)| kind).find(|&kind| kind as u16 == number)
    }
}

macro_rules! flags {
    ($(#[$doc:meta])* $module:ident { $($(#[$flag_doc:meta])* $name:ident = $bit:literal as $c:literal),* $(,)? }) => {
        $(#[$doc])*
        pub mod $module {
            $($(#[$flag_doc])* pub const $name: u16 = 1 << $bit;)*
            /// All flags with their names in `wire.h`.
            pub const ALL: &[(u16, &str)] = &[$(($name, $c)),*];
        }
    };
}

flags! {
    /// Flags of calls: which parts follow the fixed one, in this order.
    call_flag {
        /// A [`Fact`](super::Fact) of the first descriptor, or of the working directory.
        FACT0 = 0 as "WIRE_FACT0",
        /// Of the second.
        FACT1 = 1 as "WIRE_FACT1",
        /// Of the returned descriptor.
        FACT_RET = 2 as "WIRE_FACT_RET",
        /// Memory an argument points to, when the call began.
        IN0 = 3 as "WIRE_IN0",
        /// The same of a second argument.
        IN1 = 4 as "WIRE_IN1",
        /// Memory an argument points to, when the call returned.
        OUT = 5 as "WIRE_OUT",
        /// The first string.
        STR0 = 6 as "WIRE_STR0",
        /// The second string.
        STR1 = 7 as "WIRE_STR1",
        /// The thread ended inside the call.
        UNFINISHED = 8 as "WIRE_UNFINISHED",
        /// By the 32-bit entry: the number is of that table and nothing else was looked at.
        COMPAT = 9 as "WIRE_COMPAT",
    }
}

flags! {
    /// Flags of files.
    file_flag {
        /// The name is gone.
        DELETED = 0 as "WIRE_FILE_DELETED",
        /// Of a file system of the kernel's own: pipes, sockets, memory files.
        INTERNAL = 1 as "WIRE_FILE_INTERNAL",
        /// The path is longer than is told.
        CUT = 2 as "WIRE_FILE_CUT",
        /// The path is that of a directory told before ([`Below`](super::Below)), and one name.
        BELOW = 3 as "WIRE_FILE_BELOW",
    }
}

flags! {
    /// What a recorder sees beyond system calls (`features` of its first record).
    feature {
        /// Accesses through mappings.
        FAULTS = 0 as "WIRE_FAULTS",
        /// io_uring requests.
        REQUESTS = 1 as "WIRE_REQUESTS",
        /// Calls on one file system alone, whose callers' roots are told when they return.
        ONE_MOUNT = 2 as "WIRE_ONE_MOUNT",
        /// When threads had no processor, and why.
        TURNS = 3 as "WIRE_TURNS",
    }
}

flags! {
    /// Flags of accesses through mappings.
    fault_flag {
        /// It made pages dirty.
        WRITE = 0 as "WIRE_FAULT_WRITE",
    }
}

flags! {
    /// Flags of io_uring requests.
    request_flag {
        /// The descriptor is a number of the ring's own table.
        FIXED_FILE = 0 as "WIRE_REQUEST_FIXED_FILE",
        /// Told when it was submitted: no completion tells of its success.
        SILENT = 1 as "WIRE_REQUEST_SILENT",
    }
}

flags! {
    /// Flags of turns.
    turn_flag {
        /// It went to sleep; else it was ready to run all the time.
        SLEPT = 0 as "WIRE_TURN_SLEPT",
        /// It left the processor for the last time: it has ended.
        LAST = 1 as "WIRE_TURN_LAST",
    }
}

flags! {
    /// Flags of forks.
    fork_flag {
        /// `CLONE_FILES`
        SHARES_FILES = 0 as "WIRE_SHARES_FILES",
        /// `CLONE_FS`
        SHARES_FS = 1 as "WIRE_SHARES_FS",
        /// `CLONE_THREAD`
        SAME_PROCESS = 2 as "WIRE_SAME_PROCESS",
        /// `CLONE_NEWNS`
        OWN_MOUNTS = 3 as "WIRE_OWN_MOUNTS",
    }
}

/// A number as it is in a record.
trait Field: Sized {
    const BYTES: usize;
    fn read(bytes: &mut &[u8]) -> Option<Self>;
    fn write(&self, out: &mut Vec<u8>);
}

macro_rules! number {
    ($($ty:ident),*) => { $(impl Field for $ty {
        const BYTES: usize = size_of::<$ty>();
        #[inline]
        fn read(bytes: &mut &[u8]) -> Option<Self> {
            let (first, rest) = bytes.split_first_chunk()?;
            *bytes = rest;
            Some($ty::from_le_bytes(*first))
        }
        fn write(&self, out: &mut Vec<u8>) {
            out.extend_from_slice(&self.to_le_bytes());
        }
    })* };
}
number!(u32, i32, u64, i64);

impl Field for [u64; 6] {
    const BYTES: usize = 48;
    #[inline]
    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let mut all = [0; 6];
        for one in &mut all {
            *one = u64::read(bytes)?;
        }
        Some(all)
    }
    fn write(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|one| one.write(out));
    }
}

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident $c:literal { $($(#[$field_doc:meta])* $field:ident: $ty:ty),* $(,)? })*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $ty),* }

        impl $name {
            /// Bytes in a record, without its head.
            pub const BYTES: usize = 0 $(+ <$ty as Field>::BYTES)*;

            /// Takes it off the front; `None` if the bytes end first.
            #[inline]
            pub fn read(bytes: &mut &[u8]) -> Option<$name> {
                Some($name { $($field: <$ty as Field>::read(bytes)?),* })
            }

            /// Appends it.
            pub fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)*
            }
        })*

        /// Each structure: its name in `wire.h`, and its fields after the head with their bytes.
        pub const STRUCTS: &[(&str, &[(&str, usize)])] =
            &[$(($c, &[$((stringify!($field), <$ty as Field>::BYTES)),*])),*];
    };
}

records! {
    /// The two clocks at one moment, and the layout's version.
    Start "wire_start" {
        /// [`VERSION`]
        version: u32,
        /// [`feature`]
        features: u32,
        /// `CLOCK_MONOTONIC`, that of all other records.
        monotonic_ns: u64,
        /// `CLOCK_REALTIME` at that moment.
        realtime_ns: u64,
    }
    /// A system call. What follows it: [`call_flag`].
    Call "wire_call" {
        /// Process.
        pid: u32,
        /// Thread.
        tid: u32,
        /// When it began.
        start_ns: u64,
        /// How long it took; 0 in `Kind::Enter`.
        dur_ns: u64,
        /// Part of it not on a processor.
        off_cpu_ns: u64,
        /// Part of that asleep.
        blocked_ns: u64,
        /// As the kernel returned it: negative error numbers.
        ret: i64,
        /// Number of the call.
        nr: u32,
        #[allow(missing_docs)]
        reserved: u32,
        /// Sum of the lengths of an I/O vector, or [`UNKNOWN`].
        iov_bytes: u64,
        /// The registers.
        args: [u64; 6],
    }
    /// A file behind a descriptor.
    Fact "wire_fact" {
        /// What a `Kind::File` told of; 0 if there was none.
        id: u64,
        /// File offset.
        pos: u64,
        /// Length.
        size: u64,
    }
    /// What an id stands for. The path's components follow, the last first: length in a byte, then the name. With
    /// [`file_flag::BELOW`] a [`Below`] follows, and the last one alone.
    File "wire_file" {
        #[allow(missing_docs)]
        id: u64,
        /// Inode number.
        ino: u64,
        /// The kernel's device number: major << 20 | minor.
        dev: u32,
        /// Of the inode, where the file system has one.
        generation: u32,
        #[allow(missing_docs)]
        nlink: u32,
        /// `st_mode`
        mode: u32,
        /// `O_*`; 0 for a directory told of by path.
        open_flags: u32,
        #[allow(missing_docs)]
        names_bytes: u32,
        /// Length.
        size: u64,
    }
    /// Where a file lies of which only the last name is told.
    Below "wire_below" {
        /// The directory's id: its path is that of the last `Kind::File` of it before this record.
        directory: u64,
    }
    /// A new thread or process.
    Fork "wire_fork" {
        #[allow(missing_docs)]
        at_ns: u64,
        #[allow(missing_docs)]
        parent_tid: u32,
        #[allow(missing_docs)]
        child_tid: u32,
        #[allow(missing_docs)]
        child_pid: u32,
        #[allow(missing_docs)]
        reserved: u32,
    }
    /// Another program. The image's path follows as a string.
    Exec "wire_exec" {
        #[allow(missing_docs)]
        at_ns: u64,
        #[allow(missing_docs)]
        tid: u32,
        /// The number of the thread before: an exec takes the process's.
        old_tid: u32,
    }
    /// A thread's end.
    Exit "wire_exit" {
        #[allow(missing_docs)]
        at_ns: u64,
        #[allow(missing_docs)]
        tid: u32,
        #[allow(missing_docs)]
        pid: u32,
        /// As wait(2) tells it.
        code: u32,
        #[allow(missing_docs)]
        reserved: u32,
    }
    /// Records that are missing.
    Lost "wire_lost" {
        /// When there was room again.
        at_ns: u64,
        /// How many.
        records: u64,
    }
    /// An access through a mapping.
    Fault "wire_fault" {
        #[allow(missing_docs)]
        pid: u32,
        #[allow(missing_docs)]
        tid: u32,
        /// When the kernel began to look for the page.
        start_ns: u64,
        /// Until it was seen to be done, or what it waited.
        dur_ns: u64,
        /// Part of that asleep.
        blocked_ns: u64,
        /// The file; 0 if it is not known.
        id: u64,
        /// Bytes of the file that were made accessible.
        offset: u64,
        #[allow(missing_docs)]
        bytes: u64,
    }
    /// An io_uring request.
    Request "wire_request" {
        #[allow(missing_docs)]
        pid: u32,
        #[allow(missing_docs)]
        tid: u32,
        /// When it was submitted.
        start_ns: u64,
        /// Until it completed.
        dur_ns: u64,
        /// The file; 0 if there is none.
        id: u64,
        #[allow(missing_docs)]
        offset: u64,
        /// As asked for; of vectors, how many parts.
        bytes: u64,
        /// `IORING_OP_*`
        opcode: u32,
        /// As in the submission.
        fd: u32,
        /// Flags of reads, writes and fsync.
        op_flags: u32,
        /// As completed: negative error numbers.
        res: i32,
    }
    /// A thread was off the processor.
    Turn "wire_turn" {
        #[allow(missing_docs)]
        tid: u32,
        /// The recorded thread whose call or end woke it; 0: a timer, a device, somebody else.
        waker_tid: u32,
        /// It left the processor; of a thread that is new, it began.
        off_ns: u64,
        /// It was woken; of one that did not sleep, `off_ns`.
        woke_ns: u64,
        /// It had a processor again; of one that has ended, `off_ns`.
        on_ns: u64,
    }
    /// What the recorder itself took of a thread's time.
    Own "wire_own" {
        #[allow(missing_docs)]
        tid: u32,
        #[allow(missing_docs)]
        reserved: u32,
        #[allow(missing_docs)]
        at_ns: u64,
        /// On the processor, outside calls, since it was last told.
        own_ns: u64,
    }
    /// A root directory.
    Root "wire_root" {
        #[allow(missing_docs)]
        tid: u32,
        #[allow(missing_docs)]
        pid: u32,
        #[allow(missing_docs)]
        id: u64,
    }
}

impl Call {
    /// The thread of a call's record and when the call began; `None` if the record is too short to be read whole.
    pub fn peek(body: &[u8]) -> Option<(u32, u64)> {
        let mut rest = body.get(..Self::BYTES)?;
        let _pid = u32::read(&mut rest)?;
        Some((u32::read(&mut rest)?, u64::read(&mut rest)?))
    }
}

/// A record's head and the rest of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What it is; `None`: a kind that this version does not know.
    pub kind: Option<Kind>,
    /// Flags of its kind.
    pub flags: u16,
    /// What follows the head.
    pub body: &'a [u8],
}

/// Takes a whole record off the front. `Ok(None)`: there is none left.
///
/// # Errors
/// What is there is no record: why.
pub fn next<'a>(bytes: &mut &'a [u8]) -> Result<Option<Record<'a>>, &'static str> {
    let Some((head, _)) = bytes.split_first_chunk::<HEAD_BYTES>() else {
        return if bytes.is_empty() { Ok(None) } else { Err("the head of a record is cut short") };
    };
    let [b0, b1, b2, b3, k0, k1, f0, f1] = *head;
    let length = usize::try_from(u32::from_le_bytes([b0, b1, b2, b3])).unwrap_or(usize::MAX);
    if !(HEAD_BYTES..=RECORD_BYTES_MAX).contains(&length) || length % 8 != 0 {
        return Err("a record of a length that no record has");
    }
    let Some((record, rest)) = bytes.split_at_checked(length) else { return Err("a record is cut short") };
    *bytes = rest;
    let kind = Kind::of(u16::from_le_bytes([k0, k1]));
    Ok(Some(Record { kind, flags: u16::from_le_bytes([f0, f1]), body: &record[HEAD_BYTES..] }))
}

/// Appends a record: `fill` writes what follows the head.
pub fn append(out: &mut Vec<u8>, kind: Kind, flags: u16, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    fill(out);
    out.resize(begin + (out.len() - begin).next_multiple_of(8), 0);
    let length = u32::try_from(out.len() - begin).expect("records are short");
    let head = &mut out[begin..begin + HEAD_BYTES];
    head[..4].copy_from_slice(&length.to_le_bytes());
    head[4..6].copy_from_slice(&(kind as u16).to_le_bytes());
    head[6..].copy_from_slice(&flags.to_le_bytes());
}

/// Takes a string off the front: u32 length, bytes, padding to 8.
pub fn string<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut rest = *bytes;
    let length = usize::try_from(u32::read(&mut rest)?).ok()?;
    let text = rest.get(..length)?;
    *bytes = bytes.get((4 + length).next_multiple_of(8)..)?;
    Some(text)
}

/// Takes a fixed number of bytes off the front.
pub fn memory<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(first)
}

/// A path from its components, the last first, as [`Kind::File`] tells them: absolute, `/` if there are none.
pub fn path_of(names: &[u8]) -> Option<Vec<u8>> {
    let mut parts = Vec::new();
    let mut rest = names;
    while let Some((&length, tail)) = rest.split_first() {
        let (name, tail) = tail.split_at_checked(usize::from(length))?;
        parts.push(name);
        rest = tail;
    }
    let mut path = Vec::with_capacity(names.len() + 1);
    for name in parts.iter().rev() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    if path.is_empty() {
        path.push(b'/');
    }
    Some(path)
}
