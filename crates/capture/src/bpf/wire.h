/* The records that the recorder hands to user space: the one C definition. The one Rust definition is
 * crates/trace/src/kernel/wire.rs; a test of crates/capture compares the two. Little-endian, every record a multiple of 8 bytes.
 * A change here changes WIRE_VERSION. */
#ifndef FSAGE_WIRE_H
#define FSAGE_WIRE_H

#define WIRE_VERSION 3

/* What begins every record. */
struct wire_head {
	u32 bytes; /* of the whole record, this head included */
	u16 kind;
	u16 flags;
};

enum wire_kind {
	WIRE_START = 1, /* by user space: the clocks */
	WIRE_CALL = 2, /* a call that returned */
	WIRE_ENTER = 3, /* a call that began and waits, or takes effect before it returns; its WIRE_CALL follows */
	WIRE_FILE = 4, /* what an id of a fact stands for from here on */
	WIRE_FORK = 5,
	WIRE_EXEC = 6,
	WIRE_EXIT = 7,
	WIRE_LOST = 8,
	WIRE_ROOT = 9, /* a task's root directory */
	WIRE_FAULT = 10, /* an access through a mapping */
	WIRE_REQUEST = 11, /* an io_uring request that completed */
	WIRE_TURN = 12, /* since version 3: a thread was off the processor, and has it again; or it has ended */
	WIRE_OWN = 13, /* since version 3: what the recorder itself took of a thread's time */
};

enum wire_feature {
	WIRE_FAULTS = 1 << 0, /* accesses through mappings are recorded */
	WIRE_REQUESTS = 1 << 1, /* io_uring requests are recorded */
	WIRE_ONE_MOUNT = 1 << 2, /* calls on one file system alone, whose callers' roots are told when they return */
	WIRE_TURNS = 1 << 3, /* when threads had no processor, and why */
};

struct wire_start {
	struct wire_head head;
	u32 version;
	u32 features; /* wire_feature */
	u64 monotonic_ns;
	u64 realtime_ns;
};

/* Flags of calls: which parts follow the fixed one, in this order. */
enum wire_call_flag {
	WIRE_FACT0 = 1 << 0, /* struct wire_fact: of the first descriptor (or the working directory) */
	WIRE_FACT1 = 1 << 1, /* of the second */
	WIRE_FACT_RET = 1 << 2, /* of the returned descriptor */
	WIRE_IN0 = 1 << 3, /* WIRE_IN_BYTES of memory that an argument points to, at the start */
	WIRE_IN1 = 1 << 4,
	WIRE_OUT = 1 << 5, /* WIRE_OUT_BYTES of memory that an argument points to, at the return */
	WIRE_STR0 = 1 << 6, /* u32 length, bytes without the NUL, padding to 8 */
	WIRE_STR1 = 1 << 7,
	WIRE_UNFINISHED = 1 << 8, /* the thread ended inside the call */
	WIRE_COMPAT = 1 << 9, /* by the 32-bit entry: nr is of that table, and nothing else was looked at */
};

#define WIRE_IN_BYTES 32
#define WIRE_OUT_BYTES 64
#define WIRE_UNKNOWN (~0ull)

struct wire_call {
	struct wire_head head;
	u32 pid;
	u32 tid;
	u64 start_ns; /* CLOCK_MONOTONIC */
	u64 dur_ns;
	u64 off_cpu_ns; /* part of it not on a processor */
	u64 blocked_ns; /* part of that asleep */
	s64 ret;
	u32 nr;
	u32 reserved;
	u64 iov_bytes; /* sum of the lengths of an I/O vector; WIRE_UNKNOWN where there is none */
	u64 args[6];
};

/* A file behind a descriptor. */
struct wire_fact {
	u64 id; /* 0: there was none */
	u64 pos; /* file offset */
	u64 size; /* length, for regular files and directories */
};

enum wire_file_flag {
	WIRE_FILE_DELETED = 1 << 0, /* the name is gone */
	WIRE_FILE_INTERNAL = 1 << 1, /* of a file system of the kernel's own (pipes, sockets, memfd) */
	WIRE_FILE_CUT = 1 << 2, /* the path is longer than we tell */
	WIRE_FILE_BELOW = 1 << 3, /* since version 2: the path is that of a directory told before, and one name */
};

struct wire_file {
	struct wire_head head;
	u64 id;
	u64 ino;
	u32 dev; /* the kernel's: major << 20 | minor */
	u32 generation;
	u32 nlink;
	u32 mode; /* st_mode */
	u32 open_flags;
	u32 names_bytes;
	u64 size;
	/* names_bytes of: u8 length, name; the last component first, up to the top of the mount tree. With WIRE_FILE_BELOW: of
	 * struct wire_below, u8 length, name. Padding to 8. */
};

/* Where a file lies of which only the last name is told. */
struct wire_below {
	u64 directory; /* the id: its path is that of the last WIRE_FILE of it before this record */
};

enum wire_fork_flag {
	WIRE_SHARES_FILES = 1 << 0,
	WIRE_SHARES_FS = 1 << 1,
	WIRE_SAME_PROCESS = 1 << 2,
	WIRE_OWN_MOUNTS = 1 << 3, /* a mount namespace of its own */
};

struct wire_fork {
	struct wire_head head;
	u64 at_ns;
	u32 parent_tid;
	u32 child_tid;
	u32 child_pid;
	u32 reserved;
};

struct wire_exec {
	struct wire_head head;
	u64 at_ns;
	u32 tid;
	u32 old_tid;
	/* u32 length, path of the image, padding to 8 */
};

struct wire_exit {
	struct wire_head head;
	u64 at_ns;
	u32 tid;
	u32 pid;
	u32 code; /* as wait(2) tells it */
	u32 reserved;
};

struct wire_lost {
	struct wire_head head;
	u64 at_ns;
	u64 records;
};

enum wire_fault_flag {
	WIRE_FAULT_WRITE = 1 << 0, /* made pages dirty */
};

struct wire_fault {
	struct wire_head head;
	u32 pid;
	u32 tid;
	u64 start_ns; /* when the kernel began to look for the page */
	u64 dur_ns;
	u64 blocked_ns;
	u64 id; /* of the file; 0: not known */
	u64 offset;
	u64 bytes;
};

enum wire_request_flag {
	WIRE_REQUEST_FIXED_FILE = 1 << 0, /* fd is a number of the ring's own table */
	WIRE_REQUEST_SILENT = 1 << 1, /* told when it was submitted: no completion tells of its success */
};

struct wire_request {
	struct wire_head head;
	u32 pid;
	u32 tid;
	u64 start_ns;
	u64 dur_ns;
	u64 id; /* of the file; 0: none */
	u64 offset;
	u64 bytes;
	u32 opcode;
	u32 fd;
	u32 op_flags;
	s32 res;
};

enum wire_turn_flag {
	WIRE_TURN_SLEPT = 1 << 0, /* it went to sleep; else it was ready to run all the time */
	WIRE_TURN_LAST = 1 << 1, /* it left the processor for the last time: it has ended */
};

struct wire_turn {
	struct wire_head head;
	u32 tid;
	u32 waker_tid; /* the recorded thread whose call or end woke it; 0: a timer, a device, somebody else */
	u64 off_ns; /* it left the processor; of a thread that is new, it began */
	u64 woke_ns; /* it was woken; of one that did not sleep, off_ns */
	u64 on_ns; /* it had a processor again; of one that has ended, off_ns */
};

struct wire_own {
	struct wire_head head;
	u32 tid;
	u32 reserved;
	u64 at_ns;
	u64 own_ns; /* on the processor, outside calls, since it was last told */
};

struct wire_root {
	struct wire_head head;
	u32 tid;
	u32 pid;
	u64 id;
};

#endif
