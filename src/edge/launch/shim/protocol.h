#pragma once
// What launcher and shim agree on: names of the files of a record folder and of their fields. The
// prose is docs/formats/shim.md. A shim outlives upgrades of the agent: change a meaning only with
// a new version, and keep reading the old ones.
#include <cstddef>
#include <string_view>

namespace takt::shim {

// What is written. Fields are added without a new version where a reader may pass over them.
inline constexpr char protocol_version[] = "1";
// What is read: this version and those of older releases, whose shims may still run.
inline constexpr std::string_view versions_known[] = {"1"};
constexpr bool knows_version(std::string_view version) {
  for (const std::string_view known : versions_known) {
    if (version == known) return true;
  }
  return false;
}

// Files of a record folder `<records>/<job>.<attempt>/`.
inline constexpr char spec_file[] = "spec";              // launcher → shim
inline constexpr char stop_file[] = "stop";              // launcher → shim
inline constexpr char lock_file[] = "shim.lock";         // held by the shim all its life
inline constexpr char job_file[] = "job";                // shim → launcher, before exec
inline constexpr char exit_file[] = "exit";              // shim → launcher, at the end
inline constexpr char exit_reserve_file[] = "exit.new";  // room kept for `exit` on a full disk

// First field of each file; its value is protocol_version.
inline constexpr char spec_head[] = "takt-shim-spec";
inline constexpr char stop_head[] = "takt-shim-stop";
inline constexpr char job_head[] = "takt-shim-job";
inline constexpr char exit_head[] = "takt-shim-exit";

// Fields of `spec` end in NUL (the environment may hold line breaks), those of the others in '\n'.
inline constexpr char spec_end = '\0';
inline constexpr char record_end = '\n';

// execve itself refuses more than 6 MiB of arguments and environment (a quarter of the 24 MiB that
// Linux allows at most, fs/exec.c).
inline constexpr std::size_t spec_bytes_max = std::size_t{8} << 20;
inline constexpr std::size_t record_bytes_max = 4096;
inline constexpr std::size_t message_bytes_max = 1024;

// The shim's answer on the readiness pipe: one word, for `failed` a blank and a sentence.
inline constexpr char answer_started[] = "started";
inline constexpr char answer_known[] = "known";  // a job or exit record is there: nothing was done
inline constexpr char answer_busy[] = "busy";    // another shim holds the lock: nothing was done
inline constexpr char answer_recorded[] = "recorded";  // failed, and `exit` says why
inline constexpr char answer_failed[] = "failed";      // failed, and it could not be put on record

// The shim finds the readiness pipe here.
inline constexpr int ready_fd = 3;

}  // namespace takt::shim
