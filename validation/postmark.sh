#!/bin/sh
# Records PostMark (Katz, NetApp TR-3022): 5,000 files of 500 to 16,000 bytes in 100 directories, 20,000 transactions, equal
# shares of reads and appends, creations and removals, 4 KB requests without stdio buffering, seed 42.
. "$(dirname "$0")/common.sh"
begin postmark "$@"
need postmark postmark
mkdir pool
cat >postmark.conf <<'CONF'
set location pool
set seed 42
set number 5000
set subdirectories 100
set size 500 16000
set transactions 20000
set bias read 5
set bias create 5
set read 4096
set write 4096
set buffering false
run
quit
CONF
record postmark postmark.conf
