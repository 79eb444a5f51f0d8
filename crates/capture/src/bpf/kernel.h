/* The parts of the kernel's structures that the recorder reads, and no more. Each is relocated to the running kernel's layout
 * when it is loaded (CO-RE): only names and types must agree with <linux/...>, not offsets. What may not be here: our own
 * structures (wire.h). */
#ifndef FSAGE_KERNEL_H
#define FSAGE_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef unsigned char bool;

/* <linux/bpf.h>, of which only these are used. */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,
	BPF_F_NO_PREALLOC = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
};

struct qstr {
	union {
		struct {
			u32 hash;
			u32 len;
		};
		u64 hash_len;
	};
	const unsigned char *name;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct file_system_type {
	const char *name;
};

struct super_block {
	u32 s_dev;
	unsigned long s_flags;
	struct file_system_type *s_type;
};

struct hlist_node {
	struct hlist_node *next;
};

struct hlist_head {
	struct hlist_node *first;
};

struct inode {
	struct hlist_head i_dentry;
	u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	u32 i_generation;
	u32 i_nlink;
	s64 i_size;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct address_space {
	struct inode *host;
};

struct folio {
	unsigned long index;
};

struct vfsmount {
	struct dentry *mnt_root;
	struct super_block *mnt_sb;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	unsigned int f_flags;
	struct path f_path;
	s64 f_pos;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

typedef struct {
	int counter;
} atomic_t;

struct files_struct {
	atomic_t count;
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

struct thread_info {
	u32 status;
};

struct signal_struct {
	atomic_t live;
};

struct nsproxy {
	void *mnt_ns;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	int pid;
	int tgid;
	int exit_code;
	struct files_struct *files;
	struct fs_struct *fs;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct task_struct *group_leader;
};

struct io_cqe {
	u64 user_data;
	union {
		int fd;
	};
};

struct io_kiocb {
	struct file *file;
	u8 opcode;
	u64 flags;
	struct io_cqe cqe;
};

struct kiocb {
	s64 ki_pos;
};

struct io_rw {
	struct kiocb kiocb;
	u32 len;
	int flags;
};

struct io_sync {
	s64 len;
	s64 off;
	int flags;
};

struct io_uring_cqe {
	u64 user_data;
	s32 res;
};

struct linux_binprm {
	const char *filename;
};

#pragma clang attribute pop

#endif
