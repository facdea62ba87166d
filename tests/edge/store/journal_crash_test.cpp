// A writer is killed at random moments, over and over on the same journal: what was acknowledged is
// always there, and nothing else but perhaps the one batch that was under way.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "edge/store/fixture.h"
#include "edge/store/journal.h"

namespace takt::store {
namespace {

// What the writer tells over a pipe: before an append the last sequence that it tries, and after it
// the last that was acknowledged.
struct Progress {
  std::uint64_t tried = 0;
  std::uint64_t acknowledged = 0;
};

// Appends batches of random sizes until it is killed; now and then a snapshot and a prune.
[[noreturn]] void write_until_killed(const std::string& path, unsigned seed, int pipe) {
  auto journal = Journal::open(path);
  if (!journal) ::_exit(3);
  std::mt19937 random(seed);
  Progress progress;
  progress.acknowledged = (*journal)->last_sequence();
  while (true) {
    const std::uint64_t first = progress.acknowledged + 1;
    progress.tried = progress.acknowledged + 1 + random() % 20;
    if (::write(pipe, &progress, sizeof(progress)) != sizeof(progress)) ::_exit(4);
    if (!(*journal)->append(records_of(first, progress.tried, 20 + random() % 5000))) ::_exit(5);
    progress.acknowledged = progress.tried;
    if (::write(pipe, &progress, sizeof(progress)) != sizeof(progress)) ::_exit(4);
    if (random() % 10 == 0) {
      const std::string state = std::to_string(progress.acknowledged);
      if (!(*journal)->save_snapshot(progress.acknowledged, 1, state)) ::_exit(6);
      if (!(*journal)->prune(progress.acknowledged)) ::_exit(7);
    }
  }
}

// The last report in the pipe, which the writer's death has closed.
Progress last_progress(int pipe) {
  Progress progress;
  Progress next;
  while (::read(pipe, &next, sizeof(next)) == sizeof(next)) progress = next;
  return progress;
}

TEST(JournalCrash, AKilledWriterLosesNothingAcknowledgedAndLeavesAtMostItsLastBatch) {
  const TempFolder folder;
  const std::string path = folder / "journal.db";
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::uint64_t last = 0;
  int rounds_with_progress = 0;
  for (int round = 0; round < 60; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);  // the writer never waits for us
    const auto child_seed = static_cast<unsigned>(random());
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(ends[0]);
      write_until_killed(path, child_seed, ends[1]);
    }
    ::close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer failed by itself: " << WEXITSTATUS(status);
    const Progress progress = last_progress(ends[0]);
    ::close(ends[0]);

    const auto journal = Journal::open(path);
    ASSERT_TRUE(journal) << journal.error().message;
    const std::uint64_t found = (*journal)->last_sequence();
    ASSERT_TRUE(found == std::max(progress.acknowledged, last) ||
                (progress.tried > 0 && found == progress.tried))
        << "found " << found << ", acknowledged " << progress.acknowledged << ", tried "
        << progress.tried << ", before " << last;
    const auto snapshot = (*journal)->latest_snapshot();
    ASSERT_TRUE(snapshot) << snapshot.error().message;
    const std::uint64_t from = *snapshot ? (*snapshot)->sequence : 0;
    if (*snapshot) {
      ASSERT_EQ((*snapshot)->body, std::to_string(from));
    }
    std::uint64_t expected = from;
    const auto replayed = (*journal)->replay(from, [&](const Record& record) -> Result<void> {
      ++expected;
      const Record whole = record_of(expected, 20);
      if (record.sequence != expected || record.kind != whole.kind ||
          record.body.rfind("{\"n\": " + std::to_string(expected) + ",", 0) != 0) {
        return fail(ErrorKind::io, "record " + std::to_string(expected) + " is not whole");
      }
      return {};
    });
    ASSERT_TRUE(replayed) << replayed.error().message;
    ASSERT_EQ(expected, found);
    if (found > last) ++rounds_with_progress;
    last = found;
  }
  EXPECT_GT(rounds_with_progress, 10) << "the writers were killed in the midst of work";
}

}  // namespace
}  // namespace takt::store
