#!/usr/bin/env bash
# Runs every benchmark of build/release/bench one after the other; results in build/bench/*.json.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build/bench
for program in build/release/bench/*_bench; do
  name=$(basename "$program")
  printf 'takt: %s\n' "$name" >&2
  "$program" --out "build/bench/${name%_bench}.json"
done
