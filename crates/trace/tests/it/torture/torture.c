/* A program that does to a file system, at random and from many processes and threads, what is hard to record, and writes down the
 * truth of each call: who called, what was asked, what the kernel answered, and which file it concerned.
 *
 *   torture run LOG DIRECTORY SEED OPERATIONS PROCESSES THREADS racing|serial [everything] [rooted TOP]
 *   torture referee LOG              beside it, and not recorded: see below
 *   torture child LOG ...            what it executes itself as
 *
 * The log is a file outside of DIRECTORY, mapped shared, so that what a killed thread wrote stays. A record is made before the call
 * ("started") and completed behind it ("done"). Its layout is `struct record`; crates/trace/tests/it/torture.rs reads it.
 *
 * Serial: one call at a time over all threads (a baton), so that the order is known; the referee, which is another process, then looks
 * through /proc/PID/task/TID at the file that a call is about to concern or has made, its position and its length, without the
 * recorded threads making a call for it. Racing: no baton, no referee; only what each thread itself knows is true.
 * "everything" adds what no tracer can tell that shows descriptors by their paths, as strace does. "rooted" changes root directories, and so
 * begins by making TOP, which is above DIRECTORY and the test's, that of all: whoever comes back from one must not be outside. What is executed is
 * TOP/torture then, which is linked statically.
 *
 * No libc between the kernel and us where it counts: system calls are made by hand (a thread here has no thread-local storage of its
 * own, so not even errno), and between the two marks a thread makes no call on files that is not in the log. x86-64 only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#ifndef __x86_64__
#error "system calls are made by hand: x86-64 only"
#endif

typedef uint64_t u64;
typedef int64_t i64;
typedef uint32_t u32;
typedef uint16_t u16;

static long sys(long nr, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret;
    __asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
    return ret;
}
#define SYS(nr, a, b, c, d, e, f) sys(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* --- The log --- */

enum { NONE = -1 };
enum { STARTED = 1, DONE = 2 };


struct record {
    u32 length; /* of the whole record with the paths, a multiple of 8 */
    u32 state;  /* 0: killed while it was written */
    u32 pid, tid;
    char op[16];
    u32 flags; /* as given to the system call */
    u16 error;
    u16 unused;
    i64 result;
    i64 fd, fd2;         /* the descriptors given; NONE */
    i64 offset, offset2; /* as given; NONE: none was */
    i64 bytes;           /* asked for */
    i64 mode;
    u64 file;     /* who the file is (a hash of the kernel's handle); 0: unknown */
    i64 position; /* of the description before the call; NONE: unknown */
    i64 size;     /* of the file before the call; NONE: unknown */
    u32 appends; /* whether the description writes at the end of the file */
    u32 nlink;   /* names of the file before the call; 0: unknown */
    u32 path_length, path2_length; /* the paths as given, behind the record; UINT32_MAX: none */
};

enum { POINTS = 8, POINT = 1600, CANDIDATES = 256, CANDIDATE = 512, QUESTION_PATH = 4200 };

struct shared {
    u64 magic;
    u64 size;   /* of the log */
    u64 first;  /* where the first record begins */
    u64 cursor; /* where the next one goes */
    u32 serial, everything, rooted;
    u32 baton;
    i64 left; /* operations */
    u64 seed;
    char root[1024];
    /* The referee's desk: only who holds the baton asks. */
    u32 asked, answered;
    u32 ask_pid, ask_tid;
    i64 ask_fd; /* NONE: the path alone */
    u32 ask_nofollow;
    u32 ask_name; /* what is mounted there is not what is asked for */
    u32 ask_has_path;
    char ask_path[QUESTION_PATH];
    u64 file;
    i64 position, file_size;
    u32 appends, nlink;
    u32 gone; /* the name that the descriptor was opened by is no more */
    u32 stop;
    i64 mounts; /* how many bind mounts there may be, roughly */
    /* Where the latest of them are, as given; a torn one is only another name. */
    u32 next_point;
    char points[POINTS][POINT];
    /* Names that were there a moment ago, below the root; a torn one is only another name. */
    u32 next_candidate;
    char candidates[CANDIDATES][CANDIDATE];
    u64 records[]; /* the first record begins here */
};

static struct shared *log_;

static void die(const char *what, long error) {
    static const char prefix[] = "torture: ";
    char number[32];
    int n = 0;
    long e = error < 0 ? -error : error;
    do number[31 - n++] = (char)('0' + e % 10);
    while ((e /= 10) > 0);
    SYS(SYS_write, 2, prefix, sizeof prefix - 1, 0, 0, 0);
    SYS(SYS_write, 2, what, strlen(what), 0, 0, 0);
    SYS(SYS_write, 2, " ", 1, 0, 0, 0);
    SYS(SYS_write, 2, number + 32 - n, n, 0, 0, 0);
    SYS(SYS_write, 2, "\n", 1, 0, 0, 0);
    SYS(SYS_exit_group, 99, 0, 0, 0, 0, 0);
}

static void futex_wait(u32 *word, u32 value) { SYS(SYS_futex, word, FUTEX_WAIT, value, NULL, 0, 0); }
static void futex_wake(u32 *word, int n) { SYS(SYS_futex, word, FUTEX_WAKE, n, NULL, 0, 0); }

/* Drepper's second mutex ("Futexes are tricky"): 0 free, 1 taken, 2 taken and waited for. */
static void take_baton(void) {
    u32 free = 0;
    if (__atomic_compare_exchange_n(&log_->baton, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    while (__atomic_exchange_n(&log_->baton, 2, __ATOMIC_ACQUIRE) != 0) futex_wait(&log_->baton, 2);
}
static void give_baton(void) {
    if (__atomic_exchange_n(&log_->baton, 0, __ATOMIC_RELEASE) == 2) futex_wake(&log_->baton, 1);
}

/* --- Who calls --- */

enum { DESCRIPTORS = 48, LOWEST = 3, FILES_MAX = 26, FIRST_OF_RANGE = 60, LOG = 54, ROOT = 55, PIPE_IN = 56, PIPE_OUT = 57, SOCKET_IN = 58, SOCKET_OUT = 59 };

struct table { /* of a process; what its threads believe */
    struct slot {
        int open, directory;
        char path[CANDIDATE]; /* below the root, as it was when opened */
    } slots[DESCRIPTORS];
};

struct thread {
    u64 random[4];
    u32 pid, tid;
    int depth; /* of processes and threads below the first */
    int children;
    struct table *table;
    char cwd[CANDIDATE];
    int rooted;           /* the root directory is another than the system's */
    char root[CANDIDATE]; /* where it was below the root of the test */
    char *stack; /* for a child that shares our memory */
    const char *self;
};

static u64 rotl(u64 x, int k) { return x << k | x >> (64 - k); }
static u64 splitmix(u64 *x) {
    u64 z = *x += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}
static void seed(struct thread *t, u64 s) {
    for (int i = 0; i < 4; i++) t->random[i] = splitmix(&s);
}
static u64 next(struct thread *t) { /* xoshiro256** */
    u64 *s = t->random, result = rotl(s[1] * 5, 7) * 9, x = s[1] << 17;
    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= x, s[3] = rotl(s[3], 45);
    return result;
}
static u64 below(struct thread *t, u64 n) { return next(t) % n; }
static int one_in(struct thread *t, u64 n) { return below(t, n) == 0; }

static void know_self(struct thread *t) {
    t->pid = (u32)SYS(SYS_getpid, 0, 0, 0, 0, 0, 0);
    t->tid = (u32)SYS(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* A call on files is between these two: what a thread calls outside is not in the log. */
static void mark(int on) {
    /* Known by its mode, which nothing else asks for: a directory that is gone makes no path. */
    SYS(SYS_access, on ? "/torture-mark/on" : "/torture-mark/off", on ? R_OK | X_OK : W_OK | X_OK, 0, 0, 0, 0);
}

/* --- One call --- */

struct want {
    const char *op;
    i64 fd, fd2, offset, offset2, bytes, mode;
    u32 flags;
    const char *path, *path2;
    int unlocked; /* may wait for others, so it does not hold the baton */
    int held;     /* the baton is held already */
    int keep;     /* and is kept */
    enum { ASK_NOTHING, ASK_PATH, ASK_LINK, ASK_NAME, ASK_FD, ASK_MADE, ASK_OPENED } ask; /* ASK_NAME: in its directory, whatever is mounted on it */
};
#define WANT(...) ((struct want){.fd = NONE, .fd2 = NONE, .offset = NONE, .offset2 = NONE, .bytes = NONE, .mode = NONE, __VA_ARGS__})

static void ask_about(struct thread *t, i64 fd, const char *path, int nofollow, int name) {
    struct shared *l = log_;
    l->ask_name = (u32)name;
    l->ask_pid = t->pid, l->ask_tid = t->tid, l->ask_fd = fd, l->ask_nofollow = nofollow, l->ask_has_path = path != NULL;
    if (path) {
        size_t n = strlen(path);
        if (n >= sizeof l->ask_path) n = sizeof l->ask_path - 1;
        memcpy(l->ask_path, path, n);
        l->ask_path[n] = 0;
    }
    u32 number = __atomic_add_fetch(&l->asked, 1, __ATOMIC_SEQ_CST);
    futex_wake(&l->asked, 1);
    for (;;) {
        u32 answered = __atomic_load_n(&l->answered, __ATOMIC_SEQ_CST);
        if (answered == number) return;
        futex_wait(&l->answered, answered);
    }
}

static void ask(struct thread *t, i64 fd, const char *path, int nofollow) { ask_about(t, fd, path, nofollow, 0); }

static struct record *begin(struct thread *t, const struct want *w) {
    if (log_->serial && !w->unlocked && !w->held) take_baton();
    u64 file = 0;
    i64 position = NONE, size = NONE;
    if (log_->serial && !w->unlocked && w->ask != ASK_NOTHING) {
        if (w->ask == ASK_FD) ask(t, w->fd, NULL, 0);
        else if (w->ask == ASK_OPENED) ask(t, w->fd, w->path, w->flags & O_NOFOLLOW || (w->flags & O_CREAT && w->flags & O_EXCL));
        else ask_about(t, w->fd, w->path, w->ask != ASK_PATH, w->ask == ASK_NAME || w->ask == ASK_MADE);
        file = log_->file, position = log_->position, size = log_->file_size;
    }
    u32 n = w->path ? (u32)strlen(w->path) : 0, n2 = w->path2 ? (u32)strlen(w->path2) : 0;
    u64 length = (sizeof(struct record) + n + n2 + 7) & ~7ull;
    u64 at = __atomic_fetch_add(&log_->cursor, length, __ATOMIC_SEQ_CST);
    if (at + length + 8 > log_->size) die("the log is full", 0);
    struct record *r = (struct record *)((char *)log_ + at);
    /* At once: whoever is killed before leaves zeros, which a reader passes over. */
    __atomic_store_n(&r->length, (u32)length, __ATOMIC_SEQ_CST);
    r->pid = t->pid, r->tid = t->tid;
    strncpy(r->op, w->op, sizeof r->op - 1);
    r->flags = w->flags;
    r->result = 0, r->error = 0;
    r->fd = w->fd, r->fd2 = w->fd2, r->offset = w->offset, r->offset2 = w->offset2, r->bytes = w->bytes, r->mode = w->mode;
    r->file = file, r->position = position, r->size = size;
    if (file) r->appends = log_->appends, r->nlink = log_->nlink;
    r->path_length = w->path ? n : UINT32_MAX, r->path2_length = w->path2 ? n2 : UINT32_MAX;
    memcpy((char *)(r + 1), w->path ? w->path : "", n);
    memcpy((char *)(r + 1) + n, w->path2 ? w->path2 : "", n2);
    __atomic_store_n(&r->state, STARTED, __ATOMIC_SEQ_CST);
    return r;
}

static long end(struct thread *t, const struct want *w, struct record *r, long result) {
    if (result < 0 && result >= -4095) r->error = (u16)-result, r->result = -1;
    else r->result = result;
    if (log_->serial && !w->unlocked && result >= 0) {
        if (w->ask == ASK_OPENED) ask(t, result, NULL, 0), r->file = log_->file;
        if (w->ask == ASK_MADE) ask(t, w->fd, w->path, 1), r->file = log_->file;
    }
    __atomic_store_n(&r->state, DONE, __ATOMIC_SEQ_CST);
    if (log_->serial && !w->unlocked && !w->keep) give_baton();
    return result;
}

static long call6(struct thread *t, struct want w, long nr, long a, long b, long c, long d, long e, long f) {
    struct record *r = begin(t, &w);
    return end(t, &w, r, sys(nr, a, b, c, d, e, f));
}
#define CALL(t, w, nr, a, b, c, d, e, f) call6(t, w, nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* --- The referee --- */

static u64 hash(u64 h, const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) h = (h ^ bytes[i]) * 0x100000001b3;
    return h;
}

/* Who a file is: device and the handle by which NFS would know it, with the inode's generation. */
static u64 identity(int fd, const char *path, int how) {
    struct {
        struct file_handle head;
        unsigned char bytes[MAX_HANDLE_SZ];
    } handle;
    int mount;
    struct stat st;
    handle.head.handle_bytes = MAX_HANDLE_SZ;
    if (name_to_handle_at(fd, path, &handle.head, &mount, how) != 0) return 0;
    if (fstatat(fd, path, &st, how & AT_SYMLINK_FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW) != 0) return 0;
    u64 h = hash(0xcbf29ce484222325, (unsigned char *)&st.st_dev, sizeof st.st_dev);
    h = hash(h, handle.head.f_handle, handle.head.handle_bytes);
    return h | 1;
}

/* The referee sees the mounts that the program sees. */
static void join_mounts(u32 pid) {
    static int joined;
    char path[64];
    if (joined) return;
    snprintf(path, sizeof path, "/proc/%u/ns/mnt", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNS) != 0) die("the referee cannot enter the mount namespace", errno);
    close(fd);
    joined = 1;
}

/* The directory that is the root of whoever is asked about becomes ours, or the system's again. */
static void take_root(int fd) {
    if (fchdir(fd) != 0 || chroot(".") != 0) die("the referee cannot change its root", errno);
}

static void answer(void) {
    static int whole = -1; /* the system's root */
    struct shared *l = log_;
    if (l->everything) join_mounts(l->ask_pid);
    if (whole < 0 && (whole = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) die("the referee cannot open the root", errno);
    char path[QUESTION_PATH + 64], info[256];
    struct stat st;
    int base = AT_FDCWD, follow = !l->ask_nofollow, n;
    const char *walk = l->ask_path;
    l->file = 0, l->position = NONE, l->file_size = NONE, l->appends = 0, l->nlink = 0, l->gone = 0;
    if (!l->ask_has_path) {
        snprintf(path, sizeof path, "/proc/%u/task/%u/fd/%lld", l->ask_pid, l->ask_tid, (long long)l->ask_fd);
        walk = path, follow = 1;
    } else if (l->ask_path[0] == 0) {
        return;
    } else if (l->ask_path[0] != '/') {
        if (l->ask_fd == AT_FDCWD) snprintf(path, sizeof path, "/proc/%u/task/%u/cwd", l->ask_pid, l->ask_tid);
        else snprintf(path, sizeof path, "/proc/%u/task/%u/fd/%lld", l->ask_pid, l->ask_tid, (long long)l->ask_fd);
        base = open(path, O_PATH | O_CLOEXEC);
        if (base < 0) return;
    }
    int root = -1;
    if (l->ask_has_path && geteuid() == 0) {
        snprintf(info, sizeof info, "/proc/%u/task/%u/root", l->ask_pid, l->ask_tid);
        root = open(info, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root >= 0) take_root(root);
    }
    struct statx stx;
    /* What a mount covers cannot be asked for. */
    if (l->ask_name && statx(base, walk, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stx) == 0 && stx.stx_attributes & STATX_ATTR_MOUNT_ROOT) {
        if (root >= 0) take_root(whole), close(root);
        if (base >= 0) close(base);
        return;
    }
    l->file = identity(base, walk, follow ? AT_SYMLINK_FOLLOW : 0);
    if (l->file && fstatat(base, walk, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        l->file_size = st.st_size, l->nlink = (u32)st.st_nlink;
    if (root >= 0) take_root(whole), close(root);
    if (base >= 0) close(base);
    if (!l->ask_has_path && l->file) {
        static const char mark[] = " (deleted)";
        char *name = l->ask_path; /* not in use: no path was asked for */
        ssize_t length = readlink(path, name, sizeof l->ask_path - 1);
        l->gone = length > (ssize_t)sizeof mark && memcmp(name + length - (sizeof mark - 1), mark, sizeof mark - 1) == 0;
        snprintf(path, sizeof path, "/proc/%u/task/%u/fdinfo/%lld", l->ask_pid, l->ask_tid, (long long)l->ask_fd);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;
        n = (int)read(fd, info, sizeof info - 1);
        close(fd);
        if (n > 0) {
            info[n] = 0;
            unsigned flags = 0;
            if (sscanf(info, "pos: %lld flags: %o", (long long *)&l->position, &flags) != 2) l->position = NONE;
            l->appends = (flags & O_APPEND) != 0;
        }
    }
}

static int referee(void) {
    u32 answered = 0;
    for (;;) {
        u32 asked = __atomic_load_n(&log_->asked, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&log_->stop, __ATOMIC_SEQ_CST)) return 0;
        if (asked == answered) {
            struct timespec second = {1, 0};
            syscall(SYS_futex, &log_->asked, FUTEX_WAIT, asked, &second, 0, 0);
            if (getppid() == 1) return 1; /* the test is gone */
            continue;
        }
        answer();
        answered = asked;
        __atomic_store_n(&log_->answered, answered, __ATOMIC_SEQ_CST);
        futex_wake(&log_->answered, 1);
    }
}

/* --- Names --- */

static char long_name[256];
static const char *const names[] = {
    "a", "b", "c", "d", "e", "dir", "new\nline", "q\"uote", "back\\slash", "sp ace", "\xff\xfe\x80", "...", "<3>", "100%", long_name,
    "x (deleted)", /* strace's mark of a name that is gone: only with everything */
};
enum { NAMES = sizeof names / sizeof names[0] };

static const char *some_name(struct thread *t) {
    /* The long one is rare, lest every path grows beyond what the candidates hold. */
    u64 i = below(t, NAMES + 8);
    return names[i < NAMES - !log_->everything ? i : i % 5];
}

static void candidate(const char *path) {
    if (strlen(path) >= CANDIDATE || !path[0]) return;
    u32 i = __atomic_fetch_add(&log_->next_candidate, 1, __ATOMIC_RELAXED) % CANDIDATES;
    strcpy(log_->candidates[i], path);
}

struct name {
    char path[4600];
    i64 at;                 /* AT_FDCWD or a directory's descriptor */
    char below[CANDIDATE * 2]; /* where it is below the root, so far as we believe; empty: unknown */
    int given;              /* whether there is a path (a bad pointer is none) */
};

static const char *pointer(const struct name *n) { return n->given ? n->path : (const char *)8; }
static const char *path_of(const struct name *n) { return n->given ? n->path : NULL; }

static int joined(char *out, size_t size, const char *one, const char *two) {
    int n = snprintf(out, size, "%s%s%s", one, one[0] && two[0] ? "/" : "", two);
    return n > 0 && (size_t)n < size;
}

/* A path: mostly one that was there, or a new name in a directory that was; absolute, or relative to where we are, or to an open
 * directory; with dots and slashes where they change nothing, and sometimes wrong. `plain`: the call takes no descriptor. */
static void some_path(struct thread *t, struct name *out, int plain, int fresh) {
    char whole[CANDIDATE * 2], *w;
    out->given = 1, out->at = AT_FDCWD;
    memcpy(whole, log_->candidates[below(t, CANDIDATES)], CANDIDATE);
    whole[CANDIDATE - 1] = 0;
    if (one_in(t, 12)) whole[0] = 0;
    if (fresh || one_in(t, 4)) {
        char *slash = strrchr(whole, '/');
        if (slash && one_in(t, 2)) *slash = 0;
        else if (!slash && one_in(t, 2)) whole[0] = 0;
        char longer[CANDIDATE * 2];
        if (strlen(whole) < CANDIDATE - 260 && joined(longer, sizeof longer, whole, some_name(t))) strcpy(whole, longer);
    }
    strcpy(out->below, whole);
    /* Where it starts. */
    const char *base = NULL;
    u64 how = below(t, 8);
    int absolute = t->rooted && one_in(t, 2);
    if (absolute) base = t->root;
    else if (how < 2 && t->cwd[0]) base = t->cwd;
    else if (how < 6 && !plain) {
        int fd = LOWEST + (int)below(t, FILES_MAX);
        for (int i = 0; i < 8 && !(t->table->slots[fd].open && t->table->slots[fd].directory); i++) fd = LOWEST + (int)below(t, FILES_MAX);
        struct slot *s = &t->table->slots[fd];
        if ((s->open && s->directory) || one_in(t, 40)) {
            out->at = fd;
            base = s->path;
        }
    }
    char rest[CANDIDATE * 2];
    if (base) {
        size_t n = strlen(base);
        if (n == 0) strcpy(rest, whole);
        else if (strncmp(whole, base, n) == 0 && whole[n] == '/') strcpy(rest, whole + n + 1);
        else {
            strcpy(rest, some_name(t));
            joined(out->below, sizeof out->below, base, rest);
        }
    } else {
        snprintf(rest, sizeof rest, "%s", whole);
    }
    /* The dots. */
    char *p = out->path, *limit = out->path + sizeof out->path - 300;
    if (!base) p += sprintf(p, "%s/", log_->root);
    else if (absolute) p += sprintf(p, one_in(t, 8) ? "/../" : "/");
    for (w = rest; *w && p < limit;) {
        if (one_in(t, 24)) p += sprintf(p, "./");
        if (one_in(t, 40)) *p++ = '/';
        if (p == out->path + 1 && base && !absolute) p = out->path; /* not absolute by a stray slash */
        if (one_in(t, 40)) p += sprintf(p, "%s/../", some_name(t));
        char *slash = strchrnul(w, '/');
        memcpy(p, w, (size_t)(slash - w));
        p += slash - w;
        w = slash;
        if (*w == '/') *p++ = *w++;
    }
    if (p == out->path && !one_in(t, 30)) *p++ = '.', out->below[0] = 0;
    if (one_in(t, 40)) *p++ = '/';
    if (one_in(t, 60)) p += sprintf(p, "/..");
    *p = 0;
    /* The wrong ones. */
    if (one_in(t, 300)) out->given = 0;
    else if (one_in(t, 300)) out->path[0] = 0;
    else if (one_in(t, 300)) memset(out->path, 'n', 256), out->path[256] = 0;
    else if (one_in(t, 300)) memset(out->path, 'p', 4200), out->path[4200] = 0;
    /* Slashes in front of a relative path would make it absolute. */
    if (base && !absolute && out->path[0] == '/') out->path[0] = '.';
}

static int some_fd(struct thread *t) {
    int fd = LOWEST + (int)below(t, FILES_MAX);
    for (int i = 0; i < 12 && !t->table->slots[fd].open; i++) fd = LOWEST + (int)below(t, FILES_MAX);
    return fd;
}

static void opened(struct thread *t, long fd, int directory, const char *path) {
    if (fd < LOWEST || fd >= DESCRIPTORS) {
        /* Beyond what we keep: closed again, in the log like every other. */
        if (fd >= DESCRIPTORS) CALL(t, WANT(.op = "close", .fd = fd, .ask = ASK_FD), SYS_close, fd, 0, 0, 0, 0, 0);
        return;
    }
    struct slot *s = &t->table->slots[fd];
    s->open = 1, s->directory = directory;
    snprintf(s->path, sizeof s->path, "%.*s", CANDIDATE - 1, path);
}

/* --- Operations --- */

static char data[65536];

static void do_open(struct thread *t) {
    struct name n;
    static const u32 kinds[] = {
        O_RDONLY, O_RDONLY, O_RDWR, O_WRONLY, O_RDWR | O_CREAT, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC, O_RDWR | O_CREAT | O_EXCL,
        O_WRONLY | O_APPEND, O_WRONLY | O_CREAT | O_APPEND, O_RDONLY | O_DIRECTORY, O_RDONLY | O_DIRECTORY, O_RDONLY | O_DIRECTORY,
        O_RDONLY | O_NOFOLLOW, O_PATH, O_PATH | O_NOFOLLOW, O_RDWR | O_SYNC, O_WRONLY | O_DSYNC | O_TRUNC, O_RDONLY | O_NOATIME,
    };
    u32 flags = kinds[below(t, sizeof kinds / sizeof kinds[0])];
    if (one_in(t, 3)) flags |= O_CLOEXEC;
    flags |= O_NONBLOCK;
    some_path(t, &n, 0, flags & O_CREAT && one_in(t, 2));
    u32 mode = flags & O_CREAT ? (one_in(t, 30) ? 0 : 0600 + (u32)below(t, 64)) : 0;
    long fd;
    struct open_how how = {.flags = flags, .mode = mode};
    struct want w = WANT(.op = "open", .fd = n.at, .flags = flags, .mode = flags & O_CREAT ? (i64)mode : NONE, .path = path_of(&n), .ask = ASK_OPENED);
    switch (below(t, 4)) {
    case 0:
        if (n.at == AT_FDCWD) {
            fd = CALL(t, w, SYS_open, pointer(&n), flags, mode, 0, 0, 0);
            break;
        }
        /* fall through */
    case 1:
        how.flags &= ~(u64)0;
        if (one_in(t, 4)) how.resolve = one_in(t, 2) ? RESOLVE_NO_SYMLINKS : RESOLVE_BENEATH;
        fd = CALL(t, w, SYS_openat2, n.at, pointer(&n), &how, sizeof how, 0, 0);
        break;
    case 2:
        if (n.at == AT_FDCWD && one_in(t, 2)) {
            w.flags = O_CREAT | O_WRONLY | O_TRUNC, w.mode = 0640;
            fd = CALL(t, w, SYS_creat, pointer(&n), 0640, 0, 0, 0, 0);
            flags = w.flags;
            break;
        }
        /* fall through */
    default:
        fd = CALL(t, w, SYS_openat, n.at, pointer(&n), flags, mode, 0, 0);
    }
    if (fd >= 0) {
        opened(t, fd, (flags & O_DIRECTORY) != 0, n.below);
        if (flags & O_CREAT) candidate(n.below);
    }
}

static void do_tmpfile(struct thread *t) {
    struct name n, to;
    some_path(t, &n, 0, 0);
    u32 flags = O_RDWR | O_TMPFILE;
    long fd = CALL(t, WANT(.op = "open", .fd = n.at, .flags = flags, .mode = 0600, .path = path_of(&n), .ask = ASK_OPENED), SYS_openat, n.at, pointer(&n), flags, 0600, 0, 0);
    if (fd < 0) return;
    opened(t, fd, 0, "");
    CALL(t, WANT(.op = "write", .fd = fd, .bytes = 1000, .ask = ASK_FD), SYS_write, fd, data, 1000, 0, 0, 0);
    some_path(t, &to, 0, 1);
    long error = CALL(t, WANT(.op = "link", .fd = fd, .fd2 = to.at, .flags = AT_EMPTY_PATH, .path2 = path_of(&to), .ask = ASK_FD), SYS_linkat, fd, "", to.at, pointer(&to), AT_EMPTY_PATH, 0);
    if (error == 0) candidate(to.below);
}

static void do_close(struct thread *t) {
    int fd = some_fd(t);
    CALL(t, WANT(.op = "close", .fd = fd, .ask = ASK_FD), SYS_close, fd, 0, 0, 0, 0, 0);
    t->table->slots[fd].open = 0;
}

static u64 some_length(struct thread *t) {
    switch (below(t, 4)) {
    case 0: return below(t, 100);
    case 1: return below(t, 5000);
    case 2: return 4096 * below(t, 5);
    default: return below(t, sizeof data);
    }
}

static i64 some_offset(struct thread *t) {
    switch (below(t, 5)) {
    case 0: return 0;
    case 1: return (i64)below(t, 100000);
    case 2: return 4096 * (i64)below(t, 100);
    case 3: return one_in(t, 10) ? -5 : 777;
    default: return (i64)below(t, 1 << 24);
    }
}

static void do_transfer(struct thread *t) {
    int fd = some_fd(t), write = one_in(t, 2);
    u64 length = some_length(t), first = length / 3;
    i64 offset = some_offset(t);
    struct iovec vector[2] = {{data, first}, {data + first, length - first}};
    struct want w = WANT(.op = write ? "write" : "read", .fd = fd, .bytes = (i64)length, .ask = ASK_FD);
    static char sink[65536];
    if (!write) vector[0].iov_base = sink, vector[1].iov_base = sink + first;
    void *buffer = write ? data : sink;
    switch (below(t, 7)) {
    case 0: case 1:
        CALL(t, w, write ? SYS_write : SYS_read, fd, buffer, length, 0, 0, 0);
        break;
    case 2:
        CALL(t, w, write ? SYS_writev : SYS_readv, fd, vector, 2, 0, 0, 0);
        break;
    case 3: case 4:
        w.offset = offset;
        CALL(t, w, write ? SYS_pwrite64 : SYS_pread64, fd, buffer, length, offset, 0, 0);
        break;
    case 5:
        w.offset = offset;
        CALL(t, w, write ? SYS_pwritev : SYS_preadv, fd, vector, 2, offset, 0, 0);
        break;
    default: {
        int how = write ? (one_in(t, 3) ? RWF_APPEND : one_in(t, 2) ? RWF_DSYNC : 0) : 0;
        if (one_in(t, 3)) offset = -1; /* the description's own */
        w.offset = offset == -1 ? NONE : offset;
        w.flags = how == RWF_APPEND ? O_APPEND : 0;
        CALL(t, w, write ? SYS_pwritev2 : SYS_preadv2, fd, vector, 2, offset, 0, how);
    }
    }
}

static void do_seek(struct thread *t) {
    int fd = some_fd(t), whence = (int)below(t, 5);
    i64 by = whence == SEEK_SET ? some_offset(t) : (i64)below(t, 10000) - 2000;
    CALL(t, WANT(.op = "lseek", .fd = fd, .flags = (u32)whence, .ask = ASK_FD), SYS_lseek, fd, by, whence, 0, 0, 0);
}

static void do_length(struct thread *t) {
    struct name n;
    i64 length = one_in(t, 3) ? 0 : (i64)below(t, 300000);
    int fd = some_fd(t);
    switch (below(t, 3)) {
    case 0:
        some_path(t, &n, 1, 0);
        CALL(t, WANT(.op = "truncate", .fd = AT_FDCWD, .bytes = length, .path = path_of(&n), .ask = ASK_PATH), SYS_truncate, pointer(&n), length, 0, 0, 0, 0);
        break;
    case 1:
        CALL(t, WANT(.op = "ftruncate", .fd = fd, .bytes = length, .ask = ASK_FD), SYS_ftruncate, fd, length, 0, 0, 0, 0);
        break;
    default: {
        static const u32 modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, FALLOC_FL_ZERO_RANGE, FALLOC_FL_COLLAPSE_RANGE};
        u32 mode = modes[below(t, 5)];
        i64 offset = 4096 * (i64)below(t, 20), bytes = 4096 * (i64)(1 + below(t, 10));
        CALL(t, WANT(.op = "fallocate", .fd = fd, .flags = mode, .offset = offset, .bytes = bytes, .ask = ASK_FD), SYS_fallocate, fd, mode, offset, bytes, 0, 0);
    }
    }
}

static void do_copy(struct thread *t) {
    int from = some_fd(t), to = some_fd(t);
    i64 length = (i64)some_length(t);
    if (one_in(t, 3)) {
        i64 at = some_offset(t), given = at;
        int with = one_in(t, 2);
        CALL(t, WANT(.op = "copy", .fd = from, .fd2 = to, .offset = with ? given : NONE, .bytes = length, .ask = ASK_FD), SYS_sendfile, to, from, with ? &at : NULL, length, 0, 0);
    } else {
        i64 at = some_offset(t), at2 = some_offset(t), given = at, given2 = at2;
        int with = one_in(t, 2), with2 = one_in(t, 2);
        CALL(t, WANT(.op = "copy", .fd = from, .fd2 = to, .offset = with ? given : NONE, .offset2 = with2 ? given2 : NONE, .bytes = length, .ask = ASK_FD),
            SYS_copy_file_range, from, with ? &at : NULL, to, with2 ? &at2 : NULL, length, 0);
    }
}

static void do_sync(struct thread *t) {
    int fd = some_fd(t);
    switch (below(t, 5)) {
    case 0: CALL(t, WANT(.op = "fsync", .fd = fd, .ask = ASK_FD), SYS_fsync, fd, 0, 0, 0, 0, 0); break;
    case 1: CALL(t, WANT(.op = "fdatasync", .fd = fd, .ask = ASK_FD), SYS_fdatasync, fd, 0, 0, 0, 0, 0); break;
    case 2: CALL(t, WANT(.op = "sync_file_range", .fd = fd, .offset = 4096, .bytes = 8192, .ask = ASK_FD), SYS_sync_file_range, fd, 4096, 8192, SYNC_FILE_RANGE_WRITE, 0, 0); break;
    case 3: CALL(t, WANT(.op = "fadvise", .fd = fd, .offset = 0, .bytes = 4096, .ask = ASK_FD), SYS_fadvise64, fd, 0, 4096, POSIX_FADV_WILLNEED, 0, 0); break;
    default: CALL(t, WANT(.op = "readahead", .fd = fd, .offset = 0, .bytes = 8192, .ask = ASK_FD), SYS_readahead, fd, 0, 8192, 0, 0, 0);
    }
}

static void do_stat(struct thread *t) {
    struct name n;
    struct stat st;
    struct statx sx;
    struct statfs sf;
    char text[4096];
    int fd = some_fd(t);
    u64 kind = below(t, 10);
    some_path(t, &n, kind < 4, 0);
    u32 nofollow = one_in(t, 2) ? AT_SYMLINK_NOFOLLOW : 0;
    struct want w = WANT(.fd = n.at, .path = path_of(&n), .ask = ASK_PATH);
    switch (kind) {
    case 0: w.op = "stat"; CALL(t, w, SYS_stat, pointer(&n), &st, 0, 0, 0, 0); break;
    case 1: w.op = "stat", w.flags = AT_SYMLINK_NOFOLLOW, w.ask = ASK_LINK; CALL(t, w, SYS_lstat, pointer(&n), &st, 0, 0, 0, 0); break;
    case 2: w.op = "access", w.mode = R_OK; CALL(t, w, SYS_access, pointer(&n), R_OK, 0, 0, 0, 0); break;
    case 3: w.op = "readlink", w.ask = ASK_LINK, w.bytes = sizeof text; CALL(t, w, SYS_readlink, pointer(&n), text, sizeof text, 0, 0, 0); break;
    case 4: w.op = "stat", w.flags = nofollow, w.ask = nofollow ? ASK_LINK : ASK_PATH; CALL(t, w, SYS_newfstatat, n.at, pointer(&n), &st, nofollow, 0, 0); break;
    case 5: w.op = "stat", w.flags = nofollow, w.ask = nofollow ? ASK_LINK : ASK_PATH; CALL(t, w, SYS_statx, n.at, pointer(&n), nofollow, STATX_ALL, &sx, 0); break;
    case 6: w.op = "readlink", w.ask = ASK_LINK, w.bytes = 100; CALL(t, w, SYS_readlinkat, n.at, pointer(&n), text, 100, 0, 0); break;
    case 7: w.op = "access", w.mode = F_OK, w.flags = nofollow, w.ask = nofollow ? ASK_LINK : ASK_PATH; CALL(t, w, SYS_faccessat2, n.at, pointer(&n), F_OK, nofollow, 0, 0); break;
    case 8: CALL(t, WANT(.op = "statfs", .fd = fd, .ask = ASK_FD), SYS_fstatfs, fd, &sf, 0, 0, 0, 0); break;
    default:
        if (one_in(t, 2)) CALL(t, WANT(.op = "fstat", .fd = fd, .ask = ASK_FD), SYS_fstat, fd, &st, 0, 0, 0, 0);
        else CALL(t, WANT(.op = "fstat", .fd = fd, .ask = ASK_FD), SYS_statx, fd, "", AT_EMPTY_PATH, STATX_ALL, &sx, 0);
    }
}

static void do_getdents(struct thread *t) {
    char entries[2048];
    int fd = some_fd(t);
    CALL(t, WANT(.op = "getdents", .fd = fd, .bytes = sizeof entries, .ask = ASK_FD), SYS_getdents64, fd, entries, sizeof entries, 0, 0, 0);
}

static void do_make(struct thread *t) {
    struct name n;
    u64 kind = below(t, 8);
    some_path(t, &n, kind < 2, one_in(t, 4) == 0);
    long error;
    struct want w = WANT(.fd = n.at, .path = path_of(&n), .ask = ASK_MADE);
    switch (kind) {
    case 0: w.op = "mkdir", w.mode = 0755; error = CALL(t, w, SYS_mkdir, pointer(&n), 0755, 0, 0, 0, 0); break;
    case 1: w.op = "mknod", w.mode = 0600; error = CALL(t, w, SYS_mknod, pointer(&n), S_IFREG | 0600, 0, 0, 0, 0); break;
    case 2: w.op = "mknod", w.mode = 0600; error = CALL(t, w, SYS_mknodat, n.at, pointer(&n), S_IFSOCK | 0600, 0, 0, 0); break;
    case 3: case 4: {
        char target[CANDIDATE * 2 + 1100];
        struct name to;
        some_path(t, &to, 0, 0);
        if (one_in(t, 2)) snprintf(target, sizeof target, "%s", some_name(t));
        else if (one_in(t, 2)) snprintf(target, sizeof target, "../%s", some_name(t));
        else if (t->rooted) snprintf(target, sizeof target, "/%s", some_name(t));
        else snprintf(target, sizeof target, "%s/%s", log_->root, to.below);
        w.op = "symlink", w.path2 = target;
        error = CALL(t, w, SYS_symlinkat, target, n.at, pointer(&n), 0, 0, 0);
        break;
    }
    default: w.op = "mkdir", w.mode = 0700; error = CALL(t, w, SYS_mkdirat, n.at, pointer(&n), 0700, 0, 0, 0);
    }
    if (error == 0) candidate(n.below);
}

/* Back to the root. It goes too: moved below itself by another path, exchanged, or a link put in its place. Without one, every path
 * would fail from then on. */
static void do_root(struct thread *t) {
    char path[sizeof log_->root];
    strcpy(path, log_->root);
    if (log_->rooted && CALL(t, WANT(.op = "fchdir", .fd = ROOT, .ask = ASK_FD), SYS_fchdir, ROOT, 0, 0, 0, 0, 0) == 0
        && CALL(t, WANT(.op = "other", .fd = AT_FDCWD, .path = ".", .ask = ASK_PATH), SYS_chroot, ".", 0, 0, 0, 0, 0) == 0)
        t->rooted = 0;
    struct want to = WANT(.op = "chdir", .fd = AT_FDCWD, .path = path, .ask = ASK_PATH);
    if (CALL(t, to, SYS_chdir, path, 0, 0, 0, 0, 0) == 0) {
        t->cwd[0] = 0;
        return;
    }
    /* From the top of what is the test's: five levels above the root. */
    char *slash = path + strlen(path);
    int levels = 0;
    for (; levels < 5; levels++) while (*--slash != '/');
    for (; levels > 0; levels--) {
        char *next = strchrnul(slash + 1, '/'), kept = *next;
        *next = 0;
        CALL(t, WANT(.op = "unlink", .fd = AT_FDCWD, .path = path, .ask = ASK_NAME), SYS_unlink, path, 0, 0, 0, 0, 0);
        CALL(t, WANT(.op = "mkdir", .fd = AT_FDCWD, .mode = 0700, .path = path, .ask = ASK_MADE), SYS_mkdir, path, 0700, 0, 0, 0, 0);
        *next = kept, slash = next;
    }
}

/* Another root directory, with or without going there; who shares it with other threads takes them along. */
static void do_chroot(struct thread *t) {
    struct name n;
    if (!log_->rooted) return;
    some_path(t, &n, 1, 0);
    if (CALL(t, WANT(.op = "other", .fd = AT_FDCWD, .path = path_of(&n), .ask = ASK_PATH), SYS_chroot, pointer(&n), 0, 0, 0, 0, 0) != 0) return;
    t->rooted = 1;
    snprintf(t->root, sizeof t->root, "%.*s", CANDIDATE - 1, n.below);
    if (one_in(t, 2) && CALL(t, WANT(.op = "chdir", .fd = AT_FDCWD, .path = "/", .ask = ASK_PATH), SYS_chdir, "/", 0, 0, 0, 0, 0) == 0)
        strcpy(t->cwd, t->root);
}

/* Bind mounts, of directories and files over each other, also in each other; only with everything. */
static void do_mount(struct thread *t) {
    struct name from, to;
    if (!log_->everything) return;
    if (__atomic_load_n(&log_->mounts, __ATOMIC_RELAXED) < POINTS && one_in(t, 2)) {
        some_path(t, &from, 1, 0);
        some_path(t, &to, 1, 0);
        u64 flags = MS_BIND | (one_in(t, 2) ? MS_REC : 0);
        struct want w = WANT(.op = "other", .fd = AT_FDCWD, .path = path_of(&to), .path2 = path_of(&from), .ask = ASK_PATH);
        if (CALL(t, w, SYS_mount, pointer(&from), pointer(&to), 0, flags, 0, 0) == 0) {
            __atomic_fetch_add(&log_->mounts, 1, __ATOMIC_RELAXED);
            u32 i = __atomic_fetch_add(&log_->next_point, 1, __ATOMIC_RELAXED) % POINTS;
            snprintf(log_->points[i], POINT, "%s/%s", log_->root, to.below);
            candidate(to.below);
        }
        return;
    }
    char point[POINT];
    memcpy(point, log_->points[below(t, POINTS)], POINT);
    point[POINT - 1] = 0;
    if (!point[0] || one_in(t, 8)) {
        some_path(t, &to, 1, 0);
        snprintf(point, sizeof point, "%s/%s", log_->root, to.below);
    }
    struct want w = WANT(.op = "other", .fd = AT_FDCWD, .path = point, .ask = ASK_PATH);
    long error = CALL(t, w, SYS_umount2, point, one_in(t, 3) ? 0 : MNT_DETACH, 0, 0, 0, 0);
    /* Some went with others, or to where no path leads: those few that are left may be more than we count. */
    if (error == 0 || (__atomic_load_n(&log_->mounts, __ATOMIC_RELAXED) > 0 && one_in(t, 16))) __atomic_fetch_sub(&log_->mounts, 1, __ATOMIC_RELAXED);
}

static void do_remove(struct thread *t) {
    struct name n;
    u64 kind = below(t, 6);
    some_path(t, &n, kind < 2, 0);
    struct want w = WANT(.op = "unlink", .fd = n.at, .path = path_of(&n), .ask = ASK_NAME);
    switch (kind) {
    case 0: CALL(t, w, SYS_unlink, pointer(&n), 0, 0, 0, 0, 0); break;
    case 1: w.op = "rmdir"; CALL(t, w, SYS_rmdir, pointer(&n), 0, 0, 0, 0, 0); break;
    case 2: w.op = "rmdir"; CALL(t, w, SYS_unlinkat, n.at, pointer(&n), AT_REMOVEDIR, 0, 0, 0); break;
    default: CALL(t, w, SYS_unlinkat, n.at, pointer(&n), 0, 0, 0, 0);
    }
}

static void do_rename(struct thread *t) {
    struct name from, to;
    u64 kind = below(t, 6);
    some_path(t, &from, kind == 0, 0);
    some_path(t, &to, kind == 0, one_in(t, 2));
    long error;
    struct want w = WANT(.op = "rename", .fd = from.at, .fd2 = to.at, .path = path_of(&from), .path2 = path_of(&to), .ask = ASK_NAME);
    switch (kind) {
    case 0: error = CALL(t, w, SYS_rename, pointer(&from), pointer(&to), 0, 0, 0, 0); break;
    case 1: error = CALL(t, w, SYS_renameat, from.at, pointer(&from), to.at, pointer(&to), 0, 0); break;
    default:
        w.flags = kind < 4 ? RENAME_EXCHANGE : kind == 4 ? RENAME_NOREPLACE : 0;
        error = CALL(t, w, SYS_renameat2, from.at, pointer(&from), to.at, pointer(&to), w.flags, 0);
    }
    if (error == 0) candidate(to.below);
}

static void do_link(struct thread *t) {
    struct name from, to;
    u64 kind = below(t, 3);
    some_path(t, &from, kind == 0, 0);
    some_path(t, &to, kind == 0, 1);
    struct want w = WANT(.op = "link", .fd = from.at, .fd2 = to.at, .path = path_of(&from), .path2 = path_of(&to), .ask = ASK_LINK);
    long error;
    if (kind == 0) error = CALL(t, w, SYS_link, pointer(&from), pointer(&to), 0, 0, 0, 0);
    else {
        if (kind == 1) w.flags = AT_SYMLINK_FOLLOW, w.ask = ASK_PATH;
        error = CALL(t, w, SYS_linkat, from.at, pointer(&from), to.at, pointer(&to), w.flags, 0);
    }
    if (error == 0) candidate(to.below);
}

static void do_attributes(struct thread *t) {
    struct name n;
    int fd = some_fd(t);
    u64 kind = below(t, 13);
    some_path(t, &n, kind == 0 || kind >= 7, 0);
    struct want w = WANT(.fd = n.at, .path = path_of(&n), .ask = ASK_PATH);
    struct timespec times[2] = {{1000000000, 5}, {1000000000, 6}};
    char value[64];
    switch (kind) {
    case 0: w.op = "chmod", w.mode = 0640; CALL(t, w, SYS_chmod, pointer(&n), 0640, 0, 0, 0, 0); break;
    case 1: w.op = "chmod", w.mode = 0750; CALL(t, w, SYS_fchmodat, n.at, pointer(&n), 0750, 0, 0, 0); break;
    case 2: CALL(t, WANT(.op = "fchmod", .fd = fd, .mode = 0644, .ask = ASK_FD), SYS_fchmod, fd, 0644, 0, 0, 0, 0); break;
    case 3: w.op = "chown", w.ask = ASK_LINK, w.flags = AT_SYMLINK_NOFOLLOW; CALL(t, w, SYS_fchownat, n.at, pointer(&n), -1, -1, AT_SYMLINK_NOFOLLOW, 0); break;
    case 4: CALL(t, WANT(.op = "fchown", .fd = fd, .ask = ASK_FD), SYS_fchown, fd, -1, -1, 0, 0, 0); break;
    case 5: w.op = "utimens"; CALL(t, w, SYS_utimensat, n.at, pointer(&n), times, 0, 0, 0); break;
    case 6: CALL(t, WANT(.op = "futimens", .fd = fd, .ask = ASK_FD), SYS_utimensat, fd, NULL, times, 0, 0, 0); break;
    case 7: w.op = "setxattr"; CALL(t, w, SYS_setxattr, pointer(&n), "user.x", "value", 5, 0, 0); break;
    case 8: w.op = "getxattr"; CALL(t, w, SYS_getxattr, pointer(&n), "user.x", value, sizeof value, 0, 0); break;
    case 9: w.op = "getxattr", w.ask = ASK_LINK, w.flags = AT_SYMLINK_NOFOLLOW; CALL(t, w, SYS_lgetxattr, pointer(&n), "user.x", value, sizeof value, 0, 0); break;
    case 10: w.op = "listxattr"; CALL(t, w, SYS_listxattr, pointer(&n), value, sizeof value, 0, 0, 0); break;
    case 11: w.op = "removexattr"; CALL(t, w, SYS_removexattr, pointer(&n), "user.x", 0, 0, 0, 0); break;
    default: CALL(t, WANT(.op = "setxattr", .fd = fd, .ask = ASK_FD), SYS_fsetxattr, fd, "user.y", "v", 1, 0, 0);
    }
}

static void do_map(struct thread *t) {
    int fd = some_fd(t), shared = one_in(t, 2);
    u64 length = 4096 * (1 + below(t, 4));
    i64 offset = 4096 * (i64)below(t, 3);
    long at = CALL(t, WANT(.op = "mmap", .fd = fd, .offset = offset, .bytes = (i64)length, .ask = ASK_FD), SYS_mmap, NULL, length, PROT_READ | (shared ? PROT_WRITE : 0), shared ? MAP_SHARED : MAP_PRIVATE, fd, offset);
    if (at < 0 && at >= -4095) return;
    if (one_in(t, 3)) CALL(t, WANT(.op = "msync", .bytes = (i64)length), SYS_msync, at, length, MS_SYNC, 0, 0, 0);
    SYS(SYS_munmap, at, length, 0, 0, 0, 0);
}

static void do_dup(struct thread *t) {
    int fd = some_fd(t), to = LOWEST + (int)below(t, FILES_MAX), max = LOWEST + FILES_MAX;
    long got;
    struct want w = WANT(.op = "dup", .fd = fd, .ask = ASK_FD);
    switch (below(t, 5)) {
    case 0: got = CALL(t, w, SYS_dup, fd, 0, 0, 0, 0, 0); break;
    case 1: got = CALL(t, w, SYS_dup2, fd, to, 0, 0, 0, 0); break;
    case 2: got = CALL(t, w, SYS_dup3, fd, to, one_in(t, 2) ? O_CLOEXEC : 0, 0, 0, 0); break;
    case 3: got = CALL(t, w, SYS_fcntl, fd, one_in(t, 2) ? F_DUPFD : F_DUPFD_CLOEXEC, below(t, (u64)max), 0, 0, 0); break;
    default:
        /* Three beyond all others, and away with them at once. */
        to = FIRST_OF_RANGE + 3 * (int)(t->tid % 300); /* nobody else's */
        for (int i = 0; i < 3; i++) {
            int source = some_fd(t);
            if (CALL(t, WANT(.op = "dup", .fd = source, .ask = ASK_FD), SYS_dup2, source, to + i, 0, 0, 0, 0) < 0)
                CALL(t, WANT(.op = "dup", .fd = PIPE_OUT), SYS_dup2, PIPE_OUT, to + i, 0, 0, 0, 0);
        }
        CALL(t, WANT(.op = "close_range"), SYS_close_range, to, to + 2, 0, 0, 0, 0);
        return;
    }
    if (got >= LOWEST && got < DESCRIPTORS) t->table->slots[got] = t->table->slots[fd];
    else if (got >= DESCRIPTORS) opened(t, got, 0, "");
}

static void do_fcntl(struct thread *t) {
    int fd = some_fd(t), value = 0;
    struct want w = WANT(.op = "fcntl", .fd = fd, .ask = ASK_FD);
    unsigned which = (unsigned)below(t, 6);
    w.flags = which < 4; /* On the flags of a descriptor or description. */
    switch (which) {
    case 0: CALL(t, w, SYS_fcntl, fd, F_SETFD, one_in(t, 2) ? FD_CLOEXEC : 0, 0, 0, 0); break;
    case 1: CALL(t, w, SYS_fcntl, fd, F_GETFD, 0, 0, 0, 0); break;
    case 2: CALL(t, w, SYS_fcntl, fd, F_SETFL, O_NONBLOCK | (one_in(t, 2) ? O_APPEND : 0), 0, 0, 0); break;
    case 3: CALL(t, w, SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0); break;
    case 4: CALL(t, w, SYS_flock, fd, LOCK_NB | (one_in(t, 2) ? LOCK_SH : LOCK_UN), 0, 0, 0, 0); break;
    default: w.op = "ioctl"; CALL(t, w, SYS_ioctl, fd, 0x541b /* FIONREAD */, &value, 0, 0, 0);
    }
}

static void do_chdir(struct thread *t) {
    struct name n;
    if (one_in(t, 2)) {
        int fd = some_fd(t);
        if (CALL(t, WANT(.op = "fchdir", .fd = fd, .ask = ASK_FD), SYS_fchdir, fd, 0, 0, 0, 0, 0) == 0) strcpy(t->cwd, t->table->slots[fd].path);
    } else {
        some_path(t, &n, 1, 0);
        if (CALL(t, WANT(.op = "chdir", .fd = AT_FDCWD, .path = path_of(&n), .ask = ASK_PATH), SYS_chdir, pointer(&n), 0, 0, 0, 0, 0) == 0)
            snprintf(t->cwd, sizeof t->cwd, "%.*s", CANDIDATE - 1, n.below);
    }
}

/* Descriptors over a socket that all processes share. Neither call is one on files.
 *
 * A tracer that shows descriptors by their paths sees what arrives, not that it is a description that others have too, nor whose file it
 * is if the name has gone. So, but with everything, what is sent is opened for it and closed at once, and used where it arrives or closed. */
static void do_pass(struct thread *t) {
    int fd = some_fd(t), own = !log_->everything;
    struct name n;
    char control[CMSG_SPACE(sizeof fd)], byte = 'x';
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (one_in(t, 2)) {
        if (own) {
            u32 flags = O_RDWR | O_NONBLOCK;
            some_path(t, &n, 0, 0);
            fd = (int)CALL(t, WANT(.op = "open", .fd = n.at, .flags = flags, .path = path_of(&n), .ask = ASK_OPENED, .keep = 1), SYS_openat, n.at, pointer(&n), flags, 0, 0, 0);
        } else if (log_->serial) {
            take_baton();
        }
        memset(control, 0, sizeof control);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET, head->cmsg_type = SCM_RIGHTS, head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
        if (fd >= 0) SYS(SYS_sendmsg, SOCKET_OUT, &message, MSG_DONTWAIT, 0, 0, 0);
        if (own && fd >= 0) CALL(t, WANT(.op = "close", .fd = fd, .held = 1, .ask = ASK_FD), SYS_close, fd, 0, 0, 0, 0, 0);
        else if (log_->serial) give_baton();
        return;
    }
    if (log_->serial) take_baton();
    long got = SYS(SYS_recvmsg, SOCKET_IN, &message, MSG_DONTWAIT | (one_in(t, 2) ? MSG_CMSG_CLOEXEC : 0), 0, 0, 0);
    struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (!head || head->cmsg_type != SCM_RIGHTS) {
        if (log_->serial) give_baton();
        return;
    }
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    /* No call on files, but the reason why some tracers know less of what follows. */
    struct want arrived = WANT(.op = "received", .fd = fd, .held = 1, .keep = 1);
    end(t, &arrived, begin(t, &arrived), 0);
    /* It is used at once, or never if its name has gone on the way. */
    int gone = 0;
    if (log_->serial && !log_->everything) ask(t, fd, NULL, 0), gone = log_->gone;
    struct stat st;
    if (gone) {
        CALL(t, WANT(.op = "close", .fd = fd, .held = 1), SYS_close, fd, 0, 0, 0, 0, 0);
    } else {
        CALL(t, WANT(.op = "fstat", .fd = fd, .held = 1, .ask = ASK_FD), SYS_fstat, fd, &st, 0, 0, 0, 0);
        opened(t, fd, 0, "");
    }
}

/* A call that waits until a signal comes: first one after which the kernel begins it again, then one that ends it. */
static void do_interrupted(struct thread *t) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID};
    struct itimerspec once = {.it_value = {0, 1000000}}, later = {.it_value = {0, 3000000}, .it_interval = {0, 3000000}};
    int restart = 0, end = 0;
    event._sigev_un._tid = (int)t->tid;
    event.sigev_signo = SIGUSR1;
    if (SYS(SYS_timer_create, CLOCK_MONOTONIC, &event, &restart, 0, 0, 0) < 0) return;
    event.sigev_signo = SIGUSR2;
    if (SYS(SYS_timer_create, CLOCK_MONOTONIC, &event, &end, 0, 0, 0) < 0) return;
    SYS(SYS_timer_settime, restart, 0, &once, NULL, 0, 0);
    SYS(SYS_timer_settime, end, 0, &later, NULL, 0, 0);
    char byte;
    CALL(t, WANT(.op = "read", .fd = PIPE_OUT, .bytes = 1, .unlocked = 1), SYS_read, PIPE_OUT, &byte, 1, 0, 0, 0);
    SYS(SYS_timer_delete, restart, 0, 0, 0, 0, 0);
    SYS(SYS_timer_delete, end, 0, 0, 0, 0, 0);
}

/* --- Processes and threads --- */

static void live(struct thread *t, i64 operations);
static void leave(struct thread *t);

struct start {
    struct thread thread;
    struct table table;
    i64 operations;
    u32 waits; /* only waits, to be killed in the middle of it */
    u32 ready;
};

static char *new_memory(size_t size) {
    long at = SYS(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at < 0 && at >= -4095) die("no memory", at);
    return (char *)at;
}

enum { STACK = 512 * 1024 };

static int begin_thread(void *argument) {
    struct start *s = argument;
    know_self(&s->thread);
    if (s->waits) {
        char byte;
        CALL(&s->thread, WANT(.op = "read", .fd = PIPE_OUT, .bytes = 1, .unlocked = 1), SYS_read, PIPE_OUT, &byte, 1, 0, 0, 0);
    } else {
        live(&s->thread, s->operations);
    }
    __atomic_store_n(&s->ready, 1, __ATOMIC_SEQ_CST);
    futex_wake(&s->ready, 1);
    return 0;
}

/* A thread of our process; returns what waits for it. */
static struct start *new_thread(struct thread *t, i64 operations, u32 waits) {
    struct start *s = (struct start *)new_memory(sizeof *s + STACK);
    s->thread = *t;
    s->thread.depth++, s->thread.children = 0, s->thread.stack = NULL;
    seed(&s->thread, next(t));
    s->operations = operations, s->waits = waits;
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    struct want w = WANT(.op = "clone");
    struct record *r = begin(t, &w);
    int tid = clone(begin_thread, (char *)(s + 1) + STACK - 64, flags, s);
    end(t, &w, r, tid < 0 ? -errno : tid);
    if (tid < 0) die("clone of a thread", errno);
    return s;
}

static void join_thread(struct start *s) {
    while (!__atomic_load_n(&s->ready, __ATOMIC_SEQ_CST)) futex_wait(&s->ready, 0);
}

static int begin_vfork(void *argument) {
    struct start *s = argument;
    know_self(&s->thread);
    /* Our parent took the baton for the clone, and stands still: it is ours to give. The mark is a call by which a tracer that shows
     * no more than calls learns that we are there, while no other clone runs. */
    mark(1);
    if (log_->serial) give_baton();
    live(&s->thread, s->operations);
    if (one_in(&s->thread, 2)) leave(&s->thread);
    SYS(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    return 0;
}

static void reap(struct thread *t, int flags) {
    while (t->children > 0 && SYS(SYS_wait4, -1, NULL, flags | __WALL, NULL, 0, 0) > 0) t->children--;
}

/* A child of our process, by one of the ways there are. */
static void do_child(struct thread *t) {
    if (t->depth >= 4) return;
    reap(t, WNOHANG);
    if (t->children >= 2) reap(t, 0);
    i64 operations = (i64)below(t, 30);
    if (one_in(t, 4)) {
        /* vfork: it shares our memory, and we stand still until it ends. So it gives the baton in our place. */
        if (!t->stack) t->stack = new_memory(sizeof(struct start) + STACK);
        struct start *s = (struct start *)t->stack;
        s->thread = *t, s->table = *t->table, s->thread.table = &s->table, s->thread.stack = NULL, s->thread.children = 0;
        s->thread.depth = 9; /* no children of its own */
        seed(&s->thread, next(t));
        s->operations = operations / 4;
        struct want w = WANT(.op = "clone", .keep = 1);
        struct record *r = begin(t, &w);
        int pid = clone(begin_vfork, (char *)(s + 1) + STACK - 64, CLONE_VM | CLONE_VFORK | SIGCHLD, s);
        end(t, &w, r, pid < 0 ? -errno : pid);
        if (pid < 0 && log_->serial) give_baton();
        if (pid > 0) t->children++;
        return;
    }
    static const long ways[] = {0, 0, 0, CLONE_FILES, CLONE_FS, CLONE_FILES | CLONE_FS};
    long flags = SIGCHLD | ways[below(t, 6)];
    int threads = one_in(t, 3) ? 1 + (int)below(t, 2) : 0, killed = one_in(t, 5);
    u64 child_seed = next(t);
    struct want w = WANT(.op = "clone");
    struct record *r = begin(t, &w);
    long pid = SYS(SYS_clone, flags, 0, 0, 0, 0, 0);
    if (pid != 0) {
        end(t, &w, r, pid);
        if (pid < 0) return;
        t->children++;
        if (killed) {
            struct timespec some = {0, 1000000};
            SYS(SYS_nanosleep, &some, NULL, 0, 0, 0, 0);
            /* Not while it holds the baton, which would be lost: who has it, is not it. */
            if (log_->serial) take_baton();
            SYS(SYS_kill, pid, SIGKILL, 0, 0, 0, 0);
            if (SYS(SYS_wait4, pid, NULL, __WALL, NULL, 0, 0) > 0) t->children--;
            if (log_->serial) {
                give_baton();
                /* One of the dead may have been woken in vain: all look again. */
                futex_wake(&log_->baton, INT32_MAX);
            }
        }
        return;
    }
    know_self(t);
    t->depth++, t->children = 0;
    seed(t, child_seed);
    struct start *others[2];
    for (int i = 0; i < threads; i++) others[i] = new_thread(t, operations, killed);
    live(t, operations);
    /* Till it is killed, or not, if who should do it was killed itself; its threads wait, and end with it. */
    if (killed) live(t, 300);
    else
        for (int i = 0; i < threads; i++) join_thread(others[i]);
    leave(t);
}

/* Ends a process: plainly, or by executing ourselves, which goes on for some calls with what descriptors are left. */
static void leave(struct thread *t) {
    reap(t, 0);
    if (t->depth > 3 && t->depth != 9) SYS(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    if (one_in(t, 2)) {
        static char number[24], depth[8], path[4096];
        snprintf(number, sizeof number, "%llu", (unsigned long long)next(t));
        snprintf(depth, sizeof depth, "%d", t->depth + 1);
        snprintf(path, sizeof path, "%s", getenv("TORTURE_LOG"));
        char *argv[] = {"torture", "child", path, number, depth, NULL};
        struct want w = WANT(.op = "exec", .path = t->self);
        struct record *r = begin(t, &w);
        r->state = DONE; /* it does not return; what runs then gives the baton */
        long error = SYS(SYS_execve, t->self, argv, environ, 0, 0, 0);
        end(t, &w, r, error);
    }
    SYS(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static void live(struct thread *t, i64 operations) {
    static const struct {
        void (*run)(struct thread *);
        int weight;
    } all[] = {
        {do_open, 24}, {do_close, 9}, {do_transfer, 22}, {do_seek, 4}, {do_length, 5}, {do_copy, 4}, {do_sync, 3}, {do_stat, 16},
        {do_getdents, 3}, {do_make, 14}, {do_remove, 9}, {do_rename, 12}, {do_link, 6}, {do_attributes, 8}, {do_map, 3}, {do_dup, 5},
        {do_fcntl, 4}, {do_chdir, 4}, {do_pass, 3}, {do_tmpfile, 2}, {do_root, 2}, {do_mount, 3}, {do_chroot, 1},
    };
    int total = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) total += all[i].weight;
    while (operations-- > 0) {
        if (__atomic_fetch_sub(&log_->left, 1, __ATOMIC_RELAXED) <= 0) return;
        if (t->depth != 9 && one_in(t, 60)) {
            do_child(t);
            continue;
        }
        if (one_in(t, 2000)) {
            do_interrupted(t);
            continue;
        }
        int at = (int)below(t, (u64)total);
        for (size_t i = 0;; i++) {
            if ((at -= all[i].weight) < 0) {
                all[i].run(t);
                break;
            }
        }
    }
}

static void nothing(int number) { (void)number; }

static void map_log(const char *path) {
    int fd = strcmp(path, "inherited") == 0 ? LOG : open(path, O_RDWR | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) die("cannot open the log", errno);
    log_ = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (log_ == MAP_FAILED) die("cannot map the log", errno);
    if (fd != LOG) close(fd);
    /* The referee may be here before who makes the log has finished its head. */
    for (int i = 0; i < 1000 && __atomic_load_n(&log_->magic, __ATOMIC_SEQ_CST) == 0; i++) usleep(10000);
    if (log_->magic != 0x6572757472745f66) die("not a log", 0);
}

static struct table first_table;

int main(int argc, char **argv) {
    if (argc < 3) die("usage: see the top of torture.c", 0);
    memset(long_name, '\xc3', 255);
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7 + i / 251);
    if (strcmp(argv[1], "run") == 0 && argc >= 9) {
        i64 operations = atoll(argv[5]);
        int fd = open(argv[2], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        u64 size = sizeof(struct shared) + (u64)operations * 900 + (16 << 20);
        if (fd < 0 || ftruncate(fd, (off_t)size) != 0) die("cannot make the log", errno);
        log_ = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (log_ == MAP_FAILED) die("cannot map the log", errno);
        if (dup2(fd, LOG) < 0) die("cannot keep the log", errno);
        close(fd);
        log_->size = size, log_->first = log_->cursor = offsetof(struct shared, records), log_->seed = strtoull(argv[4], NULL, 10);
        log_->left = operations, log_->serial = strcmp(argv[8], "serial") == 0, log_->everything = argc > 9 && strcmp(argv[9], "everything") == 0;
        size_t above = 0;
        if (strcmp(argv[argc - 2], "rooted") == 0) {
            above = strlen(argv[argc - 1]), log_->rooted = 1;
            if (strncmp(argv[3], argv[argc - 1], above) != 0 || argv[3][above] != '/') die("TOP is not above DIRECTORY", 0);
        }
        snprintf(log_->root, sizeof log_->root, "%s", argv[3] + above);
        __atomic_store_n(&log_->magic, 0x6572757472745f66, __ATOMIC_SEQ_CST);
    } else {
        map_log(argv[2]);
    }
    if (strcmp(argv[1], "referee") == 0) return referee();

    struct sigaction action = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = 0;
    sigaction(SIGUSR2, &action, NULL);
    char self[4096] = "/torture";
    if (!log_->rooted) {
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        if (n < 0) die("/proc/self/exe", errno);
        self[n] = 0;
    }
    struct thread t = {.table = &first_table, .self = self};
    know_self(&t);

    if (strcmp(argv[1], "child") == 0 && argc == 5) {
        seed(&t, strtoull(argv[3], NULL, 10));
        t.depth = atoi(argv[4]);
        for (int fd = LOWEST; fd < LOWEST + FILES_MAX; fd++) t.table->slots[fd].open = 1; /* some may be */
        mark(1);
        if (log_->serial) {
            give_baton();
            /* One of the threads that the exec ended may have been woken in vain: all look again. */
            futex_wake(&log_->baton, INT32_MAX);
        }
        live(&t, (i64)below(&t, 20));
        mark(0);
        return 0;
    }
    if (strcmp(argv[1], "run") != 0 || argc < 9) die("usage: see the top of torture.c", 0);

    /* Nothing that is not ours may be reached, least of all a device through an inherited descriptor. */
    SYS(SYS_close_range, LOWEST, LOG - 1, 0, 0, 0, 0);
    SYS(SYS_close_range, LOG + !!log_->rooted, ~0u, 0, 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    /* What we mount is seen by nobody else, and ends with us. */
    if (log_->everything && (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0))
        die("cannot make a mount namespace", errno);
    setenv("TORTURE_LOG", log_->rooted ? "inherited" : argv[2], 1);
    int pair[2];
    if (pipe(pair) != 0 || dup2(pair[1], PIPE_IN) < 0 || dup2(pair[0], PIPE_OUT) < 0) die("pipe", errno);
    close(pair[0]), close(pair[1]);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0 || dup2(pair[0], SOCKET_IN) < 0 || dup2(pair[1], SOCKET_OUT) < 0) die("socketpair", errno);
    close(pair[0]), close(pair[1]);
    if (log_->rooted) {
        int top = open(argv[argc - 1], O_PATH | O_DIRECTORY);
        if (top < 0 || dup2(top, ROOT) < 0 || fchdir(ROOT) != 0 || chroot(".") != 0) die("cannot make TOP the root", errno);
        close(top);
    }
    if (chdir(log_->root) != 0) die("cannot enter the directory", errno);
    seed(&t, log_->seed);
    int processes = atoi(argv[6]), threads = atoi(argv[7]);
    mark(1);
    for (int p = 0; p < processes; p++) {
        u64 child_seed = next(&t);
        struct want w = WANT(.op = "clone");
        struct record *r = begin(&t, &w);
        long pid = SYS(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
        if (pid != 0) {
            end(&t, &w, r, pid);
            if (pid < 0) die("clone", pid);
            continue;
        }
        know_self(&t);
        t.children = 0, t.depth = 1;
        seed(&t, child_seed);
        struct start *others[64];
        int made = 0;
        while (made < threads - 1 && made < 64) others[made++] = new_thread(&t, log_->left, 0);
        live(&t, log_->left);
        for (int i = 0; i < made; i++) join_thread(others[i]);
        reap(&t, 0);
        SYS(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
    /* All of them, orphans too; those killed were meant to be, but not by a fault of ours. */
    int failed = 0, status;
    while (SYS(SYS_wait4, -1, &status, __WALL, NULL, 0, 0) > 0)
        if (WIFEXITED(status) ? WEXITSTATUS(status) != 0 : WTERMSIG(status) != SIGKILL) failed = 1;
    mark(0);
    __atomic_store_n(&log_->stop, 1, __ATOMIC_SEQ_CST);
    return failed;
}
