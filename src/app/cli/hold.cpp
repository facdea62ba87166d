// takt hold, takt release
#include "app/cli/commands.h"
#include "app/cli/each_job.h"

namespace takt::cli {

int hold(const std::vector<std::string>& ids, bool json) {
  return ask_of_each(ids, "hold", "held", json);
}

int release(const std::vector<std::string>& ids, bool json) {
  return ask_of_each(ids, "release", "released", json);
}

}  // namespace takt::cli
