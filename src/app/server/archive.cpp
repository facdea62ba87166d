#include "app/server/archive.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "core/base/fault_point.h"
#include "edge/codec/snapshot_text.h"

namespace takt::server {
namespace {

namespace fs = std::filesystem;

// In one step, so that nobody waits for long: neither readers, while the facts are gathered, nor
// the loop, while it takes the jobs out.
constexpr std::size_t kJobsAStep = 500;
constexpr int kSweepEvery = 100;

struct Leaving {
  store::ArchivedJob job;
  std::vector<control::Fact> facts;
};

std::vector<Leaving> leaving(const control::State& state, const FinishedRules& rules, Instant now) {
  std::vector<Leaving> out;
  for (const JobId id : control::due_for_archive(state, rules, now, kJobsAStep)) {
    const control::Job& job = state.jobs.at(id);
    out.push_back({{id.value, job.submitter().user, job.spec().name,
                    control::to_string(job.state()), job.attempts, job.finished->at.us, ""},
                   facts_of(state, job)});
  }
  return out;
}

// The files of all attempts of a job.
std::vector<std::string> logs_of(const std::string& folder, JobId job, std::uint32_t attempts) {
  const control::Places places{folder, "", {}};
  std::vector<std::string> paths;
  for (std::uint32_t number = 1; number <= attempts; ++number) {
    paths.push_back(control::stdout_path(places, {job, number}));
    paths.push_back(control::stderr_path(places, {job, number}));
  }
  return paths;
}

struct LogFile {
  fs::path path;
  std::int64_t written_s = 0;
  std::int64_t bytes = 0;  // on disk
};

}  // namespace

Archivist::Archivist(std::unique_ptr<store::Archive> archive, Controller& controller,
                     Options options)
    : archive_(std::move(archive)), controller_(controller), options_(std::move(options)) {}

Archivist::~Archivist() { stop(); }

void Archivist::start() {
  thread_ = std::thread([this] { run(); });
}

void Archivist::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Archivist::run() {
  for (int round = 0;; ++round) {
    std::size_t moved = 0;
    if (archive_) {
      if (auto done = archive_finished())
        moved = *done;
      else
        complain_once("finished jobs stay in the live state: " + done.error().message);
      if (auto done = forget_old(); !done)
        complain_once("old jobs stay in the archive: " + done.error().message);
    }
    if (round % kSweepEvery == 0) sweep_logs();
    std::unique_lock lock(mutex_);
    const auto pause = std::chrono::microseconds(moved == kJobsAStep ? 50'000 : options_.pause.us);
    if (changed_.wait_for(lock, pause, [&] { return stopping_; })) return;
  }
}

// The same trouble every five seconds is one line of the log.
void Archivist::complain_once(const std::string& sentence) {
  if (sentence != complained_) options_.note(sentence);
  complained_ = sentence;
}

Result<std::size_t> Archivist::archive_finished() {
  if (!archive_) return 0;
  std::vector<Leaving> jobs;
  controller_.read([&](const control::Sight& sight) {
    jobs = leaving(sight.state, sight.policy.finished, options_.clock());
  });
  if (jobs.empty()) return 0;
  std::vector<store::ArchivedJob> rows;
  control::Archive command;
  for (Leaving& leaver : jobs) {
    command.jobs.push_back(JobId(leaver.job.id));
    rows.push_back(std::move(leaver.job));
    rows.back().facts = codec::snapshot_of(leaver.facts);
  }
  if (auto saved = archive_->save(rows); !saved) return tl::make_unexpected(saved.error());
  fault_point("archive.before-told");
  if (auto told = controller_.archive(std::move(command)); !told)
    return tl::make_unexpected(told.error());
  return jobs.size();
}

Result<void> Archivist::forget_old() {
  if (!archive_) return {};
  const FinishedRules& rules = controller_.policy().finished;
  while (true) {
    auto removed = archive_->trim((options_.clock() - rules.keep).us,
                                  static_cast<std::uint64_t>(rules.archive_bytes_max.value));
    if (!removed) return tl::make_unexpected(removed.error());
    if (removed->empty()) return {};
    fault_point("archive.before-remove-logs");
    remove_logs(*removed);
  }
}

void Archivist::remove_logs(const std::vector<store::Archive::Removed>& jobs) const {
  std::error_code ignored;  // what cannot be removed now is an old file for the next sweep
  for (const store::Archive::Removed& job : jobs)
    for (const std::string& path : logs_of(options_.logs, JobId(job.id), job.attempts))
      fs::remove(path, ignored);
}

// The files of jobs that are not over.
std::set<std::string> Archivist::live_logs() const {
  std::set<std::string> live;
  controller_.read([&](const control::Sight& sight) {
    for (const auto& [id, job] : sight.state.jobs) {
      if (job.finished && !job.holding()) continue;
      for (std::string& path : logs_of(options_.logs, id, job.attempts))
        live.insert(std::move(path));
    }
  });
  return live;
}

// The oldest files leave first. A file of which nothing was known when we looked is younger than
// the look: its job began since, and the oldest rule keeps it.
void Archivist::sweep_logs() {
  std::vector<LogFile> files;
  std::int64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator it(options_.logs, error), end; !error && it != end;
       it.increment(error)) {
    struct stat status {};
    if (::lstat(it->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const std::int64_t bytes = static_cast<std::int64_t>(status.st_blocks) * 512;
    files.push_back({it->path(), status.st_mtime, bytes});
    total += bytes;
  }
  const std::set<std::string> live = live_logs();
  const LogRules& rules = controller_.policy().logs;
  const std::int64_t oldest = (options_.clock() - rules.keep).us / 1'000'000;
  std::sort(files.begin(), files.end(),
            [](const LogFile& a, const LogFile& b) { return a.written_s < b.written_s; });
  for (const LogFile& file : files) {
    if (file.written_s >= oldest && total <= rules.bytes_max.value) return;
    if (live.count(file.path.string()) != 0) continue;
    if (fs::remove(file.path, error)) total -= file.bytes;
  }
}

Result<Archivist::Found> Archivist::found(const store::ArchivedJob& job) const {
  Found found;
  found.id = JobId(job.id);
  auto read = codec::read_snapshot(job.facts, [&](const control::Fact& fact) -> Result<void> {
    fold(found.state, fact, controller_.policy().fair_share_half_life);
    return {};
  });
  if (!read) return fail_at(fmt::format("job {} in the archive", job.id), read.error());
  if (found.state.jobs.count(found.id) == 0)
    return fail(ErrorKind::invalid, fmt::format("job {} in the archive is not whole", job.id));
  return found;
}

Result<std::optional<Archivist::Found>> Archivist::find(JobId id) const {
  if (!archive_) return std::optional<Found>();
  auto row = archive_->find(id.value);
  if (!row) return tl::make_unexpected(row.error());
  if (!*row) return std::optional<Found>();
  auto job = found(**row);
  if (!job) return tl::make_unexpected(job.error());
  return std::optional<Found>(std::move(*job));
}

Result<Archivist::Page> Archivist::newest(const store::Archive::Wanted& wanted,
                                          std::size_t limit) const {
  Page page;
  if (!archive_) return page;
  auto rows = archive_->newest(wanted, limit);
  if (!rows) return tl::make_unexpected(rows.error());
  page.more = rows->more;
  page.jobs.reserve(rows->jobs.size());
  for (const store::ArchivedJob& row : rows->jobs) {
    auto job = found(row);
    if (!job) return tl::make_unexpected(job.error());
    page.jobs.push_back(std::move(*job));
  }
  return page;
}

}  // namespace takt::server
