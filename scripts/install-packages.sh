#!/usr/bin/env bash
# Installs what is missing of the sections of packages.txt that are named as arguments.
# Says nothing, does nothing and needs no rights when nothing is missing.
#
#   scripts/install-packages.sh build run test
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
list=${TAKT_PACKAGES:-$here/packages.txt}
lock_wait_seconds_max=${TAKT_LOCK_WAIT:-600}

say() { printf 'takt: %s\n' "$*" >&2; }

# "name reason" for each package of the sections asked for.
wanted() {
  awk -v sections=" $* " '
    /^\[/ { gsub(/[][]/, ""); here = index(sections, " " $0 " ") > 0; next }
    here && NF && $1 !~ /^#/ { name = $1; sub(/^[^#]*#? */, ""); print name, $0 }' "$list"
}

# Of the names on standard input, those that dpkg does not know as installed.
missing_of() {
  local installed
  # dpkg-query fails when it has never heard of a name: that name is missing, which is the answer.
  # shellcheck disable=SC2016,SC2046
  installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
    awk '$1 == "installed" { print $2 }' || true)
  local name
  for name in "$@"; do
    grep -qxF -- "$name" <<<"$installed" || printf '%s\n' "$name"
  done
}

# Runs apt-get and waits for another package manager to finish instead of failing at once.
apt() {
  local began=$SECONDS told=no log status
  log=$(mktemp)
  while true; do
    status=0
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q "$@" >"$log" 2>&1 </dev/null ||
      status=$?
    if [ "$status" -eq 0 ]; then break; fi
    grep -Eq 'Could not get lock|Unable to (acquire|lock)' "$log" || break
    if [ $((SECONDS - began)) -ge "$lock_wait_seconds_max" ]; then break; fi
    if [ "$told" = no ]; then
      say "another package manager is at work; waiting for it (at most $lock_wait_seconds_max s)."
      told=yes
    fi
    sleep 2
  done
  apt_output=$(cat "$log")
  rm -f "$log"
  return "$status"
}

if [ $# -eq 0 ]; then
  say "usage: scripts/install-packages.sh SECTION... (the sections are in packages.txt)"
  exit 2
fi
needed=$(wanted "$@")
if [ -z "$needed" ]; then
  say "packages.txt has no section called '$*'."
  exit 2
fi
if ! command -v dpkg-query >/dev/null; then
  say "this is not a Debian system, so packages can't be installed for you. Install the equivalents of"
  say "the packages in packages.txt by hand, then use cmake --preset release and ninja -C build/release."
  exit 1
fi
mapfile -t names < <(cut -d' ' -f1 <<<"$needed")
mapfile -t missing < <(missing_of "${names[@]}")
[ "${#missing[@]}" -gt 0 ] || exit 0

command_line="apt-get update && apt-get install --no-install-recommends ${missing[*]}"
ask_an_administrator() {
  say "$1 Ask an administrator to run:"
  printf '    %s\n' "$command_line" >&2
  exit 1
}

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    ask_an_administrator "${#missing[@]} packages are missing, and installing them needs root; sudo is not here."
  if [ -t 0 ]; then may_ask=() refused="sudo refused you."; else
    may_ask=(-n) refused="sudo would have to ask for a password, and there is no terminal."
  fi
fi

say "installing ${#missing[@]} missing packages from Debian:"
for name in "${missing[@]}"; do
  printf '    %-22s %s\n' "$name" "$(awk -v n="$name" '$1 == n { print $2; exit }' <<<"$needed")" >&2
done
if [ "$(id -u)" -ne 0 ]; then
  # Asks for the password now, with the list of what it is for on the screen.
  sudo "${may_ask[@]}" true || ask_an_administrator "$refused"
  as_root=(sudo "${may_ask[@]}")
fi

# A source of somebody else that is broken must not stop us: what counts is whether the install works.
apt update || say "apt-get update had problems (a broken source in /etc/apt?); trying to install all the same."
if ! apt install -y --no-install-recommends "${missing[@]}"; then
  printf '%s\n' "$apt_output" | tail -n 20 >&2
  ask_an_administrator "apt-get could not install the packages; its last words are above."
fi
mapfile -t still < <(missing_of "${missing[@]}")
[ "${#still[@]}" -eq 0 ] || ask_an_administrator "apt-get said it was done, but these are still missing: ${still[*]}."
say "installed."
