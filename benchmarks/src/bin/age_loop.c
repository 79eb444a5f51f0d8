/* The calls of one aging run, in a loop and nothing else: what `benchmarks --bin age` compares fsage with.
 *
 * age_loop LIST CHUNK: LIST is a file of records (see `encode` in age.rs), each one code, then numbers of 8 bytes and texts
 * with a terminating NUL as the code asks. The working directory is the root of the tree. One file is open at a time. Prints the
 * nanoseconds from the first call to the last. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static const unsigned char *at;

static uint64_t number(void) {
    uint64_t n;
    memcpy(&n, at, sizeof n);
    at += sizeof n;
    return n;
}

static const char *text(void) {
    const char *s = (const char *)at;
    at += strlen(s) + 1;
    return s;
}

static void die(const char *what) {
    fprintf(stderr, "age_loop: %s: %s\n", what, strerror(errno));
    exit(1);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int list = open(argv[1], O_RDONLY);
    struct stat st;
    if (list < 0 || fstat(list, &st) < 0) die(argv[1]);
    const unsigned char *start = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, list, 0);
    if (start == MAP_FAILED) die("mmap");
    size_t chunk = strtoull(argv[2], NULL, 10);
    unsigned char *data = malloc(chunk);
    uint64_t x = 88172645463325252ull;
    for (size_t i = 0; i < chunk; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        data[i] = (unsigned char)x;
    }
    int root = open(".", O_RDONLY | O_DIRECTORY);
    if (root < 0) die(".");

    struct timespec begin, end;
    struct statvfs v;
    int fd = -1;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (at = start; at < start + st.st_size;) {
        unsigned char code = *at++;
        const char *path;
        uint64_t offset;
        switch (code) {
        case 'c': fd = openat(root, text(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
            if (fd < 0) die("create");
            break;
        case 'o': fd = openat(root, text(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
            if (fd < 0) die("open");
            break;
        case 'x': close(fd); break;
        case 'w': offset = number(); if (pwrite(fd, data, number(), offset) < 0) die("pwrite"); break;
        case 'a': offset = number(); if (fallocate(fd, 0, offset, number()) < 0) die("fallocate"); break;
        case 'p': offset = number();
            if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, number()) < 0) die("punch");
            break;
        case 't': if (ftruncate(fd, number()) < 0) die("ftruncate"); break;
        case 'f': if (fsync(fd) < 0) die("fsync"); break;
        case 'u': if (unlinkat(root, text(), 0) < 0) die("unlink"); break;
        case 'd': if (mkdirat(root, text(), 0755) < 0) die("mkdir"); break;
        case 'r': if (unlinkat(root, text(), AT_REMOVEDIR) < 0) die("rmdir"); break;
        case 'm': path = text(); if (renameat(root, path, root, text()) < 0) die("rename"); break;
        case 'l': path = text(); if (symlinkat(path, root, text()) < 0) die("symlink"); break;
        case 's': if (syncfs(root) < 0) die("syncfs"); break;
        case 'v': fstatvfs(root, &v); break;
        default: fprintf(stderr, "age_loop: no such code %d\n", code); return 2;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%lld\n", (end.tv_sec - begin.tv_sec) * 1000000000ll + end.tv_nsec - begin.tv_nsec);
    return 0;
}
