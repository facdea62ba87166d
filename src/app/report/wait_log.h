#pragma once
// Remembers what jobs waited for while somebody looked: a started job's view no longer tells. Fed
// by whoever polls the jobs; the times are as exact as the polling.
#include <map>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"
#include "core/control/view.h"
#include "core/model/blocker.h"

namespace takt::report {

class WaitLog {
 public:
  // The time since the last look is booked to the blockers that a job had then.
  void look(const std::vector<control::JobView>& jobs, Instant now);

  struct Wait {
    std::map<BlockerKind, Duration> times;  // a job with two blockers has both times in full
    std::map<BlockerKind, Blocker> last;    // as it was last seen
  };
  // By job; only jobs that were seen waiting.
  const std::map<JobId, Wait>& waits() const { return waits_; }

 private:
  std::map<JobId, Wait> waits_;
  std::map<JobId, std::vector<BlockerKind>> open_;  // blockers at the last look
  Instant last_;
};

}  // namespace takt::report
