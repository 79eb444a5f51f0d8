#!/bin/sh
# The workload that `fsage quickstart` records: the file traffic of a small development day, on files it makes itself.
# Runs in the current directory with nothing but coreutils; uses tar, a C compiler and sqlite3 where they are there.
set -eu

modules=60

# A source tree: headers and C files of 1 to 12 KB in a few directories.
mkdir -p project/include project/src project/docs
i=0
while [ $i -lt $modules ]; do
    dir=project/src/part$((i % 6))
    mkdir -p "$dir"
    printf 'int module_%d(int x);\n' $i >"project/include/module_$i.h"
    {
        printf '#include "module_%d.h"\n#include <stdio.h>\n#include <string.h>\n' $i
        line=0
        while [ $line -lt $((20 + i * 3)) ]; do
            printf 'static const int table_%d_%d = %d; /* entry %d */\n' $i $line $((i * line)) $line
            line=$((line + 1))
        done
        printf 'int module_%d(int x) { return x + table_%d_3; }\n' $i $i
    } >"$dir/module_$i.c"
    i=$((i + 1))
done
head -c 3000000 /dev/urandom >project/docs/figures.bin

# Pack, unpack elsewhere, compare the two.
if command -v tar >/dev/null; then
    tar -cf project.tar project
    mkdir unpacked
    tar -xf project.tar -C unpacked
else
    mkdir unpacked
    cp -R project unpacked/project
fi
find unpacked -type f -exec cat {} + | wc -c
grep -R "entry 17" unpacked/project/src | wc -l

# Build a part of it.
mkdir build
if command -v cc >/dev/null; then
    i=0
    while [ $i -lt 16 ]; do
        cc -O1 -Iunpacked/project/include -c "unpacked/project/src/part$((i % 6))/module_$i.c" -o "build/module_$i.o"
        i=$((i + 1))
    done
else
    for file in unpacked/project/src/*/*.c; do sort "$file" >"build/$(basename "$file").sorted"; done
fi

# A log that is appended to and made stable, line by line.
i=0
while [ $i -lt 40 ]; do
    head -c 700 project/docs/figures.bin | dd of=build/journal.log bs=700 oflag=append conv=notrunc,fsync 2>/dev/null
    i=$((i + 1))
done

# Small transactions.
if command -v sqlite3 >/dev/null; then
    {
        echo "create table orders(id integer primary key, customer text, amount integer);"
        i=0
        while [ $i -lt 60 ]; do
            echo "insert into orders(customer, amount) values ('customer $((i % 7))', $i);"
            i=$((i + 1))
        done
        echo "select count(*) from orders;"
    } | sqlite3 build/orders.db
fi

# Copy, rename, clean up.
cp -R unpacked/project backup
mv backup backup.old
sync -d build/journal.log
rm -R backup.old unpacked project.tar
