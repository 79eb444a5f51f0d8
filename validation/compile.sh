#!/bin/sh
# Records the compilation of a C project, libgit2 with its bundled libraries (about 230 C files), one at a time.
. "$(dirname "$0")/common.sh"
HERE=$(cd "$(dirname "$0")" && pwd)
begin compile "$@"
need make make
need gcc gcc libc6-dev
need ar binutils
fetch_crate libgit2-sys 0.18.8+1.9.7 source.tar.gz
tar -xzf source.tar.gz
rm source.tar.gz
mv libgit2-sys-*/libgit2 libgit2
rm -r libgit2-sys-*
cp "$HERE/compile.mk" Makefile
mkdir include
cat >include/git2_features.h <<'FEATURES'
#ifndef INCLUDE_features_h
#define INCLUDE_features_h
#define GIT_THREADS 1
#define GIT_TRACE 1
#define GIT_HTTPPARSER_BUILTIN 1
#define GIT_USE_NSEC 1
#define GIT_IO_POLL 1
#define GIT_IO_SELECT 1
#define GIT_USE_STAT_MTIM 1
#define GIT_ARCH_64 1
#define GIT_SHA1_COLLISIONDETECT 1
#define GIT_SHA256_BUILTIN 1
#endif
FEATURES
record make -s CC=gcc
[ -s libgit2.a ] || die "the compilation did not make libgit2.a"
