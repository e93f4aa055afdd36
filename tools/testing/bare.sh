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

The verb wheel installs Debian's Python and NumPy, then the package in build/dist, which ./run wheel has made, and
chats with a model; the last two are timed.

  --release NAME   bookworm (Debian 12) or trixie (Debian 13); default: both
  --ccache DIR     compiler cache to share with the systems; releases other than this machine's use DIR/NAME
TEXT
}

# prepare_wheel SYSTEM: a Python with NumPy, the wheels, and a small model.
prepare_wheel() {
  install_packages "$1" python3-venv python3-numpy
  mkdir "$1/wheels"
  cp "$root"/build/dist/fovea_lm-*.whl "$1/wheels"
  "$root/build/release/fovea" train "$root/LICENSE" --out "$1/model" --preset tiny --context 256 --steps 20 --sample-every 0 >> "$1.log" 2>&1
  cat > "$1/chat.py" << PYTHON
import fovea
model = fovea.load("/model", chat_template="$root/tests/goldens/chat_templates/chatml.jinja")
answer = model.chat([{"role": "user", "content": "What is a fovea?"}], max_tokens=20)
print(fovea.__version__, repr(answer["choices"][0]["message"]["content"]))
PYTHON
}

# run_verb SYSTEM VERB
run_verb() {
  if [[ $2 != wheel ]]; then
    enter "$1" "$root/run" "$2"
  else
    enter "$1" sh -c 'python3 -m venv --system-site-packages /python &&
      /python/bin/pip install -q --no-index --find-links /wheels fovea-lm && /python/bin/python /chat.py'
  fi
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
      if [[ $each == wheel ]]; then prepare_wheel "$system"; fi
      echo "bare: $release: ./run $each" >&2
      result=0
      TIMEFORMAT='%0R s, %0U s of user CPU time'
      { time run_verb "$system" "$each" 2>&3; } 3>&2 2> "$times" || result=$?
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
      wheel)
        compgen -G "$root/build/dist/fovea_lm-*.whl" > /dev/null || refuse "wheel: build/dist has none; expected those that ./run wheel makes"
        verbs+=("$1")
        ;;
      *) refuse "$1: unknown; expected --release, --ccache, demo, build, test, bench, lint, soak or wheel" ;;
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
