// takt ps, takt why, takt workloads, takt summary: the server's tables.
#include "app/cli/commands.h"
#include "app/cli/session.h"

namespace takt::cli {

int ps(const PsFlags& flags) {
  Session session;
  Query query;
  if (flags.all) query["all"] = "true";
  if (!flags.user.empty()) query["user"] = flags.user;
  if (!flags.state.empty()) query["state"] = flags.state;
  // A terminal gets what fits a few screens; files and pipes get what the server gives unasked.
  if (flags.limit)
    query["limit"] = std::to_string(*flags.limit);
  else if (!flags.json && on_terminal())
    query["limit"] = "200";
  return print(session, "/v1/jobs", query, flags.json);
}

int why(const std::string& id, bool json) {
  Session session;
  return print(session, "/v1/jobs/" + http::percent_encoded(id), {}, json);
}

int workloads(bool json) {
  Session session;
  return print(session, "/v1/workloads", {}, json);
}

int summary() {
  Session session;
  return print(session, "/v1/jobs", {{"format", "day"}, {"all", "true"}}, false);
}

}  // namespace takt::cli
