// takt cancel
#include <fmt/core.h>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/cli/session.h"
#include "edge/codec/api_json.h"
#include "takt_version.h"

namespace takt::cli {
namespace {

int cancel_all(bool json) {
  Session session;
  auto reply = session.post("/v1/jobs/cancel", "");
  if (!reply) return complain(reply.error());
  if (json) return put(reply->body + "\n");
  auto ids = codec::read_cancel_reply(reply->body);
  if (!ids) return complain(ids.error());
  return put(fmt::format("cancelled {} job{}\n", ids->size(), ids->size() == 1 ? "" : "s"));
}

// One after the other; what is refused does not stop the rest.
int cancel_each(const std::vector<std::string>& ids, bool json) {
  Session session;
  std::vector<JobId> done;
  std::vector<codec::Refusal> refused;
  std::string text;
  int code = kExitFine;
  for (const std::string& id : ids) {
    const Result<http::Response> reply =
        session.wait("POST", "/v1/jobs/" + http::percent_encoded(id) + "/cancel", "");
    const auto cancelled = reply ? codec::read_cancel_reply(reply->body)
                                 : Result<std::vector<JobId>>(tl::make_unexpected(reply.error()));
    if (cancelled) {
      done.insert(done.end(), cancelled->begin(), cancelled->end());
      text += "cancelled job " + id + "\n";
      continue;
    }
    refused.push_back({id, cancelled.error().message});
    code = complain(cancelled.error());
    if (!session.server_there()) {
      code = kExitNoServer;
      break;
    }
  }
  if (json) text = codec::acted_json({TAKT_VERSION, {}}, "cancelled", done, refused) + "\n";
  return put(text, code);
}

}  // namespace

int cancel(const std::vector<std::string>& ids, bool all, bool json) {
  if (ids.empty() == !all)
    return complain(
        {ErrorKind::invalid,
         "give either the numbers of the jobs to cancel, or --all for all of your own"});
  return all ? cancel_all(json) : cancel_each(ids, json);
}

}  // namespace takt::cli
