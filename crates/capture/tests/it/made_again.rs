//! A file that is made where one was removed is another file, also where the kernel gives it all that the other had:
//! its inode's number and the addresses of inode, name and open file. XFS does so at once. On
//! ext4, which passes over a number for some seconds, two calls of a million looked like it (seed 31 of the torture
//! program with root directories).

use crate::common::{compiled, may_record, record_to};
use posix::{Target, Workspace, WorkspaceOptions};
use std::collections::BTreeSet;
use trace::Op;

const ROUNDS: usize = 30;

/// Makes and removes a file, and lets the file system clear it away. Prints each inode's number.
const PROGRAM: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 30; i++) {
		struct stat st;
		int fd = open("again", O_CREAT | O_EXCL | O_WRONLY, 0600);
		if (fd < 0 || write(fd, "x", 1) != 1 || close(fd))
			return 1;
		fd = open("again", O_RDONLY);
		if (fd < 0 || fstat(fd, &st) || close(fd) || unlink("again"))
			return 1;
		printf("%lu\n", (unsigned long)st.st_ino);
		usleep(50000);
	}
	return 0;
}
"#;

#[test]
fn a_file_made_where_one_was_removed_is_another() {
    if !may_record() {
        return;
    }
    let target = Target::parse("xfs:400M,backing=ram").expect("a target");
    let Some(workspace) = testkit::have(Workspace::open(&target, &WorkspaceOptions::default())) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let Some(program) = compiled(PROGRAM, directory.path()) else { return };
    let output = directory.path().join("numbers");
    let recorded = record_to(&[program], workspace.path(), &output);
    assert!(recorded.status.success());
    let numbers = std::fs::read_to_string(&output).expect("its output");
    let numbers: BTreeSet<&str> = numbers.lines().collect();
    assert!(numbers.len() < ROUNDS, "each has a number of its own here, so that nothing is tested");
    let opens = || recorded.rows.iter().filter(|row| row.event.op == Op::Open && row.path().ends_with(b"/again"));
    assert_eq!(opens().count(), 2 * ROUNDS);
    let files: BTreeSet<_> = opens().map(|row| row.event.file).collect();
    assert_eq!(files.len(), ROUNDS);
    workspace.close().expect("unmounted");
}
