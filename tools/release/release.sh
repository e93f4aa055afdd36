#!/usr/bin/env bash
# release.sh OUT BUILD_PACKAGE...: makes the files of a release from the committed tree in the folder OUT, which it replaces, and tries
# each in a system that has nothing else. `./run release` calls it after the tests.
set -euo pipefail
verb=release
# shellcheck source=tools/testing/systems.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../testing/systems.sh"
version=$(sed -nE 's/^project\(fovea VERSION ([0-9.]+).*/\1/p' "$root/CMakeLists.txt")
archive=fovea-$version-linux-x86_64
arm_archive=fovea-$version-linux-aarch64

# at_most MEGABYTES FILE...: refuses a file that is larger.
at_most() {
  local megabytes=$1 file size
  shift
  for file in "$@"; do
    size=$(stat -c %s "$file")
    ((size <= megabytes * 1000000)) || refuse "${file##*/}: has $size bytes; expected at most $megabytes MB"
  done
}

# fresh SYSTEM BASE: mounts a copy of a base system.
fresh() {
  cp -a "$2" "$1"
  mount_system "$1"
}

# try_program SYSTEM PROGRAM...: it prints its version and its help, trains a small model, and generates text. PROGRAM may be an emulator
# and its argument.
try_program() {
  local system=$1 program
  shift
  program=$*
  echo "release: ${system##*/}: trying $program" >&2
  cp "$root/LICENSE" "$system/tmp/text"
  enter "$system" "$@" --version | grep "^fovea $version" > /dev/null || refuse "$program --version: does not print the version"
  enter "$system" "$@" --help > /dev/null
  quietly "$system" "$@" train /tmp/text --out /tmp/model --preset tiny --steps 20 --sample-every 0
  [[ $(enter "$system" "$@" generate /tmp/model -p The -n 50 --seed 1 2>> "$system.log" | wc -c) -ge 20 ]] ||
    refuse "$program generate: generated no text; expected some"
}

# build_packages RELEASE CACHE: builds and checks the packages of a release of Debian.
build_packages() {
  local release=$1 system=$folder/$1-build
  cp -a "$folder/$release" "$system"
  mount_system "$system" "$(cache_of "$release" "$2")"
  install_packages "$system" git
  clone_tree "$system"
  echo "release: $release: building the packages" >&2
  quietly "$system" "$root/run" release deb /dist
  cp "$system"/dist/*.deb "$folder/dist/"
}

# try_packages RELEASE: installs the package of the program in a system with nothing but the package manager, then those for
# developers, with which it builds examples in C and C++.
try_packages() {
  local system=$folder/$1-trial
  fresh "$system" "$folder/$1"
  cp "$folder/$1-build"/dist/*.deb "$system/tmp/"
  quietly "$system" apt-get update -qq
  quietly "$system" env DEBIAN_FRONTEND=noninteractive bash -c 'apt-get install -y -qq /tmp/fovea_*.deb'
  try_program "$system" fovea
  [[ -s $system/usr/share/man/man1/fovea-train.1.gz ]] || refuse "$1: fovea-train(1) is missing"
  [[ ! -e $system/etc/systemd/system/multi-user.target.wants/fovea.service ]] || refuse "$1: the service is enabled; expected it disabled"
  cp -R "$root/examples" "$system/tmp/"
  quietly "$system" env DEBIAN_FRONTEND=noninteractive bash -c 'apt-get install -y -qq --no-install-recommends cmake g++ ninja-build /tmp/*.deb &&
    cmake -G Ninja -S /tmp/examples -B /tmp/made && cmake --build /tmp/made --target generate train_and_generate && /tmp/made/generate /tmp/model The'
}

# build_archives: builds the archives twice in different folders, once without the compiler cache.
build_archives() {
  local system=$folder/bookworm-build elsewhere=/opt/another/folder
  echo "release: building the archives" >&2
  quietly "$system" "$root/run" release archive /archives
  echo "release: building the archives again, in another folder" >&2
  mkdir -p "$system${elsewhere%/*}"
  git clone --quiet --depth 1 "file://$root" "$system$elsewhere"
  quietly "$system" env CCACHE_DISABLE=1 "$elsewhere/run" release archive /archives-again
  diff -r "$system/archives" "$system/archives-again" >&2 || refuse "the archives differ between two folders; expected the same bytes"
  cp "$system"/archives/* "$root/deploy/container/Containerfile" "$folder/dist/"
}

# try_archives: runs the archive in Debian 13 and Ubuntu 22.04, and the root of the container.
try_archives() {
  local system keys=$folder/trixie-build/usr/share/keyrings/ubuntu-archive-keyring.gpg
  echo "release: jammy: creating the system" >&2
  install_packages "$folder/trixie-build" ubuntu-keyring
  # Of Ubuntu 22.04, since its C and C++ libraries are older than those of Debian 12; from debootstrap's own mirror.
  debootstrap --variant=minbase --keyring="$keys" --force-check-gpg jammy "$folder/jammy" > "$folder/jammy.log" 2>&1 || { tail -n 20 "$folder/jammy.log" >&2; refuse "jammy: debootstrap failed"; }
  for system in "$folder/trixie" "$folder/jammy"; do
    fresh "$system-archive" "$system"
    mkdir "$system-archive/opt/any folder"
    tar -C "$system-archive/opt/any folder" -xzf "$folder/dist/$archive.tar.gz"
    try_program "$system-archive" "/opt/any folder/$archive/bin/fovea"
  done
  system=$folder/container
  mkdir "$system"
  tar -C "$system" -xf "$folder/dist/fovea-$version-rootfs.tar"
  mount -t proc proc "$system/proc"
  try_program "$system" /usr/bin/fovea
}

# build_arm_archive CACHE BUILD_PACKAGE...: builds the archive for ARM64 with a cross compiler.
build_arm_archive() {
  local system=$folder/bookworm-aarch64 cache=$1
  shift
  cp -a "$folder/bookworm" "$system"
  mount_system "$system" "$(cache_of bookworm "$cache")"
  install_cross "$system" git "$@"
  clone_tree "$system"
  echo "release: building the archive for ARM64" >&2
  quietly "$system" "$root/tools/release/build_archive.sh" /archives aarch64
  cp "$system"/archives/* "$folder/dist/"
}

# try_arm_archive: runs it on an emulated CPU, with nothing of that architecture but the C and C++ libraries.
try_arm_archive() {
  local system=$folder/bookworm-emulated
  fresh "$system" "$folder/bookworm"
  quietly "$system" dpkg --add-architecture arm64
  install_packages "$system" qemu-user-static libstdc++6:arm64
  mkdir "$system/opt/any folder"
  tar -C "$system/opt/any folder" -xzf "$folder/dist/$arm_archive.tar.gz"
  try_program "$system" qemu-aarch64-static "/opt/any folder/$arm_archive/bin/fovea"
}

# inside FOLDER CACHE BUILD_PACKAGE...
inside() {
  local cache=$2 release
  folder=$1
  shift 2
  mkdir "$folder/dist"
  for release in bookworm trixie; do
    make_base "$release" "$folder/$release"
    build_packages "$release" "$cache"
    try_packages "$release"
  done
  build_archives
  try_archives
  build_arm_archive "$cache" "$@"
  try_arm_archive
  at_most 15 "$folder"/dist/fovea_*.deb "$folder/dist/$archive.tar.gz" "$folder/dist/$arm_archive.tar.gz"
  at_most 60 "$folder/dist/fovea-$version-rootfs.tar"
  (cd "$folder/dist" && sha256sum -- * > "$folder/SHA256SUMS" && mv "$folder/SHA256SUMS" .)
}

main() {
  local out=$1
  shift
  check_machine bookworm trixie
  in_namespaces "$(ccache --get-config cache_dir)" "$@"
  rm -rf "$out"
  mkdir -p "${out%/*}"
  cp -R "$folder/dist" "$out"
  echo "release: $out has:"
  (cd "$out" && stat -c '  %n, %s bytes' -- *)
}

start "$@"; exit  # bash stops reading here, so the file may change meanwhile
