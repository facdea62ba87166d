// The formats of docs/formats/shim.md, whole and broken.
#include "edge/launch/record_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>

#include "edge/launch/shim/fields.h"
#include "edge/launch/shim/spec.h"
#include "launch_fixture.h"

namespace takt::launch {
namespace {

using ::testing::HasSubstr;

TEST(AttemptName, Only_the_printed_form_of_an_id_is_one) {
  EXPECT_EQ(parse_attempt_name("17.1"), (AttemptId{JobId(17), 1}));
  for (const char* name : {"", ".", "17", "17.", ".1", "17.0", "0.1", "-1.1", "07.1", "1.1.1",
                           "1.1.gone", "a.b", "1 .1", "1.4294967296", "99999999999999999999.1"}) {
    EXPECT_FALSE(parse_attempt_name(name)) << name;
  }
}

TEST(Fields, Values_may_hold_what_is_not_the_end) {
  shim::FieldReader reader(std::string_view("a=1\0b=x=y\nz\0c=\0", 15), '\0');
  shim::Field field;
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.value, "1");
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.name, "b");
  EXPECT_EQ(field.value, "x=y\nz");
  ASSERT_TRUE(reader.next(field));
  EXPECT_EQ(field.value, "");
  EXPECT_FALSE(reader.next(field));
  EXPECT_FALSE(reader.damaged());
}

TEST(Fields, A_torn_or_nameless_field_is_damage) {
  for (const char* text : {"a", "a=1", "=1\n", "a\n", "a=1\nb"}) {
    shim::FieldReader reader(text, '\n');
    shim::Field field;
    while (reader.next(field)) {
    }
    EXPECT_TRUE(reader.damaged()) << text;
  }
}

TEST(Fields, Numbers_are_whole_or_none) {
  std::int64_t number = 0;
  EXPECT_TRUE(shim::parse_number("-9223372036854775808", number));
  for (const char* text : {"", "-", "1x", " 1", "1 ", "0x1", "+1", "9223372036854775808"}) {
    EXPECT_FALSE(shim::parse_number(text, number)) << text;
  }
}

TEST(Fields, A_record_line_holds_no_line_break_and_is_cut_when_it_is_too_long) {
  shim::LineWriter line;
  line.add("message", "two\nlines");
  line.add("n", std::int64_t{-5});
  EXPECT_EQ(line.text(), "message=two lines\nn=-5\n");
  EXPECT_TRUE(line.fits());
  line.add("long", std::string(5000, 'x'));
  EXPECT_FALSE(line.fits());
  EXPECT_EQ(line.text().size(), shim::record_bytes_max);
  EXPECT_EQ(line.text().back(), '\n');
  line.add("more", "x");
  EXPECT_EQ(line.text().size(), shim::record_bytes_max);
}

TEST(ExitRecords, What_is_written_is_read) {
  ExitRecord record;
  record.generation = 7;
  record.status.cause = ExitCause::signalled;
  record.status.signal = 9;
  record.status.oom = true;
  record.status.cpu_time = microseconds(123);
  record.status.memory_peak = Bytes{456};
  record.ended = Instant{789};
  record.processes_gone = true;
  const ExitRecord read = parse_exit_record(format_exit_record({JobId(1), 1}, record));
  EXPECT_EQ(read.generation, 7u);
  EXPECT_EQ(read.status, record.status);
  EXPECT_EQ(read.ended, record.ended);
  EXPECT_TRUE(read.processes_gone);
}

TEST(ExitRecords, Every_cause_survives) {
  for (const ExitCause cause :
       {ExitCause::exited, ExitCause::signalled, ExitCause::start_failed, ExitCause::lost}) {
    ExitRecord record;
    record.status.cause = cause;
    record.status.message = "why";
    const ExitRecord read = parse_exit_record(format_exit_record({JobId(1), 1}, record));
    EXPECT_EQ(read.status.cause, cause);
    EXPECT_EQ(read.status.message, "why");
    EXPECT_FALSE(read.status.memory_peak) << "nobody counted: missing, not zero";
  }
}

TEST(ExitRecords, Every_cut_is_told_as_damage_and_never_as_an_exit_code) {
  ExitRecord record;
  record.status.code = 3;
  const std::string whole = format_exit_record({JobId(1), 1}, record);
  const std::size_t cause_end = whole.find('\n', whole.find("cause="));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const ExitRecord read = parse_exit_record(whole.substr(0, size));
    if (size > 0 && whole[size - 1] == '\n' && size > cause_end) continue;  // whole lines
    EXPECT_EQ(read.status.cause, ExitCause::lost) << size;
    EXPECT_THAT(read.status.message, HasSubstr("unknown"));
  }
}

TEST(JobRecords, Fields_of_a_later_release_are_passed_over) {
  const JobRecord record = parse_job_record(
      "takt-shim-job=1\npid=5\npid_start=6\nshim_pid=7\nshim_start=8\nboot_id=b\nnew=field\n"
      "cgroup=/a\ncgroup=/b\nmembers=/b\ngeneration=2\nstarted_us=9\n");
  EXPECT_EQ(record.damage, "");
  EXPECT_EQ(record.pid, 5);
  EXPECT_EQ(record.cgroups.size(), 2u);
  EXPECT_EQ(record.generation, 2u);
}

TEST(JobRecords, Another_version_or_a_record_without_pids_is_damaged) {
  EXPECT_EQ(parse_job_record("takt-shim-job=2\npid=5\nshim_pid=7\n").damage,
            "its job record is of version '2' and this takt knows version 1: it was written by "
            "another release, which can read it");
  EXPECT_EQ(parse_job_record("takt-shim-job=1\npid=5\n").damage, "its job record is damaged");
  EXPECT_EQ(parse_job_record("takt-shim-job=1\npid=-5\nshim_pid=7\n").damage,
            "its job record is damaged");
  EXPECT_EQ(parse_job_record("").damage, "its job record is damaged");
}

class SpecFile : public LaunchTest {};

TEST_F(SpecFile, The_shim_reads_what_the_launcher_wrote) {
  auto what = order(4, "x");
  what.argv = {"a", "", "b c"};
  what.env = {{"A", "1=2", false}, {"B", "", true}};
  what.identity.groups = {1, 2, 3};
  AttemptCgroups cgroups;
  cgroups.join = {"/m", "/u"};
  cgroups.members = "/u";
  cgroups.kill_file = true;
  cgroups.memory_v1 = "/m";
  ASSERT_TRUE(write_spec(folder, *format_spec(what, cgroups, {true, "/logs", milliseconds(3)})));
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  shim::Spec spec;
  ASSERT_EQ(shim::read_spec(fd, spec), nullptr);
  close(fd);
  EXPECT_STREQ(spec.attempt, "4.1");
  ASSERT_EQ(spec.argv_size, 3u);
  EXPECT_STREQ(spec.argv[1], "");
  EXPECT_STREQ(spec.argv[2], "b c");
  EXPECT_EQ(spec.argv[3], nullptr);
  EXPECT_STREQ(spec.env[0], "A=1=2");
  EXPECT_STREQ(shim::find_env(spec, "B"), "");
  EXPECT_EQ(shim::find_env(spec, "C"), nullptr);
  EXPECT_EQ(spec.env[2], nullptr);
  EXPECT_EQ(spec.groups_size, 3u);
  EXPECT_EQ(spec.groups[2], 3u);
  EXPECT_TRUE(spec.switch_user);
  EXPECT_TRUE(spec.kill_file);
  EXPECT_EQ(spec.cgroups_size, 2);
  EXPECT_STREQ(spec.memory_v1, "/m");
  EXPECT_STREQ(spec.memory_v2, "");
  EXPECT_EQ(spec.leftover_grace_us, 3000);
  shim::free_spec(spec);
}

TEST_F(SpecFile, Every_number_of_variables_and_arguments_ends_in_a_null) {
  for (std::size_t count = 1; count < 70; ++count) {
    auto what = order(1, "x");
    what.argv.assign(count, "arg");
    what.env.assign(count - 1, {"N", "v", false});
    ASSERT_TRUE(write_spec(folder, *format_spec(what, {}, {})));
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    shim::Spec spec;
    ASSERT_EQ(shim::read_spec(fd, spec), nullptr);
    close(fd);
    ASSERT_EQ(spec.argv_size, count);
    EXPECT_EQ(spec.argv[count], nullptr);
    ASSERT_EQ(spec.env_size, count - 1);
    EXPECT_EQ(spec.env[count - 1], nullptr);
    shim::free_spec(spec);
  }
}

TEST_F(SpecFile, Uids_and_times_that_are_no_numbers_are_damage) {
  const std::string text = *format_spec(order(1, "x"), {}, {});
  for (const char* bad :
       {"uid=-1", "gid=4294967296", "group=x", "switch_user=", "leftover_grace_us=1s"}) {
    ASSERT_TRUE(write_spec(folder, text + bad + std::string(1, '\0')));
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    shim::Spec spec;
    EXPECT_THAT(shim::read_spec(fd, spec), HasSubstr("damaged")) << bad;
    shim::free_spec(spec);
    close(fd);
  }
}

TEST_F(SpecFile, A_stop_request_survives_and_a_missing_one_is_none) {
  EXPECT_FALSE(read_stop_request(folder));
  ASSERT_TRUE(write_stop_request(folder, {milliseconds(5), 77}));
  EXPECT_EQ(read_stop_request(folder)->grace, milliseconds(5));
  EXPECT_EQ(read_stop_request(folder)->deadline_us, 77);
}

TEST_F(SpecFile, A_lock_is_held_by_one) {
  {
    const auto lock = RecordLock::try_take(folder);
    ASSERT_TRUE(lock);
    EXPECT_FALSE(RecordLock::try_take(folder));
    EXPECT_TRUE(shim_holds_lock(folder));
  }
  EXPECT_FALSE(shim_holds_lock(folder));
  EXPECT_FALSE(RecordLock::try_take(folder + "/none"));
  EXPECT_FALSE(shim_holds_lock(folder + "/none"));
}

TEST(ProcessStats, A_name_with_brackets_and_blanks_is_no_trouble) {
  shim::ProcessStat stat;
  ASSERT_TRUE(shim::parse_stat(
      "42 (a) S 1 (x) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 10\n", stat));
  EXPECT_EQ(stat.pid, 42);
  EXPECT_EQ(stat.parent, 7);
  EXPECT_EQ(stat.session, 9);
  EXPECT_EQ(stat.start, 987654);
}

TEST(ProcessStats, Texts_that_are_cut_are_refused) {
  const std::string whole = "42 (a) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 10\n";
  shim::ProcessStat stat;
  ASSERT_TRUE(shim::parse_stat(whole, stat));
  for (std::size_t size = 0; size < whole.find("987654"); ++size) {
    EXPECT_FALSE(shim::parse_stat(std::string_view(whole).substr(0, size), stat)) << size;
  }
}

TEST(ProcessStats, We_are_our_parents_descendant) {
  shim::PidList pids;
  const shim::ProcessTable table;
  table.add_descendants(getppid(), pids);
  EXPECT_TRUE(pids.has(getpid()));
  EXPECT_TRUE(shim::is_running(getpid(), shim::start_of(getpid())));
  EXPECT_FALSE(shim::is_running(getpid(), shim::start_of(getpid()) + 1));
  EXPECT_FALSE(shim::is_running(0, 0));
}

}  // namespace
}  // namespace takt::launch
