/* What a sync takes longer where the device has rested: rested FILE (made, removed). A block of it is overwritten at random and synced (fdatasync), after the processor was
 * busy, or asleep, for so long. Prints medians of 300 (of 60 from 3 ms on), twice. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"

enum { SYNCS = 300, BLOCKS = 4096 };

static int rest(int fd, double us, int asleep)
{
	static char block[4096];
	static double took[SYNCS];
	int syncs = us >= 3000 ? SYNCS / 5 : SYNCS;
	for (int i = 0; i < syncs; i++) {
		double began = now_us();
		if (asleep && us > 0)
			usleep(us);
		while (now_us() - began < us)
			;
		if (pwrite(fd, block, sizeof block, (long)(rand() % BLOCKS) * 4096) != sizeof block)
			return 0;
		began = now_us();
		if (fdatasync(fd))
			return 0;
		took[i] = now_us() - began;
	}
	qsort(took, syncs, sizeof *took, ascending);
	printf("%s for %5.0f us: %6.1f us\n", asleep ? "asleep" : "busy  ", us, took[syncs / 2]);
	return 1;
}

int main(int count, char **arguments)
{
	static const double times[] = { 0, 100, 300, 1000, 3000, 10000 };
	static char piece[1 << 16];
	int fd = count == 2 ? open(arguments[1], O_RDWR | O_CREAT | O_EXCL, 0600) : -1;
	if (fd < 0)
		return fprintf(stderr, "usage: rested FILE, which is not there yet\n"), 2;
	int good = 1;
	for (int i = 0; i < BLOCKS / 16; i++)
		good &= write(fd, piece, sizeof piece) == sizeof piece;
	good &= !fsync(fd);
	for (int turn = 0; good && turn < 4; turn++)
		for (int i = 0; good && i < 6; i++)
			good = rest(fd, times[i], turn % 2);
	unlink(arguments[1]);
	if (!good)
		return perror("rested"), 1;
	return 0;
}
