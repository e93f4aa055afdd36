#!/usr/bin/env bash
# build_archive.sh OUT [aarch64]: builds the portable program of the committed tree, for x86-64 or for ARM64 with a cross compiler, and
# packs it into the folder OUT. ./run release calls it in a bare system.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
preset=${2:+$2-}portable
# No option maps the prefix of paths: without debugging information, and since no code has the name of its file, the program
# contains none. ./run release compares builds in two folders.
cmake --preset "$preset"
cmake --build "build/$preset" --target fovea_cli
python3 tools/release/archive.py "build/$preset" "$1" ${2:+"$2"}
