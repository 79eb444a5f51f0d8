/* What user space tells the recorder: which calls to record and where their arguments point, and whom to record. */
#ifndef FSAGE_SPEC_H
#define FSAGE_SPEC_H

#define SPECS 512 /* calls with numbers above are recorded without a look at their arguments */
#define NO_ARG 0xff
#define CWD_ARG 0xfe /* the fact is the working directory's */

enum spec_flag {
	SPEC_RECORDED = 1 << 0,
	SPEC_RETURNS_FD = 1 << 1,
	SPEC_IOV = 1 << 2, /* arguments 1 and 2 are an I/O vector */
	SPEC_CLOSES = 1 << 3, /* frees descriptors when it starts */
	SPEC_EXEC = 1 << 4,
	SPEC_NEEDS_FD = 1 << 5, /* of no interest without a descriptor */
	SPEC_IN_IF = 1 << 6, /* memory is read only if argument 1 is in_if */
	SPEC_MOVES = 1 << 7, /* may move or remove directories */
};

/* Of one system call. The Rust side: trace::kernel::Spec. */
struct spec {
	u8 flags;
	u8 fd[2]; /* arguments that are descriptors */
	u8 str[2]; /* arguments that are strings */
	u8 in[2]; /* arguments that point to memory read at the start */
	u8 in_bytes[2];
	u8 out; /* that point to memory read at the return */
	u8 out_bytes;
	u8 str_skip; /* bytes of the first string's argument before the string */
	u8 moves_if_bit; /* SPEC_MOVES only if this bit of argument 2 is set; 0: always */
	u8 reserved[3];
	u32 in_if;
};

enum mode {
	MODE_PROCESSES = 1, /* those in the map `wanted`, and what they start */
	MODE_CGROUP = 2,
	MODE_MOUNT = 3,
};

/* Values of the map `wanted`. */
enum wanted {
	WANTED = 1,
	WANTED_FROM_EXEC = 2, /* a process that waits to become the command */
};

/* Processes whose numbers agree in the low bits share a slot of the map `candidates`. */
#define CANDIDATES 65536

/* What each processor counts. */
struct counters {
	u64 lost; /* records for which the ring had no room */
	u64 told; /* of these, the ones that a WIRE_LOST has told of */
	u64 records;
	u64 no_memory; /* tasks for which there was no memory */
	u64 began; /* tasks taken in */
	u64 ended; /* tasks of these that ended */
	u64 faults_unknown; /* accesses through mappings of files that could not be named */
};

#endif
