#!/usr/bin/env bash
# build_archive.sh OUT: builds the portable program of the committed tree and packs it into the folder OUT. ./run release calls it
# in a bare system.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
# No option maps the prefix of paths: without debugging information, and since no code has the name of its file, the program
# contains none. ./run release compares builds in two folders.
cmake --preset portable
cmake --build build/portable --target fovea_cli
python3 tools/release/archive.py build/portable "$1"
