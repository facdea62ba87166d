// Finished jobs leave the live state for the archive, are found there, and leave it in the end.
#include "app/server/archive.h"

#include <sys/stat.h>
#include <utime.h>

#include <filesystem>
#include <fstream>

#include "app/server/job_list.h"
#include "app/server/log_reader.h"
#include "fixture.h"

namespace takt::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Archiving : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "takt-archive-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    std::filesystem::create_directory(folder_ / "logs");
    begin();
  }
  void TearDown() override {
    archivist_.reset();
    life_.reset();
    std::filesystem::remove_all(folder_);
  }
  void begin(Policy policy = Policy{}) {
    archivist_.reset();
    life_.reset();
    life_ = std::make_unique<Life>(memory_, 1'000'000, (folder_ / "logs").string(), policy);
    life_->clock_us = now_us_;
    life_->begin();
    open_archive();
  }
  void open_archive() {
    archivist_.reset();
    auto archive = store::Archive::open((folder_ / "archive.db").string());
    ASSERT_TRUE(archive) << archive.error().message;
    Archivist::Options options;
    options.logs = (folder_ / "logs").string();
    options.clock = [this] { return Instant{life_->clock_us}; };
    options.note = [](const std::string&) {};
    archivist_ =
        std::make_unique<Archivist>(std::move(*archive), *life_->controller, std::move(options));
  }
  // Submitted and cancelled: over without having run.
  JobId finished_job(const std::string& name = "job", const control::Identity& who = alice()) {
    JobSpec spec = named(whole_gpus(1), name);
    spec.wait_for_capacity = true;
    const auto id = life_->submit(spec, who);
    EXPECT_TRUE(id) << id.error().message;
    life_->clock_us += 1'000'000;
    EXPECT_TRUE(life_->controller->cancel(control::Cancel{*id, who, false}));
    return *id;
  }
  void pass(Duration time) { life_->clock_us += time.us; }
  std::size_t archived() {
    const auto moved = archivist_->archive_finished();
    EXPECT_TRUE(moved) << moved.error().message;
    return moved.value_or(0);
  }
  std::vector<JobId> listed(JobsAsked asked = all()) {
    const auto found = find_jobs(*life_->controller, archivist_.get(), asked);
    EXPECT_TRUE(found) << found.error().message;
    std::vector<JobId> ids;
    for (const control::JobView& job : found->jobs) ids.push_back(job.id);
    hidden_ = found->hidden;
    return ids;
  }
  static JobsAsked all() {
    JobsAsked asked;
    asked.finished = true;
    return asked;
  }

  std::filesystem::path folder_;
  store::MemoryJournal memory_;
  std::int64_t now_us_ = t0.us;
  std::unique_ptr<Life> life_;
  std::unique_ptr<Archivist> archivist_;
  std::uint64_t hidden_ = 0;
};

TEST_F(Archiving, AFinishedJobLeavesAfterItsTimeAndIsShownAsBefore) {
  const JobId id = finished_job("train");
  EXPECT_EQ(archived(), 0u) << "it is young";
  const auto before = find_job(*life_->controller, archivist_.get(), id).value();
  pass(hours(1));
  EXPECT_EQ(archived(), 1u);
  EXPECT_THAT(life_->published().jobs, IsEmpty());
  const auto after = find_job(*life_->controller, archivist_.get(), id).value();
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->name, "train");
  EXPECT_EQ(after->user, before->user);
  EXPECT_EQ(after->state, control::JobState::cancelled);
  EXPECT_EQ(after->reason, before->reason);
  EXPECT_EQ(after->submitted, before->submitted);
  EXPECT_EQ(after->ended, before->ended);
  EXPECT_EQ(after->environment_names, before->environment_names);
  EXPECT_THAT(listed(), ElementsAre(id));
  EXPECT_EQ(archived(), 0u) << "once";
}

TEST_F(Archiving, WhatIsBeyondTheNumberLeavesEarlierAndWhatWaitsStays) {
  Policy policy;
  policy.finished.live_max = 2;
  begin(policy);
  std::vector<JobId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(finished_job());
  JobSpec waits = whole_gpus(1);
  waits.wait_for_capacity = true;
  const JobId waiting = life_->submit(waits).value();
  EXPECT_EQ(archived(), 3u);
  EXPECT_EQ(life_->published().jobs.count(ids[2]), 0u);
  EXPECT_EQ(life_->published().jobs.count(ids[3]), 1u);
  pass(hours(24));
  EXPECT_EQ(archived(), 2u);
  EXPECT_EQ(life_->published().jobs.count(waiting), 1u);
}

TEST_F(Archiving, AServerThatDiesBetweenSavingAndTellingShowsTheJobOnceAndSavesItAgain) {
  const JobId id = finished_job();
  pass(hours(2));
  ASSERT_EQ(archived(), 1u);
  // The journal of before the last record: saved in the archive, not yet told.
  ASSERT_EQ(memory_.records.back().kind, "archived");
  now_us_ = life_->clock_us;
  archivist_.reset();
  life_.reset();
  store::MemoryJournal before;
  const std::vector<store::Record> records(memory_.records.begin(), memory_.records.end() - 1);
  ASSERT_TRUE(before.append(records));
  life_ = std::make_unique<Life>(before, 1'000'000, (folder_ / "logs").string());
  life_->clock_us = now_us_;
  life_->begin();
  open_archive();
  EXPECT_THAT(listed(), ElementsAre(id)) << "in both places, shown once";
  EXPECT_EQ(archived(), 1u);
  EXPECT_THAT(listed(), ElementsAre(id));
  TearDown();  // before the journal goes
}

TEST_F(Archiving, AListTakesTheNewestAndSaysHowManyMoreThereAre) {
  std::vector<JobId> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(finished_job("job", i % 2 == 0 ? alice() : bob()));
  pass(hours(2));
  ASSERT_EQ(archived(), 6u);
  ids.push_back(finished_job());
  JobsAsked asked = all();
  asked.limit = 3;
  EXPECT_THAT(listed(asked), ElementsAre(ids[4], ids[5], ids[6]));
  EXPECT_EQ(hidden_, 4u);
  asked.limit = 0;
  EXPECT_THAT(listed(asked), SizeIs(7));
  EXPECT_EQ(hidden_, 0u);
  asked.user = "bob";
  EXPECT_THAT(listed(asked), ElementsAre(ids[1], ids[3], ids[5]));
  JobsAsked failed;
  failed.state = "failed";
  EXPECT_THAT(listed(failed), IsEmpty());
  JobsAsked cancelled;
  cancelled.state = "cancelled";
  EXPECT_THAT(listed(cancelled), SizeIs(7));
  EXPECT_THAT(listed(JobsAsked{}), IsEmpty()) << "only what is not over";
}

TEST_F(Archiving, WithoutAnArchiveFinishedJobsStay) {
  finished_job();
  Archivist none(nullptr, *life_->controller,
                 {"", [this] { return Instant{life_->clock_us}; }, [](const std::string&) {}});
  pass(hours(100));
  EXPECT_EQ(none.archive_finished().value(), 0u);
  EXPECT_THAT(life_->published().jobs, SizeIs(1));
}

TEST_F(Archiving, AfterTheirTimeJobsLeaveTheArchiveWithTheirLogs) {
  Policy policy;
  policy.finished.keep = hours(48);
  begin(policy);
  life_->hear(node_of("n1", 1, h100()));
  const JobId id = life_->submit(whole_gpus(1)).value();
  const AttemptId attempt{id, 1};
  ASSERT_TRUE(eventually([&] { return life_->state_of(id) == control::JobState::starting; }));
  const std::uint64_t generation = life_->published().jobs.at(id).attempt->generation;
  life_->hear(node_of("n1", 1, h100()), {exited(attempt, generation, Instant{life_->clock_us},
                                                Instant{life_->clock_us}, exit_code(0))});
  ASSERT_TRUE(eventually([&] { return life_->state_of(id) == control::JobState::done; }));
  const auto log = folder_ / "logs" / (to_string(attempt) + ".out");
  std::ofstream(log) << "what it printed\n";
  pass(hours(2));
  ASSERT_TRUE(eventually([&] { return archived() == 1; })) << "its devices are free by then";
  LogRequest request;
  request.job = id;
  request.uid = alice().uid;
  const auto piece = read_log(*life_->controller, archivist_.get(), request, {});
  ASSERT_TRUE(piece) << piece.error().message;
  EXPECT_EQ(piece->bytes, "what it printed\n");
  request.uid = bob().uid;
  EXPECT_FALSE(read_log(*life_->controller, archivist_.get(), request, {}));

  ASSERT_TRUE(archivist_->forget_old());
  EXPECT_TRUE(std::filesystem::exists(log)) << "not yet";
  pass(hours(49));
  ASSERT_TRUE(archivist_->forget_old());
  EXPECT_FALSE(std::filesystem::exists(log));
  EXPECT_EQ(find_job(*life_->controller, archivist_.get(), id).value(), std::nullopt);
}

TEST_F(Archiving, TheOldestLogsLeaveWhenAllTakeTooMuchButNoneOfAJobThatIsNotOver) {
  Policy policy;
  policy.logs.bytes_max = mebibytes(1);
  begin(policy);
  life_->hear(node_of("n1", 1, h100()));
  const JobId running = life_->submit(whole_gpus(1)).value();
  ASSERT_TRUE(eventually([&] { return life_->state_of(running) == control::JobState::starting; }));
  const auto log = [&](JobId id) {
    return folder_ / "logs" / (to_string(AttemptId{id, 1}) + ".out");
  };
  const std::int64_t now = life_->clock_us / 1'000'000;
  const auto write = [&](JobId id, std::int64_t age) {
    std::ofstream(log(id)) << std::string(400 << 10, 'x');
    const utimbuf times{now - age, now - age};
    ::utime(log(id).c_str(), &times);
  };
  write(running, 1000);
  write(JobId(100), 900);
  write(JobId(101), 800);
  write(JobId(102), 700);
  archivist_->sweep_logs();
  EXPECT_TRUE(std::filesystem::exists(log(running)));
  EXPECT_FALSE(std::filesystem::exists(log(JobId(100))));
  EXPECT_FALSE(std::filesystem::exists(log(JobId(101))));
  EXPECT_TRUE(std::filesystem::exists(log(JobId(102))));
  write(JobId(103), hours(24 * 91).us / 1'000'000);
  archivist_->sweep_logs();
  EXPECT_FALSE(std::filesystem::exists(log(JobId(103)))) << "too old";
  EXPECT_TRUE(std::filesystem::exists(log(JobId(102))));
}

}  // namespace
}  // namespace takt::server
