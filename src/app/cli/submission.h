#pragma once
// Sending a submission so that no job is left which the user was not told of: an answer that is
// lost is asked for again under the same request id, and Ctrl-C waits for the answer first.
#include <optional>
#include <string>

#include "app/cli/session.h"
#include "edge/codec/api_json.h"

namespace takt::cli {

// SIGINT and SIGTERM, from now on, as a readable descriptor; threads that are started later inherit
// that. To be called before a job can exist.
int signal_descriptor();
// The signal that is waiting there.
int read_signal(int signals);

struct Sent {
  std::optional<int> code;  // set: there is no answer, why was said, and this is the exit code
  std::string answer;       // the server's document
  int signal = 0;           // came while the answer was awaited
};

// Gives the request an id of its own. `signals`: of signal_descriptor.
Sent send_submission(codec::SubmitRequest request, const Query& query, int signals);

}  // namespace takt::cli
