#!/usr/bin/env bash
# Ten "years" on ext4, XFS and btrfs under three personalities, fresh against aged: everything docs/aging.md shows.
#
#   validation/aging.sh OUT [SIZE [OPERATIONS_PER_DAY]]       as root; SIZE of each scratch file system, 1G
#
# For each pair: plan for that file system, age it with real writes and a survey every half year, then run seqfile on it and
# on a fresh one, hotfiles and scan on its tree and on a fresh copy of it. OUT/PERSONALITY-FS/report.html is one pair;
# OUT/all/report.html (and report.md) lays the nine over each other. Removes what it makes but OUT.
set -euo pipefail

out=${1:?usage: validation/aging.sh OUT [SIZE [OPERATIONS_PER_DAY]]}
size=${2:-1G}
per_day=${3:-60}
fsage=${FSAGE:-fsage}
[ ! -e "$out" ] || { echo "$out is there already: name a new directory" >&2; exit 2; }
mkdir -p "$out"
began=$SECONDS

personalities="home build database"
systems="ext4 xfs btrfs"
for personality in $personalities; do
  for fs in $systems; do
    run=$out/$personality-$fs
    mkdir "$run"
    "$fsage" plan personality "$personality" --for "$fs:$size" --years 10 --operations-per-day "$per_day" \
      -o "$run/plan.aging" > "$run/plan.txt"
    "$fsage" age "$fs:$size" --plan "$run/plan.aging" --survey-every 182.5 --bench seqfile,hotfiles,scan \
      --bench-sizes 16K,64K,1M,4M \
      -o "$run" > "$run/age.txt"
    echo "$personality on $fs: $((SECONDS - began)) s since the beginning"
  done
done

series=() fresh=() aged=()
for personality in $personalities; do
  for fs in $systems; do
    run=$out/$personality-$fs
    series+=("$run/surveys.series") fresh+=("$run/seqfile-fresh.json") aged+=("$run/seqfile-aged.json")
  done
done
"$fsage" layout --series "${series[@]}" --fresh "${fresh[@]}" --aged "${aged[@]}" -o "$out/all" > "$out/all.txt"
echo "done in $((SECONDS - began)) s: $out/all/report.html"
