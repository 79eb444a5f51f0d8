#!/bin/sh
# Makes the project's own library page from what is in the repository:
#
#   validation/library.sh [DIR]        [default: docs/library]
#
# Workloads: the recording that comes with `fsage quickstart`, and two texts of strace that tests import. Systems: the
# bundled profiles of ext4, XFS and btrfs, and file systems of the laboratory, which are measured and replayed on here.
# The laboratory's time is virtual, so the page is the same wherever it is made. Kept is the page, which holds all
# figures; the folder that they are made from goes. Where there is a Chromium, the page is tried (library.js).
HERE=$(cd "$(dirname "$0")" && pwd)
. "$HERE/common.sh"

TOP=$(cd "$HERE/.." && pwd)
DIR=${1:-$TOP/docs/library}
mkdir -p "$DIR" || die "cannot make $DIR"
WORK=$(mktemp -d "${TMPDIR:-/tmp}/fsage-library.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The folders of a library; names in these recordings are public already.
mkdir -p "$WORK/library/workloads" "$WORK/library/systems"
cp -r "$TOP/crates/cli/src/quickstart/recorded" "$WORK/library/workloads/quickstart.workload"
for text in trace/tests/data/tools cli/tests/data/small; do
    place=$WORK/library/workloads/$(basename "$text").workload
    "$FSAGE" import "$TOP/crates/$text.strace" -o "$place" || die "cannot import $text.strace"
done

set -- --system "$TOP"/profiles/*.system
for system in ffs:conventional ffs:softdep ffs:journal=async lfs:; do
    for drive in st32430n nearline-7200; do
        case $system in
            lfs:) set -- "$@" --on "lfs:size=1G@$drive" ;;
            *) set -- "$@" --on "$system,size=1G@$drive" ;;
        esac
    done
done
"$FSAGE" library "$WORK/library" "$@" || die "the library was not made"
cp "$WORK/library/index.html" "$DIR/" || die "cannot write into $DIR"
echo "made $DIR/index.html"

# A reader's use of the page, in a browser without a window, held against the page's own JSON.
for name in ${CHROMIUM:-chromium chromium-browser google-chrome}; do
    command -v "$name" >/dev/null 2>&1 || continue
    { cat "$DIR/index.html" && echo '<script>' && cat "$HERE/library.js" && echo '</script>'; } >"$WORK/used.html"
    title=$("$name" --headless --no-sandbox --disable-gpu --dump-dom "file://$WORK/used.html" 2>/dev/null |
        sed -n 's/.*<title>\(.*\)<\/title>.*/\1/p')
    [ "$title" = "PAGE WORKS" ] || die "the page does not do what it should: ${title:-nothing came of it}"
    echo "the page sorts, filters, and says why two systems differ"
    exit
done
echo "no Chromium: the page was not tried"
