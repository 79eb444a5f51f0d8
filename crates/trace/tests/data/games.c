/* Plays every game with descriptors, offsets and names that the tracker must follow, and prints at each `tell` what the
 * kernel says: descriptor, offset, length, path. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(2);
    }
}
#define DO(call) must((call) >= 0, #call)

static void tell(int fd) {
    char link[64], path[8192];
    struct stat st;
    long at = lseek(fd, 0, SEEK_CUR);
    DO(fstat(fd, &st));
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    must(n > 0, "readlink");
    path[n] = 0;
    char line[9000];
    int len = snprintf(line, sizeof line, "%d %ld %ld %s%c", fd, at, (long)st.st_size, path, 0);
    must(write(1, line, len) == len, "write");
}

int main(int argc, char **argv) {
    char buf[4096] = {0};
    DO(chdir(argv[1]));
    int a = open("a", O_RDWR | O_CREAT | O_EXCL, 0600);
    DO(write(a, buf, 100));
    tell(a);
    int b = dup(a);
    DO(lseek(b, 10, SEEK_SET));
    DO(read(a, buf, 7));
    tell(b);
    DO(pwrite(a, buf, 50, 80));
    tell(a);
    DO(pread(a, buf, 50, 0));
    tell(a);
    int c = open("a", O_WRONLY | O_APPEND);
    tell(c);
    DO(write(c, buf, 11));
    tell(c);
    DO(lseek(c, 5, SEEK_SET));
    DO(write(c, buf, 2));
    tell(c);
    tell(a);
    DO(fcntl(a, F_SETFL, O_APPEND));
    DO(write(b, buf, 4));
    tell(a);
    DO(fcntl(b, F_SETFL, 0));
    DO(ftruncate(c, 20));
    tell(a);
    DO(write(a, buf, 1)); /* leaves a hole */
    tell(a);
    DO(lseek(a, -3, SEEK_END));
    DO(read(a, buf, 4096)); /* short */
    tell(a);
    DO(fallocate(a, 0, 0, 1000));
    tell(a);
    DO(fallocate(a, FALLOC_FL_KEEP_SIZE, 0, 5000));
    tell(a);
    struct iovec v[2] = {{buf, 30}, {buf, 12}};
    DO(lseek(a, 0, SEEK_SET));
    DO(readv(a, v, 2));
    DO(writev(a, v, 2));
    tell(a);
    DO(preadv(a, v, 2, 7));
    DO(pwritev(a, v, 2, 990));
    tell(a);
    /* Copies. */
    int d = open("d", O_RDWR | O_CREAT | O_TRUNC, 0600);
    DO(sendfile(d, a, NULL, 60));
    tell(a);
    tell(d);
    loff_t from = 5, to = 500;
    copy_file_range(a, &from, d, &to, 33, 0);
    tell(a);
    tell(d);
    copy_file_range(a, NULL, d, NULL, 10, 0);
    tell(a);
    tell(d);
    int p[2];
    DO(pipe(p));
    from = 3;
    DO(splice(a, &from, p[1], NULL, 20, 0));
    tell(a);
    DO(splice(p[0], NULL, d, NULL, 20, 0));
    tell(d);
    /* Fork shares descriptions, exec keeps them but for the marked ones. */
    pid_t child = fork();
    if (child == 0) {
        DO(read(a, buf, 9));
        int own = open("d", O_RDONLY);
        DO(read(own, buf, 3));
        tell(own);
        DO(close(a));
        exit(0);
    }
    DO(waitpid(child, NULL, 0));
    tell(a);
    /* Names. */
    DO(mkdir("dir", 0755));
    int dir = open("dir", O_RDONLY | O_DIRECTORY);
    DO(renameat(AT_FDCWD, "a", dir, "moved"));
    tell(a);
    DO(linkat(dir, "moved", AT_FDCWD, "again", 0));
    int e = open("again", O_RDONLY);
    DO(read(e, buf, 2));
    tell(e);
    DO(rename("d", "dir/moved"));
    tell(d);
    DO(truncate("dir/moved", 7));
    tell(d);
    DO(rename("dir", "elsewhere"));
    tell(d);
    DO(symlink("elsewhere", "shortcut"));
    int f = open("shortcut/new", O_WRONLY | O_CREAT, 0600);
    DO(write(f, buf, 77));
    tell(f);
    DO(renameat2(AT_FDCWD, "again", AT_FDCWD, "elsewhere/new", RENAME_EXCHANGE));
    tell(f);
    tell(e);
    DO(fchdir(dir));
    int g = open("moved", O_RDONLY);
    tell(g);
    int h = open("../again", O_WRONLY | O_APPEND);
    DO(write(h, buf, 1));
    tell(h);
    tell(f);
    DO(chdir(".."));
    DO(unlink("again"));
    DO(write(f, buf, 2));
    tell(f);
    int o = open("again", O_RDWR | O_CREAT | O_TRUNC, 0600);
    DO(write(o, buf, 5));
    tell(o);
    DO(dup2(o, 60));
    DO(dup3(a, 61, O_CLOEXEC));
    DO(fcntl(60, F_DUPFD, 70));
    DO(lseek(70, 1, SEEK_SET));
    tell(60);
    DO(close(o));
    DO(close_range(65, 80, 0));
    int again = open("again", O_RDONLY);
    DO(lseek(again, 2, SEEK_SET));
    tell(again);
    tell(61);
    int t = open(".", O_RDWR | O_TMPFILE, 0600);
    if (t >= 0) {
        DO(write(t, buf, 13));
        tell(t);
        snprintf(buf, sizeof buf, "/proc/self/fd/%d", t);
        DO(linkat(AT_FDCWD, buf, AT_FDCWD, "named", AT_SYMLINK_FOLLOW));
    }
    /* Names that need escapes. */
    int odd = open("od d\n<x>\"q\\\377,(){}-", O_RDWR | O_CREAT, 0600);
    DO(write(odd, buf, 6));
    tell(odd);
    /* A thousand directories, one in the other. */
    for (int i = 0; i < 1000; i++) {
        DO(mkdir("s", 0755));
        DO(chdir("s"));
    }
    int deep = open("deep", O_RDWR | O_CREAT, 0600);
    DO(write(deep, buf, 8));
    tell(deep);
    return 0;
}
