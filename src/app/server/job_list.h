#pragma once
// Jobs as people ask for them, wherever they are: in the live state or in the archive.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/server/archive.h"

namespace takt::server {

struct JobsAsked {
  bool finished = false;  // those too
  std::string user;       // empty: everybody's
  std::string state;      // empty: any; else as control::to_string writes it
  // All that are not over are given, and of those that are so many that it makes this number; 0:
  // every one.
  std::size_t limit = kListed;
  std::optional<Instant> ended_from;  // of those in the archive

  static constexpr std::size_t kListed = 1'000;
};

struct JobsFound {
  std::vector<control::JobView> jobs;  // by number
  std::uint64_t hidden = 0;            // that are over and fit, beyond the limit: the older ones
};

// `archive` may be null: then only the live state is looked at.
Result<JobsFound> find_jobs(const Controller& controller, const Archivist* archive,
                            const JobsAsked& asked);
Result<std::optional<control::JobView>> find_job(const Controller& controller,
                                                 const Archivist* archive, JobId id);

}  // namespace takt::server
