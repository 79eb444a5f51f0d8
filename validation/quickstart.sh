#!/bin/sh
# How far `fsage quickstart` is from its own replays: on new file systems of each kind, as root and as an ordinary user, in turn.
#
#   quickstart.sh DIR [ROUNDS]        10 rounds
#
# As root. DIR has room for the images of the file systems (SYSTEMS, default: ext4 xfs btrfs), 4 GB each, sparse. Of each kind there are two, one
# for root and one for the user (USER_ID, default 65534), so that neither meets what the other left. `own` as a system is a directory in DIR.
# Prints each run: predicted, carried over to the replays (what the prediction is for the machine as it was then), the median of the replays, the two
# errors, calls, and differences of outcome. Then, for each, how many runs are within 15 %. Nothing else may run meanwhile.
. "$(dirname "$0")/common.sh"
[ $# -ge 1 ] || { echo "usage: $0 DIR [ROUNDS]" >&2; exit 2; }
ROUNDS=${2:-10}
USER_ID=${USER_ID:-65534}
need jq jq
need setpriv util-linux
need strace strace
on_images quickstart "$1"
chmod 755 "$SCRATCH"
cp "$FSAGE" "$SCRATCH/fsage"
chmod 755 "$SCRATCH/fsage"

for system in $SYSTEMS; do
    for who in root user; do
        at=$SCRATCH/$system-$who.at
        if [ "$system" = own ]; then mkdir "$at"; else new_system "$system" "$at"; fi
        mkdir "$SCRATCH/$system-$who.home" "$at/here"
    done
    chown "$USER_ID" "$SCRATCH/$system-user.home" "$SCRATCH/$system-user.at/here"
done

echo "checkout at $(git -C "$(dirname "$0")" rev-parse --short=8 HEAD 2>/dev/null || echo unknown), $(uname -r), $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)"
echo "system who run predicted_ms carried_ms measured_ms error carried_error calls differences recorded"
for run in $(seq "$ROUNDS"); do
    for system in $SYSTEMS; do
        for who in root user; do
            id=0
            [ "$who" = root ] || id=$USER_ID
            home=$SCRATCH/$system-$who.home
            cd "$SCRATCH/$system-$who.at/here" || die "$system-$who.at: gone"
            if ! setpriv --reuid "$id" --regid "$id" --clear-groups env HOME="$home" "$SCRATCH/fsage" quickstart . --json \
                >"$SCRATCH/result" 2>"$SCRATCH/said"; then
                echo "$system $who $run failed: $(tail -n 1 "$SCRATCH/said")"
                continue
            fi
            if ! jq -e '.checked' "$SCRATCH/result" >/dev/null; then
                echo "$system $who $run failed: $(jq -r .unchecked_because "$SCRATCH/result")"
                continue
            fi
            jq -r --arg s "$system" --arg w "$who" --arg r "$run" '
                def error(a; b): (a / b - 1) * 1000 | round / 10;
                def ms: . / 10000 | round / 100;
                .recorded as $recorded | .bundled_because as $because | .checked as $c | ($c.predicted_now_ns // $c.predicted_ns) as $now |
                [$s, $w, $r, ($c.predicted_ns | ms), ($now | ms), ($c.replayed_ns | ms), error($c.predicted_ns; $c.replayed_ns),
                 error($now; $c.replayed_ns), $c.calls, $c.differences, $recorded] | map(tostring) | join(" ")' "$SCRATCH/result"
        done
    done
done | tee "$SCRATCH/table"
awk 'function abs(x) { return x < 0 ? -x : x }
    { key = $1 " " $2; if (!(key in runs)) order[++n] = key; runs[key]++; list[key] = list[key] sprintf("%s%+.1f", list[key] == "" ? "" : ", ", $7)
      if ($4 == "failed:") next; if (abs($7) <= 15) within[key]++; if (abs($8) <= 15) carried[key]++ }
    END { for (i = 1; i <= n; i++) { k = order[i]
        printf "%s: %s %%; within 15 %%: %d of %d; carried over to the replays: %d of %d\n", k, list[k], within[k], runs[k], carried[k], runs[k] } }' \
    "$SCRATCH/table"
