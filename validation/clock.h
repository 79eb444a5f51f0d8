/* What the small programs here time with, and sort by. */
#include <time.h>

static inline double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static inline int ascending(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : 1;
}
