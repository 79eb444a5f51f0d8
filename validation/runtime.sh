#!/bin/sh
# How far predicted run times are from those of the real programs: each is recorded once, on ext4, by the recorder in the kernel; each system is
# measured (fsage measure --quick) and the program's run time predicted on it; then the program runs there, ROUNDS times, without a recorder.
#
#   runtime.sh DIR [ROUNDS [PROGRAM...]]        3 rounds, and all programs
#
# As root. DIR has room for the images of the file systems (SYSTEMS, default: ext4 xfs btrfs), 4 GB each, sparse. Every run has a fresh directory,
# whose contents are written before it, and is not the first thing to run there; rounds take the systems in turn. Nothing is dropped from the
# caches, so predictions are with --initial warm. On a machine with other work, NICE=-20 setsid runtime.sh ...: the priority of all that it does, against
# other sessions too (sched(7), autogroups).
# Prints for each program what the simulation makes of the recording itself, then for each system the prediction, what was measured, and the error.
. "$(dirname "$0")/common.sh"
[ $# -ge 1 ] || { echo "usage: $0 DIR [ROUNDS [PROGRAM...]]" >&2; exit 2; }
on_images runtime "$1"
ROUNDS=${2:-3}
[ $# -le 1 ] || shift
shift
PROGRAMS=${*:-compile javac git rsync targz untar sqlite sqlite-wal dpkg search compileall copy}
if [ "${NICE:-0}" != 0 ]; then
    renice -n "$NICE" -p $$ >/dev/null
    [ ! -e /proc/self/autogroup ] || echo "$NICE" >/proc/self/autogroup
fi
need jq jq
need gcc gcc libc6-dev
need make make
need git git
need rsync rsync
need sqlite3 sqlite3
need javac default-jdk-headless
need python3 python3

for system in $SYSTEMS; do
    new_system "$system" "$SCRATCH/$system"
done

# What programs begin with, made once: INPUT/PROGRAM is copied to where each run of it begins.
INPUT=$SCRATCH/input
mkdir "$INPUT"
# tree DIRECTORY DIRECTORIES FILES WORDS: DIRECTORIES with FILES each, of text, all different and the same every time.
tree() {
    python3 - "$@" <<'PYTHON'
import os, random, sys
root, directories, files, words = sys.argv[1], *map(int, sys.argv[2:])
rng = random.Random(1)
names = ["".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 9))) for _ in range(3000)]
for d in range(directories):
    at = os.path.join(root, names[d] + str(d))
    os.makedirs(at)
    for f in range(files):
        with open(os.path.join(at, f"{names[f]}{f}.txt"), "w") as out:
            out.write(" ".join(rng.choices(names, k=rng.randint(words // 4, 2 * words))) + "\n")
PYTHON
}
input_compile() {
    i=0
    while [ $i -lt 120 ]; do
        cat >"f$i.c" <<SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
int f$i(int n)
{
	char text[100];
	for (int i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%d", i * $i);
		if (strlen(text) > 3)
			n += atoi(text);
	}
	return n;
}
SOURCE
        i=$((i + 1))
    done
    # shellcheck disable=SC2016 # for make
    printf 'all: lib.a\nlib.a: $(patsubst %%.c,%%.o,$(wildcard *.c))\n\tar rcs $@ $^\n%%.o: %%.c\n\tgcc -O2 -c -o $@ $<\n' >Makefile
}
input_javac() {
    i=0
    while [ $i -lt 200 ]; do
        cat >"C$i.java" <<SOURCE
import java.util.*;
import java.util.stream.*;
class C$i {
    enum Kind { A, B, C }
    record Pair(String name, int value) {}
    List<Pair> pairs(Collection<String> names) {
        return names.stream().map(n -> new Pair(n, n.length() * $i)).sorted(Comparator.comparing(Pair::value)).collect(Collectors.toList());
    }
    int of(Kind kind) { return switch (kind) { case A -> $i; case B -> new C$(((i + 1) % 200))().of(C$(((i + 1) % 200)).Kind.A); case C -> 3; }; }
}
SOURCE
        i=$((i + 1))
    done
}
input_git() {
    tree files 40 50 200
    git init -q origin
    mv files origin
    for commit in 1 2 3 4; do
        find origin/files -name "*$commit.txt" -exec sh -c 'for f; do echo line >>"$f"; done' sh {} +
        git -C origin add .
        git -C origin -c user.name=a -c user.email=a@b commit -q -m "$commit"
    done
}
input_rsync() { tree from 60 100 400; }
input_targz() { tree from 60 50 1500; }
input_untar() { tree from 60 100 400 && tar -czf in.tgz from && rm -r from; }
statements() { # FILE PRAGMA COUNT
    { echo "PRAGMA $2; CREATE TABLE t(id INTEGER PRIMARY KEY, a TEXT, b TEXT); CREATE INDEX i ON t(a);"
      seq "$3" | sed "s/.*/INSERT INTO t(a, b) VALUES(hex(randomblob(20)), hex(randomblob(200)));/"; } >"$1"
}
input_sqlite() { statements in.sql journal_mode=DELETE 400; }
input_sqlite_wal() { statements in.sql journal_mode=WAL 1500; }
input_dpkg() {
    mkdir -p package/DEBIAN package/usr/share
    tree package/usr/share/words 20 50 300
    printf 'Package: words\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\nDescription: words\n' >package/DEBIAN/control
    dpkg-deb -Zgzip --root-owner-group -b package in.deb >/dev/null
    rm -r package
    mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info
    : >root/var/lib/dpkg/status
}
input_search() { tree from 100 80 1500; }
input_compileall() {
    mkdir from
    from=$(python3 -c 'import os; print(os.path.dirname(os.__file__))')
    for part in asyncio email http json logging multiprocessing unittest xml importlib concurrent; do cp -r "$from/$part" from; done
    cp "$from"/*.py from
    find from -name __pycache__ -prune -exec rm -r {} +
}
input_copy() { tree from 50 150 300; }

# What is recorded and timed: a program's script.
script_of() {
    case $1 in
    compile) echo 'make -s -j2' ;;
    javac) echo 'javac -d out ./*.java' ;;
    git) echo 'git clone -q --no-local origin clone && git -C clone gc -q' ;;
    rsync) echo 'rsync -a from/ to/' ;;
    targz) echo 'tar -c from | gzip >out.tgz' ;;
    untar) echo 'tar -xzf in.tgz' ;;
    sqlite) echo 'sqlite3 db <in.sql >out' ;;
    sqlite-wal) echo 'sqlite3 db <in.sql >out' ;;
    dpkg) echo 'dpkg --root="$PWD/root" --force-all --log=/dev/null -i in.deb >out 2>&1' ;;
    search) echo "find from -type f -name '*.txt' -print0 | xargs -0 -P2 -n 400 grep -c 'shor.*dun' >out; true" ;;
    compileall) echo 'python3 -m compileall -q -j 2 from' ;;
    copy) echo 'cp -r from to && find to -type f -print0 | xargs -0 md5sum >sums && rm -r from' ;;
    *) die "no program is called $1" ;;
    esac
}

# begin_run SYSTEM PROGRAM: a fresh directory on a system, written and on its device; leaves RUN.
number=0
begin_run() {
    number=$((number + 1))
    RUN=$SCRATCH/$1/run$number
    cp -r "$INPUT/$2" "$RUN"
    sync -f "$RUN"
}
end_run() { rm -r "$RUN"; sync -f "$SCRATCH/$1"; }

for program in $PROGRAMS; do
    mkdir "$INPUT/$program"
    script_of "$program" >"$SCRATCH/$program.sh"
    (cd "$INPUT/$program" && "input_$(echo "$program" | tr - _)") >&2
done
for system in $SYSTEMS; do
    echo "measuring $system" >&2
    "$FSAGE" measure --quick "$SCRATCH/$system" -o "$SCRATCH/$system.system" >/dev/null
done
first=${SYSTEMS%% *}
for program in $PROGRAMS; do
    # Programs and their libraries are in the cache, and the pattern of the first run is not that of the second.
    for turn in 1 2; do
        begin_run "$first" "$program"
        (cd "$RUN" && if [ $turn = 1 ]; then sh "$SCRATCH/$program.sh"; else
            "$FSAGE" record -o "$SCRATCH/$program.workload" --with ebpf -- sh "$SCRATCH/$program.sh"; fi) >&2
        end_run "$first"
    done
    profiles=
    for system in $SYSTEMS; do profiles="$profiles $SCRATCH/$system.system"; done
    # shellcheck disable=SC2086 # several
    "$FSAGE" predict "$SCRATCH/$program.workload" $profiles --initial warm --min-coverage 0 --json >"$SCRATCH/$program.json"
done
round=0
while [ "$round" -lt "$ROUNDS" ]; do
    for program in $PROGRAMS; do
        for system in $SYSTEMS; do
            begin_run "$system" "$program"
            cd "$RUN" || die "$RUN: gone"
            from=$(date +%s%N)
            sh "$SCRATCH/$program.sh"
            to=$(date +%s%N)
            cd /
            end_run "$system"
            echo "$program $system $((to - from))" >>"$SCRATCH/times"
        done
    done
    round=$((round + 1))
done

python3 - "$SCRATCH" "$ROUNDS" "$PROGRAMS" "$SYSTEMS" <<'PYTHON'
import json, statistics, sys
scratch, rounds, programs, systems = sys.argv[1], sys.argv[2], sys.argv[3].split(), sys.argv[4].split()
times = {}
for line in open(f"{scratch}/times"):
    program, system, ns = line.split()
    times.setdefault((program, system), []).append(int(ns))
controls, errors, inside = [], [], 0
s = lambda ns: f"{ns / 1e9:.2f}"
print("program: recorded, and the simulation of the recording itself (s)")
for program in programs:
    run = json.load(open(f"{scratch}/{program}.json"))["run_time"]["known"]
    recorded, simulated = run["basis"]["recorded_ns"], run["basis"]["recorded_simulated_ns"]
    controls.append(abs(simulated / recorded - 1))
    print(f"{program:12} {s(recorded):>7} {s(simulated):>7} {simulated / recorded - 1:+7.1%}")
print(f"\nprogram, system: predicted (95 % interval), measured (median of {rounds}, least, most), error; priced calls")
for program in programs:
    result = json.load(open(f"{scratch}/{program}.json"))
    for ranked in sorted(result["ranking"]["systems"], key=lambda r: r["index"]):
        system = systems[ranked["index"]]
        run = result["run_time"]["known"]["systems"][ranked["index"]]
        measured = times[program, system]
        median = statistics.median(measured)
        errors.append(run["ns"] / median - 1)
        low, high = run["interval"]["low_ns"], run["interval"]["high_ns"]
        inside += low <= median <= high
        print(f"{program:12} {system:6} {s(run['ns']):>7} ({s(low)} to {s(high)}) {s(median):>7} ({s(min(measured))} to {s(max(measured))}) {errors[-1]:+7.1%}  {s(run['calls_ns'])}")
print(f"\nrecorded as simulated: median error {statistics.median(controls):.1%}, largest {max(controls):.1%}")
absolute = [abs(e) for e in errors]
print(f"predicted as measured: median error {statistics.median(absolute):.1%}, largest {max(absolute):.1%}, median signed {statistics.median(errors):+.1%}; {inside} of {len(errors)} in the interval")
PYTHON
