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

# ninja's own dry run cannot tell that there is nothing to do (it would look for new files first), so
# its words are read as they come: the first real step is announced, no step is no word. A terminal
# sees each step in place; elsewhere every 10 % is shown.
terminal=0
[ -t 1 ] && terminal=1
NINJA_STATUS='[%f/%t %es] ' ninja -C "$folder" -j "$jobs" "$@" 2>&1 | awk -v terminal="$terminal" \
  -v what="takt: building $folder with $jobs jobs" '
  /^ninja: (Entering|no work)/ || /Re-checking globbed|Re-running CMake/ { next }
  match($0, /^\[[0-9]+\/[0-9]+ /) {
    if (!begun++) print what
    if (terminal) { printf "\r\033[K%s", substr($0, 1, 100); fflush(); next }
    split(substr($0, 2, RLENGTH - 2), n, "/")
    tenth = int(10 * n[1] / n[2])
    if (tenth != last) { print; fflush(); last = tenth }
    next
  }
  { if (terminal && begun) print ""; print; fflush() }
  END { if (terminal && begun) print "" }'
