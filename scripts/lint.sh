#!/usr/bin/env bash
# Checks layout (clang-format), code (clang-tidy) and scripts (shellcheck).
# clang-tidy reads the .cpp files that differ from main, and one .cpp for each header that does;
# with ALL=1 every file. A file that passed is not read again until it, a header it reaches or the
# rules change: build/lint/ keeps an empty file named by the hash of all of these.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs=${JOBS:-$(nproc)}
passed=build/lint
mkdir -p "$passed"
say() { printf 'takt: %s\n' "$*" >&2; }

folders=()
for folder in src emulator tests bench; do [ -d "$folder" ] && folders+=("$folder"); done
mapfile -t code < <(find "${folders[@]}" -name '*.cpp' -o -name '*.h' -o -name '*.c' | sort)
mapfile -t scripts < <(find scripts .ci -type f \( -name '*.sh' -o -name run \) | sort)

bad=0
if [ "${#code[@]}" -gt 0 ]; then
  mapfile -t unlaid < <(clang-format --dry-run -Werror "${code[@]}" 2>&1 |
    sed -n 's/^\([^: ]*\):[0-9]*:[0-9]*: error: .*/\1/p' | sort | uniq -c | awk '{ print $2 " (" $1 " places)" }')
  if [ "${#unlaid[@]}" -gt 0 ]; then
    printf '%s\n' "${unlaid[@]}" >&2
    say "layout: ${#unlaid[@]} files differ from .clang-format; 'make format' puts them right"
    bad=1
  fi
fi
shellcheck "${scripts[@]}" || bad=1

# What differs from main: commits, changes and new files. Without a main to compare with: everything.
changed() {
  local base=''
  for branch in origin/main main; do
    if base=$(git merge-base HEAD "$branch" 2>/dev/null); then break; fi
  done
  if [ "${ALL:-0}" = 1 ] || [ -z "$base" ]; then
    printf '%s\n' "${code[@]}"
  else
    { git diff --name-only "$base"; git ls-files --others --exclude-standard; } | sort -u
  fi
}

# For each .cpp: itself and the project's headers that it reaches, on one line.
reach() {
  printf '%s\n' "${code[@]}" | awk '
    function resolve(from, name,   folder) {
      if (("src/" name) in known) return "src/" name
      if (("tests/" name) in known) return "tests/" name
      if (name in known) return name
      folder = from; sub(/[^\/]*$/, "", folder)
      return (folder name) in known ? folder name : ""
    }
    function walk(file, root,   i, parts, n) {
      if (seen[root, file]) return
      seen[root, file] = 1
      line = line " " file
      n = split(includes[file], parts, " ")
      for (i = 1; i <= n; i++) walk(parts[i], root)
    }
    { known[$0] = 1; order[NR] = $0 }
    END {
      for (i = 1; i <= NR; i++) {
        file = order[i]
        while ((getline text < file) > 0)
          if (match(text, /^ *# *include *"[^"]+"/)) {
            name = substr(text, RSTART, RLENGTH); gsub(/^[^"]*"|"$/, "", name)
            target = resolve(file, name)
            if (target != "") includes[file] = includes[file] " " target
          }
        close(file)
      }
      for (i = 1; i <= NR; i++)
        if (order[i] ~ /\.cpp$/) { line = ""; walk(order[i], order[i]); print substr(line, 2) }
    }'
}

# The .cpp lines of reach() that must be read for the changed files.
selected() {
  awk '
    FNR == NR { changed[$0] = 1; next }
    { lines[++n] = $0 }
    END {
      for (i = 1; i <= n; i++) {
        split(lines[i], file, " ")
        if (file[1] in changed) { take[i] = 1; for (k = 2; k in file; k++) delete changed[file[k]] }
      }
      for (i = 1; i <= n; i++) {
        count = split(lines[i], file, " ")
        for (k = 2; k <= count; k++)
          if (file[k] in changed) { take[i] = 1; delete changed[file[k]] }
      }
      for (i = 1; i <= n; i++) if (take[i]) print lines[i]
    }' <(changed) <(reach)
}

rules=$(cat .clang-tidy cmake/Toolchain.cmake; clang-tidy --version)
work=$(mktemp)
trap 'rm -f "$work"' EXIT
total=0
while read -r -a files; do
  grep -qF "/${files[0]}\"" build/release/compile_commands.json || continue  # built by nobody
  total=$((total + 1))
  key=$({ printf '%s' "$rules"; sha256sum "${files[@]}"; } | sha256sum | cut -c1-40)
  [ -e "$passed/$key" ] || printf '%s %s\n' "$key" "${files[0]}" >>"$work"
done < <(selected)

todo=$(wc -l <"$work")
if [ "$todo" -gt 0 ]; then
  say "clang-tidy reads $todo of $total files"
  # Only what was found is shown, a line each; the notes around it are in the output of clang-tidy.
  # shellcheck disable=SC2016
  xargs -P "$jobs" -L 1 bash -c '
    said=$(clang-tidy --quiet -p build/release "$2" 2>&1) && { : >"$0/$1"; exit 0; }
    found=$(printf "%s\n" "$said" | grep -E "^[^ ]+:[0-9]+:[0-9]+: (error|warning): " | sort -u)
    printf "%s\n" "${found:-$said}" | sed -e "s,^$PWD/,," -e "t" -e "s,^,while reading ${2#"$PWD"/}: ,"
    exit 1' "$passed" <"$work" || bad=1
fi
if [ "$bad" -ne 0 ]; then say "lint found something; see above"; exit 1; fi
say "lint is clean (${#code[@]} files laid out, $total read by clang-tidy)"
