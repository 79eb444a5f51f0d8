# Builds libgit2 (and the zlib, PCRE2, llhttp and xdiff it brings along) as one static library: about 230 C files.
# The settings are those of the crate's own build script.

SRC := libgit2
CFLAGS := -O1 -w -fvisibility=hidden -Iinclude -I$(SRC)/src/libgit2 -I$(SRC)/src/util -I$(SRC)/deps/llhttp \
	-I$(SRC)/deps/xdiff -I$(SRC)/deps/pcre2 -I$(SRC)/deps/zlib -I$(SRC)/include \
	-DGIT_REGEX_BUILTIN=1 -DPCRE2_STATIC '-DPCRE2_EXPORT=' '-DPCRE2_EXP_DECL=' '-DPCRE2_EXP_DEFN=' \
	-DPCRE2_CODE_UNIT_WIDTH=8 -DSUPPORT_PCRE2_8=1 -DSUPPORT_UNICODE=1 -DLINK_SIZE=2 -DHEAP_LIMIT=20000000 \
	-DMATCH_LIMIT=10000000 -DMATCH_LIMIT_DEPTH=MATCH_LIMIT -DMAX_VARLOOKBEHIND=255 -DNEWLINE_DEFAULT=2 \
	-DPARENS_NEST_LIMIT=250 -DMAX_NAME_SIZE=128 -DMAX_NAME_COUNT=10000 \
	-DSHA1DC_NO_STANDARD_INCLUDES=1 '-DSHA1DC_CUSTOM_INCLUDE_SHA1_C="common.h"' \
	'-DSHA1DC_CUSTOM_INCLUDE_UBC_CHECK_C="common.h"' -DNO_VIZ -DZ_HAVE_UNISTD_H

# Files that other files include, and those of other systems and variants.
NOT := %_tables.c %pcre2_jit_match.c %pcre2_jit_misc.c %pcre2_jit_test.c %pcre2_ucptables.c %pcre2posix.c %pcre2_fuzzsupport.c \
	%pcre2test.c %pcre2grep.c %pcre2demo.c %pcre2_dftables.c %pcre2_printint.c %pcre2_jit_simd_inc.c
DIRS := src/libgit2 src/libgit2/transports src/libgit2/streams src/util src/util/unix deps/llhttp deps/xdiff deps/pcre2 \
	deps/zlib
FILES := $(filter-out $(NOT),$(foreach dir,$(DIRS),$(wildcard $(SRC)/$(dir)/*.c))) $(wildcard $(SRC)/deps/pcre2/pcre2_tables.c) \
	$(addprefix $(SRC)/src/util/,allocators/failalloc.c allocators/stdalloc.c hash/collisiondetect.c hash/sha1dc/sha1.c \
	hash/sha1dc/ubc_check.c hash/builtin.c hash/rfc6234/sha224-256.c)
OBJECTS := $(FILES:.c=.o)

libgit2.a: $(OBJECTS)
	rm -f $@
	ar rcs $@ $^

%.o: %.c
	$(CC) $(CFLAGS) -c -o $@ $<
