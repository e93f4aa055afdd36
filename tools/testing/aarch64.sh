#!/usr/bin/env bash
# aarch64.sh BUILD_PACKAGE...: builds the committed tree for ARM64 in a minimal Debian 12 system, and runs the tests below on an emulated
# CPU. Then trains with the program there and with build/release/fovea here, and compares the bits of models and texts. ./run soak calls
# it. Skipped, with the reason, on a machine that cannot create such systems.
set -euo pipefail
verb=soak
# shellcheck source=tools/testing/systems.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/systems.sh"
# An emulator takes hours for the tests of thousands of products, and of gradients in double, which no kernel for NEON computes. unit_api
# has the known bits of training runs.
declare -A tests=([unit_base]='*' [unit_tensor]='*' [unit_ops]='-Gradient.MatchesCentralDifferences'
  [unit_kernels]='-GemmTest.EqualsTheOracle*:PackedGemm.HasTheBitsOfGemm*:PackedGemm.ContinuesItsSums*'
  [unit_api]='*KnownBits*:FloatModeOfACaller.*')

shard_of=()  # the variables of the environment that select a part of the tests

# build_here SYSTEM PACKAGE...
build_here() {
  local system=$1
  shift
  install_cross "$system" git python3 libgtest-dev "$@"
  clone_tree "$system"
  echo "soak: aarch64: building" >&2
  quietly "$system" bash -c "cd '$root' && cmake --preset aarch64 -DFOVEA_TESTS=ON &&
    cmake --build build/aarch64 --target fovea_cli ${!tests[*]}"
}

# emulated SYSTEM PROGRAM ARGUMENT...: runs a program of the build.
emulated() {
  local system=$1 program=$2
  shift 2
  enter "$system" env -C "$root" ${shard_of[@]+"${shard_of[@]}"} qemu-aarch64-static "build/aarch64/$program" "$@"
}

# run_test SYSTEM PROGRAM: runs its tests in as many processes as there are CPUs.
run_test() {
  local system=$1 program=$2 count shard pids=() failed=0
  count=$(nproc)
  echo "soak: aarch64: $program" >&2
  for ((shard = 0; shard < count; ++shard)); do
    shard_of=("GTEST_TOTAL_SHARDS=$count" "GTEST_SHARD_INDEX=$shard")
    emulated "$system" "tests/$program" --gtest_brief=1 --gtest_filter="${tests[$program]}" &
    pids+=("$!")
  done
  shard_of=()
  for shard in "${pids[@]}"; do wait "$shard" || failed=1; done
  return "$failed"
}

# compare_programs SYSTEM: a model that was trained for a few steps, and what it generates, have the same bits with both programs.
compare_programs() {
  local system=$1 here=$folder/here there=/tmp/there program=$root/build/release/fovea
  local training=(--preset tiny --steps 20 --dtype fp32 --seed 3 --sample-every 0) generation=(-p The -n 60 --seed 1)
  echo "soak: aarch64: comparing the bits of a model" >&2
  mkdir "$here"
  "$program" train "$root/LICENSE" --out "$here/model" "${training[@]}" >> "$system.log" 2>&1 || return 1
  emulated "$system" fovea train LICENSE --out "$there/model" "${training[@]}" >> "$system.log" 2>&1 || return 1
  cmp "$here/model/model.safetensors" "$system$there/model/model.safetensors" || return 1
  "$program" generate "$here/model" "${generation[@]}" > "$here/text" 2>> "$system.log" || return 1
  emulated "$system" fovea generate "$there/model" "${generation[@]}" > "$here/text-there" 2>> "$system.log" || return 1
  cmp "$here/text" "$here/text-there"
}

inside() {
  local cache=$2 system=$1/bookworm program failed=0
  folder=$1
  shift 2
  make_base bookworm "$system"
  mount_system "$system" "$(cache_of bookworm "$cache")"
  build_here "$system" "$@"
  for program in "${!tests[@]}"; do run_test "$system" "$program" || failed=1; done
  compare_programs "$system" || failed=1
  return "$failed"
}

main() {
  local reason
  reason=$( (check_machine bookworm) 2>&1) || { echo "soak: aarch64: skipped: ${reason#run: soak: }"; return 0; }
  check_machine bookworm
  in_namespaces "$(ccache --get-config cache_dir)" "$@" && echo "soak: aarch64: ok"
}

start "$@"; exit  # bash stops reading here, so the file may change meanwhile
