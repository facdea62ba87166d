#include "core/replay/users.h"

namespace takt::replay {
namespace {

constexpr Duration kPatience = seconds(8);  // then a client asks again, with the same request id

}  // namespace

control::Identity user(int number) {
  static const char* const names[] = {"root", "alice", "bob", "carol"};
  control::Identity who;
  who.uid = number < 0 ? 0 : static_cast<std::uint32_t>(1000 + number);
  who.gid = who.uid;
  who.user = names[number + 1];
  who.home = "/home/" + who.user;
  return who;
}

void Users::submit(JobSpec spec, const control::Identity& who) {
  control::Submit command{std::move(spec), who, Tier::batch, ""};
  command.request = "request-" + std::to_string(next_token_);
  ask(std::move(command));
}

void Users::cancel(JobId job, const control::Identity& who) {
  promises_.asked_to_cancel.insert(job);
  ask(control::Cancel{job, who, who.uid == 0});
}

void Users::cancel_all(const control::Identity& who) {
  promises_.cancelled_all.insert(who.uid);
  ask(control::CancelAll{who});
}

void Users::hold(JobId job, const control::Identity& who) {
  ask(control::HoldJob{job, who, who.uid == 0});
}

void Users::release(JobId job, const control::Identity& who) {
  ask(control::ReleaseJob{job, who, who.uid == 0});
}

std::optional<JobId> Users::a_job(Random& random) const {
  if (promises_.jobs.empty()) return std::nullopt;
  // Mostly one of the newest: the others are over.
  const std::size_t size = promises_.jobs.size();
  auto it = promises_.jobs.end();
  std::advance(it, -1 - static_cast<std::ptrdiff_t>(random.below(std::uint64_t{
                            random.chance(80) ? std::min<std::size_t>(size, 12) : size})));
  return *it;
}

void Users::ask(control::Command command) {
  const std::uint64_t token = next_token_++;
  Open& open = open_[token] = {std::move(command), truth_, false};
  ask(token, open);
}

void Users::ask(std::uint64_t token, Open& open) {
  open.asked = truth_;
  open.under_way = server_.ask(token, open.command);
}

void Users::advance(Instant truth) {
  truth_ = truth;
  for (auto& [token, open] : open_)
    if (truth - open.asked > (open.under_way ? kPatience : seconds(1))) ask(token, open);
}

const control::Command* Users::answered(std::uint64_t token,
                                        const Result<control::Accepted>& answer) {
  const auto it = open_.find(token);
  if (it == open_.end()) return nullptr;  // it was asked twice, and answered before
  if (!answer && answer.error().kind == ErrorKind::unavailable) {
    it->second.asked = truth_;
    it->second.under_way = false;  // asked again in a while
    return nullptr;
  }
  done_ = std::move(it->second);
  open_.erase(it);
  if (!answer) return &done_->command;
  if (const auto* submit = std::get_if<control::Submit>(&done_->command)) {
    promises_.submitted[submit->submitter.user + "/" + submit->request] = answer->jobs;
    promises_.jobs.insert(answer->jobs.begin(), answer->jobs.end());
  }
  return &done_->command;
}

}  // namespace takt::replay
