#!/bin/sh
# Records SQLite with many small transactions: 3,000 of one insert and one update each, on a table with an index, with the
# default settings (rollback journal, synchronous=FULL), each on stable storage before the next begins.
. "$(dirname "$0")/common.sh"
begin sqlite "$@"
need sqlite3 sqlite3
sqlite3 test.db <<'SQL'
CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, balance INTEGER NOT NULL);
CREATE TABLE entry (id INTEGER PRIMARY KEY, account INTEGER NOT NULL, amount INTEGER NOT NULL, note TEXT);
CREATE INDEX entry_account ON entry (account);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
INSERT INTO account SELECT i, 'owner ' || i, 1000 FROM n;
SQL
# A multiplicative generator spreads the accounts; the same for everybody.
awk 'BEGIN {
    x = 12345
    for (i = 1; i <= 3000; i++) {
        x = (x * 16807) % 2147483647
        a = x % 10000 + 1
        v = x % 199 - 99
        print "BEGIN;"
        printf "INSERT INTO entry (account, amount, note) VALUES (%d, %d, \x27transaction number %d\x27);\n", a, v, i
        printf "UPDATE account SET balance = balance + %d WHERE id = %d;\n", v, a
        print "COMMIT;"
    }
}' >load.sql
record sqlite3 test.db ".read load.sql"
