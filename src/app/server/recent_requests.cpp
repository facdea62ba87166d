#include "app/server/recent_requests.h"

namespace takt::server {

Result<control::Accepted> RecentRequests::once(std::uint32_t uid, const std::string& id,
                                               const std::string& body, const Submit& submit) {
  const Key key{uid, id};
  const std::size_t hash = std::hash<std::string>()(body);
  {
    std::unique_lock lock(mutex_);
    forget_old();
    // The first one may fail: then it is gone, and the next one is the first.
    changed_.wait(lock, [&] {
      const auto it = entries_.find(key);
      return it == entries_.end() || it->second.done;
    });
    const auto it = entries_.find(key);
    if (it != entries_.end() && it->second.body != hash)
      return fail(
          ErrorKind::conflict,
          "request_id: '" + id + "' was used for another submission: choose a new one for each");
    if (it != entries_.end()) return control::Accepted{{}, it->second.jobs, it->second.warnings};
    entries_[key].body = hash;
  }
  auto accepted = submit();
  {
    const std::lock_guard lock(mutex_);
    if (accepted) {
      Entry& entry = entries_[key];
      entry.done = true;
      entry.jobs = accepted->jobs;
      entry.warnings = accepted->warnings;
      entry.at = std::chrono::steady_clock::now();
      order_.push_back(key);
    } else {
      entries_.erase(key);
    }
  }
  changed_.notify_all();
  return accepted;
}

void RecentRequests::forget_old() {
  const auto now = std::chrono::steady_clock::now();
  while (!order_.empty() && (order_.size() > limits_.requests_max ||
                             now - entries_.at(order_.front()).at > limits_.age_max)) {
    entries_.erase(order_.front());
    order_.pop_front();
  }
}

}  // namespace takt::server
