// Controller, agent and shims are killed at every write and sync, alone and together, and at random
// moments. TAKT_CRASH_ROUNDS: how many rounds in all (`make crash`: 200); without it every point
// once. TAKT_CRASH_SEED: another course of things. TAKT_CRASH_ONLY: rounds of this point only.
// Seen failing: with answers given before the sync, rounds 53 and 56 of seed 1 name the submission
// that was acknowledged and is not there.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <regex>
#include <set>
#include <sstream>

#include "crash/campaign.h"
#include "support/places.h"

namespace takt::crash {
namespace {

unsigned number_from_environment(const char* name, unsigned otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

unsigned seed() { return number_from_environment("TAKT_CRASH_SEED", 1); }
unsigned rounds_wanted() { return number_from_environment("TAKT_CRASH_ROUNDS", 0); }
bool in_full() { return rounds_wanted() > 0; }

// What clients have in their environment is kept with each of their jobs: nothing but ours.
void clear_environment() {
  std::vector<std::string> names;
  for (char** e = environ; *e != nullptr; ++e)
    names.push_back(std::string(*e, std::strcspn(*e, "=")));
  for (const std::string& name : names)
    if (name.rfind("TAKT_CRASH_", 0) != 0 && name.find("SAN_OPTIONS") == std::string::npos)
      ::unsetenv(name.c_str());
}

class PrintsTheTable : public ::testing::Environment {
  void SetUp() override { clear_environment(); }
  void TearDown() override {
    if (Table::of_this_program().empty()) return;
    std::cout << "seed " << seed() << "\n" << Table::of_this_program().text();
  }
};
const auto* const prints_the_table =
    ::testing::AddGlobalTestEnvironment(new PrintsTheTable);  // gtest deletes it

// Which others are killed with the one that reaches a point.
Round together(Round round, int which) {
  const bool controller = points()[*round.point].process == std::string(kController);
  round.agent = which == 1 ? controller : which == 3;
  round.controller = which == 1 ? !controller : which == 3;
  round.shims = which >= 2;
  return round;
}

// The points of an empty state folder, in the order in which they are reached.
std::vector<Round> fresh_rounds() {
  std::vector<Round> rounds;
  for (int file = 0; file < 3; ++file)  // journal, telemetry, archive
    for (std::size_t i = 0; i < points().size(); ++i) {
      const Point& point = points()[i];
      const bool of_each_file = std::string(point.name).rfind("store.", 0) == 0;
      if (point.way == Way::fresh && (file == 0 || of_each_file)) rounds.push_back({i});
    }
  return rounds;
}

// Every point of a kind of process: in full at its first time and, together with others, at a later
// one; else at one of the two.
std::vector<Round> rounds_of(const std::string& process) {
  std::vector<Round> rounds;
  if (process == kController) rounds = fresh_rounds();
  int n = 0;
  for (std::size_t i = 0; i < points().size(); ++i) {
    const Point& point = points()[i];
    if (point.process != process || point.way == Way::fresh) continue;
    ++n;
    const Round first{i};
    const Round later = together({i, point.later}, n % 4);
    if (in_full() || n % 2 == 0) rounds.push_back(first);
    if (in_full() || n % 2 == 1) rounds.push_back(later);
  }
  return rounds;
}

std::vector<Round> random_rounds() {
  std::size_t wanted = 8;
  if (in_full()) {
    const std::size_t others =
        rounds_of(kController).size() + rounds_of(kAgent).size() + rounds_of(kShim).size();
    wanted = rounds_wanted() > others ? rounds_wanted() - others : 0;
  }
  std::vector<Round> rounds(wanted);
  for (std::size_t i = 0; i < wanted; ++i) {
    const std::size_t who = i % 7 + 1;  // each combination in turn
    rounds[i].controller = (who & 1) != 0;
    rounds[i].agent = (who & 2) != 0;
    rounds[i].shims = (who & 4) != 0;
  }
  return rounds;
}

void run(const std::vector<Round>& rounds) {
  const char* const only = std::getenv("TAKT_CRASH_ONLY");
  std::cout << rounds.size() << " rounds, seed " << seed() << std::endl;
  Campaign campaign(seed());
  for (const Round& round : rounds) {
    if (only != nullptr && (!round.point || std::string(points()[*round.point].name) != only))
      continue;
    campaign.run(round);
    ASSERT_FALSE(campaign.broken());
  }
  campaign.finish();
}

TEST(Crash, OfTheControllerAtEveryPointLosesNothing) { run(rounds_of(kController)); }
TEST(Crash, OfTheAgentAtEveryPointLosesNothing) { run(rounds_of(kAgent)); }
TEST(Crash, OfAShimAtEveryPointLosesNothing) { run(rounds_of(kShim)); }
TEST(Crash, AtRandomMomentsOfAnyOfThemLosesNothing) { run(random_rounds()); }

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Crash, PointsOfTheSourceAreAllInTheTableAndNoOthers) {
  const std::regex name("\"([a-z]+\\.(?:before|after|half)-[a-z-]+)\"");
  std::set<std::string> placed;
  for (const char* folder : {"src", "tests/crash/programs"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(testing::source_folder()) / folder)) {
      if (entry.path().extension() != ".cpp") continue;
      const std::string text = text_of(entry.path());
      for (std::sregex_iterator it(text.begin(), text.end(), name), end; it != end; ++it)
        placed.insert((*it)[1]);
    }
#ifdef TAKT_SANITIZED
  for (auto it = placed.begin(); it != placed.end();)
    it = it->rfind("file.", 0) == 0 ? placed.erase(it) : std::next(it);
#endif
  std::set<std::string> known;
  for (const Point& point : points()) known.insert(point.name);
  EXPECT_EQ(placed, known);
  EXPECT_GT(placed.size(), 40u);
}

}  // namespace
}  // namespace takt::crash
