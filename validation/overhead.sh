#!/bin/sh
# What recording costs: the compilation of compile.sh, alternately as it is and under `fsage record`, and the ratio of their wall-clock
# times.  overhead.sh WORKDIR [PAIRS]
. "$(dirname "$0")/common.sh"
HERE=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || [ $# = 2 ] || { echo "usage: $0 WORKDIR [PAIRS]" >&2; exit 2; }
command -v "$FSAGE" >/dev/null 2>&1 || die "$FSAGE: not found; build it (cargo build --release) and set FSAGE to its path"
WORKDIR=$1
PAIRS=${2:-3}
SCRATCH=$(mktemp -d "$WORKDIR/fsage-overhead.XXXXXX")
trap 'rm -rf "$SCRATCH"' EXIT
trap 'exit 130' INT TERM HUP

# Stands in for fsage: times the whole `fsage record`, or only the command behind its `--`.
cat >"$SCRATCH/timed" <<'SHIM'
#!/bin/sh
start=$(date +%s.%N)
if [ "$HOW" = recorded ]; then
    "$REAL_FSAGE" "$@"
else
    while [ "$1" != -- ]; do shift; done
    shift
    "$@"
fi
status=$?
echo "$start $(date +%s.%N)" >>"$TIMES"
exit $status
SHIM
chmod +x "$SCRATCH/timed"
export HOW REAL_FSAGE TIMES
REAL_FSAGE=$(command -v "$FSAGE")
TIMES=$SCRATCH/times
pair=0
while [ "$pair" -lt "$PAIRS" ]; do
    for HOW in plain recorded; do
        rm -rf "$SCRATCH/out"
        mkdir "$SCRATCH/out"
        FSAGE=$SCRATCH/timed "$HERE/compile.sh" "$SCRATCH/out" "$SCRATCH" >&2
    done
    pair=$((pair + 1))
done
awk '{ s = $2 - $1 }
    NR % 2 { plain = s; next }
    { printf "plain %.1f s, recorded %.1f s, ratio %.2f\n", plain, s, s / plain; r[++n] = s / plain }
    END { for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (r[j] < r[i]) { t = r[i]; r[i] = r[j]; r[j] = t }
        printf "median ratio of %d pairs: %.2f\n", n, n % 2 ? r[(n + 1) / 2] : (r[n / 2] + r[n / 2 + 1]) / 2 }' "$TIMES"
