// takt cancel
#include <fmt/core.h>

#include <algorithm>

#include "app/cli/commands.h"
#include "app/cli/session.h"
#include "edge/codec/api_json.h"

namespace takt::cli {
namespace {

Result<std::vector<std::string>> own_jobs(Session& session) {
  auto status = session.get("/v1/status");
  if (!status) return tl::make_unexpected(status.error());
  auto me = codec::read_status(status->body);
  if (!me) return tl::make_unexpected(me.error());
  auto jobs = session.get("/v1/jobs", {{"user", me->caller}});
  if (!jobs) return tl::make_unexpected(jobs.error());
  auto briefs = codec::read_jobs(jobs->body);
  if (!briefs) return tl::make_unexpected(briefs.error());
  std::vector<std::string> ids;
  for (const codec::JobBrief& job : *briefs) ids.push_back(to_string(job.id));
  return ids;
}

}  // namespace

int cancel(const std::vector<std::string>& given, bool all, bool json) {
  if (given.empty() && !all)
    return complain({ErrorKind::invalid, "give the numbers of the jobs to cancel, or --all"});
  Session session;
  std::vector<std::string> ids = given;
  if (all) {
    auto own = own_jobs(session);
    if (!own) return complain(own.error());
    ids = *own;
    // The last ones first: nothing that waits starts while the others are being ended.
    std::reverse(ids.begin(), ids.end());
  }
  int code = kExitFine;
  for (const std::string& id : ids) {
    auto reply = session.post("/v1/jobs/" + http::percent_encoded(id) + "/cancel", "");
    if (!reply) {
      // With --all a job may have ended by itself meanwhile.
      if (!all || reply.error().kind != ErrorKind::conflict) code = complain(reply.error());
      continue;
    }
    if (json) fmt::print("{}\n", reply->body);
  }
  if (!json && code == kExitFine)
    fmt::print("cancelled {} job{}\n", ids.size(), ids.size() == 1 ? "" : "s");
  return code;
}

}  // namespace takt::cli
