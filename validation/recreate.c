/*
 * What a file costs to make where others have just been removed.
 *
 *     cc -O2 validation/recreate.c -o recreate; recreate DIRECTORY FILES
 *
 * Makes, in a new directory in DIRECTORY: FILES files; removes them; makes as many again; removes them; waits 70 seconds and
 * makes them once more. Prints the median and the mean of the calls of each (microseconds). Takes down what it made.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void make(int dir, int files, const char *what) {
    double *us = calloc(files, sizeof *us), sum = 0;
    char name[32];
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "f%06d", i);
        double before = now_us();
        int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY, 0644);
        us[i] = now_us() - before;
        if (fd < 0) {
            perror(name);
            exit(1);
        }
        close(fd);
        sum += us[i];
    }
    qsort(us, files, sizeof *us, by_value);
    printf("%-28s median %8.2f us  mean %8.2f us\n", what, us[files / 2], sum / files);
    free(us);
}

static void clear(int dir, int files) {
    char name[32];
    for (int i = 0; i < files; i++) {
        snprintf(name, sizeof name, "f%06d", i);
        unlinkat(dir, name, 0);
    }
}

int main(int argc, char **argv) {
    if (argc != 3 || chdir(argv[1]) != 0 || atoi(argv[2]) < 1) {
        fprintf(stderr, "usage: recreate DIRECTORY FILES\n");
        return 2;
    }
    int files = atoi(argv[2]);
    char name[64];
    snprintf(name, sizeof name, "recreate.%d", (int)getpid());
    if (mkdir(name, 0755) != 0) {
        perror(name);
        return 1;
    }
    int dir = open(name, O_RDONLY | O_DIRECTORY);
    make(dir, files, "in a new directory");
    clear(dir, files);
    make(dir, files, "after removing as many");
    clear(dir, files);
    sleep(70);
    make(dir, files, "after removing, 70 s later");
    clear(dir, files);
    rmdir(name);
    return 0;
}
