// takt hold, takt release
#include <fmt/core.h>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/cli/session.h"
#include "edge/codec/api_json.h"

namespace takt::cli {
namespace {

// The same for each job; a refusal does not keep the others from it.
int for_each_job(const std::vector<std::string>& ids, const std::string& verb,
                 const std::string& done) {
  Session session;
  int code = kExitFine;
  std::string text;
  for (const std::string& id : ids) {
    auto reply = session.post("/v1/jobs/" + http::percent_encoded(id) + "/" + verb, "");
    if (!reply)
      code = complain(reply.error());
    else
      text += fmt::format("{} job {}\n", done, id);
  }
  return put(text, code);
}

}  // namespace

int hold(const std::vector<std::string>& ids) { return for_each_job(ids, "hold", "held"); }

int release(const std::vector<std::string>& ids) {
  return for_each_job(ids, "release", "released");
}

}  // namespace takt::cli
