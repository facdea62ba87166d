// What the program finds when it runs, and what is said when it cannot.

#include "launch_fixture.h"

#include <gmock/gmock.h>

namespace takt::launch {
namespace {

using ::testing::HasSubstr;

class LauncherProgram : public LaunchTest {
 protected:
  std::string failure(const control::LaunchOrder& what) {
    const ExitStatus exit = run(what);
    EXPECT_EQ(exit.cause, ExitCause::start_failed);
    const auto seen = find(what.attempt.job.value);
    EXPECT_EQ(seen.pid, 0);
    EXPECT_FALSE(seen.started);
    EXPECT_TRUE(seen.ended);
    return exit.message;
  }
  void write_program(const std::string& path, const std::string& text, mode_t mode) {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  }
};

TEST_F(LauncherProgram, The_environment_is_exactly_the_orders) {
  auto what = order(1, "");
  what.argv = {"/usr/bin/env", "-0"};
  what.env = {{"A", "1", false},
              {"LINES_TWO", "a\nb=c", false},
              {"EMPTY", "", false},
              {"SECRET", "s", true}};
  run(what);
  EXPECT_EQ(read_text(out(1)), std::string("A=1\0LINES_TWO=a\nb=c\0EMPTY=\0SECRET=s\0", 36));
}

TEST_F(LauncherProgram, An_empty_environment_is_empty) {
  auto what = order(1, "");
  what.argv = {"/usr/bin/env"};
  what.env.clear();
  EXPECT_EQ(run(what).code, 0);
  EXPECT_EQ(read_text(out(1)), "");
}

TEST_F(LauncherProgram, Arguments_arrive_as_they_are) {
  auto what = order(1, "");
  what.argv = {"/bin/sh", "-c", "printf '<%s>' \"$@\"", "sh", "a b", "", "c\nd", "é=%"};
  run(what);
  EXPECT_EQ(read_text(out(1)), "<a b><><c\nd><é=%>");
}

TEST_F(LauncherProgram, Large_arguments_and_environment_pass) {
  auto what = order(1, "printf %s \"$BIG\" | wc -c");
  what.env.push_back({"BIG", std::string(100'000, 'x'), false});
  for (int i = 0; i < 500; ++i)
    what.env.push_back({"V" + std::to_string(i), std::string(500, 'y'), false});
  run(what);
  EXPECT_EQ(std::stoi(read_text(out(1))), 100'000);
}

TEST_F(LauncherProgram, Arguments_beyond_the_kernels_limit_are_a_sentence) {
  auto what = order(1, "exit 0");
  what.env.push_back({"BIG", std::string(200'000, 'x'), false});  // one string may have 128 KiB
  EXPECT_THAT(failure(what), HasSubstr("larger than the kernel takes"));
  auto huge = order(2, "exit 0");
  huge.env.push_back({"BIG", std::string(9u << 20, 'x'), false});
  EXPECT_THAT(failure(huge), HasSubstr("larger than any program may be given"));
}

TEST_F(LauncherProgram, It_runs_in_its_folder_without_input_and_with_the_usual_mask) {
  run(order(1, "pwd; umask; cat; readlink /proc/self/fd/0"));
  EXPECT_EQ(read_text(out(1)), folder + "\n0022\n/dev/null\n");
}

TEST_F(LauncherProgram, Nothing_of_the_agent_is_open_in_it) {
  const int leak = open("/dev/null", O_RDONLY);  // on purpose without O_CLOEXEC
  ASSERT_GE(leak, 0);
  auto what = order(1, "");
  what.argv = {"/bin/ls", "/proc/self/fd"};
  run(what);
  close(leak);
  EXPECT_EQ(read_text(out(1)), "0\n1\n2\n3\n");  // 3: the folder that ls reads
}

TEST_F(LauncherProgram, Its_signals_are_reset) {
  signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigprocmask(SIG_BLOCK, &blocked, &before);
  auto what = order(1, "");
  what.argv = {"/bin/grep", "-E", "SigBlk|SigIgn", "/proc/self/status"};
  run(what);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  signal(SIGPIPE, SIG_DFL);
  EXPECT_EQ(read_text(out(1)), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST_F(LauncherProgram, It_leads_a_session_of_its_own) {
  run(order(1, "read -r line < /proc/self/stat; set -- $line; echo $1 $5 $6"));
  std::stringstream words(read_text(out(1)));
  std::int64_t pid = 0;
  std::int64_t group = 0;
  std::int64_t session = 0;
  words >> pid >> group >> session;
  EXPECT_EQ(pid, group);
  EXPECT_EQ(pid, session);
  EXPECT_NE(session, getsid(0));
}

TEST_F(LauncherProgram, Output_files_are_appended_to_and_kept_apart) {
  auto what = order(1, "echo to out; echo to err >&2");
  what.stderr_path = folder + "/1.err";
  std::ofstream(out(1)) << "before\n";
  run(what);
  EXPECT_EQ(read_text(out(1)), "before\nto out\n");
  EXPECT_EQ(read_text(folder + "/1.err"), "to err\n");
}

TEST_F(LauncherProgram, Without_output_files_output_goes_nowhere) {
  auto what =
      order(1, "echo x; echo y >&2; readlink /proc/self/fd/2 > " + folder + "/where; exit 0");
  what.stdout_path = "";
  what.stderr_path = "";
  EXPECT_EQ(run(what).code, 0);
  EXPECT_EQ(read_text(folder + "/where"), "/dev/null\n");
}

TEST_F(LauncherProgram, Files_below_the_logs_folder_are_made_there) {
  options.logs_dir = folder + "/logs";
  mkdir(options.logs_dir.c_str(), 0755);
  open_launcher();
  auto what = order(1, "echo logged");
  what.stdout_path = what.stderr_path = options.logs_dir + "/1.log";
  run(what);
  EXPECT_EQ(read_text(what.stdout_path), "logged\n");
  struct stat status {};
  ASSERT_EQ(stat(what.stdout_path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(LauncherProgram, No_link_is_followed_below_the_logs_folder) {
  options.logs_dir = folder + "/logs";
  mkdir(options.logs_dir.c_str(), 0755);
  open_launcher();
  ASSERT_EQ(symlink((folder + "/elsewhere").c_str(), (options.logs_dir + "/1.log").c_str()), 0);
  auto what = order(1, "echo logged");
  what.stdout_path = what.stderr_path = options.logs_dir + "/1.log";
  EXPECT_THAT(failure(what), HasSubstr("without symbolic links"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/elsewhere"));
  auto escape = order(2, "echo logged");
  escape.stdout_path = escape.stderr_path = options.logs_dir + "/../escaped";
  EXPECT_THAT(failure(escape), HasSubstr("output file"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/escaped"));
}

TEST_F(LauncherProgram, A_program_without_slash_is_found_in_the_jobs_path) {
  write_program(folder + "/mine", "#!/bin/sh\necho mine\n", 0755);
  auto what = order(1, "");
  what.argv = {"mine"};
  what.env = {{"PATH", "/nowhere:" + folder, false}};
  run(what);
  EXPECT_EQ(read_text(out(1)), "mine\n");
}

TEST_F(LauncherProgram, A_relative_program_is_found_from_its_folder) {
  write_program(folder + "/mine", "#!/bin/sh\necho mine\n", 0755);
  auto what = order(1, "");
  what.argv = {"./mine"};
  run(what);
  EXPECT_EQ(read_text(out(1)), "mine\n");
}

TEST_F(LauncherProgram, A_program_that_is_not_there_is_named) {
  auto what = order(1, "");
  what.argv = {"/nope"};
  EXPECT_EQ(failure(what), "/nope: no such file: check the path or the image");
}

TEST_F(LauncherProgram, A_name_that_is_not_in_the_path_is_told_with_the_path) {
  auto what = order(1, "");
  what.argv = {"nope"};
  what.env = {{"PATH", "/bin:/usr/bin", false}};
  EXPECT_EQ(failure(what),
            "nope: no such program in PATH (/bin:/usr/bin): check the name or give its full path");
}

TEST_F(LauncherProgram, A_file_without_execute_permission_is_told_so) {
  write_program(folder + "/plain", "#!/bin/sh\n", 0644);
  auto what = order(1, "");
  what.argv = {folder + "/plain"};
  EXPECT_THAT(failure(what), HasSubstr("plain: not executable for user me"));
  auto by_name = order(2, "");
  by_name.argv = {"plain"};
  by_name.env = {{"PATH", folder, false}};
  EXPECT_THAT(failure(by_name), HasSubstr("plain: found in PATH but not executable"));
}

TEST_F(LauncherProgram, A_folder_and_a_textfile_and_a_missing_interpreter_are_told_apart) {
  auto is_folder = order(1, "");
  is_folder.argv = {folder};
  EXPECT_THAT(failure(is_folder), HasSubstr("is a folder"));
  write_program(folder + "/text", "just text\n", 0755);
  auto is_text = order(2, "");
  is_text.argv = {folder + "/text"};
  EXPECT_THAT(failure(is_text), HasSubstr("neither a program for this machine nor a script"));
  write_program(folder + "/script", "#!/nowhere/python\n", 0755);
  auto is_script = order(3, "");
  is_script.argv = {folder + "/script"};
  EXPECT_THAT(failure(is_script), HasSubstr("interpreter of its first line"));
}

TEST_F(LauncherProgram, A_workdir_that_is_not_there_or_no_folder_is_named) {
  auto missing = order(1, "exit 0");
  missing.workdir = folder + "/gone";
  EXPECT_THAT(failure(missing), HasSubstr("workdir " + folder + "/gone: no such folder"));
  std::ofstream(folder + "/file") << "x";
  auto file = order(2, "exit 0");
  file.workdir = folder + "/file";
  EXPECT_THAT(failure(file), HasSubstr("not a folder"));
  auto relative = order(3, "exit 0");
  relative.workdir = "here";
  EXPECT_THAT(failure(relative), HasSubstr("absolute path"));
}

TEST_F(LauncherProgram, An_output_file_that_cannot_be_made_is_named) {
  auto what = order(1, "exit 0");
  what.stdout_path = folder + "/none/1.out";
  EXPECT_THAT(failure(what), HasSubstr("output file " + folder + "/none/1.out"));
  auto relative = order(2, "exit 0");
  relative.stderr_path = "2.err";
  EXPECT_THAT(failure(relative), HasSubstr("absolute path"));
}

TEST_F(LauncherProgram, An_order_without_program_or_with_a_NUL_is_a_failed_start) {
  auto empty = order(1, "");
  empty.argv.clear();
  EXPECT_THAT(failure(empty), HasSubstr("no program is named"));
  auto with_nul = order(2, "");
  with_nul.argv.push_back(std::string("a\0b", 3));
  EXPECT_THAT(failure(with_nul), HasSubstr("NUL"));
  auto bad_name = order(3, "");
  bad_name.env.push_back({"A=B", "c", false});
  EXPECT_THAT(failure(bad_name), HasSubstr("variable has no proper name"));
}

TEST_F(LauncherProgram, The_order_is_readable_for_its_owner_only) {
  ASSERT_TRUE(launcher->start(order(1, "sleep 60")));
  struct stat status {};
  ASSERT_EQ(stat((record(1) + "/spec").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(record(1).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

}  // namespace
}  // namespace takt::launch
