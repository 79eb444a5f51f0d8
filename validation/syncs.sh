#!/bin/sh
# Records small programs that do little but get data onto stable storage: forty new files synced as each is made, and all made first; journals
# that preallocate; SQLite with a write-ahead log and synchronous=FULL; a copy of 500 files and a sync. Into OUTDIR/syncs-NAME.workload.
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"
begin syncs "$@"
need cc gcc libc6-dev
need sqlite3 sqlite3
cc -O1 -o syncs "$HERE/syncs.c"
INTO=$(dirname "$OUT")

# part NAME COMMAND...: records one of them.
part() {
    NAME=syncs-$1
    OUT=$INTO/$NAME.workload
    shift
    record "$@"
    rm -rf forty journal
}

part each ./syncs forty each fsync 4096
part late ./syncs forty late fsync 4096
part late-data ./syncs forty late fdatasync 4096
part late-64k ./syncs forty late fsync 65536
part journal ./syncs journal part
part journal-keep ./syncs journal keep

sqlite3 wal.db 'PRAGMA journal_mode=WAL; CREATE TABLE entry (id INTEGER PRIMARY KEY, data BLOB);' >/dev/null
awk 'BEGIN {
    print "PRAGMA synchronous=FULL;"
    for (i = 1; i <= 400; i++) {
        printf "BEGIN; INSERT INTO entry (data) VALUES (zeroblob(300)), (zeroblob(3000)); "
        printf "UPDATE entry SET data = zeroblob(100) WHERE id = %d; COMMIT;\n", (i * 7919) % (2 * i) + 1
    }
}' >load.sql
part wal sqlite3 wal.db '.read load.sql'

i=0
while [ $i -lt 500 ]; do
    mkdir -p from/d$((i % 20))
    head -c $((i * 131 % 65536 + 100)) /dev/urandom >from/d$((i % 20))/f$i
    i=$((i + 1))
done
part copies sh -c 'cp -r --reflink=auto from to && sync -f to'
