#include "app/server/snapshotter.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "edge/codec/journal_json.h"
#include "edge/codec/snapshot_text.h"

namespace takt::server {
namespace {

codec::Fingerprint print_of(const control::State& state) {
  return {control::kFingerprintVersion, control::fingerprint(state)};
}

// Another version of takt may have hashed otherwise: then nothing can be said.
bool fits(const control::State& state, const std::optional<codec::Fingerprint>& print) {
  return !print || print->version != control::kFingerprintVersion || *print == print_of(state);
}

}  // namespace

Snapshotter::Snapshotter(store::JournalPort& journal, Options options)
    : journal_(journal), options_(std::move(options)) {}

Snapshotter::~Snapshotter() { stop(); }

// False: it does not fit its fingerprint, and `to` is of no use.
Result<bool> Snapshotter::fold_snapshot(const store::Snapshot& snapshot, Folded& to) {
  if (snapshot.version > codec::kSnapshotVersion)
    return fail(ErrorKind::invalid,
                fmt::format("the journal's snapshot has version {}, this takt reads version {}: "
                            "use the takt that wrote it, or a newer one",
                            snapshot.version, codec::kSnapshotVersion));
  if (!snapshot.warning.empty()) options_.note(snapshot.warning);
  to = Folded{};
  to.after = snapshot.sequence;
  auto print = codec::read_snapshot(snapshot.body, [&](const control::Fact& fact) -> Result<void> {
    fold(to.state, fact, options_.fair_share_half_life);
    ++to.lines;
    return {};
  });
  if (!print) return tl::make_unexpected(print.error());
  return fits(to.state, *print);
}

// Snapshots that do not fit are passed over: the one before, or the beginning, and the records
// after it give the same state.
Result<Snapshotter::Folded> Snapshotter::fold_up_to(std::uint64_t sequence) {
  Folded folded;
  auto snapshot = journal_.latest_snapshot();
  while (true) {
    if (!snapshot) return tl::make_unexpected(snapshot.error());
    folded = Folded{};
    if (!*snapshot) break;
    auto fine = fold_snapshot(**snapshot, folded);
    if (!fine) return tl::make_unexpected(fine.error());
    if (*fine) break;
    options_.note(
        fmt::format("the journal's snapshot at record {} does not fit its fingerprint: it is "
                    "damaged and is not used; what came before it and the records after that are",
                    folded.after));
    snapshot = journal_.snapshot_before(folded.after);
  }
  const Error enough{ErrorKind::invalid, "enough"};
  bool done = false;
  auto replayed = journal_.replay(folded.after, [&](const store::Record& record) -> Result<void> {
    if (record.sequence > sequence) {
      done = true;
      return tl::make_unexpected(enough);
    }
    auto fact = codec::decode_fact({record.kind, record.version, record.body});
    if (!fact)
      return fail_at(fmt::format("record {} of the journal", record.sequence), fact.error());
    fold(folded.state, *fact, options_.fair_share_half_life);
    return {};
  });
  if (!replayed && !done) return tl::make_unexpected(replayed.error());
  return folded;
}

Result<control::State> Snapshotter::recover() {
  auto folded = fold_up_to(journal_.last_sequence());
  if (!folded) return tl::make_unexpected(folded.error());
  const std::lock_guard lock(mutex_);
  kept_ = folded->after;
  last_lines_ = folded->lines;
  since_ = static_cast<std::size_t>(journal_.last_sequence() - folded->after);
  // After a crash a proper end keeps one even if nothing new has come.
  mark_ = {journal_.last_sequence(), control::fingerprint(folded->state)};
  return std::move(folded->state);
}

void Snapshotter::start() {
  thread_ = std::thread([this] { run(); });
}

void Snapshotter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  keep();
}

void Snapshotter::appended(std::uint64_t sequence, std::size_t facts, std::uint64_t fingerprint) {
  {
    const std::lock_guard lock(mutex_);
    mark_ = {sequence, fingerprint};
    since_ += facts;
    if (since_ < std::max(options_.facts_min, last_lines_)) return;
    since_ = 0;
    wanted_ = true;
  }
  changed_.notify_all();
}

std::string Snapshotter::problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

void Snapshotter::run() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return wanted_ || stopping_; });
      if (stopping_) return;
      wanted_ = false;
    }
    keep();
  }
}

void Snapshotter::keep() {
  Mark mark;
  {
    const std::lock_guard lock(mutex_);
    mark = mark_;
    if (mark.sequence <= kept_) return;
  }
  keep(mark);
}

void Snapshotter::say(const std::string& problem) {
  {
    const std::lock_guard lock(mutex_);
    problem_ = problem;
  }
  options_.note(problem);
}

void Snapshotter::keep(const Mark& mark) {
  auto folded = fold_up_to(mark.sequence);
  if (!folded)
    return say("no snapshot could be kept, the journal cannot be read back: " +
               folded.error().message);
  if (control::fingerprint(folded->state) != mark.fingerprint)
    return say(fmt::format(
        "the journal does not fold to the state that this server works with (fingerprint {:016x} "
        "on disk, {:016x} in memory at record {}): no snapshot is kept and no record is removed; "
        "make a backup (takt backup FILE), restart the server, and report this",
        control::fingerprint(folded->state), mark.fingerprint, mark.sequence));
  const auto facts = facts_of(folded->state);
  const codec::Fingerprint print = print_of(folded->state);
  folded->state = {};
  auto kept = journal_.save_snapshot(mark.sequence, codec::kSnapshotVersion,
                                     codec::snapshot_of(facts, print));
  if (!kept) return options_.note("no snapshot could be kept: " + kept.error().message);
  {
    const std::lock_guard lock(mutex_);
    kept_ = mark.sequence;
    last_lines_ = facts.size();
    problem_.clear();
  }
  if (auto pruned = journal_.prune(mark.sequence); !pruned)
    options_.note("the journal could not be shortened: " + pruned.error().message);
}

}  // namespace takt::server
