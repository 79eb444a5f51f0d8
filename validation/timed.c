/* Small programs for overhead.sh.
 *
 *   timed FILE COMMAND...   runs the command and appends the nanoseconds that it took to FILE; ends as the command did
 *   timed pread FILE N      reads one byte at offset 0, N times: a program that does nothing but system calls
 *   timed calls FILE        prints what single calls cost in nanoseconds: the least of many blocks, which other work on the machine
 *                           seldom changes. FILE is one byte long, its path absolute; it is worked in its directory, and in directories
 *                           that are made there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static const char *whole, *name; /* of the file */
static int fd;
static char bytes[4096];
static struct stat st;

static void do_getppid(void) { getppid(); }
static void do_pread(void) { if (pread(fd, bytes, 1, 0) != 1) exit(4); }
static void do_fstat(void) { if (fstat(fd, &st) != 0) exit(4); }
static void do_stat_absolute(void) { if (stat(whole, &st) != 0) exit(4); }
static void do_stat_relative(void) { if (stat(name, &st) != 0) exit(4); }
static void do_readlink_absolute(void) { if (readlink(whole, bytes, sizeof bytes) != -1) exit(4); }
static void do_open_of_nothing(void) { if (open("/nothing/at/all", O_RDONLY) != -1) exit(4); }
static void do_open_and_close(void) { if (close(open(whole, O_RDONLY)) != 0) exit(4); }

/* Files of their own in a directory seven names below FILE's: a block makes them, and the next removes them. */
#define DEEP "timed.d/in/a/deep/tree/of/names"
#define PER_BLOCK 100
static char made[PER_BLOCK][64];
static int turn;
static const char *next_made(void) { return made[turn++ % PER_BLOCK]; }
static void do_create(void) {
    int new = open(next_made(), O_RDWR | O_CREAT | O_EXCL, 0644);
    if (new < 0 || write(new, bytes, sizeof bytes) != sizeof bytes || close(new) != 0) exit(4);
}
static void do_unlink(void) { if (unlink(next_made()) != 0) exit(4); }

static void make_deep(void) {
    char part[] = DEEP;
    for (char *slash = strchr(part, '/');; slash = strchr(slash + 1, '/')) {
        if (slash) *slash = 0;
        if (mkdir(part, 0755) != 0) exit(4);
        if (!slash) break;
        *slash = '/';
    }
    for (int i = 0; i < PER_BLOCK; i++) snprintf(made[i], sizeof made[i], DEEP "/%d", i);
}

static void remove_deep(void) {
    char part[] = DEEP;
    for (char *slash = part; slash; *slash = 0) {
        if (rmdir(part) != 0) exit(4);
        if (!(slash = strrchr(part, '/'))) break;
    }
}

static int calls(const char *path) {
    static const struct { const char *name; void (*call)(void); } kinds[] = {
        {"getppid, not recorded", do_getppid}, {"pread", do_pread}, {"fstat", do_fstat}, {"stat, absolute", do_stat_absolute},
        {"stat, relative", do_stat_relative}, {"readlink of a file", do_readlink_absolute}, {"open of nothing", do_open_of_nothing},
        {"open and close", do_open_and_close}, {"create, write, close", do_create}, {"unlink", do_unlink},
    };
    char *directory = dirname(strdup(path));
    whole = path, name = strrchr(path, '/') + 1;
    if (path[0] != '/' || chdir(directory) != 0 || (fd = open(path, O_RDONLY)) < 0) return 4;
    make_deep();
    long long least[sizeof kinds / sizeof *kinds];
    int all = sizeof kinds / sizeof *kinds;
    for (int k = 0; k < all; k++) least[k] = 1LL << 60;
    for (int block = 0; block < 1200; block++)
        for (int k = 0; k < all; k++) {
            long long start = now();
            for (int i = 0; i < PER_BLOCK; i++) kinds[k].call();
            long long took = now() - start;
            if (took < least[k]) least[k] = took;
        }
    remove_deep();
    for (int k = 0; k < all; k++) printf("%-24s %6lld\n", kinds[k].name, least[k] / PER_BLOCK);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "calls") == 0) return calls(argv[2]);
    if (argc == 4 && strcmp(argv[1], "pread") == 0) {
        int fd = open(argv[2], O_RDONLY);
        char byte;
        for (long n = atol(argv[3]); n > 0; n--)
            if (pread(fd, &byte, 1, 0) != 1) return 1;
        return 0;
    }
    if (argc < 3) return 2;
    long long start = now();
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return 3;
    long long took = now() - start;
    FILE *file = fopen(argv[1], "a");
    if (!file || fprintf(file, "%lld\n", took) < 0 || fclose(file) != 0) return 3;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
