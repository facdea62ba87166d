// Starting, ending and forgetting attempts.

#include "launch_fixture.h"

#include <gmock/gmock.h>

namespace takt::launch {
namespace {

using control::AttemptPhase;
using ::testing::HasSubstr;

class LauncherBasics : public LaunchBothWays {};
INSTANTIATE_TEST_SUITE_P(, LauncherBasics, ::testing::Bool(), way_name);

TEST_P(LauncherBasics, An_exit_code_comes_through) {
  const ExitStatus exit = run(order(1, "exit 7"));
  EXPECT_EQ(exit.cause, ExitCause::exited);
  EXPECT_EQ(exit.code, 7);
  EXPECT_FALSE(exit.oom);
}

TEST_P(LauncherBasics, A_signal_comes_through) {
  const ExitStatus exit = run(order(1, "kill -USR1 $$; sleep 60"));
  EXPECT_EQ(exit.cause, ExitCause::signalled);
  EXPECT_EQ(exit.signal, SIGUSR1);
}

TEST_P(LauncherBasics, A_running_attempt_is_seen_with_pid_and_times) {
  ASSERT_TRUE(launcher->start(order(3, "echo up; exec sleep 60")));
  ASSERT_TRUE(wait_for_text(out(3), "up"));
  const auto seen = find(3);
  EXPECT_EQ(seen.phase, AttemptPhase::running);
  EXPECT_EQ(seen.generation, 1u);
  EXPECT_TRUE(is_alive(seen.pid));
  ASSERT_TRUE(seen.started);
  EXPECT_GT(seen.started->us, 1'600'000'000'000'000);
  EXPECT_FALSE(seen.exit);
  EXPECT_FALSE(seen.processes_gone);
  const auto pids = launcher->pids();
  ASSERT_EQ(pids.count(seen.pid), 1u);
  EXPECT_EQ(pids.at(seen.pid), attempt(3));
}

TEST_P(LauncherBasics, Descendants_are_listed_under_their_attempt) {
  ASSERT_TRUE(launcher->start(order(1, "(setsid sleep 60 & echo $! >&1); echo up; sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  const std::int64_t grandchild = std::stoll(read_text(out(1)));
  EXPECT_TRUE(eventually([&] { return launcher->pids().contains(grandchild); }));
  EXPECT_EQ(launcher->pids().size(), 3u);
}

TEST_P(LauncherBasics, Cpu_time_is_that_of_all_processes) {
  const ExitStatus exit = run(order(1,
                                    "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; (i=0; while "
                                    "[ $i -lt 60000 ]; do i=$((i+1)); done)"));
  EXPECT_GT(exit.cpu_time, milliseconds(5));
  EXPECT_LT(exit.cpu_time, seconds(60));
}

TEST_P(LauncherBasics, A_second_start_changes_nothing) {
  const auto twice = order(1, "echo run >> " + folder + "/count; exit 3");
  ASSERT_TRUE(launcher->start(twice));
  ASSERT_TRUE(launcher->start(twice));
  EXPECT_EQ(wait_for_exit(1).exit->code, 3);
  ASSERT_TRUE(launcher->start(twice));
  EXPECT_EQ(find(1).phase, AttemptPhase::exited);
  EXPECT_EQ(count_lines(folder + "/count"), 1u);
}

TEST_P(LauncherBasics, Another_generation_of_a_known_attempt_is_refused) {
  auto again = order(1, "echo run >> " + folder + "/count; sleep 60");
  ASSERT_TRUE(launcher->start(again));
  again.generation = 2;
  const auto result = launcher->start(again);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::conflict);
  EXPECT_THAT(result.error().message,
              HasSubstr("attempt 1.1 is on record with generation 1, not 2"));
}

TEST_P(LauncherBasics, Stop_ends_a_job_that_listens_with_TERM) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; exec sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(60)));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(60)));
  const auto seen = wait_for_exit(1);
  EXPECT_EQ(seen.exit->cause, ExitCause::signalled);
  EXPECT_EQ(seen.exit->signal, SIGTERM);
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(0)));  // of an ended one
}

TEST_P(LauncherBasics, A_job_may_use_its_grace) {
  ASSERT_TRUE(launcher->start(
      order(1, "trap 'echo saving; exit 5' TERM; echo up; while :; do sleep 0.01; done")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(60)));
  EXPECT_EQ(wait_for_exit(1).exit->code, 5);
  EXPECT_THAT(read_text(out(1)), HasSubstr("saving"));
}

TEST_P(LauncherBasics, A_job_that_ignores_TERM_is_killed_after_its_grace) {
  ASSERT_TRUE(launcher->start(order(1, "trap '' TERM; echo up; while :; do sleep 0.05; done")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  const auto before = std::chrono::steady_clock::now();
  ASSERT_TRUE(launcher->stop(attempt(1), milliseconds(300)));
  const auto seen = wait_for_exit(1);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(300));
  EXPECT_EQ(seen.exit->cause, ExitCause::signalled);
  EXPECT_EQ(seen.exit->signal, SIGKILL);
}

TEST_P(LauncherBasics, A_second_stop_shortens_the_grace_and_a_third_does_not_lengthen_it) {
  ASSERT_TRUE(launcher->start(order(1, "trap '' TERM; echo up; while :; do sleep 0.05; done")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(3600)));
  ASSERT_TRUE(launcher->stop(attempt(1), milliseconds(200)));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(3600)));
  EXPECT_EQ(wait_for_exit(1).exit->signal, SIGKILL);
}

TEST_P(LauncherBasics, A_stopped_process_hears_TERM_too) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; kill -STOP $$; sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(60)));
  EXPECT_EQ(wait_for_exit(1).exit->signal, SIGTERM);
}

// B5 50: re-parented workers that hold their devices.
TEST_P(LauncherBasics, Double_forked_descendants_are_gone_when_the_job_has_ended) {
  const std::string worker = "setsid sh -c 'trap \"\" TERM HUP; echo $$ >> " + folder +
                             "/pids; while :; do sleep 0.05; done' >/dev/null 2>&1 &";
  const auto what = order(1, "(" + worker + worker + "(" + worker + ") & ) ; while [ $(wc -l < " +
                                 folder + "/pids) -lt 3 ]; do sleep 0.01; done; exit 4");
  std::ofstream(folder + "/pids").close();
  EXPECT_EQ(run(what).code, 4);
  std::ifstream pids(folder + "/pids");
  std::size_t seen = 0;
  for (std::int64_t pid = 0; pids >> pid; ++seen) EXPECT_FALSE(is_alive(pid)) << pid;
  EXPECT_EQ(seen, 3u);
}

// B5 52: an end must not reach into the neighbour.
TEST_P(LauncherBasics, The_end_of_one_job_leaves_the_same_users_other_job_alone) {
  ASSERT_EQ(mkfifo((folder + "/fifo").c_str(), 0600), 0);
  ASSERT_TRUE(
      launcher->start(order(1, "echo up; (sleep 60 &) ; read x < " + folder + "/fifo; exit 0")));
  ASSERT_TRUE(launcher->start(order(2, "echo up; sleep 60")));
  ASSERT_TRUE(wait_for_text(out(2), "up"));
  ASSERT_TRUE(launcher->stop(attempt(1), milliseconds(100)));
  wait_for_exit(1);
  const auto second = find(2);
  EXPECT_EQ(second.phase, AttemptPhase::running);
  EXPECT_TRUE(is_alive(second.pid));
  for (const auto& [pid, owner] : launcher->pids()) EXPECT_EQ(owner, attempt(2)) << pid;
}

TEST_P(LauncherBasics, Fifty_starts_at_once_all_run_once) {
  std::vector<std::thread> threads;
  std::vector<Result<void>> results(50);
  for (std::uint64_t i = 0; i < 50; ++i) {
    threads.emplace_back([&, i] {
      results[i] = launcher->start(
          order(i + 1, "echo $$ >> " + folder + "/count; exit " + std::to_string(i)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t i = 0; i < 50; ++i) {
    EXPECT_TRUE(results[i]) << results[i].error().message;
    EXPECT_EQ(wait_for_exit(i + 1).exit->code, static_cast<int>(i));
  }
  EXPECT_EQ(count_lines(folder + "/count"), 50u);
}

TEST_P(LauncherBasics, The_same_start_from_many_threads_runs_once) {
  const auto what = order(1, "echo run >> " + folder + "/count; sleep 60");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { EXPECT_TRUE(launcher->start(what)); });
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(wait_for_text(folder + "/count", "run"));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(0)));
  wait_for_exit(1);
  EXPECT_EQ(count_lines(folder + "/count"), 1u);
}

TEST_P(LauncherBasics, Forget_is_refused_while_the_job_lives_and_removes_all_after_it) {
  ASSERT_TRUE(launcher->start(order(1, "echo up; sleep 60")));
  ASSERT_TRUE(wait_for_text(out(1), "up"));
  const auto cgroups = read_job_record(record(1))->cgroups;
  const auto refused = launcher->forget(attempt(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::conflict);
  EXPECT_THAT(refused.error().message, HasSubstr("attempt 1.1"));
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(0)));
  wait_for_exit(1);
  const auto forgotten = launcher->forget(attempt(1));
  ASSERT_TRUE(forgotten) << forgotten.error().message;
  EXPECT_TRUE(launcher->scan().empty());
  EXPECT_TRUE(std::filesystem::is_empty(options.records_dir));
  for (const auto& cgroup : cgroups) EXPECT_FALSE(std::filesystem::exists(cgroup)) << cgroup;
  EXPECT_TRUE(launcher->forget(attempt(1)));  // again is fine
}

TEST_P(LauncherBasics, An_end_makes_the_event_descriptor_readable_and_a_scan_makes_it_quiet) {
  ASSERT_EQ(mkfifo((folder + "/fifo").c_str(), 0600), 0);
  ASSERT_TRUE(launcher->start(order(1, "read x < " + folder + "/fifo; exit 9")));
  pollfd wait{launcher->event_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 10'000), 1) << "the start is news";
  EXPECT_TRUE(eventually([&] {
    launcher->scan();
    return poll(&wait, 1, 0) == 0;
  }));
  const int fifo = open((folder + "/fifo").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fifo, 0);
  close(fifo);
  EXPECT_EQ(poll(&wait, 1, 20'000), 1) << "the end is news";
  EXPECT_EQ(wait_for_exit(1).exit->code, 9);
  EXPECT_TRUE(eventually([&] {
    launcher->scan();
    return poll(&wait, 1, 0) == 0;
  }));
}

TEST_P(LauncherBasics, Waiting_on_the_event_descriptor_alone_is_enough_to_see_the_end) {
  ASSERT_TRUE(launcher->start(order(1, "sleep 0.2; exit 9")));
  for (int i = 0; i < 50; ++i) {
    if (find(1).phase == AttemptPhase::exited) break;
    pollfd wait{launcher->event_fd(), POLLIN, 0};
    ASSERT_EQ(poll(&wait, 1, 20'000), 1) << "no event";
  }
  EXPECT_EQ(find(1).exit->code, 9);
}

TEST_P(LauncherBasics, Stop_before_start_keeps_the_job_from_running_when_its_order_was_written) {
  // As after a crash of the agent between the order and the shim.
  auto what = order(1, "echo run >> " + folder + "/count");
  ASSERT_EQ(mkdir(record(1).c_str(), 0700), 0);
  ASSERT_TRUE(write_spec(record(1), *format_spec(what, {}, {geteuid() == 0, ""})));
  EXPECT_TRUE(launcher->scan().empty()) << "nothing runs for it";
  ASSERT_TRUE(launcher->stop(attempt(1), seconds(1)));
  ASSERT_TRUE(launcher->start(what));
  const auto seen = wait_for_exit(1);
  EXPECT_EQ(seen.exit->cause, ExitCause::start_failed);
  EXPECT_EQ(seen.exit->message, "stopped before it was started");
  EXPECT_EQ(seen.generation, 1u);
  EXPECT_FALSE(std::filesystem::exists(folder + "/count"));
}

TEST_P(LauncherBasics, A_stop_of_an_unknown_attempt_is_fine) {
  EXPECT_TRUE(launcher->stop(attempt(99), seconds(1)));
  EXPECT_TRUE(launcher->scan().empty());
}

TEST_P(LauncherBasics, A_stop_right_behind_a_start_always_ends_it) {
  for (std::uint64_t job = 1; job <= 20; ++job) {
    std::thread starting([&] { EXPECT_TRUE(launcher->start(order(job, "exec sleep 60"))); });
    std::this_thread::sleep_for(std::chrono::microseconds(job * 150));
    const bool was_known = std::filesystem::exists(record(job));
    EXPECT_TRUE(launcher->stop(attempt(job), seconds(30)));
    starting.join();
    if (!was_known) {
      EXPECT_TRUE(launcher->stop(attempt(job), seconds(30)));
    }
    const auto seen = wait_for_exit(job);
    ASSERT_TRUE(seen.exit);
    EXPECT_TRUE(seen.exit->cause == ExitCause::signalled ||
                seen.exit->cause == ExitCause::start_failed);
  }
}

TEST_P(LauncherBasics, Attempts_come_sorted_by_id) {
  for (const std::uint64_t job : {10, 2, 9}) ASSERT_TRUE(launcher->start(order(job, "exit 0")));
  const auto seen = launcher->scan();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].attempt, attempt(2));
  EXPECT_EQ(seen[1].attempt, attempt(9));
  EXPECT_EQ(seen[2].attempt, attempt(10));
}

TEST_F(LaunchTest, A_malformed_attempt_id_is_refused) {
  auto what = order(0, "exit 0");
  const auto result = launcher->start(what);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::invalid);
}

TEST_F(LaunchTest, Notes_say_what_is_not_in_force) {
  options.use_cgroups = false;
  open_launcher();
  const auto notes = launcher->notes();
  ASSERT_FALSE(notes.empty());
  EXPECT_THAT(notes[0], HasSubstr("no cgroups for jobs (they are switched off)"));
  EXPECT_THAT(notes[0], HasSubstr("memory limits are not in force"));
  if (geteuid() != 0) {
    EXPECT_THAT(notes.back(), HasSubstr("not root"));
  }
}

TEST_F(LaunchTest, A_missing_shim_is_told_at_once_with_its_path) {
  options.shim_path = folder + "/nowhere";
  const auto opened = Launcher::open(options);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr(folder + "/nowhere"));
  EXPECT_THAT(opened.error().message, HasSubstr("install it"));
}

TEST_F(LaunchTest, A_shim_that_vanishes_later_is_a_failed_start_on_record) {
  const std::string copy = folder + "/takt-shim";
  std::filesystem::copy_file(options.shim_path, copy);
  options.shim_path = copy;
  open_launcher();
  std::filesystem::remove(copy);
  const ExitStatus exit = run(order(1, "exit 0"));
  EXPECT_EQ(exit.cause, ExitCause::start_failed);
  EXPECT_THAT(exit.message, HasSubstr("cannot be executed"));
}

TEST_F(LaunchTest, A_shim_that_is_no_shim_is_a_failed_start_on_record) {
  options.shim_path = "/bin/true";
  open_launcher();
  const ExitStatus exit = run(order(1, "exit 0"));
  EXPECT_EQ(exit.cause, ExitCause::start_failed);
  EXPECT_THAT(exit.message, HasSubstr("takt-shim ended before"));
}

TEST_F(LaunchTest, A_records_folder_that_others_can_write_is_refused) {
  options.records_dir = folder + "/open";
  mkdir(options.records_dir.c_str(), 0700);
  chmod(options.records_dir.c_str(), 0777);
  const auto opened = Launcher::open(options);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, ErrorKind::forbidden);
  EXPECT_THAT(opened.error().message, HasSubstr("chmod"));
}

TEST_F(LaunchTest, A_relative_records_folder_and_a_file_in_its_place_are_refused) {
  options.records_dir = "records";
  EXPECT_THAT(Launcher::open(options).error().message, HasSubstr("absolute"));
  options.records_dir = folder + "/file";
  std::ofstream(options.records_dir) << "x";
  EXPECT_THAT(Launcher::open(options).error().message, HasSubstr("not a folder"));
}

}  // namespace
}  // namespace takt::launch
