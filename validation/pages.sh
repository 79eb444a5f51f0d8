#!/bin/sh
# Looks at the reports of fsage in a browser without a window:
#
#   validation/pages.sh [--pictures] DIR [PAGE.html...]
#
# Makes the pages of predict, validate, bench, age, layout, replay and crash in DIR (or takes those named), and shows each at 1280 and at 420 pixels, in
# light and in dark, with the network shut. It fails where a plot was not drawn, shows nothing, is wider than its column or cuts its text off; where the page
# is wider than the window; where text is small or faint; where a slider or a list changes nothing; where the console has an error or a
# warning, or the page asks for anything that its own policy forbids (pages.js says how each is found). Then it spoils copies of a page in each of these ways and fails unless
# that is found.
# --pictures also leaves a picture of each in DIR, for people to look at.
#
# Needs Chromium, any recent one: CHROMIUM names the command [default: chromium, chromium-browser or google-chrome; as root on Debian and
# Ubuntu it is installed], and fsage (FSAGE; only to make pages). No test of ./run-tests runs this.
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

PICTURES=
if [ "${1:-}" = --pictures ]; then
    PICTURES=yes
    shift
fi
[ $# -ge 1 ] || die "usage: pages.sh [--pictures] DIR [PAGE.html...]"
DIR=$1
shift
mkdir -p "$DIR" || die "cannot make $DIR"
DIR=$(cd "$DIR" && pwd)

if [ -z "${CHROMIUM:-}" ]; then
    for name in chromium chromium-browser google-chrome; do
        command -v "$name" >/dev/null 2>&1 && CHROMIUM=$name && break
    done
fi
[ -n "${CHROMIUM:-}" ] || { need chromium chromium && CHROMIUM=chromium; }
command -v "$CHROMIUM" >/dev/null 2>&1 || die "$CHROMIUM is missing: CHROMIUM must name a Chromium"

WORK=$(mktemp -d "${TMPDIR:-/tmp}/fsage-pages.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# browser WIDTH SCHEME ARGUMENT...: no window, no network, a profile of its own, the scheme that the system is said to ask for.
browser() {
    width=$1
    [ "$2" = dark ] && dark=--force-dark-mode || dark=
    shift 2
    # As root there is no sandbox; the pages are our own.
    timeout 120 "$CHROMIUM" --headless --no-sandbox --disable-gpu --disable-background-networking --no-first-run --hide-scrollbars \
        --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$WORK/profile" --window-size="$((width + 100)),1000" $dark \
        --virtual-time-budget=60000 "$@" 2>"$WORK/said"
}

# framed PAGE WIDTH SCHEME HEIGHT: a page with a frame of that size, as headless windows have a least width; it prints what the frame tells it.
framed() {
    cat >"$WORK/frame.html" <<FRAME
<!doctype html>
<html><head><meta charset="utf-8"><style>:root { color-scheme: light dark } body { margin: 0 } iframe { border: 0; display: block }</style></head>
<body><script>
addEventListener("message", event => {
  const lines = event.data.problems.map(text => "problem: " + text.replace(/\s+/g, " "));
  document.getElementById("verdict").textContent = ["begin", ...lines, "seen: " + event.data.seen, "height: " + event.data.height, "end"].join("\n");
});
</script>
<iframe name="$2 $3" src="$1" style="width: $2px; height: $4px"></iframe><pre id="verdict"></pre></body></html>
FRAME
}

# look PAGE WIDTH SCHEME: prints what is wrong, one line each, then what was seen and how high the page is.
look() {
    awk -v check="$HERE/pages.js" '{ print }
        /^<head>/ && !done { print "<script>"; while ((getline line < check) > 0) print line; print "</script>"; done = 1 }' \
        "$1" >"$WORK/page.html"
    framed page.html "$2" "$3" 900
    browser "$2" "$3" --dump-dom "file://$WORK/frame.html" >"$WORK/dom" || true
    if ! sed -n '/<pre id="verdict">begin/,/^end/p' "$WORK/dom" | grep -e '^problem:' -e '^seen:' -e '^height:'; then
        echo "problem: the browser told nothing: $(tail -n 1 "$WORK/said")"
    fi
}

# must_find WHAT SED: in a copy of the page of predict spoiled that way it must be found.
must_find() {
    sed "$2" "$DIR/predict.html" >"$WORK/spoiled.html"
    ! cmp -s "$DIR/predict.html" "$WORK/spoiled.html" || die "nothing to spoil: $2"
    look "$WORK/spoiled.html" "${3:-1280}" "${4:-light}" >"$WORK/found"
    if ! grep -q "^problem: $1" "$WORK/found"; then
        cat "$WORK/found"
        die "a spoiled page went through: $1"
    fi
    echo "found in a spoiled copy: $1"
}

# events: a recording for predict and validate, made up: files are read again and again, others grow, over two minutes.
events() {
    awk 'function at(s) { t += s; return sprintf("100 %.6f ", 1700000000 + t) }
    BEGIN {
        t = 0
        for (round = 0; round < 4; round++) for (i = 0; i < 60; i++) {
            name = sprintf("/home/u/in/f%d", i)
            printf "%sopenat(AT_FDCWD</home/u>, \"%s\", O_RDONLY) = 3<%s> <0.000020>\n", at(0.2), name, name
            printf "%snewfstatat(3<%s>, \"\", {st_mode=S_IFREG|0644, st_size=131072, ...}, AT_EMPTY_PATH) = 0 <0.000005>\n", at(0.001), name
            for (k = 0; k < 4; k++) printf "%sread(3<%s>, \"\"..., 32768) = 32768 <0.000080>\n", at(0.001), name
            printf "%sclose(3<%s>) = 0 <0.000004>\n", at(0.001), name
            name = sprintf("/home/u/out/r%d-%d", round, i)
            printf "%sopenat(AT_FDCWD</home/u>, \"%s\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 4<%s> <0.000040>\n", at(0.2), name, name
            for (k = 0; k < 3; k++) printf "%swrite(4<%s>, \"\"..., 65536) = 65536 <0.000060>\n", at(0.001), name
            if (i % 20 == 0) printf "%sfsync(4<%s>) = 0 <0.004000>\n", at(0.001), name
            printf "%sclose(4<%s>) = 0 <0.000004>\n", at(0.001), name
            if (i % 3 == 0) printf "%sunlink(\"%s\") = 0 <0.000030>\n", at(0.001), name
        }
        printf "%s+++ exited with 0 +++\n", at(0.1)
    }'
}

make_pages() {
    profiles=$HERE/../profiles
    cd "$WORK"
    events >work.strace
    "$FSAGE" import work.strace -o work.workload >/dev/null
    "$FSAGE" import "$HERE/../crates/cli/tests/data/small.strace" -o small.workload >/dev/null
    # One with less memory than the trace reads, so that its caches do otherwise.
    sed -e 's/^name = .*/name = "small"/' -e 's/^data_cache_bytes = .*/data_cache_bytes = 4194304/' \
        -e 's/^data_cache_is_lower_bound = .*/data_cache_is_lower_bound = false/' "$profiles/ext4.system" >small.system
    "$FSAGE" predict work.workload "$profiles"/*.system small.system --pace recorded --cache-sizes 1M,2M,4M,8M,16M,32M,64M,128M,256M,1G,4G,16G \
        --html "$DIR/predict.html" >/dev/null
    mkdir a b
    "$FSAGE" validate work.workload small.workload --on ./a --on ./b --system "./a=$profiles/ext4.system" \
        --system "./b=$profiles/xfs.system" --min-coverage 10% --html "$DIR/validate.html" >/dev/null
    "$FSAGE" bench seqfile ffs:realloc,size=64M ffs:original,size=64M --data 2M --sizes 16K,104K,1M --html "$DIR/bench.html" >/dev/null
    "$FSAGE" age ffs:size=64M --like home --years 0.2 --keep aged.img --html "$DIR/age.html" >/dev/null
    "$FSAGE" layout aged.img --map --html "$DIR/layout.html" >/dev/null
    "$FSAGE" replay small.workload ffs:size=64M --repeats 2 --html "$DIR/replay.html" >/dev/null
    "$FSAGE" crash ffs:conventional,size=1M --states 300 --html "$DIR/crash.html" >/dev/null
    cd /
}

MADE=
if [ $# = 0 ]; then
    command -v "$FSAGE" >/dev/null 2>&1 || die "$FSAGE is missing: FSAGE must name the binary, for example target/release/fsage"
    case $FSAGE in */*) FSAGE=$(realpath "$FSAGE") ;; esac
    make_pages
    MADE=yes
    set -- "$DIR"/predict.html "$DIR"/validate.html "$DIR"/bench.html "$DIR"/age.html "$DIR"/layout.html "$DIR"/replay.html "$DIR"/crash.html
fi

failed=0
for page in "$@"; do
    [ -r "$page" ] || die "cannot read $page"
    for width in 1280 420; do
        for scheme in light dark; do
            look "$page" "$width" "$scheme" >"$WORK/found"
            name=$(basename "$page" .html)
            echo "$name, $width pixels, $scheme: $(sed -n 's/^seen: //p' "$WORK/found")"
            if grep '^problem:' "$WORK/found"; then
                failed=$((failed + 1))
            fi
            if [ -n "$PICTURES" ]; then
                height=$(sed -n 's/^height: //p' "$WORK/found")
                cp "$page" "$WORK/page.html"
                framed page.html "$width" "$scheme" "${height:-2000}"
                browser "$width" "$scheme" --screenshot="$DIR/$name-$width-$scheme.png" --window-size="$width,${height:-2000}" \
                    "file://$WORK/frame.html" || die "no picture of $page: $(tail -n 1 "$WORK/said")"
            fi
        done
    done
done
[ "$failed" = 0 ] || die "$failed of $(($# * 4)) looks found something wrong"
if [ -n "$MADE" ]; then
    # A page with which nothing is wrong: what is found in a spoiled copy of it is what was spoiled.
    must_find 'This plot failed to draw' 's/"mark":{"type":"rule"/"mark":{"type":"ruler"/'
    must_find 'the page is [0-9]* px wide in a window' 's/<h2 /<p style="width: 2000px">wide<\/p><h2 /'
    must_find 'a plot is [0-9]* px wide in a column' 's/view.width = Math.max(60, .*/view.width = 700;/' 420
    must_find 'a plot without marks' 's/datum.system === system/datum.system === 7/'
    must_find 'a control changes nothing' 's/datum.i === at/datum.i === 3/g; s/labels\[at\]/labels[3]/g'
    must_find 'a plot cannot be saved' 's/save_links(figure);$//'
    must_find 'the console has an error' 's/<h2 /<script>console.error("spoiled")<\/script><h2 /'
    must_find 'the policy forbids img-src' 's/<h2 /<img src="file:\/\/\/picture.png"><h2 /'
    must_find 'text is 7px high' 's/labelFontSize: 11/labelFontSize: 7/'
    must_find 'text has a contrast of' 's/<h2 /<p style="color: #999">faint<\/p><h2 /'
    must_find 'text has a contrast of' 's/<h2 /<p style="color: #666">faint<\/p><h2 /' 420 dark
fi
echo "nothing wrong with $# pages at 2 widths in 2 schemes"
