// The simulator is itself tested: each mistake that is planted in the product's code is found
// within 1,000 seeds. The table of docs/simulate.md is what this prints.
#include "core/base/planted.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "core/replay/journal_text.h"
#include "core/replay/simulate.h"

namespace takt {
namespace {

Planted in_force = Planted::none;

}  // namespace

bool planted(Planted fault) { return fault == in_force; }

namespace replay {
namespace {

constexpr std::uint64_t kSeedsMax = 1000;
constexpr int kSteps = 1000;

struct Mistake {
  Planted fault;
  const char* words;
};

const Mistake kMistakes[] = {
    {Planted::answer_before_sync, "a command is answered before the sync"},
    {Planted::start_before_sync, "an attempt is started before its grant is synced"},
    {Planted::view_before_sync, "views change before the sync"},
    {Planted::failed_sync_kept, "what a failed sync refused stays in the state"},
    {Planted::late_start_obeyed, "an agent obeys a start that is late or doubled"},
    {Planted::late_report_believed, "a report that is late counts as the newest"},
    {Planted::boot_ignored, "what was granted before a reboot is started after it"},
    {Planted::lease_ignored, "a silent node's attempts count as lost before its lease ended"},
    {Planted::silence_ignored, "jobs are placed on a node that is silent"},
    {Planted::unseen_start_is_lost, "an attempt that was not seen yet counts as lost"},
    {Planted::released_while_alive, "devices are given back at the exit, processes or not"},
    {Planted::ended_holds_nothing, "an attempt that ended holds nothing, though not proven gone"},
    {Planted::stranger_ignored, "a stranger's process does not close a GPU"},
    {Planted::snapshot_one_fact_short, "a snapshot is one fact short"},
    {Planted::counters_not_kept, "a snapshot lacks the counters"},
    {Planted::requeue_forgotten, "a job that is to be retried is not queued"},
    {Planted::request_made_twice, "a request that is asked again makes another job"},
    {Planted::hold_ignored, "a held job starts"},
    {Planted::cancel_forgotten, "a cancelled job goes on"},
    {Planted::limit_from_submission, "kill_after counts from the submission"},
    {Planted::clock_ignored, "limits do not move with a clock that is set"},
    {Planted::reason_forgotten, "jobs behind one of their shape are given no reason"},
};
static_assert(std::size(kMistakes) == static_cast<std::size_t>(Planted::count) - 1);

class Mistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreFoundWithinAThousandSeeds) {
  in_force = GetParam().fault;
  for (std::uint64_t seed = 1; seed <= kSeedsMax; ++seed) {
    const Outcome outcome = play(scenario_of(seed, kSteps), journal_text());
    if (!outcome.violation) continue;
    std::printf("| %s | %llu | %s |\n", GetParam().words, static_cast<unsigned long long>(seed),
                outcome.violation->checker.c_str());
    in_force = Planted::none;
    EXPECT_FALSE(play(scenario_of(seed, kSteps), journal_text()).violation)
        << "the same seed without the mistake";
    return;
  }
  in_force = Planted::none;
  FAIL() << GetParam().words << ": not found within " << kSeedsMax << " seeds";
}
INSTANTIATE_TEST_SUITE_P(Planted, Mistakes, ::testing::ValuesIn(kMistakes),
                         [](const auto& mistake) { return std::to_string(mistake.index); });

}  // namespace
}  // namespace replay
}  // namespace takt
