/* The recorder in the kernel: writes a record of each system call that concerns files, made by the processes recorded.
 *
 * What lives here: the programs on tracepoints, and what they read of tasks, files and memory. What may not: what calls mean
 * (crates/trace/src/kernel and track); which calls have which arguments is data that user space gives (spec.h).
 *
 * Nothing here waits, takes a lock of the kernel's, or changes anything of a task's: the programs read, and write into maps of our own.
 * A record for which the ring has no room is counted and dropped.
 *
 * A call's record is written when it returns. A call that goes to sleep on a file gets a record of its beginning too, so that
 * the order of beginnings is known however long it takes; so does a close in a process of several threads, as the
 * descriptor's number is free from its beginning on. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "wire.h"
#include "spec.h"

char LICENSE[] SEC("license") = "GPL";

const volatile u32 subject_mode = MODE_PROCESSES;
const volatile u32 own_tgid = 0; /* fsage's own process is never recorded */
const volatile u64 secret = 0; /* ids are addresses, hidden behind this */
const volatile u64 cgroup_id = 0;
const volatile u32 mount_dev = 0; /* of the file system recorded, as the kernel writes it */
const volatile u32 mount_path_bytes = 0; /* 0: mounted at the root */
const volatile char mount_path[256] = {};

#define PATH_BYTES 4096
#define NAME_BYTES 256
#define DEPTH 64
#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFDIR 0040000
#define SB_KERNMOUNT (1ul << 22)
#define TS_COMPAT 2
#define AT_FDCWD (-100)
#define MAP_ANONYMOUS 0x20
#define IOV_MAX 1024
#define CGROUP_DEPTH 16
#define FAULTED 0xffffffffu /* a string that could not be read yet */

struct strings {
	u32 bytes[2]; /* with the NUL; 0: none */
	char text[2][PATH_BYTES];
};

enum state_flag {
	WAITING = 1 << 0, /* it is to become the command: recorded from the execve on that succeeds */
	ACTIVE = 1 << 1, /* inside a recorded call */
	ENTERED = 1 << 2, /* its WIRE_ENTER is written */
	QUIET = 1 << 3, /* on no file: need not keep its place */
	IN0_MISSING = 1 << 4, /* memory that was not there at the start; the call itself brings it in */
	IN1_MISSING = 1 << 5,
	IOV_MISSING = 1 << 6,
	HAS_STRINGS = 1 << 7,
	CONCERNED = 1 << 8, /* the call is on the file system recorded */
	ELSEWHERE0 = 1 << 9, /* the first fact's file is on another one, and not told yet */
	ELSEWHERE1 = 1 << 10,
	TOUCHED = 1 << 11, /* the task made such a call before */
	IN_CALL = 1 << 12, /* inside a call, recorded or not */
	STAYS = WAITING | TOUCHED,
};

/* What is known of a task that is recorded. */
struct state {
	u32 flags;
	u32 parts; /* wire_call_flag */
	u32 nr;
	u32 off_blocked; /* it went to sleep when it left the processor */
	u64 start_ns;
	u64 off_since_ns; /* 0: on a processor */
	u64 woke_ns;
	u64 off_cpu_ns;
	u64 blocked_ns;
	u64 iov_bytes;
	u64 args[6];
	struct wire_fact facts[3];
	u8 in[2][WIRE_IN_BYTES];
	u8 out[WIRE_OUT_BYTES];
	u64 root_dentry;
	u64 root_mnt;
	u32 cgroup_level;
	u32 reserved;
	/* An access through a mapping whose end has not shown itself. */
	struct access {
		u64 inode;
		u64 first;
		u64 last;
		u64 start_ns;
		u64 seen_ns;
		u64 blocked_ns;
	} access;
};

struct key {
	u64 a;
	u64 b;
};

struct scratch {
	u8 bytes[32 * 1024 - 64];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024 * 1024);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SPECS);
	__type(key, u32);
	__type(value, struct spec);
} specs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COUNTERS);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

/* Processes to record, by number (enum wanted); a thread is taken in at its first call. A process that ends is taken out, as its
 * number may be given to another. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u32);
} wanted SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct state);
} states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct strings);
} texts SEC(".maps");

/* What a file was told as. */
struct telling {
	u64 sum; /* over the path and the inode */
	u64 epoch; /* when the sum was last found right */
	u64 dentry;
	u64 inode;
	u64 parent;
	u64 hash_len;
	u64 ino;
	u32 deleted;
	u32 reserved;
};

/* Files told of. A full map forgets the oldest, which are told again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct key);
	__type(value, struct telling);
} told SEC(".maps");

/* Counts what may move directories. A path is walked again only when this has changed, and every few seconds, as not every such call
 * shows itself. */
u64 moves = 0;
#define EPOCH_SHIFT 9 /* of jiffies */

static __always_inline u64 epoch_now(void)
{
	return moves + (bpf_jiffies64() >> EPOCH_SHIFT << 32);
}

/* Room to put a record together; one for each program that another can interrupt or follow on a processor. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 5);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

enum { ON_ENTER = 0, ON_EXIT = 1, ON_SCHED = 2, ON_FAULT = 3, ON_RING = 4 };

/* A mount of each file system of which something was told. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, u64);
} mounts SEC(".maps");

struct request {
	u64 start_ns;
	u64 offset;
	u64 bytes;
	u32 pid;
	u32 tid;
	u32 opcode;
	u32 fd;
	u32 op_flags;
	u32 flags;
};

/* io_uring requests on their way, by address. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct request);
} requests SEC(".maps");

static __always_inline struct scratch *scratch_of(u32 which)
{
	return bpf_map_lookup_elem(&scratches, &which);
}

static __always_inline u64 *counter_of(u32 which)
{
	return bpf_map_lookup_elem(&counters, &which);
}

/* Writes a record, or counts it as lost. Tells of losses first, as soon as there is room. */
static __noinline long put(void *record, u32 bytes, u64 now)
{
	u64 *lost = counter_of(COUNTER_LOST);
	u64 *counted = counter_of(COUNTER_TOLD);
	u64 *records = counter_of(COUNTER_RECORDS);

	if (!record || !lost || !counted || !records)
		return -1;
	if (bytes > sizeof(struct scratch))
		return -1;
	if (*lost != *counted) {
		struct wire_lost loss = {
			.head = { sizeof(loss), WIRE_LOST, 0 },
			.at_ns = now,
			.records = *lost - *counted,
		};
		if (bpf_ringbuf_output(&ring, &loss, sizeof(loss), BPF_RB_NO_WAKEUP) == 0)
			*counted += loss.records;
	}
	*records += 1;
	return 0;
}

#define PUT(record, bytes, now)                                                              \
	({                                                                                   \
		long put_failed = put(record, bytes, now);                                   \
		if (put_failed == 0)                                                         \
			put_failed = bpf_ringbuf_output(&ring, record, bytes, BPF_RB_NO_WAKEUP); \
		if (put_failed) {                                                            \
			u64 *put_lost = counter_of(COUNTER_LOST);                            \
			if (put_lost)                                                        \
				*put_lost += 1;                                              \
		}                                                                            \
		put_failed;                                                                  \
	})

/* A sum over a path from a name to the top of the mount tree: equal sums, equal paths. */
static __always_inline u64 mix(u64 sum, u64 with)
{
	sum ^= with;
	sum *= 0x9e3779b97f4a7c15ull;
	return sum ^ (sum >> 29);
}

static __always_inline struct mount *mount_of(struct vfsmount *mnt)
{
	return (struct mount *)((char *)mnt - bpf_core_field_offset(struct mount, mnt));
}

/* One step of a walk from a name to the top of the mount tree. */
struct walk {
	struct dentry *dentry;
	struct vfsmount *mnt;
	struct dentry *top;
	u64 sum;
	u32 scratch; /* where the components go */
	u32 at;
	u32 whole; /* it came to the top */
};

/* Takes a step up. 1: the name before was the last. */
static __always_inline long go_up(struct walk *walk, u32 *len, const unsigned char **name)
{
	struct dentry *d = walk->dentry;

	*len = 0;
	if (d == walk->top) {
		struct mount *mount = mount_of(walk->mnt);
		struct mount *parent = BPF_CORE_READ(mount, mnt_parent);
		if (parent == mount) {
			walk->whole = 1;
			return 1;
		}
		walk->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		struct vfsmount *above = (struct vfsmount *)((char *)parent + bpf_core_field_offset(struct mount, mnt));
		walk->mnt = above;
		walk->top = BPF_CORE_READ(above, mnt_root);
		return 0;
	}
	struct dentry *parent = BPF_CORE_READ(d, d_parent);
	if (parent == d) {
		walk->whole = 1;
		return 1;
	}
	u64 hash_len = BPF_CORE_READ(d, d_name.hash_len);
	walk->sum = mix(mix(walk->sum, (u64)d), hash_len);
	walk->dentry = parent;
	*len = hash_len >> 32;
	if (name)
		*name = BPF_CORE_READ(d, d_name.name);
	return 0;
}

static long step_sum(u32 i, struct walk *walk)
{
	u32 len;

	return go_up(walk, &len, 0);
}

static long step_names(u32 i, struct walk *walk)
{
	const unsigned char *name = 0;
	u32 len;

	if (go_up(walk, &len, &name))
		return 1;
	if (len == 0)
		return 0;
	struct scratch *scratch = bpf_map_lookup_elem(&scratches, &walk->scratch);
	if (!scratch || len >= NAME_BYTES || walk->at > PATH_BYTES)
		return 1;
	u32 at = sizeof(struct wire_file) + walk->at;
	scratch->bytes[at & 8191] = len;
	if (bpf_probe_read_kernel(&scratch->bytes[(at + 1) & 8191], len & 255, name))
		return 1;
	walk->at += 1 + len;
	return 0;
}

static __always_inline void begin_walk(struct walk *walk, u64 dentry, u64 mnt)
{
	walk->dentry = (struct dentry *)dentry;
	struct vfsmount *m = (struct vfsmount *)mnt;
	walk->mnt = m;
	walk->top = BPF_CORE_READ(m, mnt_root);
	walk->sum = 1;
	walk->at = 0;
	walk->whole = 0;
	walk->scratch = 0;
}

static __noinline u64 path_sum(u64 dentry, u64 mnt)
{
	struct walk walk;

	begin_walk(&walk, dentry, mnt);
	bpf_loop(DEPTH, step_sum, &walk, 0);
	return walk.sum;
}

/* Writes the components of a path into a file record, the last first. */
static __noinline long put_names(u32 which, u64 dentry, u64 mnt)
{
	struct scratch *scratch = scratch_of(which);
	struct walk walk;

	if (!scratch)
		return 0;
	struct wire_file *record = (struct wire_file *)scratch->bytes;
	begin_walk(&walk, dentry, mnt);
	walk.scratch = which;
	bpf_loop(DEPTH, step_names, &walk, 0);
	record->names_bytes = walk.at;
	if (!walk.whole)
		record->head.flags |= WIRE_FILE_CUT;
	return 0;
}

static __always_inline u32 padded(u32 bytes)
{
	return (bytes + 7) & ~7u;
}

/* Tells of a file, or of a directory by its path (file NULL), unless it was told as it is; then says its id. 0: there is none. */
static __noinline u64 tell(u64 file, u64 dentry, u64 mnt, u32 which)
{
	struct scratch *scratch = scratch_of(which);
	struct dentry *d = (struct dentry *)dentry;
	struct telling now = {};
	struct inode *inode;
	struct key key;

	if (!scratch || !d || !mnt)
		return 0;
	if (file) {
		inode = BPF_CORE_READ((struct file *)file, f_inode);
		key.a = file;
		key.b = 0;
	} else {
		inode = BPF_CORE_READ(d, d_inode);
		key.a = dentry;
		key.b = mnt;
	}
	if (!inode)
		return 0;
	u64 id = (key.a ^ (key.b << 1)) ^ secret;
	now.epoch = epoch_now();
	now.dentry = dentry;
	now.inode = (u64)inode;
	now.ino = BPF_CORE_READ(inode, i_ino);
	now.parent = (u64)BPF_CORE_READ(d, d_parent);
	now.hash_len = BPF_CORE_READ(d, d_name.hash_len);
	now.deleted = !BPF_CORE_READ(d, d_hash.pprev) && now.parent != dentry;
	struct telling *before = bpf_map_lookup_elem(&told, &key);
	bool same = before && before->dentry == dentry && before->inode == now.inode && before->ino == now.ino &&
		    before->parent == now.parent && before->hash_len == now.hash_len && before->deleted == now.deleted;
	if (same && before->epoch == now.epoch)
		return id;
	now.sum = path_sum(dentry, mnt);
	if (same && before->sum == now.sum) {
		before->epoch = now.epoch;
		return id;
	}

	struct super_block *sb = BPF_CORE_READ(inode, i_sb);
	struct wire_file *record = (struct wire_file *)scratch->bytes;
	u32 mode = BPF_CORE_READ(inode, i_mode);
	record->head.kind = WIRE_FILE;
	record->head.flags = now.deleted ? WIRE_FILE_DELETED : 0;
	if (BPF_CORE_READ(sb, s_flags) & SB_KERNMOUNT)
		record->head.flags |= WIRE_FILE_INTERNAL;
	record->id = id;
	record->ino = now.ino;
	record->dev = BPF_CORE_READ(sb, s_dev);
	record->generation = BPF_CORE_READ(inode, i_generation);
	record->nlink = BPF_CORE_READ(inode, i_nlink);
	record->mode = mode;
	record->open_flags = file ? BPF_CORE_READ((struct file *)file, f_flags) : 0;
	record->size = BPF_CORE_READ(inode, i_size);
	record->names_bytes = 0;
	put_names(which, dentry, mnt);
	u32 names = record->names_bytes;
	if (names > PATH_BYTES + NAME_BYTES)
		names = 0;
	u32 bytes = sizeof(*record) + padded(names);
	record->head.bytes = bytes;
	/* A path that changed while we told it is told again next time. */
	if (path_sum(dentry, mnt) != now.sum)
		now.epoch = 0;
	if (PUT(scratch->bytes, bytes, bpf_ktime_get_ns()) == 0) {
		bpf_map_update_elem(&told, &key, &now, BPF_ANY);
		u64 key_sb = (u64)sb;
		bpf_map_update_elem(&mounts, &key_sb, &mnt, BPF_ANY);
	} else if (before) {
		bpf_map_delete_elem(&told, &key);
	}
	return id;
}

static __always_inline struct file *file_of(struct task_struct *task, int fd)
{
	struct files_struct *files = task->files;
	struct file *file = 0;

	if (!files || fd < 0)
		return 0;
	struct fdtable *fdt = files->fdt;
	if (!fdt || (u32)fd >= fdt->max_fds)
		return 0;
	struct file **slots = fdt->fd;
	bpf_probe_read_kernel(&file, sizeof(file), slots + fd);
	return file;
}

static __always_inline bool is_file(u32 mode)
{
	return (mode & S_IFMT) == S_IFREG || (mode & S_IFMT) == S_IFDIR;
}

static __always_inline bool is_elsewhere(struct inode *inode)
{
	return subject_mode == MODE_MOUNT && BPF_CORE_READ(inode, i_sb, s_dev) != mount_dev;
}

enum { NO_FILE = 0, ON_FILE = 1, ON_ELSEWHERE = 2 };

/* The fact of a file, and whether it is one of a file system. A file elsewhere is not told of unless `all`. */
static __always_inline u32 fact_of(struct wire_fact *fact, struct file *file, u32 which, bool all)
{
	struct inode *inode;

	if (!file)
		return NO_FILE;
	if (!all && is_elsewhere(BPF_CORE_READ(file, f_inode)))
		return ON_ELSEWHERE;
	fact->id = tell((u64)file, (u64)BPF_CORE_READ(file, f_path.dentry), (u64)BPF_CORE_READ(file, f_path.mnt), which);
	fact->pos = BPF_CORE_READ(file, f_pos);
	inode = BPF_CORE_READ(file, f_inode);
	fact->size = BPF_CORE_READ(inode, i_size);
	return is_file(BPF_CORE_READ(inode, i_mode)) ? ON_FILE : NO_FILE;
}

static __always_inline u32 fact_of_cwd(struct wire_fact *fact, struct task_struct *task, u32 which, bool all)
{
	struct fs_struct *fs = task->fs;

	if (!fs)
		return NO_FILE;
	if (!all && subject_mode == MODE_MOUNT && is_elsewhere(BPF_CORE_READ(fs, pwd.dentry, d_inode)))
		return ON_ELSEWHERE;
	fact->id = tell(0, (u64)BPF_CORE_READ(fs, pwd.dentry), (u64)BPF_CORE_READ(fs, pwd.mnt), which);
	return ON_FILE;
}

/* The fact of an argument. */
static __always_inline u32 fact_of_arg(struct state *state, u8 arg, u32 i, struct task_struct *task, u32 which, bool all)
{
	if (i > 1)
		return NO_FILE;
	if (arg == CWD_ARG || (arg < 6 && (s32)state->args[arg] == AT_FDCWD))
		return fact_of_cwd(&state->facts[i], task, which, all);
	if (arg < 6)
		return fact_of(&state->facts[i], file_of(task, state->args[arg]), which, all);
	return NO_FILE;
}

/* Whether a path names something below the mount point. */
static __always_inline bool is_below_mount(const char *path, u32 bytes)
{
	u32 len = mount_path_bytes;

	if (bytes == 0 || bytes > PATH_BYTES || path[0] != '/' || len > 255)
		return 0;
	if (len == 0)
		return 1;
	if (bpf_strncmp(path, len, (const char *)mount_path))
		return 0;
	return path[len] == '/' || path[len] == 0;
}

/* Whether a path call is on the file system recorded, by what it was given. */
static __always_inline bool paths_concern(struct strings *strings, bool in_directory)
{
	bool relative = 0;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (strings->bytes[i] == 0 || strings->bytes[i] == FAULTED)
			continue;
		if (is_below_mount(strings->text[i], strings->bytes[i]))
			return 1;
		relative |= strings->text[i][0] != '/';
	}
	return relative && in_directory;
}

struct vector {
	u64 at;
	u64 count;
	u64 sum;
};

static long step_iov(u32 i, struct vector *vector)
{
	u64 len = 0;

	if (i >= vector->count)
		return 1;
	if (bpf_probe_read_user(&len, sizeof(len), (void *)(vector->at + i * 16 + 8))) {
		vector->sum = WIRE_UNKNOWN;
		return 1;
	}
	vector->sum += len;
	return 0;
}

/* The lengths of an I/O vector; WIRE_UNKNOWN where they cannot be read. */
static __noinline u64 iov_total(u64 at, u64 count)
{
	struct vector vector = { at, count, 0 };

	if (count > IOV_MAX)
		return WIRE_UNKNOWN;
	bpf_loop(IOV_MAX, step_iov, &vector, 0);
	return vector.sum;
}

static __always_inline void read_strings(struct state *state, struct spec *spec, struct strings *strings, bool again)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		u8 arg = spec->str[i];
		if (arg > 5)
			continue;
		if (again && strings->bytes[i] != FAULTED)
			continue;
		u64 from = state->args[arg];
		if (!from) {
			strings->bytes[i] = 0;
			continue;
		}
		long read = bpf_probe_read_user_str(strings->text[i], PATH_BYTES, (void *)from);
		strings->bytes[i] = read > 0 ? read : FAULTED;
	}
}

static __always_inline void read_in(struct state *state, struct spec *spec)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		u8 arg = spec->in[i];
		u32 bytes = spec->in_bytes[i];
		if (arg > 5 || !state->args[arg] || bytes > WIRE_IN_BYTES)
			continue;
		if (bpf_probe_read_user(state->in[i], bytes, (void *)state->args[arg]) == 0)
			state->parts |= WIRE_IN0 << i;
		else
			state->flags |= IN0_MISSING << i;
	}
}

/* Puts a call's record together and writes it. */
static __noinline long put_call(struct state *state, struct strings *strings, struct scratch *scratch, u32 kind)
{
	if (!state || !scratch)
		return 0;
	struct wire_call *record = (struct wire_call *)scratch->bytes;
	u8 *bytes = scratch->bytes;
	u32 parts = state->parts;
	u32 at = sizeof(*record);

	record->head.kind = kind;
	record->start_ns = state->start_ns;
	record->off_cpu_ns = state->off_cpu_ns;
	record->blocked_ns = state->blocked_ns;
	record->nr = state->nr;
	record->reserved = 0;
	record->iov_bytes = state->iov_bytes;
	__builtin_memcpy(record->args, state->args, sizeof(record->args));
#pragma unroll
	for (int i = 0; i < 3; i++) {
		if (parts & (WIRE_FACT0 << i)) {
			*(struct wire_fact *)(bytes + (at & 8191)) = state->facts[i];
			at += sizeof(struct wire_fact);
		}
	}
#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (parts & (WIRE_IN0 << i)) {
			__builtin_memcpy(bytes + (at & 8191), state->in[i], WIRE_IN_BYTES);
			at += WIRE_IN_BYTES;
		}
	}
	if (parts & WIRE_OUT) {
		__builtin_memcpy(bytes + (at & 8191), state->out, WIRE_OUT_BYTES);
		at += WIRE_OUT_BYTES;
	}
	if ((state->flags & HAS_STRINGS) && strings) {
#pragma unroll
		for (int i = 0; i < 2; i++) {
			u32 len = strings->bytes[i];
			if (len == 0 || len > PATH_BYTES)
				continue;
			len -= 1; /* The NUL stays behind. */
			*(u32 *)(bytes + (at & 16383)) = len;
			bpf_probe_read_kernel(bytes + ((at + 4) & 16383), len & 4095, strings->text[i]);
			at += padded(4 + len);
			parts |= WIRE_STR0 << i;
		}
	}
	record->head.bytes = at;
	record->head.flags = parts;
	if (at > 16384)
		return 0;
	return PUT(bytes, at, record->start_ns + record->dur_ns);
}

/* The id of a file of which only the inode is known: one of its names, below a mount of its file system. */
static __noinline u64 tell_inode(u64 address, u32 which)
{
	struct inode *inode = (struct inode *)address;
	u64 sb = (u64)BPF_CORE_READ(inode, i_sb);
	u64 *mnt = bpf_map_lookup_elem(&mounts, &sb);
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	u64 *unknown;

	if (mnt && alias) {
		struct vfsmount *m = (struct vfsmount *)*mnt;
		u64 dentry = (u64)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
		if ((u64)BPF_CORE_READ(m, mnt_sb) == sb)
			return tell(0, dentry, (u64)m, which);
	}
	unknown = counter_of(COUNTER_FAULTS_UNKNOWN);
	if (unknown)
		*unknown += 1;
	return 0;
}

#define PAGE_SHIFT 12

static __always_inline void put_fault(struct state *state, struct task_struct *task, u16 flags, u64 inode, u64 first,
				      u64 last, u64 start_ns, u64 dur_ns, u64 blocked_ns)
{
	struct wire_fault record = {
		.head = { sizeof(record), WIRE_FAULT, flags },
		.pid = task->tgid,
		.tid = task->pid,
		.start_ns = start_ns,
		.dur_ns = dur_ns,
		.blocked_ns = blocked_ns,
		.id = tell_inode(inode, ON_FAULT),
		.offset = first << PAGE_SHIFT,
		.bytes = (last - first + 1) << PAGE_SHIFT,
	};
	PUT(&record, sizeof(record), start_ns + dur_ns);
}

/* Writes the access whose end had not shown itself: the thread has gone on since. */
static __always_inline void flush_access(struct state *state, struct task_struct *task)
{
	struct access *access = &state->access;

	if (!access->inode)
		return;
	put_fault(state, task, 0, access->inode, access->first, access->last, access->start_ns,
		  access->seen_ns - access->start_ns + access->blocked_ns, access->blocked_ns);
	access->inode = 0;
}

/* Takes a task in. */
static __always_inline struct state *admit(struct task_struct *task)
{
	struct state *state = bpf_task_storage_get(&states, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	u64 *count = counter_of(state ? COUNTER_BEGAN : COUNTER_NO_MEMORY);

	if (count)
		*count += 1;
	return state;
}

/* The state of the task that makes a call, if it is to be recorded. */
static __always_inline struct state *subject(struct task_struct *task, u32 nr)
{
	struct state *state = bpf_task_storage_get(&states, task, 0, 0);
	u32 tgid = task->tgid;

	if (subject_mode == MODE_PROCESSES) {
		if (state)
			return state;
		u32 *as = bpf_map_lookup_elem(&wanted, &tgid);
		if (!as || tgid == own_tgid)
			return 0;
		u32 flags = *as == WANTED_FROM_EXEC ? WAITING : 0;
		state = admit(task);
		if (state)
			state->flags = flags;
		return state;
	}
	if (tgid == own_tgid)
		return 0;
	if (subject_mode == MODE_CGROUP) {
		if (state)
			return bpf_get_current_ancestor_cgroup_id(state->cgroup_level) == cgroup_id ? state : 0;
		for (u32 level = 0; level < CGROUP_DEPTH; level++) {
			u64 id = bpf_get_current_ancestor_cgroup_id(level);
			if (id == 0)
				return 0;
			if (id == cgroup_id) {
				state = admit(task);
				if (state)
					state->cgroup_level = level;
				return state;
			}
		}
		return 0;
	}
	if (state)
		return state;
	struct spec *spec = bpf_map_lookup_elem(&specs, &nr);
	if (!spec || !(spec->flags & SPEC_RECORDED))
		return 0;
	return admit(task);
}

/* A task's root directory is told when it is another than before. */
static __always_inline void tell_root(struct state *state, struct task_struct *task, u32 which)
{
	struct fs_struct *fs = task->fs;

	if (!fs)
		return;
	u64 dentry = (u64)BPF_CORE_READ(fs, root.dentry), mnt = (u64)BPF_CORE_READ(fs, root.mnt);
	if (dentry == state->root_dentry && mnt == state->root_mnt)
		return;
	struct wire_root record = {
		.head = { sizeof(record), WIRE_ROOT, 0 },
		.tid = task->pid,
		.pid = task->tgid,
		.id = tell(0, dentry, mnt, which),
	};
	if (PUT(&record, sizeof(record), bpf_ktime_get_ns()) == 0) {
		state->root_dentry = dentry;
		state->root_mnt = mnt;
	}
}

static __always_inline void who(struct scratch *scratch, struct task_struct *task)
{
	struct wire_call *record = (struct wire_call *)scratch->bytes;

	record->pid = task->tgid;
	record->tid = task->pid;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 nr = id;
	struct state *state = subject(task, nr);

	if (!state)
		return 0;
	flush_access(state, task);
	state->flags = (state->flags & STAYS) | IN_CALL;
	bool compat = task->thread_info.status & TS_COMPAT;
	struct spec *spec = bpf_map_lookup_elem(&specs, &nr);
	if (spec && !compat) {
		if (!(spec->flags & SPEC_RECORDED))
			return 0;
		if ((state->flags & WAITING) && !(spec->flags & SPEC_EXEC))
			return 0;
	} else if (state->flags & WAITING) {
		return 0;
	}
	if (subject_mode == MODE_MOUNT && (compat || !spec))
		return 0;
	state->flags |= ACTIVE;
	state->nr = nr;
	state->parts = 0;
	state->off_since_ns = 0;
	state->off_cpu_ns = 0;
	state->blocked_ns = 0;
	state->iov_bytes = WIRE_UNKNOWN;
	state->args[0] = regs->di;
	state->args[1] = regs->si;
	state->args[2] = regs->dx;
	state->args[3] = regs->r10;
	state->args[4] = regs->r8;
	state->args[5] = regs->r9;
	if (compat || !spec) {
		state->parts = compat ? WIRE_COMPAT : 0;
		state->flags |= QUIET;
		state->start_ns = bpf_ktime_get_ns();
		return 0;
	}
	struct scratch *scratch = scratch_of(ON_ENTER);
	if (!scratch)
		return 0;
	bool on_file = spec->fd[0] == NO_ARG, concerned = 0;
#pragma unroll
	for (int i = 0; i < 2; i++) {
		u8 arg = spec->fd[i];
		if (arg == NO_ARG)
			continue;
		struct wire_fact *fact = &state->facts[i];
		fact->id = 0;
		fact->pos = 0;
		fact->size = 0;
		state->parts |= WIRE_FACT0 << i;
		u32 found = fact_of_arg(state, arg, i, task, ON_ENTER, 0);
		if (found == ON_ELSEWHERE)
			state->flags |= ELSEWHERE0 << i;
		else if (found == ON_FILE)
			on_file = concerned = 1;
	}
	if (!on_file)
		state->flags |= QUIET;
	/* mmap: memory that is no file's asks for none by flag or number; one asked for that is not there is a call that failed. */
	if ((spec->flags & SPEC_NEEDS_FD) && !state->facts[0].id && (state->args[3] & MAP_ANONYMOUS || (s32)state->args[4] < 0)) {
		state->flags &= STAYS;
		return 0;
	}
	struct strings *strings = 0;
	if (spec->str[0] != NO_ARG) {
		strings = bpf_task_storage_get(&texts, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (strings) {
			state->flags |= HAS_STRINGS;
			strings->bytes[0] = 0;
			strings->bytes[1] = 0;
			read_strings(state, spec, strings, 0);
			concerned = paths_concern(strings, concerned);
		}
		if (subject_mode != MODE_MOUNT)
			tell_root(state, task, ON_ENTER);
	}
	if (subject_mode == MODE_MOUNT) {
		if (concerned || (spec->flags & SPEC_EXEC && state->flags & TOUCHED))
			state->flags |= CONCERNED;
		else
			state->flags |= QUIET;
	}
	if (spec->in[0] != NO_ARG && (!(spec->flags & SPEC_IN_IF) || (u32)state->args[1] == spec->in_if))
		read_in(state, spec);
	if (spec->flags & SPEC_IOV) {
		state->iov_bytes = iov_total(state->args[1], state->args[2]);
		if (state->iov_bytes == WIRE_UNKNOWN)
			state->flags |= IOV_MISSING;
	}
	state->start_ns = bpf_ktime_get_ns();
	if ((spec->flags & SPEC_CLOSES) && on_file) {
		struct files_struct *files = task->files;
		if (files && files->count.counter > 1) {
			struct wire_call *record = (struct wire_call *)scratch->bytes;
			record->dur_ns = 0;
			record->ret = 0;
			who(scratch, task);
			put_call(state, strings, scratch, WIRE_ENTER);
			state->flags |= ENTERED;
		}
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	u64 now = bpf_ktime_get_ns();
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = bpf_task_storage_get(&states, task, 0, 0);
	u64 number = regs->orig_ax;

	/* Whoever calls: rename, renameat, renameat2, pivot_root, mount, umount2, move_mount. */
	if (number == 82 || number == 264 || number == 316 || number == 155 || number == 165 || number == 166 || number == 429)
		__sync_fetch_and_add(&moves, 1);
	if (!state)
		return 0;
	if (!(state->flags & ACTIVE)) {
		state->flags &= STAYS;
		return 0;
	}
	struct scratch *scratch = scratch_of(ON_EXIT);
	if (!scratch)
		return 0;
	u32 nr = state->nr;
	if (state->flags & WAITING) {
		/* The command is looked for along PATH; only the execve that finds it is its own. */
		if (ret < 0) {
			state->flags &= STAYS;
			return 0;
		}
		state->flags &= ~WAITING;
	}
	struct spec *spec = bpf_map_lookup_elem(&specs, &nr);
	struct strings *strings = 0;
	if (spec && !(state->parts & WIRE_COMPAT)) {
		if (state->flags & HAS_STRINGS) {
			strings = bpf_task_storage_get(&texts, task, 0, 0);
			if (strings)
				read_strings(state, spec, strings, 1);
		}
		if (subject_mode == MODE_MOUNT) {
			if (!(state->flags & CONCERNED) && (spec->flags & SPEC_RETURNS_FD) && ret >= 0) {
				struct file *file = file_of(task, ret);
				if (file && !is_elsewhere(BPF_CORE_READ(file, f_inode)))
					state->flags |= CONCERNED;
			}
			if (!(state->flags & CONCERNED) && strings && paths_concern(strings, 0))
				state->flags |= CONCERNED;
			if (!(state->flags & CONCERNED)) {
				state->flags &= STAYS;
				return 0;
			}
			state->flags |= TOUCHED;
#pragma unroll
			for (int i = 0; i < 2; i++) {
				if (state->flags & (ELSEWHERE0 << i))
					fact_of_arg(state, spec->fd[i], i, task, ON_EXIT, 1);
			}
			if (strings)
				tell_root(state, task, ON_EXIT);
		}
		if (state->flags & (IN0_MISSING | IN1_MISSING))
			read_in(state, spec);
		if (state->flags & IOV_MISSING)
			state->iov_bytes = iov_total(state->args[1], state->args[2]);
		if ((spec->flags & SPEC_RETURNS_FD) && ret >= 0) {
			state->facts[2].id = 0;
			state->facts[2].pos = 0;
			state->facts[2].size = 0;
			fact_of(&state->facts[2], file_of(task, ret), ON_EXIT, 1);
			state->parts |= WIRE_FACT_RET;
		}
		if (spec->out < 6 && ret >= 0 && spec->out_bytes <= WIRE_OUT_BYTES) {
			u64 from = state->args[spec->out];
			if (from && bpf_probe_read_user(state->out, spec->out_bytes, (void *)from) == 0)
				state->parts |= WIRE_OUT;
		}
	}
	struct wire_call *record = (struct wire_call *)scratch->bytes;
	record->dur_ns = now - state->start_ns;
	record->ret = ret;
	who(scratch, task);
	put_call(state, strings, scratch, WIRE_CALL);
	state->flags &= STAYS;
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct state *state = bpf_task_storage_get(&states, prev, 0, 0);

	if (state && (state->flags & ACTIVE || state->access.inode)) {
		bool blocks = !preempt && prev_state;
		state->off_blocked = blocks;
		state->woke_ns = 0;
		state->off_since_ns = bpf_ktime_get_ns();
		if (blocks && state->flags & ACTIVE && !(state->flags & (ENTERED | QUIET | WAITING))) {
			struct scratch *scratch = scratch_of(ON_SCHED);
			struct strings *strings = 0;
			if (scratch) {
				struct wire_call *record = (struct wire_call *)scratch->bytes;
				if (state->flags & HAS_STRINGS)
					strings = bpf_task_storage_get(&texts, prev, 0, 0);
				record->dur_ns = 0;
				record->ret = 0;
				who(scratch, prev);
				put_call(state, strings, scratch, WIRE_ENTER);
				state->flags |= ENTERED;
			}
		}
	}
	state = bpf_task_storage_get(&states, next, 0, 0);
	if (state && (state->flags & ACTIVE || state->access.inode) && state->off_since_ns) {
		u64 now = bpf_ktime_get_ns();
		state->off_cpu_ns += now - state->off_since_ns;
		if (state->off_blocked) {
			u64 until = state->woke_ns > state->off_since_ns ? state->woke_ns : now;
			state->blocked_ns += until - state->off_since_ns;
			state->access.blocked_ns += until - state->off_since_ns;
		}
		state->off_since_ns = 0;
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task)
{
	struct state *state = bpf_task_storage_get(&states, task, 0, 0);

	if (state && state->off_since_ns)
		state->woke_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct state *from = bpf_task_storage_get(&states, parent, 0, 0);

	if (from && from->flags & WAITING)
		return 0;
	if (!from) {
		u32 tgid = parent->tgid;
		u32 *as;
		if (subject_mode != MODE_PROCESSES)
			return 0; /* Taken in at its first call. */
		as = bpf_map_lookup_elem(&wanted, &tgid);
		if (!as || *as == WANTED_FROM_EXEC || tgid == own_tgid)
			return 0;
	}
	if (subject_mode == MODE_MOUNT && !(from && from->flags & TOUCHED))
		return 0;
	struct state *state = admit(child);
	if (!state)
		return 0;
	if (from) {
		state->root_dentry = from->root_dentry;
		state->root_mnt = from->root_mnt;
		state->cgroup_level = from->cgroup_level;
		state->flags = from->flags & TOUCHED;
	}
	struct wire_fork record = {
		.head = { sizeof(record), WIRE_FORK, 0 },
		.at_ns = bpf_ktime_get_ns(),
		.parent_tid = parent->pid,
		.child_tid = child->pid,
		.child_pid = child->tgid,
	};
	if (child->files == parent->files)
		record.head.flags |= WIRE_SHARES_FILES;
	if (child->fs == parent->fs)
		record.head.flags |= WIRE_SHARES_FS;
	if (child->tgid == parent->tgid)
		record.head.flags |= WIRE_SAME_PROCESS;
	PUT(&record, sizeof(record), record.at_ns);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct state *state = bpf_task_storage_get(&states, task, 0, 0);
	struct scratch *scratch = scratch_of(ON_ENTER);

	if (!state || !scratch)
		return 0;
	if (subject_mode == MODE_MOUNT && !(state->flags & TOUCHED))
		return 0;
	struct wire_exec *record = (struct wire_exec *)scratch->bytes;
	record->head.kind = WIRE_EXEC;
	record->head.flags = 0;
	record->at_ns = bpf_ktime_get_ns();
	record->tid = task->pid;
	record->old_tid = old_pid;
	long read = bpf_probe_read_kernel_str(scratch->bytes + sizeof(*record) + 4, PATH_BYTES, bprm->filename);
	u32 len = read > 0 ? read - 1 : 0;
	if (len > PATH_BYTES)
		len = 0;
	*(u32 *)(scratch->bytes + sizeof(*record)) = len;
	record->head.bytes = sizeof(*record) + padded(4 + len);
	PUT(scratch->bytes, sizeof(*record) + padded(4 + len), record->at_ns);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct state *state = bpf_task_storage_get(&states, task, 0, 0);
	u64 now = bpf_ktime_get_ns();

	if (subject_mode == MODE_PROCESSES && BPF_CORE_READ(task, signal, live.counter) == 0) {
		u32 tgid = task->tgid;
		bpf_map_delete_elem(&wanted, &tgid);
	}
	if (!state)
		return 0;
	flush_access(state, task);
	u64 *ended = counter_of(COUNTER_ENDED);
	if (ended)
		*ended += 1;
	if (state->flags & WAITING)
		return 0;
	if (subject_mode == MODE_MOUNT && !(state->flags & TOUCHED))
		return 0;
	if (state->flags & ACTIVE) {
		struct scratch *scratch = scratch_of(ON_ENTER);
		struct strings *strings = 0;
		if (scratch && (subject_mode != MODE_MOUNT || state->flags & CONCERNED)) {
			struct wire_call *record = (struct wire_call *)scratch->bytes;
			if (state->flags & HAS_STRINGS)
				strings = bpf_task_storage_get(&texts, task, 0, 0);
			record->dur_ns = now - state->start_ns;
			record->ret = -1;
			who(scratch, task);
			state->parts |= WIRE_UNFINISHED;
			put_call(state, strings, scratch, WIRE_CALL);
		}
		state->flags &= ~ACTIVE;
	}
	struct wire_exit record = {
		.head = { sizeof(record), WIRE_EXIT, 0 },
		.at_ns = now,
		.tid = task->pid,
		.pid = task->tgid,
		.code = task->exit_code,
	};
	PUT(&record, sizeof(record), now);
	return 0;
}

/* Whether accesses of this task to this file are recorded. */
static __always_inline struct state *accessor(struct task_struct *task, struct inode *inode)
{
	struct state *state = bpf_task_storage_get(&states, task, 0, 0);

	if (!state || (state->flags & WAITING) || !inode)
		return 0;
	/* What a file system keeps of its own in the cache is no file. */
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	if (subject_mode == MODE_MOUNT && is_elsewhere(inode))
		return 0;
	return state;
}

/* A page that was mapped by no process is looked for in the cache, or read from the device: what follows shows how long it took. */
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_filemap_fault, struct address_space *mapping, unsigned long index)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode = BPF_CORE_READ(mapping, host);
	struct state *state = accessor(task, inode);
	u64 now = bpf_ktime_get_ns();

	if (!state)
		return 0;
	struct access *access = &state->access;
	if (access->inode == (u64)inode && access->first == index && access->last == index)
		return 0; /* Tried again after a wait. */
	flush_access(state, task);
	access->inode = (u64)inode;
	access->first = index;
	access->last = index;
	access->start_ns = now;
	access->seen_ns = now;
	access->blocked_ns = 0;
	state->off_since_ns = 0;
	return 0;
}

/* Pages around a fault that are in the cache were mapped. */
SEC("tp_btf/mm_filemap_map_pages")
int BPF_PROG(on_map_pages, struct address_space *mapping, unsigned long first, unsigned long last)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode = BPF_CORE_READ(mapping, host);
	struct state *state = accessor(task, inode);
	u64 now = bpf_ktime_get_ns();

	if (!state || last < first)
		return 0;
	struct access *access = &state->access;
	if (access->inode == (u64)inode && access->first >= first && access->last <= last) {
		/* The fault that had to wait is done. What is told is a window, of which the pages are mapped that are in the cache: those
		 * that were there before the wait were mapped then. */
		access->seen_ns = now > access->blocked_ns ? now - access->blocked_ns : now;
		flush_access(state, task);
		return 0;
	}
	flush_access(state, task);
	put_fault(state, task, 0, (u64)inode, first, last, now, 0, 0);
	return 0;
}

/* A write through a shared mapping made a clean page dirty. The pages that calls write are theirs. */
SEC("tp_btf/writeback_dirty_folio")
int BPF_PROG(on_dirty, struct folio *folio, struct address_space *mapping)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode;
	struct state *state;

	if (!mapping)
		return 0;
	inode = BPF_CORE_READ(mapping, host);
	state = accessor(task, inode);
	if (!state || state->flags & IN_CALL)
		return 0;
	u64 now = bpf_ktime_get_ns();
	u64 index = BPF_CORE_READ(folio, index);
	u64 start = now, blocked = 0;
	struct access *access = &state->access;
	if (access->inode == (u64)inode) {
		/* The same fault brought it in: one access, a write. */
		index = access->first;
		start = access->start_ns;
		blocked = access->blocked_ns;
		access->inode = 0;
	}
	put_fault(state, task, WIRE_FAULT_WRITE, (u64)inode, index, index, start, now - start, blocked);
	return 0;
}

#define REQ_F_FIXED_FILE 1
enum {
	OP_READV = 1,
	OP_WRITEV = 2,
	OP_FSYNC = 3,
	OP_READ_FIXED = 4,
	OP_WRITE_FIXED = 5,
	OP_READ = 22,
	OP_WRITE = 23,
};

static __always_inline bool is_rw(u32 opcode)
{
	return opcode == OP_READV || opcode == OP_WRITEV || opcode == OP_READ_FIXED || opcode == OP_WRITE_FIXED ||
	       opcode == OP_READ || opcode == OP_WRITE;
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_submit, struct io_kiocb *req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = bpf_task_storage_get(&states, task, 0, 0);
	u64 key = (u64)req;

	if (!state) {
		/* The kernel's own thread of a ring belongs to the process. */
		struct task_struct *leader = task->group_leader;
		if (leader)
			state = bpf_task_storage_get(&states, leader, 0, 0);
	}
	if (!state || (state->flags & WAITING))
		return 0;
	struct request request = {
		.start_ns = bpf_ktime_get_ns(),
		.pid = task->tgid,
		.tid = task->pid,
		.opcode = BPF_CORE_READ(req, opcode),
		.fd = BPF_CORE_READ(req, cqe.fd),
		.offset = 0,
		.bytes = 0,
	};
	if (BPF_CORE_READ(req, flags) & REQ_F_FIXED_FILE)
		request.flags = WIRE_REQUEST_FIXED_FILE;
	if (is_rw(request.opcode)) {
		struct io_rw *rw = (struct io_rw *)req;
		request.offset = BPF_CORE_READ(rw, kiocb.ki_pos);
		request.bytes = BPF_CORE_READ(rw, len);
		request.op_flags = BPF_CORE_READ(rw, flags);
	} else if (request.opcode == OP_FSYNC) {
		struct io_sync *sync = (struct io_sync *)req;
		request.op_flags = BPF_CORE_READ(sync, flags);
	}
	bpf_map_update_elem(&requests, &key, &request, BPF_ANY);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_complete, void *ring_of, void *req, struct io_uring_cqe *cqe)
{
	u64 key = (u64)req;
	struct request *request = key ? bpf_map_lookup_elem(&requests, &key) : 0;
	struct wire_fact fact = {};
	struct file *file;

	if (!request)
		return 0;
	file = BPF_CORE_READ((struct io_kiocb *)req, file);
	u32 found = fact_of(&fact, file, ON_RING, 0);
	if (found != ON_ELSEWHERE && (subject_mode != MODE_MOUNT || found == ON_FILE)) {
		struct wire_request record = {
			.head = { sizeof(record), WIRE_REQUEST, request->flags },
			.pid = request->pid,
			.tid = request->tid,
			.start_ns = request->start_ns,
			.dur_ns = bpf_ktime_get_ns() - request->start_ns,
			.id = fact.id,
			.offset = request->offset,
			.bytes = request->bytes,
			.opcode = request->opcode,
			.fd = request->fd,
			.op_flags = request->op_flags,
			.res = BPF_CORE_READ(cqe, res),
		};
		PUT(&record, sizeof(record), record.start_ns + record.dur_ns);
	}
	bpf_map_delete_elem(&requests, &key);
	return 0;
}
