#!/bin/sh
# What recording costs the recorded program: its own time, as it is and under each recorder, one after the other in every round.
#
#   overhead.sh WORKDIR [ROUNDS [WORKLOAD...]]        5 rounds, and all of: compile postmark pgbench pread
#
# compile and postmark are the ones of compile.sh and postmark.sh. As root, every run of postmark has a new ext4 of its own, on a loop
# device in WORKDIR: on one that was used, what creating a file costs depends on the inodes removed in the last minutes. pgbench is TPC-B's like on PostgreSQL's server, which is recorded,
# while the clients are not. pread is the worst case: a loop that reads one byte of one page, PREADS times (300000).
# WAYS="plain ebpf" measures some of plain, strace, ebpf (default: those that this fsage has). A line for each workload and way: the
# median and the spread of the times, and of the ratios to the same round's plain run. What `fsage record` itself takes before and
# after the program is not the program's: it stands in the last column.
. "$(dirname "$0")/common.sh"
HERE=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { echo "usage: $0 WORKDIR [ROUNDS [WORKLOAD...]]" >&2; exit 2; }
[ -d "$1" ] || die "$1: no such directory"
WORKDIR=$(cd "$1" && pwd)
ROUNDS=${2:-5}
[ $# -le 1 ] || shift
shift
WORKLOADS=${*:-compile postmark pgbench pread}
REAL_FSAGE=$(command -v "$FSAGE") || die "$FSAGE: not found; build it (cargo build --profile dist) and set FSAGE to its path"
REAL_FSAGE=$(realpath "$REAL_FSAGE")
if "$REAL_FSAGE" record --help | grep -q -e '--with'; then
    WAYS=${WAYS:-plain strace ebpf}
else
    WAYS=${WAYS:-plain strace}
    echo "this fsage has no 'record --with': strace only" >&2
fi
need cc gcc libc6-dev

as_nobody() {
    if [ "$(id -u)" = 0 ]; then setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups "$@"; else "$@"; fi
}
SCRATCH=$(mktemp -d "$WORKDIR/fsage-overhead.XXXXXX")
chmod 755 "$SCRATCH" # PostgreSQL runs as another user
case " $WORKLOADS " in
*" pgbench "*) as_nobody test -x "$SCRATCH" || { rmdir "$SCRATCH"; die "$WORKDIR: PostgreSQL's user nobody cannot get there"; } ;;
esac
leave() {
    cd /
    ! mountpoint -q "$SCRATCH/own" || umount "$SCRATCH/own"
    [ ! -f "$SCRATCH/data/postmaster.pid" ] || server_stop || true
    rm -rf "$SCRATCH"
}
trap leave EXIT
trap 'exit 130' INT TERM HUP
cc -O2 -o "$SCRATCH/timed" "$HERE/timed.c"

# Stands in for fsage: `record OPTION... -- COMMAND...` as HOW says, the command timed from inside, and all of it from outside.
cat >"$SCRATCH/as" <<'SHIM'
#!/bin/sh
set -eu
: >"$SCRATCH/inner"
: >"$SCRATCH/outer"
chmod 666 "$SCRATCH/inner"
options=
while [ "$1" != -- ]; do
    [ "$1" != -o ] || { shift; output=$1; }
    shift
done
shift
case $HOW in
plain) "$SCRATCH/timed" "$SCRATCH/outer" "$SCRATCH/timed" "$SCRATCH/inner" "$@" ;;
strace) [ -z "$HAS_WITH" ] || options="--with strace" ;;
*) options="--with $HOW" ;;
esac
# shellcheck disable=SC2086 # two words
[ "$HOW" = plain ] || "$SCRATCH/timed" "$SCRATCH/outer" "$REAL_FSAGE" record -o "$output" --overwrite $options -- "$SCRATCH/timed" "$SCRATCH/inner" "$@"
SHIM
chmod +x "$SCRATCH/as"
HAS_WITH=
if "$REAL_FSAGE" record --help | grep -q -e '--with'; then HAS_WITH=1; fi
export SCRATCH REAL_FSAGE HOW HAS_WITH

run_compile() { FSAGE=$SCRATCH/as "$HERE/compile.sh" "$SCRATCH/out" "$SCRATCH" >&2; }
run_postmark() {
    mkdir -p "$SCRATCH/own"
    if [ "$(id -u)" = 0 ]; then
        truncate -s 2G "$SCRATCH/own.img"
        mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$SCRATCH/own.img"
        mount -o loop "$SCRATCH/own.img" "$SCRATCH/own"
    fi
    FSAGE=$SCRATCH/as "$HERE/postmark.sh" "$SCRATCH/out" "$SCRATCH/own" >&2
    ! mountpoint -q "$SCRATCH/own" || umount "$SCRATCH/own"
    rm -f "$SCRATCH/own.img"
}
run_pread() {
    echo x >"$SCRATCH/byte"
    (cd "$SCRATCH/out" && "$SCRATCH/as" record -o "$SCRATCH/out/pread.workload" -- "$SCRATCH/timed" pread "$SCRATCH/byte" "${PREADS:-300000}") >&2
}

server_stop() { as_nobody "$PG/pg_ctl" stop -s -m fast -D "$SCRATCH/data"; }
# The server is recorded from its start to its end; the clients' time is taken.
run_pgbench() {
    need psql postgresql
    PG=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin | sort -V | tail -n 1)
    rm -rf "$SCRATCH/data"
    mkdir "$SCRATCH/data"
    [ "$(id -u)" != 0 ] || chown nobody "$SCRATCH/data" "$SCRATCH/out"
    as_nobody "$PG/initdb" -D "$SCRATCH/data" -U postgres -A trust --no-instructions >/dev/null
    printf "listen_addresses = ''\nunix_socket_directories = '%s'\n" "$SCRATCH/data" >>"$SCRATCH/data/postgresql.conf"
    if [ "$(id -u)" = 0 ]; then
        set -- setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups
    else
        set --
    fi
    (cd "$SCRATCH/out" && exec "$SCRATCH/as" record -o "$SCRATCH/out/pgbench.workload" -- "$@" "$PG/postgres" -D "$SCRATCH/data") >&2 &
    server=$!
    tries=0
    until "$PG/pg_isready" -q -h "$SCRATCH/data" -U postgres; do
        tries=$((tries + 1))
        [ $tries -lt 300 ] || die "PostgreSQL does not start"
        sleep 0.2
    done
    "$PG/createdb" -h "$SCRATCH/data" -U postgres bench
    "$PG/pgbench" -h "$SCRATCH/data" -U postgres -i -q -s 5 bench >&2
    "$PG/pgbench" -h "$SCRATCH/data" -U postgres -c 4 -j 2 -t 200 bench >&2
    : >"$SCRATCH/clients"
    "$SCRATCH/timed" "$SCRATCH/clients" "$PG/pgbench" -h "$SCRATCH/data" -U postgres -c 4 -j 2 -t "${TRANSACTIONS:-2000}" bench >&2
    server_stop
    wait "$server" || true
    cp "$SCRATCH/clients" "$SCRATCH/inner"
    cp "$SCRATCH/clients" "$SCRATCH/outer"
}

for workload in $WORKLOADS; do
    round=0
    while [ "$round" -lt "$ROUNDS" ]; do
        order=$WAYS
        # Every other round the other way round, so that a drift of the machine favours none.
        [ $((round % 2)) = 0 ] || order=$(printf '%s\n' $WAYS | tac)
        for HOW in $order; do
            rm -rf "$SCRATCH/out"
            mkdir "$SCRATCH/out"
            "run_$workload"
            echo "$workload $round $HOW $(cat "$SCRATCH/inner") $(cat "$SCRATCH/outer")" >>"$SCRATCH/times"
        done
        round=$((round + 1))
    done
done

awk -v ways="$WAYS" '
    function middle(list, n,    i, j, t) {
        for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (list[j] < list[i]) { t = list[i]; list[i] = list[j]; list[j] = t }
        return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
    }
    { inner[$1, $2, $3] = $4 / 1e9; outer[$1, $2, $3] = $5 / 1e9; rounds[$1] = $2 + 1; if (!($1 in seen)) { seen[$1] = 1; order[++workloads] = $1 } }
    END {
        n = split(ways, way, " ")
        printf "%-10s %-7s %6s %9s %19s %7s %15s %12s\n", "workload", "way", "rounds", "median s", "least to most s", "ratio", "least to most", "whole run s"
        for (w = 1; w <= workloads; w++) for (k = 1; k <= n; k++) {
            name = order[w]; count = rounds[name]
            for (r = 0; r < count; r++) { times[r + 1] = inner[name, r, way[k]]; whole[r + 1] = outer[name, r, way[k]]; plain = inner[name, r, "plain"]; ratios[r + 1] = plain ? times[r + 1] / plain : 0 }
            m = middle(times, count); q = middle(ratios, count); o = middle(whole, count)
            printf "%-10s %-7s %6d %9.2f %8.2f to %7.2f %7.3f %6.3f to %5.3f %12.2f\n", name, way[k], count, m, times[1], times[count], q, ratios[1], ratios[count], o
        }
    }' "$SCRATCH/times"
