#!/usr/bin/env bash
# The method checks itself (Smith and Seltzer 1997, section 4; docs/aging.md): a personality's full stream of operations ages a scratch
# file system ("the original"), snapshotted every simulated day; a plan made from the snapshots alone, plus a profile of
# short-lived files from another period (the same personality under another seed), ages a second one; their layout scores
# are compared day by day.
#
#   validation/aging-self-check.sh OUT [SIZE [DAYS [PERSONALITY]]]       as root
#
# Ends with 1 where mean or final difference is 0.02 or more.
set -euo pipefail

out=${1:?usage: validation/aging-self-check.sh OUT [SIZE [DAYS [PERSONALITY]]]}
size=${2:-1G}
days=${3:-90}
personality=${4:-home}
fsage=${FSAGE:-fsage}
[ ! -e "$out" ] || { echo "$out is there already: name a new directory" >&2; exit 2; }
mkdir -p "$out"
began=$SECONDS

series=() originals=()
for fs in ext4 xfs btrfs; do
  run=$out/$fs
  mkdir "$run"
  "$fsage" plan personality "$personality" --for "$fs:$size" --days "$days" --seed 1 -o "$run/original.aging" > "$run/plan.txt"
  "$fsage" plan personality "$personality" --for "$fs:$size" --days "$days" --seed 2 -o "$run/other.aging" > "$run/other.txt"
  "$fsage" age "$fs:$size" --plan "$run/original.aging" --survey-every 1 --snapshots-every 1 \
    --snapshots-into "$run/snapshots" -o "$run/original" > "$run/original.txt"
  "$fsage" plan snapshots "$run"/snapshots/* --short-lived "$run/other.aging" -o "$run/replayed.aging" > "$run/replay-plan.txt"
  "$fsage" age "$fs:$size" --plan "$run/replayed.aging" --survey-every 1 -o "$run/replayed" > "$run/replayed.txt"
  series+=("$run/replayed/surveys.series") originals+=("$run/original/surveys.series")
  echo "$fs: $((SECONDS - began)) s since the beginning"
done
result=0
"$fsage" layout --series "${series[@]}" --original "${originals[@]}" --within 0.02 -o "$out/all" > "$out/all.txt" || result=$?
echo "done in $((SECONDS - began)) s: $out/all/report.html"
exit "$result"
