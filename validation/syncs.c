/* What programs do to get data onto stable storage, in its plainest forms; for syncs.sh.
 *
 *   syncs forty ORDER CALL BYTES   forty new files of so many bytes. ORDER: each is synced before the next is made, or late, all made first
 *                                  and then synced one after the other. CALL: fsync or fdatasync.
 *   syncs journal SIZE             twenty journals: 4 MB are preallocated (SIZE: as a part of the length, or keep: beyond it), 60 records of 512 to
 *                                  8,191 bytes written, every second journal is fdatasynced after each ten, and what is left is given back.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char data[8192];

static void put(int fd, size_t bytes, off_t at)
{
    if (pwrite(fd, data, bytes, at) != (ssize_t)bytes)
        err(1, "write");
}

static int make(const char *directory, int number)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%06d", directory, number);
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0644);
    if (fd < 0)
        err(1, "%s", path);
    return fd;
}

static void settle(int fd, int data_only)
{
    if (data_only ? fdatasync(fd) : fsync(fd))
        err(1, "sync");
    close(fd);
}

static void forty(int late, int data_only, long bytes)
{
    int fds[40];
    for (int i = 0; i < 40; i++) {
        fds[i] = make("forty", i);
        for (long at = 0; at < bytes; at += 4096)
            put(fds[i], 4096, at);
        if (!late)
            settle(fds[i], data_only);
    }
    for (int i = 0; late && i < 40; i++)
        settle(fds[i], data_only);
}

static void journal(int keep)
{
    unsigned seed = 1;
    for (int i = 0; i < 20; i++) {
        int fd = make("journal", i);
        /* Where there is no fallocate, programs go on without. */
        (void)!fallocate(fd, keep ? FALLOC_FL_KEEP_SIZE : 0, 0, 4 << 20);
        off_t at = 0;
        for (int record = 1; record <= 60; record++) {
            seed = seed * 1103515245u + 12345;
            size_t bytes = 512 + (seed >> 16) % 7680;
            put(fd, bytes, at);
            at += bytes;
            if (i % 2 == 0 && record % 10 == 0 && fdatasync(fd))
                err(1, "fdatasync");
        }
        if (ftruncate(fd, at))
            err(1, "ftruncate");
        close(fd);
    }
}

int main(int argc, char **argv)
{
    memset(data, 7, sizeof data);
    if (argc == 5 && !strcmp(argv[1], "forty")) {
        mkdir("forty", 0755);
        forty(!strcmp(argv[2], "late"), !strcmp(argv[3], "fdatasync"), atol(argv[4]));
    } else if (argc == 3 && !strcmp(argv[1], "journal")) {
        mkdir("journal", 0755);
        journal(!strcmp(argv[2], "keep"));
    } else {
        errx(2, "usage: syncs forty each|late fsync|fdatasync BYTES | journal part|keep");
    }
    return 0;
}
