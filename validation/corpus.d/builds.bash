# shellcheck shell=bash
# Compilers and build tools. Sourced by validation/corpus.

# c_project NUMBER: a library of so many C files and a program that calls it, with a Makefile and a CMakeLists.txt.
c_project() {
    local number=$1
    awk -v number="$number" 'BEGIN {
        for (i = 0; i < number; i++) {
            name = sprintf("part%03d.c", i)
            printf "#include <stdio.h>\n#include <string.h>\n#include \"parts.h\"\nint part%03d(int x) { char b[64]; snprintf(b, sizeof b, \"%%d\", x); return (int)strlen(b) + %d; }\n", i, i >name
            close(name)
            printf "int part%03d(int x);\n", i >"parts.h"
            calls = calls sprintf(" + part%03d(%d)", i, i)
        }
        printf "#include <stdio.h>\n#include \"parts.h\"\nint main(void) { printf(\"%%d\\n\", 0%s); return 0; }\n", calls >"main.c"
        print "CFLAGS = -O1 -MMD" >"Makefile"
        print "objects = $(patsubst %.c,%.o,$(wildcard part*.c))" >"Makefile"
        print "main: main.o libparts.a\n\t$(CC) -o $@ main.o libparts.a" >"Makefile"
        print "libparts.a: $(objects)\n\t$(AR) rcs $@ $^" >"Makefile"
        print "install: main\n\tinstall -D main root/bin/main\n\tinstall -D -m 644 libparts.a root/lib/libparts.a" >"Makefile"
        print "clean:\n\trm -f *.o *.d main libparts.a" >"Makefile"
        print "-include $(wildcard *.d)" >"Makefile"
        print "cmake_minimum_required(VERSION 3.13)\nproject(parts C)\nfile(GLOB parts part*.c)\nadd_library(parts STATIC ${parts})" >"CMakeLists.txt"
        print "add_executable(main main.c)\ntarget_link_libraries(main parts)" >"CMakeLists.txt"
    }'
}

prepare_make() { c_project 24; }
program make make:make cc:gcc ar:binutils -- make -j4

prepare_make_again() {
    c_project 12
    make -s
    touch -d 2040-01-01 part003.c
}
run_make_again() {
    make -s install
    make -s clean
}
program make-again make:make cc:gcc ar:binutils

prepare_cmake() { c_project 8; }
run_cmake() { cmake -G Ninja -S . -B out && cmake --build out; }
program cmake cmake:cmake ninja:ninja-build cc:gcc
differs cmake 'ninja logs times'

prepare_ccache() { c_project 8; }
run_ccache() {
    export CCACHE_DIR=$PWD/.home/ccache
    make -s CC='ccache cc'
    make -s clean
    make -s CC='ccache cc'
}
program ccache ccache:ccache cc:gcc make:make
differs ccache 'counters in its cache'

prepare_cxx() {
    cat >main.cc <<'SOURCE'
#include <iostream>
#include <map>
#include <string>
int main() { std::map<std::string, int> m{{"a", 1}}; for (auto &e : m) std::cout << e.first << e.second << std::endl; }
SOURCE
}
# Without a seed, names of sections are random numbers, and one run in sixteen has shorter ones.
program cxx g++:g++ -- g++ -frandom-seed=main -save-temps -g -flto -o main main.cc

prepare_cargo() {
    mkdir -p src/bin
    printf '[package]\nname = "parts"\nversion = "0.1.0"\nedition = "2021"\n[workspace]\n' >Cargo.toml
    for i in 1 2 3 4 5 6; do
        printf 'pub fn part(x: u64) -> String { format!("{x}") }\n' >"src/part$i.rs"
        printf 'pub mod part%d;\n' "$i" >>src/lib.rs
    done
    printf 'fn main() { println!("{}", parts::part1::part(1)); }\n' >src/bin/main.rs
}
program cargo cargo:cargo -- cargo build --offline --quiet
differs cargo 'names with hashes of paths and times'

prepare_go() {
    printf 'module example.org/parts\n\ngo 1.18\n' >go.mod
    mkdir part
    for i in 1 2 3 4 5 6; do printf 'package part\n\nfunc Part%d(x int) int { return x + %d }\n' "$i" "$i" >"part/part$i.go"; done
    printf 'package main\n\nimport "example.org/parts/part"\n\nfunc main() { println(part.Part1(1)) }\n' >main.go
}
program go go:golang-go -- go build -p 4 -o main .
differs go 'its cache logs times'

prepare_javac() {
    mkdir -p src/parts
    for i in $(seq 40); do
        printf 'package parts;\npublic class Part%d { public int part(int x) { return new java.util.ArrayList<Integer>(java.util.List.of(x)).size() + %d; } class Inner { Runnable r = () -> part(1); } }\n' "$i" "$i" >"src/parts/Part$i.java"
    done
}
run_javac() {
    javac -d out src/parts/*.java
    jar --create --file parts.jar --date 2001-01-01T00:00:00Z -C out .
}
program javac javac:openjdk-17-jdk-headless jar:openjdk-17-jdk-headless
