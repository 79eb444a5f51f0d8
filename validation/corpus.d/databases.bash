# shellcheck shell=bash
# Databases, mail and benchmarks of storage. Sourced by validation/corpus. Servers listen on sockets in the tree only.

# transactions: so many small ones, as SQL.
transactions() {
    echo 'CREATE TABLE IF NOT EXISTS entry (id INTEGER PRIMARY KEY, account INTEGER, note TEXT);'
    echo 'CREATE INDEX IF NOT EXISTS entry_account ON entry (account);'
    numbers "$1" | awk '{ printf "BEGIN; INSERT INTO entry (account, note) VALUES (%d, \x27note %d\x27); UPDATE entry SET note = \x27changed\x27 WHERE account = %d; COMMIT;\n", $1 % 100, $1, $1 % 50 }'
}

prepare_sqlite_delete() { transactions 300 >load.sql; }
program sqlite-delete sqlite3:sqlite3 -- sqlite3 test.db '.read load.sql' 'VACUUM'

prepare_sqlite_truncate() { transactions 300 >load.sql; }
program sqlite-truncate sqlite3:sqlite3 -- sqlite3 -cmd 'PRAGMA journal_mode = TRUNCATE' test.db '.read load.sql'

prepare_sqlite_wal() { transactions 500 >load.sql; }
program sqlite-wal sqlite3:sqlite3 -- sqlite3 -cmd 'PRAGMA journal_mode = WAL' test.db '.read load.sql'

prepare_sqlite_two() {
    transactions 150 >load.sql
    sqlite3 test.db 'CREATE TABLE entry (id INTEGER PRIMARY KEY, account INTEGER, note TEXT); PRAGMA journal_mode = WAL'
}
run_sqlite_two() {
    sqlite3 -cmd '.timeout 60000' test.db '.read load.sql' &
    sqlite3 -cmd '.timeout 60000' test.db '.read load.sql'
    wait $!
    sqlite3 test.db 'PRAGMA wal_checkpoint(TRUNCATE); SELECT count(*) FROM entry'
}
program sqlite-two sqlite3:sqlite3
differs sqlite-two 'two writers take turns as they like'

# Debian's redis-server is redis-check-rdb under another name; its package would start a service.
prepare_redis() { ln -s "$(command -v redis-check-rdb)" redis-server; }
run_redis() {
    ./redis-server --port 0 --unixsocket "$PWD/socket" --dir "$PWD" --appendonly yes --appendfsync everysec --save '' &
    server=$!
    for _ in $(seq 300); do redis-cli -s socket ping 2>/dev/null | grep -q PONG && break; sleep 0.1; done
    redis-benchmark -s socket -q -n 3000 -c 4 -t set,lpush,hset
    redis-cli -s socket bgsave
    redis-cli -s socket bgrewriteaof
    for _ in $(seq 300); do redis-cli -s socket info persistence | grep -q 'aof_rewrite_in_progress:0' && break; sleep 0.1; done
    redis-cli -s socket shutdown save
    wait $server
}
program redis redis-check-rdb:redis-tools redis-benchmark:redis-tools
differs redis 'rewritten as time passes'

# as_nobody: gives the tree to nobody where we are root, as which these servers do not run; the file `as` becomes nobody.
as_nobody() {
    printf '#!/bin/sh\nexec "$@"\n' >as
    if [ "$(id -u)" = 0 ]; then
        printf '#!/bin/sh\nexec setpriv --reuid=nobody --regid=%s --clear-groups "$@"\n' "$(id -g nobody)" >as
        chown -R nobody: .
    fi
    chmod 755 as
}

prepare_postgresql() {
    ln -s "$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin | sort -V | tail -n 1)" bin
    as_nobody
    ./as bin/initdb -D "$PWD/data" -U postgres -A trust --no-instructions
    printf "listen_addresses = ''\nunix_socket_directories = '%s'\nshared_buffers = 16MB\nautovacuum_naptime = 2s\n" "$PWD" >>data/postgresql.conf
}
run_postgresql() {
    ./as bin/postgres -D "$PWD/data" &
    server=$!
    for _ in $(seq 600); do bin/pg_isready -q -h "$PWD" -U postgres && break; sleep 0.1; done
    ./as bin/createdb -h "$PWD" -U postgres bench
    ./as bin/pgbench -h "$PWD" -U postgres -i -q -s 1 bench
    ./as bin/pgbench -h "$PWD" -U postgres -c 4 -j 2 -t 50 bench
    ./as bin/psql -h "$PWD" -U postgres -q -c 'VACUUM FULL; CHECKPOINT; DROP TABLE pgbench_history' bench || ./as bin/psql -h "$PWD" -U postgres -q -c 'CHECKPOINT' bench
    kill -INT $server
    wait $server
}
program postgresql psql:postgresql setpriv:util-linux
differs postgresql 'a server with many processes'

program rocksdb db_bench:rocksdb-tools -- db_bench --db=db --wal_dir=db --benchmarks=fillrandom,overwrite,readrandom,compact,deleterandom --num=20000 --threads=2 --write_buffer_size=1000000 --histogram=0
differs rocksdb 'compactions in threads'

run_berkeley_db() {
    for i in $(seq 2000); do printf 'key%d\nvalue %d\n' $((i * 7919 % 2000)) "$i"; done | db_load -T -t btree test.db
    db_dump -p test.db >dump
    db_verify test.db
}
program berkeley-db db_load:db-util

# message: a letter
message() { printf 'From: a@example.org\nTo: b@example.org\nSubject: %s\nMessage-ID: <%s@example.org>\n\nText of letter %s.\n' "$1" "$1" "$1"; }

prepare_procmail() {
    for i in $(seq 60); do message "$i" >"letter$i"; done
    mkdir -p mail/new mail/cur mail/tmp
    # shellcheck disable=SC2016 # procmail's variables
    printf 'MAILDIR=%s\nDEFAULT=%s/mail/\nLOGFILE=%s/log\n:0:\n* ^Subject: .*7\nseven\n' "$PWD" "$PWD" "$PWD" >rc
}
run_procmail() { for i in $(seq 60); do procmail -m rc <"letter$i"; done; }
program procmail procmail:procmail
differs procmail 'Maildir names hold the time'

prepare_dovecot() {
    for i in $(seq 40); do message "$i" >"letter$i"; done
    local user
    mkdir -p mail base state
    as_nobody
    user=$(./as id -un)
    cat >dovecot.conf <<CONFIG
base_dir = $PWD/base
state_dir = $PWD/state
log_path = $PWD/log
default_internal_user = $user
default_login_user = $user
default_internal_group = $(./as id -gn)
mail_location = maildir:$PWD/mail
first_valid_uid = 0
mail_uid = $(./as id -u)
mail_gid = $(./as id -g)
ssl = no
userdb {
  driver = static
  args = uid=$(./as id -u) gid=$(./as id -g) home=$PWD/mail
}
protocol lda {
  postmaster_address = a@example.org
}
CONFIG
}
run_dovecot() {
    USER=$(./as id -un)
    export USER
    for i in $(seq 40); do ./as /usr/lib/dovecot/dovecot-lda -c dovecot.conf -k <"letter$i"; done
    ./as doveadm -c dovecot.conf -o mail="maildir:$PWD/mail" search mailbox INBOX all
    ./as doveadm -c dovecot.conf -o mail="maildir:$PWD/mail" mailbox create Old
    ./as doveadm -c dovecot.conf -o mail="maildir:$PWD/mail" move Old mailbox INBOX 1:10
    ./as doveadm -c dovecot.conf -o mail="maildir:$PWD/mail" expunge mailbox INBOX 5:9
    find mail | wc -l
}
program dovecot dovecot:dovecot-core
differs dovecot 'Maildir names hold the time'

run_python_maildir() {
    python3 - <<'PYTHON'
import mailbox
box = mailbox.Maildir("mail")
keys = [box.add(f"Subject: {i}\n\nText {i}\n") for i in range(150)]
old = box.add_folder("old")
for key in keys[:50]:
    old.add(box[key])
    box.remove(key)
for key in keys[50:100]:
    message = box[key]
    message.set_subdir("cur")
    message.add_flag("S")
    box[key] = message
box.flush()
old.clean()
PYTHON
}
program python-maildir python3:python3
differs python-maildir 'Maildir names hold the time'

program fio fio:fio -- fio --name=mixed --directory=. --size=4M --bs=4k --rw=randrw --ioengine=psync --fsync=16 --randseed=1 --minimal
program fio-threads fio:fio -- fio --name=mixed --directory=. --size=2M --bs=4k --rw=randrw --ioengine=psync --numjobs=4 --thread --randseed=1 --minimal
program fio-direct fio:fio -- fio --name=direct --directory=. --size=2M --bs=4k --rw=randwrite --ioengine=psync --direct=1 --randseed=1 --minimal
program fio-mmap fio:fio -- fio --name=mapped --directory=. --size=2M --bs=4k --rw=randrw --ioengine=mmap --fsync=64 --randseed=1 --minimal
program fio-libaio fio:fio -- fio --name=aio --directory=. --size=2M --bs=4k --rw=randrw --ioengine=libaio --iodepth=8 --direct=1 --randseed=1 --minimal

prepare_dbench() {
    mkdir work
    gzip -dc /usr/share/dbench/client.txt.gz >load 2>/dev/null || cp /usr/share/dbench/client.txt load
    head -n 4000 load >short
}
program dbench dbench:dbench -- dbench -c short -D work -t 3 2
differs dbench 'does what it can in three seconds'

prepare_postmark() {
    mkdir pool
    printf 'set location pool\nset seed 42\nset number 500\nset subdirectories 10\nset size 500 16000\nset transactions 2000\nset bias read 5\nset bias create 5\nset read 4096\nset write 4096\nset buffering false\nrun\nquit\n' >postmark.conf
}
program postmark postmark:postmark -- postmark postmark.conf
