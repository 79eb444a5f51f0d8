#!/bin/sh
# Records the unpacking of a large archive: the sources of gRPC with their dependencies, 6,015 files, 58 MB unpacked.
. "$(dirname "$0")/common.sh"
begin untar "$@"
need tar tar
need gzip gzip
fetch_crate grpcio-sys 0.13.0+1.56.2-patched "$WORK/source.tar.gz"
record tar -xzf source.tar.gz
