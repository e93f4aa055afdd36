# shellcheck shell=bash
# Minimal systems for ./run bare, ./run release and ./run soak. A script that sources this file sets `verb`, its name in errors, and defines
# `inside`, which in_namespaces calls.
#
# Everything inside runs in its own mount and process namespaces. When their last process has ended, all mounts are gone,
# so removing the folder cannot delete anything through a mount.
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

refuse() {
  echo "run: $verb: $1" >&2
  exit 2
}

# "deb URI SUITE main" lines for a release, from the mirrors of this machine's own packages.
sources_for() {
  local release=$1 host='' lines=''
  if grep -qx 'ID=debian' /etc/os-release; then host=$(sed -nE 's/^VERSION_CODENAME=//p' /etc/os-release); fi
  if [[ -n $host ]]; then
    lines=$(apt-get update --print-uris 2> /dev/null |
      sed -nE "s#^'(.*)/dists/$host(-updates|-security)?/InRelease' .*#deb \1 $release\2 main#p" | sort -u -k 3,3)
  fi
  grep -q " $release main\$" <<< "$lines" || refuse "$release: this machine's apt names no Debian mirror; expected one in its sources"
  echo "$lines"
}

mirror_of() {
  sources_for "$1" | sed -nE "s/^deb (.*) $1 main\$/\1/p"
}

# ---- Inside the namespaces -----------------------------------------------------------------------------------------

# enter SYSTEM COMMAND...: runs it with an environment independent of this machine.
enter() {
  local system=$1 keep=()
  shift
  if [[ -d $system/ccache ]]; then
    keep+=(CCACHE_DIR=/ccache CCACHE_SLOPPINESS=locale)
    if [[ -n ${CCACHE_IGNOREOPTIONS:-} ]]; then keep+=("CCACHE_IGNOREOPTIONS=$CCACHE_IGNOREOPTIONS"); fi
    if [[ -n $cache_size ]]; then keep+=("CCACHE_MAXSIZE=$cache_size"); fi
  fi
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    ${keep[@]+"${keep[@]}"} chroot "$system" "$@" < /dev/null
}

# quietly SYSTEM COMMAND...: appends all messages to SYSTEM.log, and prints the last ones if the command fails.
quietly() {
  local log=$1.log
  enter "$@" >> "$log" 2>&1 || { tail -n 20 "$log" >&2; return 1; }
}

# make_base RELEASE SYSTEM: creates a system in the folder SYSTEM, with nothing but the package manager.
make_base() {
  local release=$1 system=$2 mirror
  mirror=$(mirror_of "$release")
  echo "$verb: $release: creating the system from $mirror" >&2
  debootstrap --variant=minbase --keyring="$keyring" --force-check-gpg "$release" "$system" "$mirror" > "$system.log" 2>&1 ||
    { tail -n 20 "$system.log" >&2; return 1; }
  sources_for "$release" > "$system/etc/apt/sources.list"
  {
    apt-config dump | grep -E '^Acquire::(https?::Proxy(::| )|Check-)' || true
    if [[ -n ${http_proxy:-} ]]; then echo "Acquire::http::Proxy \"$http_proxy\";"; fi
  } > "$system/etc/apt/apt.conf.d/90host"
  cp /etc/resolv.conf /etc/hosts "$system/etc/"
}

# mount_system SYSTEM [CACHE]: mounts what programs expect, and a compiler cache.
mount_system() {
  local system=$1 cache=${2:-}
  mount -t proc proc "$system/proc"
  mount --rbind /sys "$system/sys"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$system/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
  if [[ -n $cache ]]; then
    mkdir -p "$cache" "$system/ccache"
    mount --bind "$cache" "$system/ccache"
  fi
}

# install_packages SYSTEM PACKAGE...
install_packages() {
  local system=$1
  shift
  quietly "$system" apt-get update -qq
  quietly "$system" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# install_cross SYSTEM PACKAGE...: installs a compiler for ARM64, an emulator of such a CPU, and the packages of a build, of which those
# for developers are libraries of that architecture.
install_cross() {
  local system=$1 package packages=(g++-aarch64-linux-gnu qemu-user-static)
  shift
  quietly "$system" dpkg --add-architecture arm64
  quietly "$system" apt-get update -qq
  for package in "$@"; do
    # Packages of headers only are for all architectures.
    if [[ $package == *-dev ]] && ! enter "$system" apt-cache show --no-all-versions "$package" | grep -x 'Architecture: all' > /dev/null; then
      package+=:arm64
    fi
    packages+=("$package")
  done
  install_packages "$system" "${packages[@]}"
}

# clone_tree SYSTEM: copies the committed tree to the same path as here, so that the compiler cache has the objects of this machine.
clone_tree() {
  mkdir -p "$1$(dirname "$root")"
  git clone --quiet --depth 1 "file://$root" "$1$root"
}

# cache_of RELEASE CACHE: the folder of a release in a compiler cache.
cache_of() {
  if [[ -z $2 || $1 == "$(sed -nE 's/^VERSION_CODENAME=//p' /etc/os-release)" ]]; then echo "$2"; else echo "$2/$1"; fi
}

# ---- Outside -------------------------------------------------------------------------------------------------------

# Ends every process of the namespaces and waits for them; afterwards nothing is mounted or written below the folder.
stop() {
  trap '' INT TERM HUP
  if [[ -n ${outer:-} ]]; then
    local first
    first=$(cat "/proc/$outer/task/$outer/children" 2> /dev/null) || true
    kill -KILL ${first:-"$outer"} 2> /dev/null || true
    wait "$outer" 2> /dev/null || true
    outer=
  fi
  if [[ -z ${folder:-} ]]; then return; fi
  if grep -qF " $folder/" /proc/self/mounts; then
    echo "run: bare: $folder: still has mounts; unmount them and remove it" >&2
  else
    rm -rf --one-file-system "$folder"
  fi
}

# check_machine RELEASE...: refuses a machine that cannot create the systems.
check_machine() {
  [[ $(id -u) == 0 ]] || refuse "needs root, for chroot and mounts"
  command -v debootstrap > /dev/null || refuse "needs debootstrap; install it with apt-get install debootstrap"
  [[ -e $keyring ]] || refuse "$keyring: missing; install it with apt-get install debian-archive-keyring"
  unshare --mount --pid --fork true 2> /dev/null || refuse "needs the right to mount (CAP_SYS_ADMIN), which this container lacks"
  git -C "$root" rev-parse --quiet --verify HEAD > /dev/null || refuse "$root: no git repository; expected a clone"
  # debootstrap and wget use apt's proxy.
  if [[ -z ${http_proxy:-} ]]; then eval "$(apt-config shell http_proxy Acquire::http::Proxy)"; fi
  export http_proxy
  local release file
  for release in "$@"; do
    file=$(mirror_of "$release")/dists/$release/InRelease
    wget --quiet --spider "$file" ||
      refuse "--release $release: $file cannot be fetched; expected a release that the mirror has"
  done
}

# in_namespaces ARGUMENT...: calls `inside FOLDER ARGUMENT...`, with an empty folder that is removed at the end of this script.
in_namespaces() {
  local status=0
  folder=$(mktemp -d "${TMPDIR:-/var/tmp}/fovea-$verb.XXXXXX")
  trap stop EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  unshare --mount --pid --fork --kill-child "$0" --inside "$folder" "$@" 3>&2 2> /dev/null &  # hides unshare's message when it is killed
  outer=$!
  wait "$outer" || status=$?
  outer=
  return "$status"
}

# start ARGUMENT...: the last line of a script that sources this file: calls its function `main` or, in the namespaces, `inside`.
start() {
  if [[ ${1:-} == --inside ]]; then
    shift
    exec 2>&3 3>&-
    cache_size=$(ccache --get-config max_size 2> /dev/null || true)  # the limit of this machine's user
    inside "$@"
  else
    main "$@"
  fi
}
