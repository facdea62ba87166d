// Reading processes from /proc, and who started whom.
#include "edge/device/process_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace takt::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ProcessInfo run(std::int64_t pid, std::int64_t parent) {
  ProcessInfo info;
  info.pid = pid;
  info.parent = parent;
  return info;
}

// A folder like /proc.
class FakeProc : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) / ("proc-" + std::to_string(getpid()));
    std::filesystem::create_directories(root_);
    std::ofstream(root_ / "stat") << "cpu  1 2 3\nctxt 5\nbtime 1700000000\nprocesses 9\n";
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void add(int pid, const std::string& stat, const std::string& status) {
    std::filesystem::create_directories(root_ / std::to_string(pid));
    std::ofstream(root_ / std::to_string(pid) / "stat") << stat;
    std::ofstream(root_ / std::to_string(pid) / "status") << status;
  }
  static std::string stat(int pid, const std::string& name, int parent, long start) {
    std::string text = std::to_string(pid) + " (" + name + ") S " + std::to_string(parent);
    for (int field = 5; field < 22; ++field) text += " 7";
    return text + " " + std::to_string(start) + " 0 0\n";
  }
  std::filesystem::path root_;
};

TEST_F(FakeProc, Finds_name_parent_real_user_and_start) {
  const long ticks = sysconf(_SC_CLK_TCK);
  add(42, stat(42, "python3", 7, 10 * ticks + ticks / 2), "Name:\tpython3\nUid:\t1000\t0\t0\t0\n");
  const auto found = proc_process_table(root_)->find(42);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "python3");
  EXPECT_EQ(found->parent, 7);
  EXPECT_EQ(found->uid, 1000u);
  EXPECT_EQ(found->started, Instant{1'700'000'010'500'000});
}

TEST_F(FakeProc, Names_may_hold_spaces_and_parentheses) {
  add(43, stat(43, "a) S 1 (b", 8, 5), "Uid:\t3\t3\t3\t3\n");
  const auto found = proc_process_table(root_)->find(43);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "a) S 1 (b");
  EXPECT_EQ(found->parent, 8);
}

TEST_F(FakeProc, Absent_and_cut_off_processes_are_not_found) {
  add(44, "44 (x", "Uid:\t3\n");
  add(45, "45 (x) S 1 2", "Uid:\t3\n");
  add(46, stat(46, "x", 1, 5), "Name:\tx\n");
  const auto table = proc_process_table(root_);
  for (const int pid : {44, 45, 46, 47}) {
    const auto found = table->find(pid);
    ASSERT_FALSE(found.has_value()) << pid;
    EXPECT_EQ(found.error().kind, MissingKind::not_found);
  }
}

TEST_F(FakeProc, A_snapshot_is_ordered_and_skips_what_is_no_process) {
  add(100, stat(100, "b", 9, 5), "Uid:\t1\n");
  add(9, stat(9, "a", 1, 5), "Uid:\t1\n");
  add(50, "broken", "");
  std::filesystem::create_directories(root_ / "sys");
  std::filesystem::create_directories(root_ / "12x");
  const auto all = proc_process_table(root_)->snapshot();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].pid, 9);
  EXPECT_EQ(all[1].pid, 100);
}

TEST(ProcessTableTest, Knows_this_process_and_its_child) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) < 0 ? 1 : 0);
  }
  close(ends[0]);
  const auto table = proc_process_table();
  const auto me = table->find(getpid());
  ASSERT_TRUE(me.has_value());
  EXPECT_EQ(me->uid, getuid());
  const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  EXPECT_NEAR(static_cast<double>(me->started.us), static_cast<double>(now.count()), 600e6);
  const auto all = table->snapshot();
  EXPECT_THAT(descendants(all, getpid()), ElementsAre(child));
  EXPECT_EQ(ancestors(all, child).at(0), getpid());
  close(ends[1]);
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(table->find(child).has_value());
}

TEST(ProcessTableTest, Users_have_names_or_digits) {
  const auto table = proc_process_table();
  EXPECT_EQ(table->user_name(0), "root");
  EXPECT_EQ(table->user_name(3'999'999'999u), "3999999999");
}

TEST(ProcessTableTest, Ancestors_are_nearest_first_and_descendants_are_all_below) {
  const std::vector<ProcessInfo> all = {run(1, 0), run(2, 1), run(3, 2),
                                        run(4, 2), run(5, 3), run(6, 1)};
  EXPECT_THAT(ancestors(all, 5), ElementsAre(3, 2, 1));
  EXPECT_THAT(ancestors(all, 99), IsEmpty());
  EXPECT_THAT(descendants(all, 2), ElementsAre(3, 4, 5));
  EXPECT_THAT(descendants(all, 5), IsEmpty());
}

TEST(ProcessTableTest, A_circle_in_a_snapshot_ends) {
  const std::vector<ProcessInfo> all = {run(2, 3), run(3, 2), run(4, 3)};
  EXPECT_THAT(ancestors(all, 4), ElementsAre(3, 2));
  EXPECT_THAT(descendants(all, 2), ElementsAre(3, 4));
}

}  // namespace
}  // namespace takt::device
