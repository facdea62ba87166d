#include "core/replay/disk.h"

namespace takt::replay {

using control::Fact;
using control::State;

Disk::Disk(FactText text, Duration fair_share_half_life, Random random)
    : text_(std::move(text)), half_life_(fair_share_half_life), random_(random) {}

Result<void> Disk::append(const std::vector<Fact>& facts) {
  last_sync_ = slow_max == Duration{} ? Duration{} : random_.between({}, slow_max);
  if (full) return fail(ErrorKind::io, "the disk is full");
  if (random_.chance(failing_percent)) {
    unsure_ = facts;
    return fail(ErrorKind::io, "the sync failed");
  }
  unsure_.clear();
  keep(facts);
  return {};
}

void Disk::keep(const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) {
    control::fold(synced_, fact, half_life_);
    journal_.push_back(fact);
    news_.push_back(fact);
  }
}

void Disk::crash() {
  if (!unsure_.empty() && random_.chance(50)) keep(unsure_);
  unsure_.clear();
}

Result<void> Disk::fold_text(State& state, const std::string& text) const {
  const auto facts = text_.read(text);
  if (!facts) return tl::make_unexpected(facts.error());
  for (const Fact& fact : *facts) control::fold(state, fact, half_life_);
  return {};
}

Result<State> Disk::recover() const {
  State state;
  if (!snapshot_.empty())
    if (auto ok = fold_text(state, snapshot_); !ok) return tl::make_unexpected(ok.error());
  const std::vector<Fact> rest(journal_.begin() + static_cast<std::ptrdiff_t>(snapshot_at_),
                               journal_.end());
  if (auto ok = fold_text(state, text_.write(rest)); !ok) return tl::make_unexpected(ok.error());
  return state;
}

Result<State> Disk::replay() const {
  State state;
  if (auto ok = fold_text(state, text_.write(journal_)); !ok)
    return tl::make_unexpected(ok.error());
  return state;
}

void Disk::keep_snapshot(const std::vector<Fact>& facts) {
  snapshot_ = text_.write(facts);
  snapshot_at_ = journal_.size();
}

std::vector<Fact> Disk::news() { return std::exchange(news_, {}); }

}  // namespace takt::replay
