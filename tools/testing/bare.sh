#!/usr/bin/env bash
# Runs verbs of ./run on the committed tree in minimal Debian systems, in which only git is installed beforehand.
#
# Everything inside runs in its own mount and process namespaces. When their last process has ended, all mounts are gone,
# so removing the folder cannot delete anything through a mount.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

usage() {
  cat << 'TEXT'
usage: ./run bare [--release NAME]... [--ccache DIR] [VERB...]

Creates a minimal Debian system (debootstrap --variant=minbase) with git only, copies the committed tree into it
and runs each VERB of ./run; default: demo and test. Prints the time of each. Needs root.

  --release NAME   bookworm (Debian 12) or trixie (Debian 13); default: both
  --ccache DIR     compiler cache to share with the systems; releases other than this machine's use DIR/NAME
TEXT
}

refuse() {
  echo "run: bare: $1" >&2
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
  chroot "$system" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
    ${keep[@]+"${keep[@]}"} "$@" < /dev/null
}

# make_system RELEASE SYSTEM CACHE: creates and mounts a system in the folder SYSTEM, with git and a clone of the tree.
make_system() {
  local release=$1 system=$2 cache=$3 mirror
  mirror=$(mirror_of "$release")
  echo "bare: $release: creating the system from $mirror" >&2
  debootstrap --variant=minbase --keyring="$keyring" --force-check-gpg "$release" "$system" "$mirror" > "$system.log" 2>&1 ||
    { tail -n 20 "$system.log" >&2; return 1; }
  sources_for "$release" > "$system/etc/apt/sources.list"
  {
    apt-config dump | grep -E '^Acquire::(https?::Proxy(::| )|Check-)' || true
    if [[ -n ${http_proxy:-} ]]; then echo "Acquire::http::Proxy \"$http_proxy\";"; fi
  } > "$system/etc/apt/apt.conf.d/90host"
  cp /etc/resolv.conf /etc/hosts "$system/etc/"

  mount -t proc proc "$system/proc"
  mount --rbind /sys "$system/sys"
  mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$system/dev/pts"
  mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
  if [[ -n $cache ]]; then
    mkdir -p "$cache" "$system/ccache"
    mount --bind "$cache" "$system/ccache"
  fi

  enter "$system" bash -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends git' \
    >> "$system.log" 2>&1 || { tail -n 20 "$system.log" >&2; return 1; }
  # The same path as here, so that the compiler cache has the objects of this machine.
  mkdir -p "$system$(dirname "$root")"
  git clone --quiet --depth 1 "file://$root" "$system$root"
}

# inside FOLDER CACHE RELEASES VERBS: each list is one argument. Exits with the first status other than 0.
inside() {
  local folder=$1 cache=$2 release verb status=0 result times=$1/times host
  host=$(sed -nE 's/^VERSION_CODENAME=//p' /etc/os-release)
  cache_size=$(ccache --get-config max_size 2> /dev/null || true)  # the limit of this machine's user
  for release in $3; do
    local system=$folder/$release shared=$cache
    if [[ -n $cache && $release != "$host" ]]; then shared=$cache/$release; fi
    make_system "$release" "$system" "$shared"
    for verb in $4; do
      echo "bare: $release: ./run $verb" >&2
      result=0
      TIMEFORMAT='%0R s, %0U s of user CPU time'
      { time enter "$system" "$root/run" "$verb" 2>&3; } 3>&2 2> "$times" || result=$?
      if ((status == 0)); then status=$result; fi
      echo "$release: ./run $verb: $(cat "$times"), exit $result" >> "$folder/summary"
    done
  done
  return "$status"
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

main() {
  local releases=() verbs=() cache='' status=0
  while (($#)); do
    case $1 in
      --release)
        [[ ${2:-} =~ ^[a-z]+$ ]] || refuse "--release: not a name; expected a release of Debian such as trixie"
        releases+=("$2")
        shift
        ;;
      --ccache)
        [[ -d ${2:-} ]] || refuse "--ccache ${2:-}: no such folder; expected a compiler cache"
        cache=$(realpath -- "$2")
        shift
        ;;
      -h | --help) usage && exit 0 ;;
      demo | build | test | bench | lint | soak) verbs+=("$1") ;;
      *) refuse "$1: unknown; expected --release, --ccache, demo, build, test, bench, lint or soak" ;;
    esac
    shift
  done
  if ((${#releases[@]} == 0)); then releases=(bookworm trixie); fi
  if ((${#verbs[@]} == 0)); then verbs=(demo test); fi
  [[ $(id -u) == 0 ]] || refuse "needs root, for chroot and mounts"
  command -v debootstrap > /dev/null || refuse "needs debootstrap; install it with apt-get install debootstrap"
  [[ -e $keyring ]] || refuse "$keyring: missing; install it with apt-get install debian-archive-keyring"
  unshare --mount --pid --fork true 2> /dev/null || refuse "needs the right to mount (CAP_SYS_ADMIN), which this container lacks"
  git -C "$root" rev-parse --quiet --verify HEAD > /dev/null || refuse "$root: no git repository; expected a clone"
  # debootstrap and wget use apt's proxy.
  if [[ -z ${http_proxy:-} ]]; then eval "$(apt-config shell http_proxy Acquire::http::Proxy)"; fi
  export http_proxy
  local release file
  for release in "${releases[@]}"; do
    file=$(mirror_of "$release")/dists/$release/InRelease
    wget --quiet --spider "$file" ||
      refuse "--release $release: $file cannot be fetched; expected a release that the mirror has"
  done
  if [[ -n $(git -C "$root" status --porcelain) ]]; then echo "bare: uncommitted changes are not included" >&2; fi

  folder=$(mktemp -d "${TMPDIR:-/var/tmp}/fovea-bare.XXXXXX")
  trap stop EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  unshare --mount --pid --fork --kill-child "$0" --inside "$folder" "$cache" "${releases[*]}" "${verbs[*]}" 3>&2 2> /dev/null &  # hides unshare's message when it is killed
  outer=$!
  wait "$outer" || status=$?
  outer=
  cat "$folder/summary" 2> /dev/null || true
  return "$status"
}

if [[ ${1:-} == --inside ]]; then
  shift
  exec 2>&3 3>&-
  inside "$@"
  exit
else
  main "$@"
  exit  # bash stops reading here, so the file may change meanwhile
fi
