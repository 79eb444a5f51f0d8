/* Waits for known threads. Whoever ends a wait has seen before that the other sleeps. Prints what it did: each line a
 * kind, the thread that waits, the thread that ends the wait (0: nobody), and two times between which the wait ended
 * (CLOCK_MONOTONIC, nanoseconds). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5

static int to_other[2], to_main[2];
static long main_tid;
static volatile long other_tid;
static long long wrote[ROUNDS][2], answered[ROUNDS][2], ended_after;

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void pause_ms(long ms)
{
	struct timespec t = { 0, ms * 1000000 };
	nanosleep(&t, 0);
}

static void spin_ms(long ms)
{
	for (long long end = now() + ms * 1000000; now() < end;)
		;
}

/* Returns when a thread sleeps in a system call and has left the processor. Its state (S) is set while it still runs:
 * who wakes it then ends no sleep (seen 4 times in 200,000 reads of a pipe). */
static void until_asleep_in(long call, long pid, long tid)
{
	char path[64], text[512] = "";
	long in;
	/* A machine that others use may take its time; one that does not tell never comes to it. */
	long long limit = now() + 60000000000ll;
	snprintf(path, sizeof(path), "/proc/%ld/task/%ld/syscall", pid, tid);
	for (;;) {
		FILE *file = fopen(path, "r");
		if (file) {
			int sleeps = fgets(text, sizeof(text), file) && sscanf(text, "%ld ", &in) == 1;
			fclose(file);
			if (sleeps && in == call)
				return;
		}
		if (now() > limit)
			_exit(2);
		spin_ms(1);
	}
}

static void *other(void *none)
{
	char byte;
	other_tid = syscall(SYS_gettid);
	for (int i = 0; i < ROUNDS; i++) {
		if (read(to_other[0], &byte, 1) != 1)
			return none;
		until_asleep_in(SYS_read, getpid(), main_tid);
		answered[i][0] = now();
		if (write(to_main[1], &byte, 1) != 1)
			return none;
		answered[i][1] = now();
	}
	until_asleep_in(SYS_futex, getpid(), main_tid);
	ended_after = now();
	return none;
}

int main(void)
{
	pthread_t thread;
	char byte = 1;
	main_tid = syscall(SYS_gettid);
	if (pipe(to_other) || pipe(to_main) || pthread_create(&thread, 0, other, 0))
		return 1;
	for (int i = 0; i < ROUNDS; i++) {
		while (!other_tid)
			;
		until_asleep_in(SYS_read, getpid(), other_tid);
		wrote[i][0] = now();
		if (write(to_other[1], &byte, 1) != 1)
			return 1;
		wrote[i][1] = now();
		if (read(to_main[0], &byte, 1) != 1)
			return 1;
	}
	pthread_join(thread, 0);
	long long joined = now();
	for (int i = 0; i < ROUNDS; i++) {
		printf("pipe %ld %ld %lld %lld\n", other_tid, main_tid, wrote[i][0], wrote[i][1]);
		printf("pipe %ld %ld %lld %lld\n", main_tid, other_tid, answered[i][0], answered[i][1]);
	}
	printf("join %ld %ld %lld %lld\n", main_tid, other_tid, ended_after, joined);
	fflush(stdout);
	long long before = now();
	pid_t child = fork();
	if (child == 0) {
		spin_ms(20);
		until_asleep_in(SYS_wait4, main_tid, main_tid);
		_exit(0);
	}
	waitpid(child, 0, 0);
	printf("child %ld %d %lld %lld\n", main_tid, (int)child, before + 20000000, now());
	before = now();
	pause_ms(20);
	printf("timer %ld 0 %lld %lld\n", main_tid, before + 20000000, now());
	printf("sleeps %ld\n", main_tid);
	return 0;
}
