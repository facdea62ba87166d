#include "app/cli/each_job.h"

#include <fmt/core.h>

#include "app/cli/output.h"
#include "app/cli/session.h"
#include "edge/codec/api_json.h"
#include "takt_version.h"

namespace takt::cli {

int ask_of_each(const std::vector<std::string>& ids, const std::string& verb, const char* done,
                bool json) {
  Session session;
  std::vector<JobId> changed;
  std::vector<std::string> warnings;
  std::vector<codec::Refusal> refused;
  std::string text;
  int code = kExitFine;
  for (const std::string& id : ids) {
    const Result<http::Response> reply =
        session.wait("POST", "/v1/jobs/" + http::percent_encoded(id) + "/" + verb, "");
    const auto answer = reply ? codec::read_changed_reply(reply->body, done)
                              : Result<codec::ChangedReply>(tl::make_unexpected(reply.error()));
    if (answer) {
      changed.insert(changed.end(), answer->ids.begin(), answer->ids.end());
      warnings.insert(warnings.end(), answer->warnings.begin(), answer->warnings.end());
      for (const std::string& warning : answer->warnings)
        std::fprintf(stderr, "takt: %s\n", warning.c_str());
      text += fmt::format("{} job {}\n", done, id);
      continue;
    }
    refused.push_back({id, answer.error().message});
    code = complain(answer.error());
    if (!session.server_there()) {
      code = kExitNoServer;
      break;
    }
  }
  if (json) text = codec::acted_json({TAKT_VERSION, warnings}, done, changed, refused) + "\n";
  return put(text, code);
}

}  // namespace takt::cli
