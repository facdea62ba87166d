#include "app/cli/patience.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/model/quantity_text.h"

namespace takt::cli {
namespace {

constexpr std::chrono::milliseconds kPauseMin{100};
constexpr std::chrono::milliseconds kPauseMax{2000};
// Long polls ask for a second; a server that is silent for so much longer hangs.
constexpr Duration kAnswerMax = seconds(15);

}  // namespace

Patience::Patience(std::string goes_on, Duration at_most)
    : goes_on_(std::move(goes_on)), at_most_(at_most) {}

Result<http::Response> Patience::get(Session& session, const std::string& path,
                                     const Query& query) {
  const auto since = std::chrono::steady_clock::now();
  for (auto pause = kPauseMin;; pause = std::min(2 * pause, kPauseMax)) {
    Attempt attempt = session.attempt("GET", path, query, "", kAnswerMax);
    if (attempt.reached == Reached::yes) {
      answered();
      return std::move(attempt.answer);
    }
    const std::string sentence = attempt.answer ? "" : attempt.answer.error().message;
    if (!wait(attempt.reached, sentence, since, pause))
      return fail(ErrorKind::unavailable, sentence);
  }
}

bool Patience::wait(Reached reached, const std::string& sentence,
                    std::chrono::steady_clock::time_point since, std::chrono::milliseconds pause) {
  std::unique_lock lock(mutex_);
  if (left_) return false;
  const bool busy = reached == Reached::later;
  const Duration limit = busy ? std::max(at_most_, kBusyMax) : at_most_;
  const auto waited = std::chrono::steady_clock::now() - since;
  if ((!busy && !known_) || waited >= std::chrono::microseconds(limit.us)) {
    gave_up_ = true;
    return false;
  }
  if (busy && !std::exchange(busy_told_, true)) tell(sentence + " (trying again)");
  if (!busy && !std::exchange(away_, true))
    tell(fmt::format("the server is away: {}; waiting for it", goes_on_));
  changed_.wait_for(lock, pause, [this] { return left_; });
  return !left_;
}

void Patience::answered() {
  const std::lock_guard lock(mutex_);
  known_ = true;
  busy_told_ = false;
  if (std::exchange(away_, false)) tell("the server is back");
}

void Patience::known() {
  const std::lock_guard lock(mutex_);
  known_ = true;
}

void Patience::leave() {
  {
    const std::lock_guard lock(mutex_);
    left_ = true;
  }
  changed_.notify_all();
}

bool Patience::left() const {
  const std::lock_guard lock(mutex_);
  return left_;
}

bool Patience::away() const {
  const std::lock_guard lock(mutex_);
  return away_;
}

bool Patience::gave_up() const {
  const std::lock_guard lock(mutex_);
  return gave_up_;
}

Result<Duration> reconnect_time(const std::string& text) {
  auto time = parse_duration(text);
  if (time && time->us >= 0) return time;
  return fail(ErrorKind::invalid,
              fmt::format("--reconnect: '{}' is not a duration, e.g. 5m", text));
}

}  // namespace takt::cli
