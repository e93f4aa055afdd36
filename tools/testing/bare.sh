#!/usr/bin/env bash
# Runs verbs of ./run on the committed tree in minimal Debian systems, in which only git is installed beforehand.
set -euo pipefail
verb=bare
# shellcheck source=tools/testing/systems.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/systems.sh"

usage() {
  cat << 'TEXT'
usage: ./run bare [--release NAME]... [--ccache DIR] [VERB...]

Creates a minimal Debian system (debootstrap --variant=minbase) with git only, copies the committed tree into it
and runs each VERB of ./run; default: demo and test. Prints the time of each. Needs root.

  --release NAME   bookworm (Debian 12) or trixie (Debian 13); default: both
  --ccache DIR     compiler cache to share with the systems; releases other than this machine's use DIR/NAME
TEXT
}

# inside FOLDER CACHE RELEASES VERBS: each list is one argument. Exits with the first status other than 0.
inside() {
  local folder=$1 cache=$2 release each status=0 result times=$1/times
  for release in $3; do
    local system=$folder/$release
    make_base "$release" "$system"
    mount_system "$system" "$(cache_of "$release" "$cache")"
    install_packages "$system" git
    clone_tree "$system"
    for each in $4; do
      echo "bare: $release: ./run $each" >&2
      result=0
      TIMEFORMAT='%0R s, %0U s of user CPU time'
      { time enter "$system" "$root/run" "$each" 2>&3; } 3>&2 2> "$times" || result=$?
      if ((status == 0)); then status=$result; fi
      echo "$release: ./run $each: $(cat "$times"), exit $result" >> "$folder/summary"
    done
  done
  return "$status"
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
  check_machine "${releases[@]}"
  if [[ -n $(git -C "$root" status --porcelain) ]]; then echo "bare: uncommitted changes are not included" >&2; fi

  in_namespaces "$cache" "${releases[*]}" "${verbs[*]}" || status=$?
  cat "$folder/summary" 2> /dev/null || true
  return "$status"
}

start "$@"; exit  # bash stops reading here, so the file may change meanwhile
