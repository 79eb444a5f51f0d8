# shellcheck shell=bash
# Editors and interpreters, with threads and processes of their own. Sourced by validation/corpus.

prepare_vim() { numbers 3000 >text; }
program vim vim:vim -- vim -Nu NONE -es -c 'set backup writebackup undofile' -c '%s/1/one/g' -c 'w' -c 'saveas other' -c 'wq' text

prepare_ed() { numbers 3000 >text; }
run_ed() { printf '1,100d\nw\n$a\nmore\n.\nw other\nq\n' | ed -s text; }
program ed ed:ed

prepare_perl() { files src 400; }
# shellcheck disable=SC2016 # Perl's variables
program perl perl:perl -- perl -i.orig -pe 's/line (\d+)/$1. line/' src/d000/file-00001.txt src/d000/file-00002.txt src/d001/file-00060.txt

run_python_processes() {
    python3 - <<'PYTHON'
import multiprocessing, os, shutil, tempfile

def work(n):
    os.makedirs(f"out/{n}")
    os.chdir(f"out/{n}")
    for i in range(100):
        with open(f"f{i}", "w") as f:
            f.write(str(i) * 100)
        if i % 3 == 0:
            os.rename(f"f{i}", f"g{i}")
        if i % 7 == 0:
            os.link(f"g{i}" if i % 3 == 0 else f"f{i}", f"h{i}")
    return len(os.listdir("."))

with multiprocessing.get_context("fork").Pool(3, maxtasksperchild=1) as pool:
    print(sum(pool.map(work, range(6), chunksize=1)))
shutil.copytree("out", "copy")
shutil.move("copy", "out/0/copy")
with tempfile.TemporaryFile() as f:
    f.write(b"gone" * 10000)
PYTHON
}
program python-processes python3:python3

run_python_threads() {
    python3 - <<'PYTHON'
import concurrent.futures, os

def work(n):
    directory = f"out/{n}"
    os.makedirs(directory)
    for i in range(100):
        name = f"{directory}/f{i}"
        with open(name, "wb") as f:
            f.write(bytes(i * 10))
        os.replace(name, f"{directory}/g{i}")
        if i % 5 == 0:
            os.unlink(f"{directory}/g{i}")
    os.rename(directory, f"out/done-{n}")

with concurrent.futures.ThreadPoolExecutor(8) as pool:
    list(pool.map(work, range(24)))
PYTHON
}
program python-threads python3:python3

run_node() {
    node - <<'SCRIPT'
const fs = require('fs');
fs.mkdirSync('out/deep/er', { recursive: true });
for (let i = 0; i < 300; i++) fs.writeFileSync(`out/f${i}`, 'x'.repeat(i * 11));
for (let i = 0; i < 300; i += 3) fs.renameSync(`out/f${i}`, `out/deep/g${i}`);
fs.cpSync('out', 'copy', { recursive: true });
fs.rmSync('out', { recursive: true });
SCRIPT
}
program node node:nodejs

run_node_threads() {
    node - <<'SCRIPT'
const fs = require('fs/promises');
(async () => {
    await fs.mkdir('out');
    await Promise.all(Array.from({ length: 300 }, async (_, i) => {
        await fs.writeFile(`out/f${i}`, 'x'.repeat(i * 11));
        await fs.appendFile(`out/f${i}`, 'more');
        if (i % 3 === 0) await fs.rename(`out/f${i}`, `out/g${i}`);
        if (i % 4 === 0 && i % 3) await fs.unlink(`out/f${i}`);
    }));
})();
SCRIPT
}
program node-threads node:nodejs

prepare_shell() { files src 100; }
run_shell() {
    exec 5<src/d000/file-00001.txt
    mv src other
    cd other/d000
    mv ../d001 ../../d001
    cat <&5 >copied
    (cd .. && echo text >text && ln text hard && rm text)
    for i in 1 2 3; do echo "$i"; done >>log &
    wait
    trap 'rm -f lock' EXIT
    set -C
    : >lock
    cp /dev/stdin here <<<'a document'
    cat <(sort log) <(sort -r log) >both
}
program shell
