/* Two small programs for overhead.sh.
 *
 *   timed FILE COMMAND...   runs the command and appends the nanoseconds that it took to FILE; ends as the command did
 *   timed pread FILE N      reads one byte at offset 0, N times: a program that does nothing but system calls
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
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
