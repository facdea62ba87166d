// takt cancel
#include <fmt/core.h>

#include "app/cli/commands.h"
#include "app/cli/each_job.h"
#include "app/cli/output.h"
#include "app/cli/session.h"
#include "edge/codec/api_json.h"

namespace takt::cli {
namespace {

int cancel_all(bool json) {
  Session session;
  auto reply = session.post("/v1/jobs/cancel", "");
  if (!reply) return complain(reply.error());
  if (json) return put(reply->body + "\n");
  const auto answer = codec::read_changed_reply(reply->body, "cancelled");
  if (!answer) return complain(answer.error());
  const std::size_t jobs = answer->ids.size();
  return put(fmt::format("cancelled {} job{}\n", jobs, jobs == 1 ? "" : "s"));
}

}  // namespace

int cancel(const std::vector<std::string>& ids, bool all, bool json) {
  if (ids.empty() == !all)
    return complain(
        {ErrorKind::invalid,
         "give either the numbers of the jobs to cancel, or --all for all of your own"});
  return all ? cancel_all(json) : ask_of_each(ids, "cancel", "cancelled", json);
}

}  // namespace takt::cli
