#pragma once
// Pieces of a job's output, for `takt logs` and `takt run`. Only the owner and admins may read it.
// What was dropped of a file that became too large (edge/launch/shim/log_cap.h) is a sentence in
// its place, and offsets count the file's bytes and not the sentence's.
#include <stop_token>
#include <string>

#include "app/server/archive.h"
#include "app/server/controller.h"

namespace takt::server {

struct LogRequest {
  JobId job;
  bool stderr_stream = false;
  std::int64_t offset = 0;  // bytes; beyond the end of the file it means the end
  Duration wait;            // for something new, when there is nothing at `offset` yet
  std::uint32_t uid = 0;    // who asks
  bool admin = false;
};

struct LogPiece {
  std::string bytes;  // at most 256 KiB
  std::int64_t next_offset = 0;
  bool ended = false;  // nothing more will come
};

// What is at `offset` of the file at `path`, without waiting; nothing when there is no such file.
// `log_max` is for the sentence.
Result<LogPiece> read_log_file(const std::string& path, std::int64_t offset, Bytes log_max);

// `archive` may be null: then only the live state is looked at.
Result<LogPiece> read_log(const Controller& controller, const Archivist* archive,
                          const LogRequest& request, std::stop_token stop);

}  // namespace takt::server
