// takt simulate
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "core/replay/catalogue.h"
#include "core/replay/simulate.h"
#include "edge/codec/journal_json.h"
#include "edge/codec/scenario_yaml.h"
#include "edge/codec/snapshot_text.h"
#include "takt_commit.h"

namespace takt::cli {
namespace {

constexpr int kUsage = 2;
constexpr int kStepsDefault = 1000;
constexpr int kShrinkTriesMax = 120;
constexpr std::uint64_t kTwiceEvery = 64;  // so many seeds, one is played twice and compared

replay::FactText journal_text() {
  return {[](const std::vector<control::Fact>& facts) { return codec::snapshot_of(facts); },
          [](const std::string& text) { return codec::facts_from_snapshot(text); }};
}

int usage(const std::string& sentence) {
  std::fprintf(stderr, "takt: %s\n", sentence.c_str());
  return kUsage;
}

std::string names(const char* what, const std::vector<replay::Part>& parts) {
  std::string text = fmt::format("{}:\n", what);
  for (const replay::Part& part : parts) text += fmt::format("  {}\n", part.name);
  return text;
}

// Seeds are dealt to as many threads as there are cores. What is told of a failure does not depend
// on their number: it is the lowest seed that fails.
class Campaign {
 public:
  Campaign(std::uint64_t first, std::uint64_t count, int steps)
      : first_(first), count_(count), steps_(steps) {}

  void run() {
    std::vector<std::thread> threads;
    const std::uint64_t cores = std::max(1U, std::thread::hardware_concurrency());
    for (std::uint64_t i = 0; i < std::min(cores, count_); ++i)
      threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
  }

  const std::optional<replay::Outcome>& failure() const { return failure_; }
  std::string sums() const {
    return fmt::format(
        "{} jobs, {} programs begun, {} controllers killed, {} facts, {} seeds played "
        "twice alike",
        jobs_, launches_, crashes_, facts_, twice_);
  }
  std::uint64_t played() const { return played_; }
  std::uint64_t steps() const { return all_steps_; }

 private:
  void work() {
    const replay::FactText text = journal_text();
    while (true) {
      const std::uint64_t index = next_++;
      if (index >= count_ || index >= failed_at_) return;
      const replay::Scenario scenario = replay::scenario_of(first_ + index, steps_);
      replay::Outcome outcome = replay::play(scenario, text);
      const bool again = index % kTwiceEvery == 0 && !outcome.violation;
      if (again && replay::play(scenario, text).print != outcome.print)
        outcome.violation = replay::Violation{
            "determinism", "the same seed played twice went two ways", outcome.steps};
      add(index, std::move(outcome), again);
    }
  }

  void add(std::uint64_t index, replay::Outcome outcome, bool again) {
    const std::lock_guard lock(mutex_);
    ++played_;
    twice_ += again;
    all_steps_ += static_cast<std::uint64_t>(outcome.steps);
    jobs_ += outcome.jobs;
    launches_ += outcome.launches;
    crashes_ += outcome.crashes;
    facts_ += outcome.facts;
    if (!outcome.violation || index >= failed_at_) return;
    failed_at_ = index;
    failure_ = std::move(outcome);
  }

  const std::uint64_t first_;
  const std::uint64_t count_;
  const int steps_;
  std::atomic<std::uint64_t> next_ = 0;
  std::atomic<std::uint64_t> failed_at_ = UINT64_MAX;
  std::mutex mutex_;  // guards what follows
  std::optional<replay::Outcome> failure_;
  std::uint64_t played_ = 0;
  std::uint64_t all_steps_ = 0;
  std::uint64_t jobs_ = 0;
  std::uint64_t launches_ = 0;
  std::uint64_t crashes_ = 0;
  std::uint64_t facts_ = 0;
  std::uint64_t twice_ = 0;
};

std::string describe(const replay::Outcome& failure) {
  return fmt::format("violation: seed {}, commit {}, checker {}, step {}\n  {}\n",
                     failure.scenario.seed, TAKT_COMMIT, failure.violation->checker,
                     failure.violation->step, failure.violation->sentence);
}

// What failed, how to see it again, and the smallest scenario that fails in the same way.
std::string tell(const replay::Outcome& failure) {
  std::string text = describe(failure);
  if (failure.violation->checker == "determinism") return text;
  const replay::Outcome small = replay::shrunk(failure, journal_text(), kShrinkTriesMax);
  text += fmt::format("made smaller, it fails at step {}:\n  {}\n", small.violation->step,
                      small.violation->sentence);
  text += "to play that again, write it to a file and give it to `takt simulate --scenario`:\n";
  return text + codec::scenario_to_yaml(small.scenario);
}

std::string last_line(std::uint64_t seeds, std::uint64_t steps, const std::string& rest) {
  return fmt::format("{} {}, {} steps: {}\n", seeds, seeds == 1 ? "seed" : "seeds", steps, rest);
}

// One line a fact, as the journal has it.
void print_facts(Duration since, const std::vector<control::Fact>& facts) {
  for (const control::Fact& fact : facts) {
    const auto record = codec::encode_fact(fact);
    (void)put(fmt::format("{:10.3f} s {} {}\n", static_cast<double>(since.us) / 1e6, record.kind,
                          record.body));
  }
}

int play_file(const SimulateFlags& flags) {
  std::ifstream file(flags.scenario);
  std::stringstream text;
  if (!file || !(text << file.rdbuf()))
    return usage(
        fmt::format("cannot read the scenario {}: expected a file such as `takt simulate` "
                    "prints when something fails",
                    flags.scenario));
  auto scenario = codec::parse_scenario_yaml(text.str(), flags.scenario);
  if (!scenario) return usage(scenario.error().message);
  if (flags.steps) scenario->steps = *flags.steps;
  const replay::Outcome outcome =
      replay::play(*scenario, journal_text(), flags.trace ? replay::Trace(print_facts) : nullptr);
  const auto steps = static_cast<std::uint64_t>(outcome.steps);
  if (!outcome.violation) return put(last_line(1, steps, "no violation"));
  return put(describe(outcome) + last_line(1, steps, "1 violation"), 1);
}

}  // namespace

int simulate(const SimulateFlags& flags) {
  if (flags.list)
    return put(names("workloads", replay::workloads()) + names("faults", replay::faults()));
  const int steps = flags.steps.value_or(kStepsDefault);
  if (steps < 1 || steps > 1'000'000)
    return usage(fmt::format("--steps {}: expected 1 to 1000000", steps));
  if (flags.seeds < 1) return usage("--seeds 0: expected at least 1");
  if (!flags.scenario.empty()) return play_file(flags);
  Campaign campaign(flags.seed, flags.seeds, steps);
  campaign.run();
  if (campaign.failure())
    return put(tell(*campaign.failure()) + last_line(campaign.played(), campaign.steps(),
                                                     "1 violation; more were not "
                                                     "looked for"),
               1);
  return put(last_line(campaign.played(), campaign.steps(), "no violation; " + campaign.sums()));
}

}  // namespace takt::cli
