/* What memory touched between two uncached reads of 4 KB costs the second: displaced FILE (256 MB, made before). Prints the median of 300. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"

enum { READS = 300, BLOCKS = 65536, MEMORY = 8 << 20 };
static char memory[MEMORY];

int main(int count, char **arguments)
{
	static const int kilobytes[] = { 0, 256, 1024, 4096 };
	static char block[4096];
	static double took[READS];
	int fd = count == 2 ? open(arguments[1], O_RDONLY) : -1;
	if (fd < 0)
		return fprintf(stderr, "usage: displaced FILE\n"), 2;
	for (int turn = 0; turn < 12; turn++) {
		int lines = kilobytes[turn % 4] * 16;
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
		for (int i = 0; i < READS; i++) {
			for (int line = 0; line < lines; line++)
				((volatile char *)memory)[line * 64 % MEMORY]++;
			double began = now_us();
			if (pread(fd, block, sizeof block, (long)(rand() % BLOCKS) * 4096) != sizeof block)
				return perror("pread"), 3;
			took[i] = now_us() - began;
		}
		qsort(took, READS, sizeof *took, ascending);
		printf("%4d KB touched: %.1f us\n", kilobytes[turn % 4], took[READS / 2]);
	}
	return 0;
}
