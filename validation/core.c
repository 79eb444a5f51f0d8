/* What another thread on the same core costs: core FILE. 400 times, 20 ms apart, 200 stats of FILE and one loop of operations that do not wait
   for each other. Prints the quantiles of both and the correlation of their logarithms. cc -O2 core.c -lm */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 400, STATS = 200, STEPS = 2000 };
static uint64_t places[128];

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}

static void wide(void)
{
	uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
	for (uint64_t i = 0; i < STEPS; i++) {
		a = a * 3 + places[i % 128];
		b += a >> 3;
		c ^= places[i * 7 % 128];
		d += c;
		e += d ^ i;
		f += e >> 1;
		asm volatile("" ::"r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));
	}
}

int main(int count, char **arguments)
{
	static double took[2][SAMPLES];
	double mean[2] = { 0, 0 }, both = 0, square[2] = { 0, 0 };
	struct stat found;
	if (count != 2 || stat(arguments[1], &found) != 0) {
		fprintf(stderr, "usage: core FILE\n");
		return 2;
	}
	for (int i = 0; i < SAMPLES; i++) {
		double began = now_ns();
		wide();
		double looped = now_ns();
		for (int n = 0; n < STATS; n++)
			stat(arguments[1], &found);
		took[0][i] = (now_ns() - looped) / STATS;
		took[1][i] = looped - began;
		for (int which = 0; which < 2; which++)
			mean[which] += log(took[which][i]) / SAMPLES;
		usleep(20000);
	}
	for (int i = 0; i < SAMPLES; i++) {
		double of_stat = log(took[0][i]) - mean[0], of_loop = log(took[1][i]) - mean[1];
		both += of_stat * of_loop;
		square[0] += of_stat * of_stat;
		square[1] += of_loop * of_loop;
	}
	for (int which = 0; which < 2; which++) {
		qsort(took[which], SAMPLES, sizeof(double), ascending);
		printf("%s, ns: least %.0f, quarter %.0f, median %.0f, three quarters %.0f, nine tenths %.0f\n", which ? "loop" : "stat",
		       took[which][0], took[which][SAMPLES / 4], took[which][SAMPLES / 2], took[which][SAMPLES * 3 / 4], took[which][SAMPLES * 9 / 10]);
	}
	printf("correlation of the logarithms %.2f\n", both / sqrt(square[0] * square[1]));
	return 0;
}
