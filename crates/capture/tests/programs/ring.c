/* Works on a file through io_uring, by system calls alone; prints each request and its result: opcode, offset, length, result. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct io_uring_params params;
static char *sq, *cq;
static struct io_uring_sqe *sqes;
static int ring;

static void submit(int opcode, int fd, int flags, void *at, unsigned length, uint64_t offset, unsigned op_flags, int completions)
{
	unsigned *tail = (unsigned *)(sq + params.sq_off.tail);
	unsigned mask = *(unsigned *)(sq + params.sq_off.ring_mask), index = *tail & mask;
	struct io_uring_sqe *sqe = &sqes[index];
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = opcode;
	sqe->fd = fd;
	sqe->flags = flags;
	sqe->addr = (uint64_t)at;
	sqe->len = length;
	sqe->off = offset;
	sqe->fsync_flags = op_flags;
	((unsigned *)(sq + params.sq_off.array))[index] = index;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, completions, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		_exit(3);
}

static int request(int opcode, int fd, int flags, void *at, unsigned length, uint64_t offset, unsigned op_flags)
{
	unsigned *head = (unsigned *)(cq + params.cq_off.head);
	submit(opcode, fd, flags, at, length, offset, op_flags, 1);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(cq + params.cq_off.cqes);
	int result = cqes[*head & *(unsigned *)(cq + params.cq_off.ring_mask)].res;
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	printf("%d %lld %u %d\n", opcode, (long long)offset, length, result);
	return result;
}

/* What is neither read nor written, in the working directory. */
static int others(int fd)
{
	char status[256];
	request(IORING_OP_FALLOCATE, fd, 0, (void *)4096, 0, 0, 0);
	request(IORING_OP_MKDIRAT, AT_FDCWD, 0, "directory", 0700, 0, 0);
	int made = request(IORING_OP_OPENAT, AT_FDCWD, 0, "directory/made", 0600, 0, O_RDWR | O_CREAT);
	request(IORING_OP_STATX, AT_FDCWD, 0, "directory/made", STATX_BASIC_STATS, (uint64_t)status, 0);
	request(IORING_OP_CLOSE, made, 0, NULL, 0, 0, 0);
	request(IORING_OP_RENAMEAT, AT_FDCWD, 0, "directory/made", AT_FDCWD, (uint64_t) "renamed", 0);
	request(IORING_OP_UNLINKAT, AT_FDCWD, 0, "renamed", 0, 0, 0);
	return 0;
}

/* Requests of which no completion tells unless they fail: seven that succeed, and one that does not. */
static int silent(int fd)
{
	char buffer[100] = "text";
	struct stat status;
	for (int i = 0; i < 5; i++)
		submit(IORING_OP_WRITE, fd, IOSQE_CQE_SKIP_SUCCESS, buffer, 100, i * 100, 0, 0);
	submit(IORING_OP_WRITE, 0, IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS, buffer, 100, 500, 0, 0);
	submit(IORING_OP_MKDIRAT, AT_FDCWD, IOSQE_CQE_SKIP_SUCCESS, "silent", 0700, 0, 0, 0);
	request(IORING_OP_WRITE, 77, IOSQE_CQE_SKIP_SUCCESS, buffer, 100, 0, 0);
	request(IORING_OP_READ, fd, 0, buffer, 100, 200, 0);
	for (int i = 0; i < 1000; i++) {
		if (fstat(fd, &status) == 0 && status.st_size == 600)
			return 0;
		usleep(10000);
	}
	return 1;
}

int main(int argc, char **argv)
{
	char buffer[10000] = "text";
	ring = syscall(SYS_io_uring_setup, 8, &params);
	if (ring < 0)
		return 42;
	sq = mmap(NULL, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
	cq = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_CQ_RING);
	sqes = mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQES);
	int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED || fd < 0)
		return 1;
	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &fd, 1))
		return 2;
	if (argc > 2)
		return strcmp(argv[2], "silent") ? others(fd) : silent(fd);
	request(IORING_OP_WRITE, fd, 0, buffer, 10000, 0, 0);
	request(IORING_OP_WRITE, 0, IOSQE_FIXED_FILE, buffer, 5000, 10000, 0);
	request(IORING_OP_READ, fd, 0, buffer, 4096, 12000, 0);
	request(IORING_OP_FSYNC, fd, 0, NULL, 0, 0, IORING_FSYNC_DATASYNC);
	request(IORING_OP_READ, 77, 0, buffer, 10, 0, 0);
	return 0;
}
