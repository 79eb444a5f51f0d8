/* Reads and writes a file of 64 pages through mappings; prints what it touched: R or W and the page's number. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 64

int main(int argc, char **argv)
{
	char page[PAGE] = "text";
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0)
		return 1;
	for (int i = 0; i < PAGES; i++)
		if (write(fd, page, PAGE) != PAGE)
			return 2;
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		return 3;
	volatile char *read_only = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	volatile char *writable = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (read_only == MAP_FAILED || writable == MAP_FAILED)
		return 4;
	/* Neither reading ahead nor mapping around: each page is a fault of its own. */
	madvise((void *)read_only, PAGES * PAGE, MADV_RANDOM);
	madvise((void *)writable, PAGES * PAGE, MADV_RANDOM);
	close(fd);
	int reads[] = { 0, 10, 40, 63 }, writes[] = { 20, 33 }, sum = 0;
	for (int i = 0; i < 4; i++) {
		sum += read_only[reads[i] * PAGE];
		printf("R %d\n", reads[i]);
	}
	for (int i = 0; i < 2; i++) {
		writable[writes[i] * PAGE + 7] = 'x';
		printf("W %d\n", writes[i]);
	}
	/* Memory shared without a name is no file: the child finds the pages that its parent made. */
	volatile char *shared = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 5;
	for (int i = 0; i < PAGES; i++)
		shared[i * PAGE] = 1;
	pid_t child = fork();
	if (child == 0) {
		int ones = 0;
		for (int i = 0; i < PAGES; i++)
			ones += shared[i * PAGE];
		_exit(ones != PAGES);
	}
	int status;
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		return 6;
	return sum == 0;
}
