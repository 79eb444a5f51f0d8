#!/bin/sh
# What strace's --seccomp-bpf would save: a job as it is, under strace as `fsage record` runs it, and with --seccomp-bpf, in turn.
# Usage: validation/seccomp.sh [ROUNDS]. Needs strace, cc and python3. FSAGE names the binary (default: fsage on the path).
#
# fsage does without --seccomp-bpf: if strace dies, its filter stays, and every traced call of the program fails from then on.
set -eu
rounds=${1:-5}
fsage=${FSAGE:-fsage}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work"
printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) { puts("x"); return 0; }\n' > t.c
echo 'for i in 1 2 3 4 5 6 7 8 9 10 11 12; do cc -O1 -c t.c -o t$i.o; done' > job
"$fsage" record -o options.workload --no-working-directory true
python3 - > options <<'END'
import json, shlex
print(shlex.join(json.load(open("options.workload/meta.json"))["tracer"]["options"]))
END
cat > rounds.py <<'END'
import shlex, statistics, subprocess, sys, time
options = shlex.split(open("options").read()) + ["-o", "/dev/null"]
ways = {"plain": [], "strace": ["strace"] + options, "strace --seccomp-bpf": ["strace", "--seccomp-bpf"] + options}
took = {name: [] for name in ways}
for _ in range(int(sys.argv[1])):
    for name, tracer in ways.items():
        begun = time.monotonic()
        subprocess.run(tracer + ["sh", "job"], check=True)
        took[name].append(time.monotonic() - begun)
for name, times in took.items():
    print(f"{name}: median {statistics.median(times):.2f} s, {min(times):.2f} to {max(times):.2f} s, {len(times)} rounds")
END
python3 rounds.py "$rounds"
