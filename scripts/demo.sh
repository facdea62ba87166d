#!/usr/bin/env bash
# A mixed day in small, in front of the user: discovers the GPUs, submits examples/mixed-day as real
# processes, shows the queue move, and prints what was measured. Leaves nothing running or on disk,
# unless --keep is given: then the server stays up and the last lines say how to talk to it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
keep=no
for argument in "$@"; do
  case $argument in
    --keep) keep=yes ;;
    *) printf 'takt: demo.sh knows --keep only, not %s\n' "$argument" >&2; exit 2 ;;
  esac
done

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

state=$(mktemp -d "${TMPDIR:-/tmp}/takt-demo.XXXXXX")
export TAKT_SOCKET=$state/takt.sock
export PATH=$root/build/release:$PATH
server=''

# Ends what this script started: the jobs through takt, the server by its process id.
clean_up() {
  local status=$?
  trap - EXIT INT TERM
  if [ "$keep" = yes ] && [ "$status" -eq 0 ] && [ -n "$server" ]; then exit 0; fi
  if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then
    takt cancel --all >/dev/null 2>&1 || true
    # The services are stopping; the server leaves when none of its jobs is left.
    for _ in $(seq 200); do
      [ "$(takt ps | wc -l)" -le 1 ] && break
      sleep 0.1
    done
    kill -TERM "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  if [ "$status" -ne 0 ] && [ -s "$state/serve.log" ]; then
    echo "takt: the server's last words:" >&2
    tail -n 20 "$state/serve.log" >&2
  fi
  rm -rf "$state"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A real driver is one whose library can be loaded and whose device node is there.
if [ -e /dev/nvidiactl ] && ldconfig -p 2>/dev/null | grep -q 'libnvidia-ml\.so\.1'; then
  say "This machine has an NVIDIA driver: using its GPUs."
else
  say "no NVIDIA driver: using an emulated fleet (emulator/fleets/small-team.yaml)"
  export TAKT_NVML=$root/build/release/emulator/libnvidia-ml.so.1
  export TAKT_EMULATED_FLEET=$root/emulator/fleets/small-team.yaml
fi

# In a session of its own: Ctrl-C reaches this script, which ends the jobs before the server.
setsid takt serve --user --state-dir "$state" --sample 200ms >"$state/serve.log" 2>&1 &
server=$!
for _ in $(seq 100); do
  if takt ps >/dev/null 2>&1; then break; fi
  kill -0 "$server" 2>/dev/null || { echo "takt: the server did not start" >&2; exit 1; }
  sleep 0.1
done
takt ps >/dev/null || { echo "takt: the server did not answer within 10 s" >&2; exit 1; }

say "The GPUs that takt discovered (takt gpus)"
takt gpus
say "A mixed day: two serving replicas, a two-GPU training gang, 40 batch tasks, five experiments"
for file in examples/mixed-day/[0-9]*.yaml; do
  echo "takt submit $file"
  takt submit "$file"
done
say "The queue moves (takt top)"
takt top --until-idle
say "The day (takt summary): what ran, who waited why, what was measured, what could be smaller"
takt summary

if [ "$keep" = yes ]; then
  disown "$server"
  say "The server stays up. Talk to it:"
  cat <<EOT
    export TAKT_SOCKET=$TAKT_SOCKET PATH=$root/build/release:\$PATH
    takt ps
Stop it, its jobs and its files:
    takt cancel --all; kill $server; rm -r $state
EOT
  exit 0
fi
say "Done: ending the services and the server; nothing is left running."
