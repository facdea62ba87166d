// takt cancel
#include <fmt/core.h>

#include "app/cli/commands.h"
#include "app/cli/session.h"
#include "edge/codec/api_json.h"

namespace takt::cli {
namespace {

int cancel_all(bool json) {
  Session session;
  auto reply = session.post("/v1/jobs/cancel", "");
  if (!reply) return complain(reply.error());
  if (json) {
    fmt::print("{}\n", reply->body);
    return kExitFine;
  }
  auto ids = codec::read_cancel_reply(reply->body);
  if (!ids) return complain(ids.error());
  fmt::print("cancelled {} job{}\n", ids->size(), ids->size() == 1 ? "" : "s");
  return kExitFine;
}

}  // namespace

int cancel(const std::vector<std::string>& ids, bool all, bool json) {
  if (ids.empty() && !all)
    return complain({ErrorKind::invalid, "give the numbers of the jobs to cancel, or --all"});
  if (all) return cancel_all(json);
  Session session;
  int code = kExitFine;
  for (const std::string& id : ids) {
    auto reply = session.post("/v1/jobs/" + http::percent_encoded(id) + "/cancel", "");
    if (!reply)
      code = complain(reply.error());
    else
      fmt::print("{}\n", json ? reply->body : "cancelled job " + id);
  }
  return code;
}

}  // namespace takt::cli
