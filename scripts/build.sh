#!/usr/bin/env bash
# Configures and builds a preset; silent when there is nothing to do.
#
#   scripts/build.sh PRESET [TARGET...]       no target: everything, tests included
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=$1
shift
folder=build/$preset
jobs=${JOBS:-$(nproc)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

say() { printf 'takt: %s\n' "$*" >&2; }
# Runs quietly; shows what was said only when it failed.
quietly() {
  "$@" >"$log" 2>&1 && return 0
  cat "$log" >&2
  say "'$*' failed; its words are above."
  exit 1
}

if [ ! -f "$folder/build.ninja" ]; then
  say "configuring $folder"
  quietly cmake --preset "$preset"
fi
# Re-reads the lists of files where files came or went, so that the count below is right.
quietly ninja -C "$folder" build.ninja
if ! ninja -C "$folder" -n "$@" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
if grep -q 'no work to do' "$log"; then exit 0; fi

say "building $folder with $jobs jobs"
began=$SECONDS
# Each step's line is overwritten by the next on a terminal; without one, only every 10 % is shown.
if [ -t 1 ]; then
  NINJA_STATUS='[%f/%t %es] ' ninja -C "$folder" -j "$jobs" "$@"
else
  set -o pipefail
  NINJA_STATUS='[%f/%t %es] ' ninja -C "$folder" -j "$jobs" "$@" | awk '
    match($0, /^\[[0-9]+\/[0-9]+ /) {
      split(substr($0, 2, RLENGTH - 2), n, "/")
      tenth = int(10 * n[1] / n[2])
      if (tenth != last) { print; fflush(); last = tenth }
      next
    }
    !/^ninja: Entering/ { print; fflush() }'
fi
say "built in $((SECONDS - began)) s"
