# shellcheck shell=bash
# Programs that walk, copy, pack and remove trees of files. Sourced by validation/corpus.

prepare_rsync() { files src 11000 4; }
program rsync rsync:rsync -- rsync -a src/ dst/

prepare_rsync_delete() {
    files src 1500
    cp -a src dst
    find src -name '*3.txt' -delete
    find src -name '*5.txt' -exec sh -c 'echo more >>"$1"' sh {} \;
    rm -r src/d004
    files dst/gone 200
    ln -s d001 src/link
}
program rsync-delete rsync:rsync -- rsync -a --checksum --delete src/ dst/

prepare_rsync_in_place() {
    prepare_rsync_delete
    numbers 300000 >src/large
    numbers 299000 >dst/large
}
program rsync-in-place rsync:rsync -- rsync -a --inplace --no-whole-file --delete-after --backup --suffix=.old src/ dst/

prepare_tar_create() {
    files src 2000
    ln src/d000/file-00000.txt src/hard
    ln -s d000 src/soft
    mkfifo src/pipe
    old src
}
program tar-create tar:tar gzip:gzip -- tar -czf out.tar.gz src

prepare_tar_extract() {
    prepare_tar_create
    tar -cf in.tar src
    rm -r src
}
program tar-extract tar:tar -- tar -xf in.tar

prepare_tar_zstd() { prepare_tar_create; }
program tar-zstd tar:tar zstd:zstd -- tar --zstd -cf out.tar.zst src

prepare_bsdtar() { prepare_tar_extract; }
program bsdtar bsdtar:libarchive-tools -- bsdtar -xf in.tar

prepare_cpio() { files src 1500; }
run_cpio() {
    find src -depth | cpio -o -H newc --quiet >out.cpio
    mkdir new
    cd new
    cpio -id --quiet <../out.cpio
}
program cpio cpio:cpio

prepare_zip() { files src 2000; old src; }
program zip zip:zip -- zip -qr out.zip src

prepare_zip_update() {
    files src 600
    zip -qr out.zip src
    find src -name '*7.txt' -exec sh -c 'echo more >>"$1"; touch -d 2030-01-01 "$1"' sh {} \;
}
program zip-update zip:zip -- zip -qru out.zip src

prepare_unzip() {
    files src 2000
    zip -qr in.zip src
}
program unzip unzip:unzip zip:zip -- unzip -q in.zip -d new

prepare_p7zip() { files src 1000; old src; }
program p7zip 7z:p7zip-full -- 7z a -bd -mmt=2 out.7z src

prepare_cp() {
    files src 3000
    ln src/d000/file-00000.txt src/hard
    ln -s nowhere src/dangling
}
program cp -- cp -a src dst

prepare_cp_links() { files src 1500; }
program cp-links -- cp -al src dst

prepare_cp_symbolic() { files src 1500; }
run_cp_symbolic() { cp -rs "$PWD/src" dst; }
program cp-symbolic

prepare_mv() { files src 500; files other 500; }
run_mv() {
    mv src other/d000/src
    mv other/d001 other/d000/src/d001
    mv other moved
    mv moved/d000/src src
    mv -f src/d002/*.txt moved/d003/
    mv -T src/d002 moved/d002 2>/dev/null || mv src/d002 moved/d002/
}
program mv

prepare_rm() { files src 5000; }
program rm -- rm -rf src

prepare_find() { files src 4000; }
program find -- find src -name '*7.txt' -size +1 -newer src/d000 -printf '%p %s\n'

prepare_find_delete() { files src 3000; }
program find-delete -- find src -name '*[1357].txt' -delete

prepare_xargs() { files src 500; }
run_xargs() { find src -type f -print0 | xargs -0 -n 10 -P 4 sh -c 'for f; do mv "$f" "$f.new"; gzip -n "$f.new"; done' sh; }
program xargs gzip:gzip

prepare_du() { files src 4000; }
program du -- du -a src

prepare_ls() { files src 4000; }
program ls -- ls -laR src

prepare_grep() { files src 3000; }
program grep -- grep -rn 'line 7 of file 2' src

prepare_grep_none() { files src 300; }
program grep-none -- grep -r 'no such text' src

prepare_rg() { files src 3000; }
program rg rg:ripgrep -- rg -n 'line 7 of file 2' src

prepare_diff() {
    files one 800
    cp -a one two
    find two -name '*9.txt' -exec sh -c 'echo more >>"$1"' sh {} \;
}
program diff -- diff -r one two

prepare_patch() {
    prepare_diff
    diff -ru one two >the.patch || true
    rm -r two
}
program patch patch:patch -- patch -s -p1 -d one -i ../the.patch

prepare_sed() { files src 800; }
run_sed() { find src -type f -print0 | xargs -0 sed -i.bak 's/line/row/'; }
program sed

prepare_chmod() { files src 2000; }
program chmod -- chmod -R g+w,o-r src

prepare_install() { files src 300; }
run_install() { (cd src && find . -type f) | while read -r f; do install -D -m 640 "src/$f" "new/$f"; done; }
program install

prepare_split() { numbers 200000 >all; }
run_split() {
    split -l 5000 -a 4 all part-
    cat part-* >again
    cmp all again
    rm part-*
}
program split

prepare_sort() { numbers 600000 >all; }
program sort -- sort -n -S 1M -T .tmp -o sorted all

prepare_sort_in_place() { numbers 200000 >all; }
program sort-in-place -- sort -n -S 1M -T .tmp --parallel=2 -o all all

prepare_dd() { numbers 500000 >all; }
run_dd() {
    dd if=all of=copy bs=64K conv=fsync status=none
    dd if=all of=copy bs=4K seek=100 skip=3 count=50 conv=notrunc status=none
    dd if=all of=sparse bs=1M count=2 seek=64 conv=sparse status=none
    truncate -s 1M copy
    truncate -s +3M copy
    fallocate -l 2M filled
    fallocate -p -o 4096 -l 8192 copy
    shred -u -n 1 filled
}
program dd

prepare_compress() { files src 400 400; }
run_compress() { gzip -rn src && find src -name '*2.txt.gz' -exec gunzip {} + && find src -name '*2.txt' -exec xz -T1 {} + && find src -name '*3.txt.gz' -exec bash -c 'zcat "$1" | bzip2 >"${1%.gz}.bz2"' bash {} \; ; }
program compress gzip:gzip xz:xz-utils bzip2:bzip2

prepare_pigz() { numbers 500000 >all; }
program pigz pigz:pigz -- pigz -n -p 4 all

prepare_sha256sum() { files src 2000; find src -type f -exec sha256sum {} + >sums; }
program sha256sum -- sha256sum --quiet -c sums

prepare_busybox() { files src 500; }
run_busybox() {
    busybox tar -cf out.tar src
    busybox cp -a src new
    busybox find new -name '*4.txt' -exec busybox mv {} {}.moved \;
    busybox rm -r src
}
program busybox busybox:busybox-static
