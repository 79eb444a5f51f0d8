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
const volatile struct spec specs[SPECS] = {}; /* by the call's number */

#define PATH_BYTES 4096
#define NAME_BYTES 256
#define DEPTH (PATH_BYTES / 2 + 64) /* names of one byte, and the mounts they cross */
#define S_IFMT 0170000
#define S_IFREG 0100000
#define S_IFDIR 0040000
#define SB_KERNMOUNT (1ul << 22)
#define TS_COMPAT 2
#define AT_FDCWD (-100)
#define PF_EXITING 0x4
#define TASK_DEAD 0x80
#define MAP_ANONYMOUS 0x20
#define IOV_MAX 1024
#define CGROUP_DEPTH 16
#define OWN_NS 200000 /* what is taken of a thread's time is told when it is so much */
#define OWN_NS_EACH 50000
#define TIMED_OF 8 /* reading the clock is much of what a call costs: of so many calls one is measured, drawn at random, and stands for all */
#define TOLD_SETS 32768
#define TOLD_WAYS 2
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
	TIMED = 1 << 13, /* what we take of its time in this call is measured */
	STAYS = WAITING | TOUCHED,
};

/* What is known of a task that is recorded. */
struct state {
	u32 flags;
	u32 off_blocked; /* it went to sleep when it left the processor */
	u64 off_since_ns; /* 0: on a processor */
	u64 woke_ns; /* since it last had a processor; 0: not woken */
	u32 waker_tid; /* by whom then; 0: by nobody who is recorded */
	u32 draw; /* which calls are TIMED */
	u64 own_ns; /* what we took of its time, and have not told */
	/* The call's record, as it is written. The facts that there are follow `call` in turn. */
	struct wire_call call;
	struct wire_fact facts[3];
	u8 in[2][WIRE_IN_BYTES];
	u8 out[WIRE_OUT_BYTES];
	u64 root_dentry;
	u64 root_mnt;
	u32 cgroup_level;
	u32 parts; /* wire_call_flag */
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

/* What a file is to be told as. */
struct telling {
	u64 key; /* the file, or the directory's name and its mount */
	u64 print; /* of what the file is: from dentry to deleted, and its generation */
	u64 epoch; /* when the sum was last found right */
	u64 sum; /* over the path; of a file told by its directory, over the directory's; 0: to be told again */
	u64 dentry;
	u64 mnt;
	u64 inode;
	u64 parent;
	u64 hash_len;
	u64 ino;
	u64 deleted;
	u64 sb;
	u32 dev;
	u32 internal;
	u32 is_open; /* an open file, not a directory by its path */
	u32 generation;
};

/* What a file was told as. */
struct told_way {
	u64 key; /* 0: nothing */
	u64 print;
	u64 epoch;
	u64 sum;
	u64 sb;
	u32 dev;
	u32 internal;
};

/* Room to put a record together and to look at objects. */
struct scratch {
	u8 record[24 * 1024];
	struct telling now;
	struct telling above; /* of the directory of `now` */
	u64 name; /* where the last component of `now` stands */
	u32 open_flags;
	u32 reserved;
	u8 file[192];
	u8 dentry[64];
	u8 inode[128];
	u8 sb[128];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024 * 1024);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counters);
} counters SEC(".maps");

/* Processes to record, by number (enum wanted); a thread is taken in at its first call. A process that ends is taken out, as its
 * number may be given to another. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, u32);
} wanted SEC(".maps");

/* Which numbers may be those of processes that are recorded: nobody else is looked up. A bit once set stays, as others may share it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CANDIDATES);
	__type(key, u32);
	__type(value, u8);
} candidates SEC(".maps");

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

/* Files told of: a set for each hash, of which the one told longest ago makes room; it is told again then.
 *
 * Who tells of a file holds the set (WRITING) from before the record is in the ring until what he told is kept. Nobody waits: who finds
 * the set held tells the file all the same, and marks it as spoiled before and after; nothing in it is believed then, and the next who
 * holds it empties it first. Each of these steps changes the word, as it counts them. So where the word is the same at two moments and
 * neither WRITING nor SPOILED, no record about a file of the set went into the ring between the two, and what the set holds of a file is
 * what the last record about it says. */
struct told_set {
	u64 word;
	struct told_way ways[TOLD_WAYS];
	u64 reserved[3]; /* Two lines of the processor's cache, the keys in one: most of what a fresh file costs is waiting for these. */
};

#define WRITING 1ull
#define SPOILED 2ull
#define STEP 4ull

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* begins a page, so that sets begin lines */
	__uint(max_entries, TOLD_SETS);
	__type(key, u32);
	__type(value, struct told_set);
} told SEC(".maps");

/* Counts what may move or remove directories. A path is walked again only when this has changed, and every few seconds, as not every such
 * call shows itself. Removals count as well: the names that a walk goes by are known by their addresses, and another directory may get
 * those of one that was removed, down to its inode's number. */
u64 moves = 0;
#define EPOCH_SHIFT 9 /* of jiffies */

static __always_inline u64 epoch_now(void)
{
	return moves + (bpf_jiffies64() >> EPOCH_SHIFT << 32);
}

/* One for each program that another can interrupt or follow on a processor. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 5);
	__type(key, u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

enum { ON_ENTER = 0, ON_EXIT = 1, ON_SCHED = 2, ON_FAULT = 3, ON_RING = 4 };

/* What each processor is interrupted by (enum interrupt): who runs there then wakes nobody. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} interrupted SEC(".maps");

enum interrupt {
	BY_TIMER = 1 << 0,
	BY_DEVICE = 1 << 1,
};

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

static __always_inline const volatile struct spec *spec_of(u64 nr)
{
	if (nr >= SPECS)
		return 0;
	/* The bound is there in sight of the verifier, whatever the compiler makes of it. */
	asm volatile("" : "+r"(nr));
	return &specs[nr & (SPECS - 1)];
}

static __always_inline struct scratch *scratch_of(u32 which)
{
	return bpf_map_lookup_elem(&scratches, &which);
}

static __always_inline struct counters *counted(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&counters, &zero);
}

/* Tells of losses, as soon as there is room. */
static __noinline long tell_losses(struct counters *counters, u64 now)
{
	if (!counters)
		return 0;
	struct wire_lost loss = {
		.head = { sizeof(loss), WIRE_LOST, 0 },
		.at_ns = now,
		.records = counters->lost - counters->told,
	};
	if (bpf_ringbuf_output(&ring, &loss, sizeof(loss), BPF_RB_NO_WAKEUP) == 0)
		counters->told += loss.records;
	return 0;
}

/* Writes a record, or counts it as lost. `now`: the time; 0: it is not known here. */
static __always_inline long put(void *record, u64 bytes, u64 now)
{
	struct counters *counters = counted();

	if (!counters)
		return -1;
	if (counters->lost != counters->told)
		tell_losses(counters, now ? now : bpf_ktime_get_ns());
	counters->records += 1;
	long failed = bpf_ringbuf_output(&ring, record, bytes, BPF_RB_NO_WAKEUP);
	if (failed)
		counters->lost += 1;
	return failed;
}

/* Fields of a kernel's object are read together where they lie together, as each reading is a call. LOW and HIGH are the first byte
 * and the one behind the last, by the running kernel's layout: constants when the programs are loaded. */
#define BEGIN_OF(type, field) bpf_core_field_offset(type, field)
#define END_OF(type, field) (bpf_core_field_offset(type, field) + bpf_core_field_size(type, field))
#define PART(bytes, low, type, field, as) (*(as *)((bytes) + (BEGIN_OF(type, field) - (low))))

static __always_inline u32 lower(u32 a, u32 b)
{
	return a < b ? a : b;
}

static __always_inline u32 higher(u32 a, u32 b)
{
	return a > b ? a : b;
}

struct seen_file {
	u64 inode;
	u64 dentry;
	u64 mnt;
	u64 pos;
};

static __always_inline void look_at_file(struct seen_file *seen, struct file *file, struct scratch *scratch)
{
	u32 low = lower(lower(BEGIN_OF(struct file, f_inode), BEGIN_OF(struct file, f_path)),
			lower(BEGIN_OF(struct file, f_pos), BEGIN_OF(struct file, f_flags)));
	u32 high = higher(higher(END_OF(struct file, f_inode), END_OF(struct file, f_path)),
			  higher(END_OF(struct file, f_pos), END_OF(struct file, f_flags)));

	low &= ~7u;
	if (high - low <= sizeof(scratch->file)) {
		bpf_probe_read_kernel(scratch->file, high - low, (char *)file + low);
		seen->inode = PART(scratch->file, low, struct file, f_inode, u64);
		seen->dentry = PART(scratch->file, low, struct file, f_path.dentry, u64);
		seen->mnt = PART(scratch->file, low, struct file, f_path.mnt, u64);
		seen->pos = PART(scratch->file, low, struct file, f_pos, u64);
		scratch->open_flags = PART(scratch->file, low, struct file, f_flags, u32);
	} else {
		seen->inode = (u64)BPF_CORE_READ(file, f_inode);
		seen->dentry = (u64)BPF_CORE_READ(file, f_path.dentry);
		seen->mnt = (u64)BPF_CORE_READ(file, f_path.mnt);
		seen->pos = BPF_CORE_READ(file, f_pos);
		scratch->open_flags = BPF_CORE_READ(file, f_flags);
	}
}

struct seen_inode {
	u64 sb;
	u64 ino;
	u64 size;
	u32 nlink;
	u32 mode;
	u32 generation;
};

static __always_inline void look_at_inode(struct seen_inode *seen, struct inode *inode, struct scratch *scratch)
{
	u32 low = lower(lower(BEGIN_OF(struct inode, i_mode), BEGIN_OF(struct inode, i_sb)),
			lower(BEGIN_OF(struct inode, i_ino), lower(BEGIN_OF(struct inode, i_nlink), BEGIN_OF(struct inode, i_size))));
	u32 high = higher(higher(END_OF(struct inode, i_mode), END_OF(struct inode, i_sb)),
			  higher(END_OF(struct inode, i_ino), higher(END_OF(struct inode, i_nlink), END_OF(struct inode, i_size))));

	low &= ~7u;
	/* Far from the rest. A file that was made where one was removed can have all else of it: its number, its name and their addresses. */
	seen->generation = BPF_CORE_READ(inode, i_generation);
	if (high - low <= sizeof(scratch->inode)) {
		bpf_probe_read_kernel(scratch->inode, high - low, (char *)inode + low);
		seen->sb = PART(scratch->inode, low, struct inode, i_sb, u64);
		seen->ino = PART(scratch->inode, low, struct inode, i_ino, u64);
		seen->size = PART(scratch->inode, low, struct inode, i_size, u64);
		seen->nlink = PART(scratch->inode, low, struct inode, i_nlink, u32);
		seen->mode = PART(scratch->inode, low, struct inode, i_mode, u16);
	} else {
		seen->sb = (u64)BPF_CORE_READ(inode, i_sb);
		seen->ino = BPF_CORE_READ(inode, i_ino);
		seen->size = BPF_CORE_READ(inode, i_size);
		seen->nlink = BPF_CORE_READ(inode, i_nlink);
		seen->mode = BPF_CORE_READ(inode, i_mode);
	}
}

struct seen_dentry {
	u64 parent;
	u64 hash_len;
	u64 name;
	u64 inode;
	u64 hashed; /* not 0: it is to be found by its name */
};

static __always_inline void look_at_dentry(struct seen_dentry *seen, struct dentry *dentry, u8 *bytes, u32 room)
{
	u32 low = lower(lower(BEGIN_OF(struct dentry, d_hash), BEGIN_OF(struct dentry, d_parent)),
			lower(BEGIN_OF(struct dentry, d_name), BEGIN_OF(struct dentry, d_inode)));
	u32 high = higher(higher(END_OF(struct dentry, d_hash), END_OF(struct dentry, d_parent)),
			  higher(END_OF(struct dentry, d_name), END_OF(struct dentry, d_inode)));

	if (high - low <= room) {
		bpf_probe_read_kernel(bytes, high - low, (char *)dentry + low);
		seen->parent = PART(bytes, low, struct dentry, d_parent, u64);
		seen->hash_len = PART(bytes, low, struct dentry, d_name.hash_len, u64);
		seen->name = PART(bytes, low, struct dentry, d_name.name, u64);
		seen->inode = PART(bytes, low, struct dentry, d_inode, u64);
		seen->hashed = PART(bytes, low, struct dentry, d_hash.pprev, u64);
	} else {
		seen->parent = (u64)BPF_CORE_READ(dentry, d_parent);
		seen->hash_len = BPF_CORE_READ(dentry, d_name.hash_len);
		seen->name = (u64)BPF_CORE_READ(dentry, d_name.name);
		seen->inode = (u64)BPF_CORE_READ(dentry, d_inode);
		seen->hashed = (u64)BPF_CORE_READ(dentry, d_hash.pprev);
	}
}

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
	struct seen_dentry seen;
	u8 bytes[64] __attribute__((aligned(8)));
	look_at_dentry(&seen, d, bytes, sizeof(bytes));
	if (seen.parent == (u64)d) {
		walk->whole = 1;
		return 1;
	}
	walk->sum = mix(mix(walk->sum, (u64)d), seen.hash_len);
	walk->dentry = (struct dentry *)seen.parent;
	*len = seen.hash_len >> 32;
	*name = (const unsigned char *)seen.name;
	return 0;
}

static long step_sum(u32 i, struct walk *walk)
{
	const unsigned char *name;
	u32 len;

	return go_up(walk, &len, &name);
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
	scratch->record[at & 8191] = len;
	if (bpf_probe_read_kernel(&scratch->record[(at + 1) & 8191], len & 255, name))
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

/* Not static, this and the next: the verifier looks at such a function once and by itself, not anew wherever it is called. Without that the
 * programs for --mount have more to look at than it does. */
__noinline u64 path_sum(u64 dentry, u64 mnt)
{
	struct walk walk;

	begin_walk(&walk, dentry, mnt);
	bpf_loop(DEPTH, step_sum, &walk, 0);
	return walk.sum;
}

/* Writes the components of a path into a file record, the last first. Returns their sum. */
__noinline u64 put_names(u32 which, u64 dentry, u64 mnt)
{
	struct scratch *scratch = scratch_of(which);
	struct walk walk;

	if (!scratch)
		return 0;
	struct wire_file *record = (struct wire_file *)scratch->record;
	begin_walk(&walk, dentry, mnt);
	walk.scratch = which;
	bpf_loop(DEPTH, step_names, &walk, 0);
	record->names_bytes = walk.at;
	if (!walk.whole)
		record->head.flags |= WIRE_FILE_CUT;
	return walk.sum;
}

static __always_inline u32 padded(u32 bytes)
{
	return (bytes + 7) & ~7u;
}

#define barrier() asm volatile("" ::: "memory")
#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))

static __always_inline struct told_set *set_of(struct telling *as)
{
	u32 at = mix(mix(1, as->key), 0) >> 32 & (TOLD_SETS - 1);

	return bpf_map_lookup_elem(&told, &at);
}

/* Equal prints, the same file under the same last name. The products do not wait for each other, unlike those of mix(). */
static __always_inline u64 print_of(struct telling *as)
{
	/* Read back, these are numbers; the verifier lets nobody reckon with pointers. */
	u64 sum = READ_ONCE(as->dentry) * 0x9e3779b97f4a7c15ull + READ_ONCE(as->mnt) * 0xbf58476d1ce4e5b9ull + as->inode * 0x94d049bb133111ebull +
		  as->parent * 0xd6e8feb86659fd93ull + as->hash_len * 0xff51afd7ed558ccdull + as->ino * 0xc4ceb9fe1a85ec53ull +
		  as->deleted * 0xa0761d6478bd642full + as->generation * 0xe7037ed1a0b428dbull;

	return sum ^ (sum >> 32);
}

enum recalled { NEW, OLD, CURRENT };

struct memory {
	u64 word; /* the set's */
	u64 sum;
	u64 sb;
	u32 dev;
	u32 internal;
};

/* Whether a file was told as it is: of its path CURRENT is sure, and OLD not, as something may have moved since. */
static __always_inline enum recalled recall(struct telling *as, struct memory *memory)
{
	struct told_set *set = set_of(as);
	enum recalled recalled = NEW;

	memory->word = SPOILED;
	if (!set)
		return NEW;
	u64 word = READ_ONCE(set->word);
	barrier();
#pragma unroll
	for (int i = 0; i < TOLD_WAYS; i++) {
		struct told_way *way = &set->ways[i];
		if (way->key == as->key && way->print == as->print) {
			recalled = way->epoch == as->epoch ? CURRENT : OLD;
			memory->sum = way->sum;
			memory->sb = way->sb;
			memory->dev = way->dev;
			memory->internal = way->internal;
		}
	}
	barrier();
	memory->word = word;
	return word & (WRITING | SPOILED) || READ_ONCE(set->word) != word ? NEW : recalled;
}

/* Takes hold of a set, whose word was `word`. */
static __always_inline bool hold(struct told_set *set, u64 word)
{
	if (word & WRITING || __sync_val_compare_and_swap(&set->word, word, (word & ~SPOILED) | WRITING) != word)
		return 0;
	if (word & SPOILED) {
#pragma unroll
		for (int i = 0; i < TOLD_WAYS; i++)
			set->ways[i].key = 0;
	}
	barrier();
	return 1;
}

/* Keeps what a file was told as in a set that is held, or forgets the file, and lets the set go. Returns its word. */
static __always_inline u64 let_go(struct told_set *set, struct telling *as, bool keep)
{
	u32 at = READ_ONCE(set->word) / STEP;

#pragma unroll
	for (int i = 0; i < TOLD_WAYS; i++) {
		if (set->ways[i].key == as->key) {
			at = i;
			set->ways[i].key = 0;
		}
	}
	if (keep) {
		struct told_way *way = &set->ways[at & (TOLD_WAYS - 1)];
		way->key = as->key;
		way->print = as->print;
		way->epoch = as->epoch;
		way->sum = as->sum;
		way->sb = as->sb;
		way->dev = as->dev;
		way->internal = as->internal;
	}
	barrier();
	return __sync_fetch_and_add(&set->word, STEP - WRITING) + STEP - WRITING;
}

static __noinline long spoil(struct told_set *set)
{
	if (set) {
		__sync_fetch_and_add(&set->word, STEP);
		__sync_fetch_and_or(&set->word, SPOILED);
	}
	return 0;
}

/* Keeps a telling that was found right, unless something happened to its set since it was looked at. Returns the set's word. */
static __noinline u64 keep_old(struct telling *as, u64 word)
{
	struct told_set *set = as ? set_of(as) : 0;

	return set && hold(set, word) ? let_go(set, as, 1) : SPOILED;
}

/* Keeps a mount of a file system. */
static __always_inline void note_mount(u64 sb, u64 mnt)
{
	u64 *known = bpf_map_lookup_elem(&mounts, &sb);

	if (!known || *known != mnt)
		bpf_map_update_elem(&mounts, &sb, &mnt, BPF_ANY);
}

static __always_inline u64 id_of(struct telling *as)
{
	return as->key ^ secret;
}

/* What a record tells of a file beside its path. */
static __always_inline void tell_facts(struct scratch *scratch, struct telling *as, struct seen_inode *seen)
{
	struct wire_file *record = (struct wire_file *)scratch->record;

	record->head.kind = WIRE_FILE;
	record->head.flags = (as->deleted ? WIRE_FILE_DELETED : 0) | (as->internal ? WIRE_FILE_INTERNAL : 0);
	record->id = id_of(as);
	record->ino = as->ino;
	record->dev = as->dev;
	record->generation = as->generation;
	record->nlink = seen->nlink;
	record->mode = seen->mode;
	record->open_flags = as->is_open ? scratch->open_flags : 0;
	record->size = seen->size;
	record->names_bytes = 0;
}

static __always_inline void look_at_super(struct telling *as, u64 address, struct scratch *scratch)
{
	struct super_block *sb = (struct super_block *)address;
	u32 low = lower(BEGIN_OF(struct super_block, s_dev), BEGIN_OF(struct super_block, s_flags)) & ~7u;
	u32 high = higher(END_OF(struct super_block, s_dev), END_OF(struct super_block, s_flags));

	as->sb = address;
	if (high - low <= sizeof(scratch->sb)) {
		bpf_probe_read_kernel(scratch->sb, high - low, (char *)sb + low);
		as->dev = PART(scratch->sb, low, struct super_block, s_dev, u32);
		as->internal = !!(PART(scratch->sb, low, struct super_block, s_flags, u64) & SB_KERNMOUNT);
	} else {
		as->dev = BPF_CORE_READ(sb, s_dev);
		as->internal = !!(BPF_CORE_READ(sb, s_flags) & SB_KERNMOUNT);
	}
}

/* Tells of a file by its whole path, unless that is found to be the one told. Returns the word of its set: as long as that is the same
 * and neither WRITING nor SPOILED, the last record about it is the one with this path, whose sum is `as->sum`. */
static __noinline u64 tell_whole(struct scratch *scratch, struct telling *as, u32 which, struct seen_inode *seen)
{
	struct memory memory = {};

	if (!scratch || !as || !seen)
		return SPOILED;
	enum recalled recalled = recall(as, &memory);
	if (recalled != NEW) {
		as->sum = recalled == CURRENT ? memory.sum : path_sum(as->dentry, as->mnt);
		as->sb = memory.sb;
		as->dev = memory.dev;
		as->internal = memory.internal;
		if (recalled == CURRENT)
			return memory.word;
		if (as->sum == memory.sum)
			return keep_old(as, memory.word);
	}
	struct told_set *set = set_of(as);
	if (!set)
		return SPOILED;
	bool held = hold(set, READ_ONCE(set->word));
	if (!held)
		spoil(set);
	look_at_super(as, seen->sb, scratch);
	tell_facts(scratch, as, seen);
	as->sum = put_names(which, as->dentry, as->mnt);
	struct wire_file *record = (struct wire_file *)scratch->record;
	u32 names = record->names_bytes;
	if (names > PATH_BYTES + NAME_BYTES)
		names = 0;
	u32 bytes = sizeof(*record) + padded(names);
	record->head.bytes = bytes;
	/* A path that changed while we told it is told again next time. That nothing was counted in `moves` does not say that it did not:
	 * a rename that is under way is counted when it returns. */
	bool changed = path_sum(as->dentry, as->mnt) != as->sum;
	bool lost = put(scratch->record, bytes, 0) != 0;
	if (!lost)
		note_mount(as->sb, as->mnt);
	if (changed)
		as->sum = as->epoch = 0;
	if (!held) {
		spoil(set);
		return SPOILED;
	}
	u64 word = let_go(set, as, !lost);
	return lost || changed ? SPOILED : word;
}

/* Fills in what an open file is, or (file 0) a directory by its path, but for the path. False: there is no inode. */
static __always_inline bool look_at(struct telling *as, u64 file, u64 dentry, u64 mnt, u64 inode, struct seen_inode *seen,
				    struct scratch *scratch, u64 *at)
{
	struct seen_dentry name;

	look_at_dentry(&name, (struct dentry *)dentry, scratch->dentry, sizeof(scratch->dentry));
	if (!file)
		inode = name.inode;
	if (!inode)
		return 0;
	look_at_inode(seen, (struct inode *)inode, scratch);
	as->is_open = file != 0;
	as->mnt = mnt;
	as->epoch = epoch_now();
	as->dentry = dentry;
	as->inode = inode;
	as->ino = seen->ino;
	as->generation = seen->generation;
	as->parent = name.parent;
	as->hash_len = name.hash_len;
	as->deleted = !name.hashed && name.parent != dentry;
	as->print = print_of(as);
	as->key = file ? file : READ_ONCE(as->dentry) ^ (READ_ONCE(as->mnt) << 1);
	*at = name.name;
	return 1;
}

/* Sees to it that the directory of the file in `now` is told as it is, and returns the word of its set, as tell_whole does. */
static __noinline u64 tell_above(struct scratch *scratch, u32 which)
{
	struct seen_inode seen = {};
	u64 name;

	if (!scratch)
		return SPOILED;
	struct telling *now = &scratch->now;
	u64 dentry = now->parent, mnt = now->mnt;
	if (!look_at(&scratch->above, 0, dentry, mnt, 0, &seen, scratch, &name))
		return SPOILED;
	return tell_whole(scratch, &scratch->above, which, &seen);
}

/* Tells of the open file in `now` by its directory, which was told and whose set had this word then, and its last name. Nothing is told,
 * and false returned, where the name cannot be read.
 *
 * Whoever reads the records takes the directory's path from the last record about it that stands before ours. Is that the path whose sum
 * we keep? The word of the directory's set said so when we took it, and still does when it is the same after ours is in the ring: every
 * record about the directory in between would have changed it before. Otherwise we keep no sum, and the file is told again next time.
 * Afterwards the directory may be told anew, by another path. That changes nothing for us: the file's path is looked at again when
 * `moves` has changed, by the sum over the directory's path as it is then; equal sums, equal paths.
 *
 * Renames by others meanwhile: one that takes the file from this directory or changes its name shows itself in the name's hash and parent,
 * which we look at before the name and after; it is also seen by the next who compares them with what is kept. One that moves a directory
 * above is counted in `moves` when it returns, hence after we took the epoch that is kept with the sum, if it was not done by then. Until
 * that call has its record, the old path is the one that the records before lead to. */
static __noinline bool tell_below(struct scratch *scratch, u64 word, struct seen_inode *seen)
{
	if (!scratch || !seen)
		return 0;
	struct telling *now = &scratch->now;
	struct told_set *set = set_of(now), *set_above = set_of(&scratch->above);
	u32 len = now->hash_len >> 32;
	struct wire_file *record = (struct wire_file *)scratch->record;
	struct wire_below *below = (struct wire_below *)(scratch->record + sizeof(*record));
	if (!set || !set_above || len == 0 || len >= NAME_BYTES || scratch->above.sb != seen->sb)
		return 0;
	u8 *text = scratch->record + sizeof(*record) + sizeof(*below);
	if (bpf_probe_read_kernel(text + 1, len & 255, (void *)scratch->name))
		return 0;
	text[0] = len;
	bool held = hold(set, READ_ONCE(set->word));
	if (!held)
		spoil(set);
	else if (set == set_above)
		word |= WRITING;
	now->sb = scratch->above.sb;
	now->dev = scratch->above.dev;
	now->internal = scratch->above.internal;
	now->sum = scratch->above.sum;
	tell_facts(scratch, now, seen);
	record->head.flags |= WIRE_FILE_BELOW;
	below->directory = id_of(&scratch->above);
	record->names_bytes = sizeof(*below) + 1 + len;
	u32 bytes = sizeof(*record) + padded(sizeof(*below) + 1 + len);
	record->head.bytes = bytes;

	struct seen_dentry again;
	look_at_dentry(&again, (struct dentry *)now->dentry, scratch->dentry, sizeof(scratch->dentry));
	bool lost = put(scratch->record, bytes & 1023, 0) != 0;
	if (again.parent != now->parent || again.hash_len != now->hash_len || READ_ONCE(set_above->word) != word)
		now->sum = now->epoch = 0;
	if (held)
		let_go(set, now, !lost);
	else
		spoil(set);
	return 1;
}

/* Tells of the file in `now`, unless its path is found to be the one told. */
static __noinline long tell_new(struct scratch *scratch, u32 which, struct seen_inode *seen)
{
	struct memory memory = {};

	if (!scratch || !seen)
		return 0;
	struct telling *now = &scratch->now;
	struct vfsmount *mnt = (struct vfsmount *)now->mnt;
	/* Only open files are told by their directory: directories are not, so a path is put together once. */
	if (now->is_open && now->parent != now->dentry && (u64)BPF_CORE_READ(mnt, mnt_root) != now->dentry) {
		u64 word = tell_above(scratch, which);
		if (!(word & (WRITING | SPOILED))) {
			if (recall(now, &memory) != NEW && memory.sum == scratch->above.sum) {
				now->sum = memory.sum;
				now->sb = memory.sb;
				now->dev = memory.dev;
				now->internal = memory.internal;
				keep_old(now, memory.word);
				return 0;
			}
			if (tell_below(scratch, word, seen))
				return 0;
		}
	}
	tell_whole(scratch, now, which, seen);
	return 0;
}

/* The id of a file, or of a directory by its path (file 0). It is told of first, unless it was told as it is. 0: there is none. */
static __always_inline u64 tell(u64 file, u64 dentry, u64 mnt, u64 inode, struct seen_inode *seen, struct scratch *scratch,
				u32 which)
{
	struct telling *now = &scratch->now;
	struct memory memory;
	u64 name;

	if (!dentry || !mnt)
		return 0;
	if (!look_at(now, file, dentry, mnt, inode, seen, scratch, &name))
		return 0;
	u64 id = id_of(now);
	if (recall(now, &memory) != CURRENT) {
		scratch->name = name;
		tell_new(scratch, which, seen);
	}
	return id;
}

/* The id of a directory by its path. */
static __noinline u64 tell_directory(struct scratch *scratch, u64 dentry, u64 mnt, u32 which)
{
	struct seen_inode seen = {};

	return scratch ? tell(0, dentry, mnt, 0, &seen, scratch, which) : 0;
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
static __always_inline u32 fact_of(struct wire_fact *fact, struct file *file, struct scratch *scratch, u32 which, bool all)
{
	struct seen_inode inode = {};
	struct seen_file seen;

	if (!file)
		return NO_FILE;
	look_at_file(&seen, file, scratch);
	if (!all && is_elsewhere((struct inode *)seen.inode))
		return ON_ELSEWHERE;
	fact->id = tell((u64)file, seen.dentry, seen.mnt, seen.inode, &inode, scratch, which);
	fact->pos = seen.pos;
	fact->size = inode.size;
	return is_file(inode.mode) ? ON_FILE : NO_FILE;
}

static __always_inline u32 fact_of_cwd(struct wire_fact *fact, struct task_struct *task, struct scratch *scratch, u32 which,
				       bool all)
{
	struct fs_struct *fs = task->fs;

	if (!fs)
		return NO_FILE;
	struct dentry *dentry = fs->pwd.dentry;
	struct vfsmount *mnt = fs->pwd.mnt;
	if (!all && subject_mode == MODE_MOUNT && is_elsewhere(BPF_CORE_READ(dentry, d_inode)))
		return ON_ELSEWHERE;
	fact->id = tell_directory(scratch, (u64)dentry, (u64)mnt, which);
	return ON_FILE;
}

/* The fact of an argument. */
static __always_inline u32 fact_of_arg(struct state *state, u8 arg, u32 i, struct task_struct *task, struct scratch *scratch,
				       u32 which, bool all)
{
	if (i > 1)
		return NO_FILE;
	if (arg == CWD_ARG || (arg < 6 && (s32)state->call.args[arg] == AT_FDCWD))
		return fact_of_cwd(&state->facts[i], task, scratch, which, all);
	if (arg < 6)
		return fact_of(&state->facts[i], file_of(task, state->call.args[arg]), scratch, which, all);
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

static __always_inline void read_strings(struct state *state, const volatile struct spec *spec, struct strings *strings, bool again)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		u8 arg = spec->str[i];
		if (arg > 5)
			continue;
		if (again && strings->bytes[i] != FAULTED)
			continue;
		u64 from = state->call.args[arg];
		if (!from) {
			strings->bytes[i] = 0;
			continue;
		}
		if (i == 0)
			from += spec->str_skip;
		long read = bpf_probe_read_user_str(strings->text[i], PATH_BYTES, (void *)from);
		strings->bytes[i] = read > 0 ? read : FAULTED;
	}
}

/* Whether all paths of a call start at the root. */
static __always_inline bool are_absolute(struct strings *strings)
{
	bool any = 0;

#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (strings->bytes[i] == 0)
			continue;
		if (strings->bytes[i] == FAULTED || strings->text[i][0] != '/')
			return 0;
		any = 1;
	}
	return any;
}

static __always_inline void read_in(struct state *state, const volatile struct spec *spec)
{
#pragma unroll
	for (int i = 0; i < 2; i++) {
		u8 arg = spec->in[i];
		u32 bytes = spec->in_bytes[i];
		if (arg > 5 || !state->call.args[arg] || bytes > WIRE_IN_BYTES)
			continue;
		if (bpf_probe_read_user(state->in[i], bytes, (void *)state->call.args[arg]) == 0)
			state->parts |= WIRE_IN0 << i;
		else
			state->flags |= IN0_MISSING << i;
	}
}

/* Memory in words: the compiler copies bytes one by one otherwise. */
struct in_memory {
	u64 words[WIRE_IN_BYTES / 8];
};

struct out_memory {
	u64 words[WIRE_OUT_BYTES / 8];
};

/* Puts a record together of a call with more than the facts that it began with. */
static __noinline long put_parts(struct state *state, struct strings *strings, struct scratch *scratch, u64 now)
{
	if (!state || !scratch)
		return 0;
	u8 *bytes = scratch->record;
	u32 parts = state->parts;
	u32 at = sizeof(struct wire_call);

	*(struct wire_call *)bytes = state->call;
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
			*(struct in_memory *)(bytes + (at & 8191)) = *(struct in_memory *)state->in[i];
			at += WIRE_IN_BYTES;
		}
	}
	if (parts & WIRE_OUT) {
		*(struct out_memory *)(bytes + (at & 8191)) = *(struct out_memory *)state->out;
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
	struct wire_head *head = (struct wire_head *)bytes;
	head->bytes = at;
	head->flags = parts;
	if (at > 16384)
		return 0;
	return put(bytes, at, now);
}

/* Writes a call's record. */
static __always_inline void put_call(struct state *state, struct task_struct *task, struct strings *strings,
				     struct scratch *scratch, u32 kind, u64 dur_ns, s64 ret)
{
	u64 now = state->call.start_ns + dur_ns;
	u32 parts = state->parts;

	state->call.head.kind = kind;
	state->call.pid = task->tgid;
	state->call.tid = task->pid;
	state->call.dur_ns = dur_ns;
	state->call.ret = ret;
	if (state->flags & HAS_STRINGS || (parts & ~(WIRE_UNFINISHED | WIRE_COMPAT | WIRE_FACT0))) {
		put_parts(state, strings, scratch, now);
		return;
	}
	/* Most calls: the record lies there as it is. */
	u64 bytes = sizeof(state->call) + (parts & WIRE_FACT0 ? sizeof(state->facts[0]) : 0);
	state->call.head.bytes = bytes;
	state->call.head.flags = parts;
	put(&state->call, bytes, now);
}

/* The id of a file of which only the inode is known: one of its names, below a mount of its file system. */
static __noinline u64 tell_inode(u64 address, u32 which)
{
	struct inode *inode = (struct inode *)address;
	u64 sb = (u64)BPF_CORE_READ(inode, i_sb);
	u64 *known = bpf_map_lookup_elem(&mounts, &sb);
	struct hlist_node *alias = BPF_CORE_READ(inode, i_dentry.first);
	struct fs_struct *fs = bpf_get_current_task_btf()->fs;
	struct vfsmount *mnt = known ? (struct vfsmount *)*known : 0;

	if (fs && (!mnt || (u64)BPF_CORE_READ(mnt, mnt_sb) != sb)) {
		mnt = fs->pwd.mnt;
		if ((u64)BPF_CORE_READ(mnt, mnt_sb) != sb)
			mnt = fs->root.mnt;
	}
	if (mnt && alias && (u64)BPF_CORE_READ(mnt, mnt_sb) == sb) {
		u64 dentry = (u64)alias - bpf_core_field_offset(struct dentry, d_u.d_alias);
		return tell_directory(scratch_of(which), dentry, (u64)mnt, which);
	}
	struct counters *counters = counted();
	if (counters)
		counters->faults_unknown += 1;
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
	put(&record, sizeof(record), start_ns + dur_ns);
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
	struct counters *counters = counted();

	if (counters && state)
		counters->began += 1;
	else if (counters)
		counters->no_memory += 1;
	return state;
}

/* Whether a task may be recorded: only then is it worth a closer look. */
static __always_inline bool is_candidate(struct task_struct *task)
{
	if (subject_mode != MODE_PROCESSES)
		return 1;
	u32 at = (u32)task->tgid & (CANDIDATES - 1);
	u8 *candidate = bpf_map_lookup_elem(&candidates, &at);
	return candidate && *candidate;
}

/* The state of a task that is recorded already. */
static __always_inline struct state *state_of(struct task_struct *task)
{
	return is_candidate(task) ? bpf_task_storage_get(&states, task, 0, 0) : 0;
}

/* The state of the task that makes a call, if it is to be recorded. */
static __always_inline struct state *subject(struct task_struct *task, u32 nr)
{
	u32 tgid = task->tgid;

	if (subject_mode == MODE_PROCESSES) {
		if (!is_candidate(task))
			return 0;
		struct state *state = bpf_task_storage_get(&states, task, 0, 0);
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
	struct state *state = bpf_task_storage_get(&states, task, 0, 0);
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
	const volatile struct spec *spec = spec_of(nr);
	return spec && spec->flags & SPEC_RECORDED ? admit(task) : 0;
}

/* The state of a task that shows itself otherwise than by a call, if it is to be recorded. */
static __noinline struct state *joined(struct task_struct *task)
{
	return subject(task, SPECS);
}

/* A task's root directory is told when it is another than before. */
static __always_inline void tell_root(struct state *state, struct task_struct *task, struct scratch *scratch, u32 which)
{
	struct fs_struct *fs = task->fs;

	if (!fs)
		return;
	u64 dentry = (u64)fs->root.dentry, mnt = (u64)fs->root.mnt;
	if (dentry == state->root_dentry && mnt == state->root_mnt)
		return;
	struct wire_root record = {
		.head = { sizeof(record), WIRE_ROOT, 0 },
		.tid = task->pid,
		.pid = task->tgid,
		.id = tell_directory(scratch, dentry, mnt, which),
	};
	if (put(&record, sizeof(record), bpf_ktime_get_ns()) == 0) {
		state->root_dentry = dentry;
		state->root_mnt = mnt;
	}
}

/* Whether what we take of this call is measured. */
static __always_inline bool draw_timed(struct state *state)
{
	/* With --mount nobody asks, and the verifier has enough to look at. */
	if (subject_mode == MODE_MOUNT)
		return 0;
	state->draw = state->draw * 1664525 + 1013904223;
	return state->draw >> 16 & (TIMED_OF - 1) ? 0 : 1;
}

/* Notes what was taken of a thread's time; what is longer than we ever need was somebody else's, who had the processor meanwhile. */
static __always_inline void took(struct state *state, u64 ns, u32 stands_for)
{
	if (subject_mode != MODE_MOUNT && ns < OWN_NS_EACH)
		state->own_ns += ns * stands_for;
}

/* Writes what was taken of a thread's time. */
static __always_inline void put_own(struct state *state, struct task_struct *task, u64 now)
{
	if (subject_mode == MODE_MOUNT || !state->own_ns)
		return;
	struct wire_own record = {
		.head = { sizeof(record), WIRE_OWN, 0 },
		.tid = task->pid,
		.at_ns = now,
		.own_ns = state->own_ns,
	};
	put(&record, sizeof(record), now);
	state->own_ns = 0;
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
	const volatile struct spec *spec = spec_of(nr);
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
	u64 entered_ns = 0;
	if (draw_timed(state)) {
		state->flags |= TIMED;
		entered_ns = bpf_ktime_get_ns();
	}
	state->parts = 0;
	state->off_since_ns = 0;
	state->call.nr = nr;
	state->call.off_cpu_ns = 0;
	state->call.blocked_ns = 0;
	state->call.iov_bytes = WIRE_UNKNOWN;
	state->call.args[0] = regs->di;
	state->call.args[1] = regs->si;
	state->call.args[2] = regs->dx;
	state->call.args[3] = regs->r10;
	state->call.args[4] = regs->r8;
	state->call.args[5] = regs->r9;
	if (compat || !spec) {
		state->parts = compat ? WIRE_COMPAT : 0;
		state->flags |= QUIET;
		state->call.start_ns = bpf_ktime_get_ns();
		return 0;
	}
	struct scratch *scratch = scratch_of(ON_ENTER);
	if (!scratch)
		return 0;
	bool on_file = spec->fd[0] == NO_ARG, concerned = 0, absolute = 0;
	struct strings *strings = 0;
	if (spec->str[0] != NO_ARG) {
		strings = bpf_task_storage_get(&texts, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		if (strings) {
			state->flags |= HAS_STRINGS;
			strings->bytes[0] = 0;
			strings->bytes[1] = 0;
			read_strings(state, spec, strings, 0);
			absolute = are_absolute(strings);
		}
	}
#pragma unroll
	for (int i = 0; i < 2; i++) {
		u8 arg = spec->fd[i];
		/* Where the paths start is of no interest if they start at the root. */
		if (arg == NO_ARG || absolute)
			continue;
		struct wire_fact *fact = &state->facts[i];
		fact->id = 0;
		fact->pos = 0;
		fact->size = 0;
		state->parts |= WIRE_FACT0 << i;
		u32 found = fact_of_arg(state, arg, i, task, scratch, ON_ENTER, 0);
		if (found == ON_ELSEWHERE)
			state->flags |= ELSEWHERE0 << i;
		else if (found == ON_FILE)
			on_file = concerned = 1;
	}
	if (!on_file && !absolute)
		state->flags |= QUIET;
	/* mmap: memory that is no file's asks for none by flag or number; one asked for that is not there is a call that failed. */
	if ((spec->flags & SPEC_NEEDS_FD) && !state->facts[0].id && (state->call.args[3] & MAP_ANONYMOUS || (s32)state->call.args[4] < 0)) {
		state->flags &= STAYS;
		return 0;
	}
	if (strings)
		concerned = paths_concern(strings, concerned);
	if (spec->str[0] != NO_ARG && subject_mode != MODE_MOUNT)
		tell_root(state, task, scratch, ON_ENTER);
	if (subject_mode == MODE_MOUNT) {
		if (concerned || (spec->flags & SPEC_EXEC && state->flags & TOUCHED))
			state->flags |= CONCERNED;
		else
			state->flags |= QUIET;
	}
	if (spec->in[0] != NO_ARG && (!(spec->flags & SPEC_IN_IF) || (u32)state->call.args[1] == spec->in_if))
		read_in(state, spec);
	if (spec->flags & SPEC_IOV) {
		state->call.iov_bytes = iov_total(state->call.args[1], state->call.args[2]);
		if (state->call.iov_bytes == WIRE_UNKNOWN)
			state->flags |= IOV_MISSING;
	}
	state->call.start_ns = bpf_ktime_get_ns();
	if (entered_ns)
		took(state, state->call.start_ns - entered_ns, TIMED_OF);
	if ((spec->flags & SPEC_CLOSES) && on_file) {
		struct files_struct *files = task->files;
		if (files && files->count.counter > 1) {
			put_call(state, task, strings, scratch, WIRE_ENTER, 0, 0);
			state->flags |= ENTERED;
		}
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 number = regs->orig_ax, now = 0;

	const volatile struct spec *made = spec_of(number);
	if (made && made->flags & (SPEC_RECORDED | SPEC_MOVES)) {
		if (made->flags & SPEC_MOVES && (!made->moves_if_bit || regs->dx >> (made->moves_if_bit & 31) & 1))
			__sync_fetch_and_add(&moves, 1); /* whoever calls */
		if (is_candidate(task))
			now = bpf_ktime_get_ns();
	}
	struct state *state = state_of(task);
	if (!state)
		return 0;
	if (!(state->flags & ACTIVE)) {
		state->flags &= STAYS;
		return 0;
	}
	struct scratch *scratch = scratch_of(ON_EXIT);
	if (!scratch)
		return 0;
	u32 nr = state->call.nr;
	if (!now)
		now = bpf_ktime_get_ns();
	if (state->flags & WAITING) {
		/* The command is looked for along PATH; only the execve that finds it is its own. */
		if (ret < 0) {
			state->flags &= STAYS;
			return 0;
		}
		state->flags &= ~WAITING;
	}
	const volatile struct spec *spec = spec_of(nr);
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
					fact_of_arg(state, spec->fd[i], i, task, scratch, ON_EXIT, 1);
			}
			if (strings)
				tell_root(state, task, scratch, ON_EXIT);
		}
		if (state->flags & (IN0_MISSING | IN1_MISSING))
			read_in(state, spec);
		if (state->flags & IOV_MISSING)
			state->call.iov_bytes = iov_total(state->call.args[1], state->call.args[2]);
		if ((spec->flags & SPEC_RETURNS_FD) && ret >= 0) {
			state->facts[2].id = 0;
			state->facts[2].pos = 0;
			state->facts[2].size = 0;
			fact_of(&state->facts[2], file_of(task, ret), scratch, ON_EXIT, 1);
			state->parts |= WIRE_FACT_RET;
		}
		u8 out = spec->out;
		u32 out_bytes = spec->out_bytes;
		if (out < 6 && ret >= 0 && out_bytes <= WIRE_OUT_BYTES) {
			u64 from = state->call.args[out];
			if (from && bpf_probe_read_user(state->out, out_bytes, (void *)from) == 0)
				state->parts |= WIRE_OUT;
		}
	}
	put_call(state, task, strings, scratch, WIRE_CALL, now - state->call.start_ns, ret);
	bool timed = state->flags & TIMED;
	state->flags &= STAYS;
	if (!timed)
		return 0;
	u64 left_ns = bpf_ktime_get_ns();
	took(state, left_ns - now, TIMED_OF);
	if (state->own_ns > OWN_NS)
		put_own(state, task, left_ns);
	return 0;
}

/* Writes that a thread has the processor again, or that it has left it for good. */
static __always_inline void put_turn(struct state *state, struct task_struct *task, u16 flags, u64 woke_ns, u64 on_ns)
{
	/* Of one file system alone, what others wait for is not known. */
	if (subject_mode == MODE_MOUNT || state->flags & WAITING)
		return;
	struct wire_turn record = {
		.head = { sizeof(record), WIRE_TURN, flags },
		.tid = task->pid,
		.waker_tid = flags & WIRE_TURN_SLEPT ? state->waker_tid : 0,
		.off_ns = state->off_since_ns,
		.woke_ns = woke_ns,
		.on_ns = on_ns,
	};
	put(&record, sizeof(record), on_ns);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct state *state = state_of(prev);

	if (state) {
		bool blocks = !preempt && prev_state;
		state->off_blocked = blocks;
		state->off_since_ns = bpf_ktime_get_ns();
		if (prev_state & TASK_DEAD)
			put_turn(state, prev, WIRE_TURN_LAST, state->off_since_ns, state->off_since_ns);
		if (blocks && state->flags & ACTIVE && !(state->flags & (ENTERED | QUIET | WAITING))) {
			struct scratch *scratch = scratch_of(ON_SCHED);
			struct strings *strings = 0;
			if (scratch) {
				if (state->flags & HAS_STRINGS)
					strings = bpf_task_storage_get(&texts, prev, 0, 0);
				put_call(state, prev, strings, scratch, WIRE_ENTER, 0, 0);
				state->flags |= ENTERED;
			}
		}
	}
	state = state_of(next);
	if (state && state->off_since_ns) {
		u64 now = bpf_ktime_get_ns(), until = state->off_since_ns;
		/* A waking may be told before the sleep is, as the waker need not wait for it; each sleep ends with one. */
		if (state->off_blocked && state->woke_ns > until)
			until = state->woke_ns;
		else if (state->off_blocked && !state->woke_ns)
			until = now;
		if (state->flags & ACTIVE || state->access.inode) {
			state->call.off_cpu_ns += now - state->off_since_ns;
			state->call.blocked_ns += until - state->off_since_ns;
			state->access.blocked_ns += until - state->off_since_ns;
		}
		put_turn(state, next, state->off_blocked ? WIRE_TURN_SLEPT : 0, until, now);
		state->off_since_ns = 0;
		state->woke_ns = 0;
		state->waker_tid = 0;
	}
	return 0;
}

/* Told where the waker runs, unlike sched_wakeup, which may be told where the thread is to run. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct state *state = state_of(task);

	if (!state)
		return 0;
	struct task_struct *waker = bpf_get_current_task_btf();
	u32 zero = 0, waker_tid = 0;
	u32 *by = bpf_map_lookup_elem(&interrupted, &zero);

	if (waker != task && by && !*by) {
		struct state *from = state_of(waker);
		if (from && !(from->flags & WAITING) && (from->flags & IN_CALL || waker->flags & PF_EXITING))
			waker_tid = waker->pid;
	}
	state->waker_tid = waker_tid;
	state->woke_ns = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void note_interrupt(u32 by, bool begins)
{
	u32 zero = 0;
	u32 *now = bpf_map_lookup_elem(&interrupted, &zero);

	if (now)
		*now = begins ? *now | by : *now & ~by;
}

SEC("tp_btf/hrtimer_expire_entry")
int BPF_PROG(on_timer)
{
	note_interrupt(BY_TIMER, 1);
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int BPF_PROG(on_timer_end)
{
	note_interrupt(BY_TIMER, 0);
	return 0;
}

SEC("tp_btf/irq_handler_entry")
int BPF_PROG(on_irq)
{
	note_interrupt(BY_DEVICE, 1);
	return 0;
}

SEC("tp_btf/irq_handler_exit")
int BPF_PROG(on_irq_end)
{
	note_interrupt(BY_DEVICE, 0);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct state *from = state_of(parent);

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
	u32 at = (u32)child->tgid & (CANDIDATES - 1);
	u8 yes = 1;
	bpf_map_update_elem(&candidates, &at, &yes, BPF_ANY);
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
	if (BPF_CORE_READ(child, nsproxy, mnt_ns) != BPF_CORE_READ(parent, nsproxy, mnt_ns))
		record.head.flags |= WIRE_OWN_MOUNTS;
	put(&record, sizeof(record), record.at_ns);
	state->off_since_ns = record.at_ns; /* It waits for its first turn. */
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct state *state = state_of(task);
	struct scratch *scratch = scratch_of(ON_ENTER);

	if (!state || !scratch)
		return 0;
	if (subject_mode == MODE_MOUNT && !(state->flags & TOUCHED))
		return 0;
	struct wire_exec *record = (struct wire_exec *)scratch->record;
	record->head.kind = WIRE_EXEC;
	record->head.flags = 0;
	record->at_ns = bpf_ktime_get_ns();
	record->tid = task->pid;
	record->old_tid = old_pid;
	long read = bpf_probe_read_kernel_str(scratch->record + sizeof(*record) + 4, PATH_BYTES, bprm->filename);
	u32 len = read > 0 ? read - 1 : 0;
	if (len > PATH_BYTES)
		len = 0;
	*(u32 *)(scratch->record + sizeof(*record)) = len;
	record->head.bytes = sizeof(*record) + padded(4 + len);
	put(scratch->record, sizeof(*record) + padded(4 + len), record->at_ns);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	struct state *state = state_of(task);
	u64 now = bpf_ktime_get_ns();

	if (subject_mode == MODE_PROCESSES && BPF_CORE_READ(task, signal, live.counter) == 0) {
		u32 tgid = task->tgid;
		bpf_map_delete_elem(&wanted, &tgid);
	}
	if (!state)
		return 0;
	flush_access(state, task);
	struct counters *counters = counted();
	if (counters)
		counters->ended += 1;
	if (state->flags & WAITING)
		return 0;
	if (subject_mode == MODE_MOUNT && !(state->flags & TOUCHED))
		return 0;
	if (state->flags & ACTIVE) {
		struct scratch *scratch = scratch_of(ON_ENTER);
		struct strings *strings = 0;
		if (scratch && (subject_mode != MODE_MOUNT || state->flags & CONCERNED)) {
			if (state->flags & HAS_STRINGS)
				strings = bpf_task_storage_get(&texts, task, 0, 0);
			state->parts |= WIRE_UNFINISHED;
			put_call(state, task, strings, scratch, WIRE_CALL, now - state->call.start_ns, -1);
		}
		state->flags &= ~ACTIVE;
	}
	put_own(state, task, now);
	struct wire_exit record = {
		.head = { sizeof(record), WIRE_EXIT, 0 },
		.at_ns = now,
		.tid = task->pid,
		.pid = task->tgid,
		.code = task->exit_code,
	};
	put(&record, sizeof(record), now);
	return 0;
}

/* Whether a task is in the kernel for a fault of its program's, and not for a call. */
static __always_inline bool is_in_fault(struct task_struct *task)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

	return (long)BPF_CORE_READ(regs, orig_ax) == -1;
}

/* The state of this task if its accesses to this file are recorded: it may have made no call since the recording began. */
static __always_inline struct state *accessor(struct task_struct *task, struct inode *inode)
{
	struct state *state = state_of(task);

	if (!inode || (state && state->flags & WAITING))
		return 0;
	/* What a file system keeps of its own in the cache is no file. */
	if ((inode->i_mode & S_IFMT) != S_IFREG)
		return 0;
	/* Nor is memory that processes share without a name. */
	if (BPF_CORE_READ(inode, i_sb, s_flags) & SB_KERNMOUNT)
		return 0;
	if (subject_mode == MODE_MOUNT && is_elsewhere(inode))
		return 0;
	/* What a call does that began before is none of ours. */
	if (!state && !(task->flags & PF_EXITING) && is_candidate(task) && is_in_fault(task)) {
		if (subject_mode == MODE_MOUNT)
			return task->tgid == own_tgid ? 0 : admit(task);
		state = joined(task);
	}
	return state && !(state->flags & WAITING) ? state : 0;
}

/* A page that was mapped by no process is looked for in the cache, or read from the device: what follows shows how long it took. */
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_filemap_fault, struct address_space *mapping, unsigned long index)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct inode *inode = mapping->host;
	struct state *state = accessor(task, inode);

	if (!state)
		return 0;
	u64 now = bpf_ktime_get_ns();
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
	struct inode *inode = mapping->host;
	struct state *state = accessor(task, inode);

	if (!state || last < first)
		return 0;
	u64 now = bpf_ktime_get_ns();
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
	if (!(state->flags & IN_CALL))
		took(state, bpf_ktime_get_ns() - now, 1);
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
	state = state_of(task);
	if (state && state->flags & IN_CALL)
		return 0;
	inode = mapping->host;
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

#define REQ_F_FIXED_FILE (1 << 0) /* as IOSQE_FIXED_FILE */
#define REQ_F_CQE_SKIP (1 << 6) /* as IOSQE_CQE_SKIP_SUCCESS */
enum {
	OP_READV = 1,
	OP_WRITEV = 2,
	OP_FSYNC = 3,
	OP_READ_FIXED = 4,
	OP_WRITE_FIXED = 5,
	OP_READ = 22,
	OP_WRITE = 23,
};

/* The operations whose descriptor is kept until the file is looked up: that of others is what another request left there. */
#define ON_FILES                                                                                                                \
	(1ull << OP_READV | 1ull << OP_WRITEV | 1ull << OP_FSYNC | 1ull << OP_READ_FIXED | 1ull << OP_WRITE_FIXED |            \
	 1ull << 6 /* POLL_ADD */ | 1ull << 8 /* SYNC_FILE_RANGE */ | 1ull << 9 /* SENDMSG */ | 1ull << 10 /* RECVMSG */ |     \
	 1ull << 13 /* ACCEPT */ | 1ull << 16 /* CONNECT */ | 1ull << 17 /* FALLOCATE */ | 1ull << OP_READ | 1ull << OP_WRITE | \
	 1ull << 24 /* FADVISE */ | 1ull << 26 /* SEND */ | 1ull << 27 /* RECV */ | 1ull << 30 /* SPLICE */ |                 \
	 1ull << 33 /* TEE */ | 1ull << 34 /* SHUTDOWN */ | 1ull << 47 /* SEND_ZC */ | 1ull << 48 /* SENDMSG_ZC */ |           \
	 1ull << 49 /* READ_MULTISHOT */ | 1ull << 55 /* FTRUNCATE */ | 1ull << 56 /* BIND */ | 1ull << 57 /* LISTEN */)

static __always_inline bool is_rw(u32 opcode)
{
	return opcode == OP_READV || opcode == OP_WRITEV || opcode == OP_READ_FIXED || opcode == OP_WRITE_FIXED ||
	       opcode == OP_READ || opcode == OP_WRITE;
}

/* Writes the record of a request. */
static __always_inline void put_request(struct request *request, struct file *file, u64 dur_ns, s32 res)
{
	struct scratch *scratch = scratch_of(ON_RING);
	struct wire_fact fact = {};

	if (!scratch)
		return;
	u32 found = fact_of(&fact, file, scratch, ON_RING, 0);
	if (found == ON_ELSEWHERE || (subject_mode == MODE_MOUNT && found != ON_FILE))
		return;
	struct wire_request record = {
		.head = { sizeof(record), WIRE_REQUEST, request->flags },
		.pid = request->pid,
		.tid = request->tid,
		.start_ns = request->start_ns,
		.dur_ns = dur_ns,
		.id = fact.id,
		.offset = request->offset,
		.bytes = request->bytes,
		.opcode = request->opcode,
		.fd = request->fd,
		.op_flags = request->op_flags,
		.res = res,
	};
	put(&record, sizeof(record), record.start_ns + dur_ns);
}

SEC("tp_btf/io_uring_submit_req")
int BPF_PROG(on_submit, struct io_kiocb *req)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct state *state = state_of(task);
	u64 key = (u64)req;

	if (!state) {
		/* The kernel's own thread of a ring belongs to the process. */
		struct task_struct *leader = task->group_leader;
		if (leader)
			state = state_of(leader);
	}
	if (!state)
		state = joined(task);
	if (!state || (state->flags & WAITING))
		return 0;
	u64 flags = BPF_CORE_READ(req, flags);
	struct request request = {
		.start_ns = bpf_ktime_get_ns(),
		.pid = task->tgid,
		.tid = task->pid,
		.opcode = BPF_CORE_READ(req, opcode),
		.fd = BPF_CORE_READ(req, cqe.fd),
		.offset = 0,
		.bytes = 0,
	};
	if (flags & REQ_F_FIXED_FILE)
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
	if (!(flags & REQ_F_CQE_SKIP)) {
		bpf_map_update_elem(&requests, &key, &request, BPF_ANY);
		return 0;
	}
	/* Its success will not show itself. */
	bpf_map_delete_elem(&requests, &key);
	bool has_file = !(flags & REQ_F_FIXED_FILE) && (ON_FILES >> (request.opcode & 63) & 1);
	struct file *file = has_file ? file_of(task, request.fd) : 0;
	request.flags |= WIRE_REQUEST_SILENT;
	put_request(&request, file, 0, 0);
	return 0;
}

SEC("tp_btf/io_uring_complete")
int BPF_PROG(on_complete, void *ring_of, void *req, struct io_uring_cqe *cqe)
{
	u64 key = (u64)req;
	struct request *request = key ? bpf_map_lookup_elem(&requests, &key) : 0;

	if (!request)
		return 0;
	put_request(request, BPF_CORE_READ((struct io_kiocb *)req, file), bpf_ktime_get_ns() - request->start_ns,
		    BPF_CORE_READ(cqe, res));
	bpf_map_delete_elem(&requests, &key);
	return 0;
}
