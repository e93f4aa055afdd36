#!/usr/bin/env bash
# Checks the device "cuda" on a machine with an NVIDIA GPU, which may have no network, no compiler and a few minutes.
#
#   tools/gpu_check.sh prepare   builds on any machine; gathers the programs, their libraries and the kernels in
#                                build/gpu-check.tar.xz
#   tools/gpu_check.sh           checks on the machine with the GPU; writes gpu_check.json to $OUT, default build/gpu-check
#
# The parts are those of tools/gpu/check.py. A record of a run is kept in bench/records/.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."
folder=build/gpu-check

prepare() {
  ./run build --cuda
  cmake --preset release -DFOVEA_TESTS=ON -DFOVEA_BENCHMARKS=ON > /dev/null
  local programs=(fovea bench/bench_device tests/unit_kernels tests/unit_loop tests/unit_generate)
  ninja -C build/release fovea_cli bench_device unit_kernels unit_loop unit_generate fovea_cuda
  rm -rf "$folder"
  mkdir -p "$folder/libraries"
  cp build/release/fovea_cuda.fatbin "$folder"
  local program library
  for program in "${programs[@]}"; do
    strip -o "$folder/${program##*/}" "build/release/$program"
    # The C library and the loader are those of the other machine.
    ldd "build/release/$program" | sed -nE 's/.* => (\/[^ ]+).*/\1/p' | grep -vE '/(libc|libm|libdl|libpthread|librt|ld-linux[^/]*)\.so' |
      while read -r library; do cp -Lu "$library" "$folder/libraries"; done
  done
  git rev-parse HEAD > "$folder/commit"
  if [[ -n $(git status --porcelain) ]]; then echo "changed" >> "$folder/commit"; fi
  tar -C build -cJf "$folder.tar.xz" gpu-check
  du -h "$folder.tar.xz"
}

case ${1:-} in
  prepare) prepare ;;
  "")
    [[ -e $folder/commit ]] || python3 -m tarfile -e "$folder.tar.xz" build
    exec python3 tools/gpu/check.py "$folder" "${OUT:-$folder}/gpu_check.json"
    ;;
  *) echo "gpu_check: $1: unknown; expected prepare, or no argument" >&2; exit 2 ;;
esac
