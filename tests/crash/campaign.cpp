#include "crash/campaign.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "crash/processes.h"
#include "support/places.h"

namespace takt::crash {
namespace {

namespace fs = std::filesystem;
using endtoend::Beside;
using endtoend::eventually;
using std::chrono::milliseconds;
using Kind = Violation::Kind;

constexpr int kProvokeMax = 12;

// Under names of their own, and not those of another test that runs beside this one.
fs::path copy_programs(const fs::path& folder) {
  const fs::path to = folder / "programs";
  fs::create_directory(to);
  fs::create_directory(folder / "clients");
  for (const char* name : {"takt", "takt-shim"})
    fs::copy_file(endtoend::Takt::program(std::string("tests/crash/programs/") + name), to / name);
  return to;
}

}  // namespace

std::string describe(const Round& round) {
  std::string who;
  for (const auto& [killed, name] :
       {std::pair{round.controller, kController}, {round.agent, kAgent}, {round.shims, kShim}})
    if (killed) who += (who.empty() ? "" : " + ") + std::string(name);
  if (!round.point) return who + " at a random moment";
  const Point& point = points()[*round.point];
  return fmt::format("{} at {}, time {}{}", point.process, point.name, round.at_time,
                     who.empty() ? "" : ", together with " + who);
}

fs::path Campaign::make_folder() {
  std::string name = "/tmp/takt-crash.XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  return name;
}

Campaign::Campaign(unsigned seed)
    : folder_(make_folder()),
      programs_(copy_programs(folder_)),
      random_(seed),
      board_(programs_),
      workload_(folder_, programs_, environment(), seed),
      leftovers_(folder_) {
  std::ofstream(folder_ / "fleet.yaml") << "gpus:\n  - {model: a100-80, count: 4}\n";
}

Campaign::~Campaign() {
  // Nothing of a campaign that went wrong stays either.
  server_.reset();
  for (int i = 0; i < 50 && !processes_of(folder_).empty(); ++i) {
    for (const Process& process : processes_of(folder_)) (void)kill_process(folder_, process.pid);
    std::this_thread::sleep_for(milliseconds(20));
  }
  if (std::getenv("TAKT_CRASH_KEEP") != nullptr) {
    std::cerr << "kept: " << folder_ << "\n";
    return;
  }
  leftovers_.remove_cgroups();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::map<std::string, std::string> Campaign::environment() const {
  return {{"TAKT_SOCKET", (folder_ / "takt.sock").string()},
          {"TAKT_NVML", endtoend::Takt::program("emulator/libnvidia-ml.so.1")},
          {"TAKT_EMULATED_FLEET", (folder_ / "fleet.yaml").string()},
          {"TAKT_EMULATOR_IDLE", "1"},
          {"PATH", "/usr/bin:/bin"},
          {"TZ", "UTC"}};
}

void Campaign::start_server() {
  const fs::path policy = folder_ / "policy.yaml";
  std::ofstream(policy) << policy_;
  end_expected_ = false;
  server_ = std::make_unique<Beside>(
      std::vector<std::string>{programs_ / "takt", "serve", "--user", "--state-dir",
                               folder_ / "state", "--runtime-dir", folder_ / "run", "--sample",
                               "100ms", "--policy", policy},
      environment(), folder_ / "clients");
}

bool Campaign::server_ended() const { return server_ == nullptr || server_->wait(0) >= 0; }

// True: it answers. A server that ends although nobody ended it is a violation.
bool Campaign::bring_up() {
  for (int tries = 0; tries < 3; ++tries) {
    if (armed_ && board_.fired(*armed_)) return true;
    if (server_ended()) {
      if (!end_expected_)
        tell({{Kind::other, fmt::format("the server ended by itself ({}): {}", server_->wait(0),
                                        server_->err())}});
      start_server();
    }
    bool answers = false;
    (void)eventually([&] { return (answers = workload_.takt({"ps"}).code == 0) || server_ended(); },
                     30);
    if (answers) return true;
  }
  tell({{Kind::other, "the server does not come back: " + (server_ ? server_->err() : "")}});
  broken_ = true;
  return false;
}

void Campaign::kill_server() {
  if (server_ == nullptr) return;
  end_expected_ = true;
  server_->signal(SIGKILL);
  (void)server_->wait();
}

void Campaign::kill_together(const Round& round) {
  if (round.controller) {
    end_expected_ = true;
    if (!server_ended()) server_->signal(SIGKILL);
  }
  if (round.agent) {
    const auto is_agent = [](const Process& p) {
      return p.words.size() > 1 && p.words[1] == "agent";
    };
    for (const Process& process : processes_of(folder_))
      if (is_agent(process)) (void)kill_process(folder_, process.pid);
  }
  if (round.shims) {
    for (const Shim& shim : shims_of(folder_)) {
      shims_killed_.insert(shim.attempt);
      (void)kill_process(folder_, shim.pid);
    }
  }
}

void Campaign::pause_up_to(int most) {
  std::this_thread::sleep_for(milliseconds(std::uniform_int_distribution<int>(0, most)(random_)));
}

bool Campaign::wait_for(std::size_t point, milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    if (board_.fired(point)) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return board_.fired(point);
}

std::string Campaign::some_running_job() const {
  const auto outcome = workload_.takt({"ps", "--state", "running", "--json"});
  const auto document = nlohmann::json::parse(outcome.out, nullptr, false);
  if (outcome.code != 0 || document.is_discarded() || document["jobs"].empty()) return "";
  return std::to_string(document["jobs"].back()["id"].get<long>());
}

void Campaign::restart_for(std::size_t point) {
  (void)workload_.collect_answers();
  kill_server();
  start_server();
  (void)eventually(
      [&] { return board_.fired(point) || server_ended() || workload_.takt({"ps"}).code == 0; });
}

// One try at making a process reach the point.
void Campaign::provoke(std::size_t point) {
  switch (points()[point].way) {
    case Way::jobs: workload_.submit_some(); break;
    case Way::fresh:
      start_server();
      (void)eventually([&] { return server_ended() || workload_.takt({"ps"}).code == 0; });
      return;
    case Way::stop:
      workload_.submit_some();
      (void)workload_.collect_answers();
      end_expected_ = true;
      server_->signal(SIGTERM);
      (void)server_->wait();
      return;
    case Way::restart:
      workload_.submit_some();
      restart_for(point);
      break;
    case Way::backup:
      workload_.submit_some();
      (void)workload_.takt({"backup", (folder_ / "clients/copy").string()});
      fs::remove(folder_ / "clients/copy");
      return;
    case Way::cancel: {
      workload_.submit_long();
      std::string job;
      (void)eventually([&] { return !(job = some_running_job()).empty(); }, 10);
      if (!job.empty()) workload_.cancel(job);
      break;
    }
    case Way::lost_shim:
      workload_.submit_long();
      (void)eventually([&] { return !some_running_job().empty(); }, 10);
      kill_together({std::nullopt, 1, false, false, true});
      break;
    case Way::trim:
      trims_ = true;
      policy_ = "finished: {live_max: 1, archive_bytes_max: 1MiB}\n";
      workload_.submit_bulky();
      (void)workload_.collect_answers();
      (void)workload_.wait_until_over();
      restart_for(point);
      break;
  }
  (void)wait_for(point, milliseconds(2500));
}

void Campaign::at_point(const Round& round) {
  const std::size_t point = *round.point;
  board_.arm(point, round.at_time);
  armed_ = point;
  for (int i = 0; i < kProvokeMax && !board_.fired(point); ++i) {
    if (i > 0 && points()[point].way != Way::fresh && !bring_up()) return;
    if (!board_.fired(point)) provoke(point);
  }
  armed_.reset();
  if (!board_.fired(point)) {
    board_.disarm(point);
    return tell({{Kind::other, "the fault point was not reached"}});
  }
  if (points()[point].process == std::string(kController)) end_expected_ = true;
  if (points()[point].process == std::string(kShim)) shims_killed_.insert(board_.victim(point));
  kill_together(round);
}

void Campaign::at_random_moment(const Round& round) {
  workload_.submit_some();
  if (const std::string job = some_running_job(); !job.empty() && random_() % 2 == 0)
    workload_.cancel(job);
  pause_up_to(700);
  kill_together(round);
}

void Campaign::run(const Round& round) {
  const bool fresh = round.point && points()[*round.point].way == Way::fresh;
  now_ = fmt::format("round {} ({})", ++rounds_, describe(round));
  const Point* point = round.point ? &points()[*round.point] : nullptr;
  line_ = &Table::of_this_program().line(
      point == nullptr ? "a random moment" : point->name,
      point == nullptr ? describe(round).substr(0, describe(round).find(" at ")) : point->process);
  ++line_->rounds;
  const std::size_t acknowledged = workload_.acknowledged_jobs();
  const std::int64_t reached = round.point ? board_.reached(*round.point) : 0;
  if (!fresh && !bring_up()) return;
  if (round.point)
    at_point(round);
  else
    at_random_moment(round);
  leftovers_.look();
  if (!fresh) {
    if (end_expected_) {
      if (server_ != nullptr) (void)server_->wait();
      pause_up_to(300);  // what ends meanwhile is seen by nobody
    }
    if (!bring_up()) return;
    if (!workload_.collect_answers()) tell({{Kind::other, "a client has no answer after 90 s"}});
    look(false);
  }
  line_->acknowledged += workload_.acknowledged_jobs() - acknowledged;
  if (round.point) line_->reached += board_.reached(*round.point) - reached;
}

void Campaign::look(bool all_over) {
  const auto before = workload_.testimonies();
  const auto outcome = workload_.takt({"ps", "--all", "--limit", "0", "--json"});
  const auto document = nlohmann::json::parse(outcome.out, nullptr, false);
  if (outcome.code != 0 || document.is_discarded())
    return tell({{Kind::other, "takt ps says: " + outcome.err}});
  const nlohmann::json& jobs = document["jobs"];
  tell(check({jobs, before, workload_.testimonies(), workload_, shims_killed_, all_over, trims_}));
  if (const std::string unknown = board_.unknown_point(); !unknown.empty())
    tell({{Kind::other, "reached and not in the table of points: " + unknown}});
}

void Campaign::tell(const Violations& violations) {
  for (const Violation& violation : violations) {
    if (!told_.insert(violation.sentence).second) continue;
    if (line_ != nullptr) ++line_->violations[violation.kind];
    ADD_FAILURE() << now_ << ": " << violation.sentence;
  }
}

void Campaign::finish() {
  now_ = "at the end";
  if (broken_ || !bring_up()) return;
  (void)workload_.wait_until_over();
  look(true);
  const auto shown = nlohmann::json::parse(
      workload_.takt({"ps", "--all", "--limit", "0", "--json"}).out, nullptr, false);
  // Devices and records of the last jobs follow a moment after they are over.
  (void)eventually([&] { return !leftovers_.records_left(); }, 20);
  end_expected_ = true;
  server_->signal(SIGTERM);
  if (const int code = server_->wait(); code != 0)
    tell({{Kind::other, fmt::format("the server stops with {}: {}", code, server_->err())}});
  tell(leftovers_.find(trims_ || shown.is_discarded() ? nullptr : &shown["jobs"]));
}

}  // namespace takt::crash
