#pragma once
// Pieces of a job's output, for `takt logs` and `takt run`. Only the owner and admins may read it.
#include <stop_token>
#include <string>

#include "app/server/controller.h"

namespace takt::server {

struct LogRequest {
  JobId job;
  bool stderr_stream = false;
  std::int64_t offset = 0;  // bytes
  Duration wait;            // for something new, when there is nothing at `offset` yet
  std::uint32_t uid = 0;    // who asks
  bool admin = false;
};

struct LogPiece {
  std::string bytes;  // at most 256 KiB
  std::int64_t next_offset = 0;
  bool ended = false;  // nothing more will come
};

Result<LogPiece> read_log(const Controller& controller, const LogRequest& request,
                          std::stop_token stop);

}  // namespace takt::server
