# shellcheck shell=bash
# Version control. Sourced by validation/corpus.

# repository: a git repository of 400 files, six commits and two branches.
repository() {
    git init -q -b main repo
    git -C repo config gc.auto 0
    files repo 400
    git -C repo add -A
    git -C repo commit -q -m one
    for i in 1 2 3 4; do
        find repo/d00"$i" -name '*.txt' -exec sh -c 'echo "$2" >>"$1"' sh {} "$i" \;
        git -C repo mv "repo/d00$((i + 1))/file-00$((i + 1))00.txt" nowhere 2>/dev/null || true
        git -C repo commit -q -a -m "$i"
    done
    git -C repo checkout -q -b other HEAD~3
    git -C repo rm -q -r d006
    mkdir repo/new
    echo new >repo/new/file
    git -C repo add -A
    git -C repo commit -q -m other
    git -C repo checkout -q main
}

prepare_git_clone() { repository; }
program git-clone git:git -- git clone -q repo new

# With two threads the pack that is sent, and so its name, is another now and then.
prepare_git_clone_pack() {
    repository
    git -C repo config pack.threads 1
    git -C repo gc -q
}
run_git_clone_pack() { git clone -q "file://$PWD/repo" new; }
program git-clone-pack git:git

prepare_git_add() {
    git init -q -b main repo
    git -C repo config gc.auto 0
    files repo 600
}
run_git_add() {
    cd repo
    git add -A
    git commit -q -m one
    git status
}
program git-add git:git

prepare_git_checkout() { repository; }
run_git_checkout() {
    cd repo
    for branch in other main HEAD~2 other main; do git checkout -q "$branch"; done
    git reset -q --hard HEAD~1
    git clean -qfdx
}
program git-checkout git:git

prepare_git_merge() { repository; }
run_git_merge() {
    cd repo
    git merge -q -m merge other
    git rebase -q HEAD~1
    echo change >>d000/file-00000.txt
    git stash -q
    git stash pop -q
    git worktree add -q ../work other
    git worktree remove ../work
    git fsck --no-progress
}
program git-merge git:git

prepare_git_gc() { repository; }
run_git_gc() {
    cd repo
    git -c pack.threads=1 gc -q --prune=now
}
program git-gc git:git

prepare_git_gc_threads() { repository; }
run_git_gc_threads() {
    cd repo
    git -c pack.threads=4 repack -q -a -d -f
    git prune-packed -q
    git count-objects -v
}
program git-gc-threads git:git
differs git-gc-threads 'deltas depend on which thread is first'
