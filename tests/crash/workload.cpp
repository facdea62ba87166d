#include "crash/workload.h"

#include <fmt/core.h>

#include <fstream>
#include <sstream>

namespace takt::crash {
namespace {

using endtoend::Beside;
using endtoend::Outcome;

constexpr int kAnswerSeconds = 90;

// TAG SECONDS CODE MANNER. One short line at the start, one at the end, each appended by one write:
// their order is that of the events.
constexpr const char* kJob = R"sh(#!/bin/sh
me="$1 $TAKT_JOB_ID.$TAKT_ATTEMPT"
end() { echo "end $me $1" >> WITNESS; exit $1; }
trap 'end 143' TERM
echo "start $me ${TAKT_GPU_MEMORY_MIB:-0} ${CUDA_VISIBLE_DEVICES:--}" >> WITNESS
code=$3
[ "$4" = array ] && code=$TAKT_ARRAY_INDEX
[ "$4" = retried ] && [ "$TAKT_ATTEMPT" -ge 2 ] && code=0
if [ "$4" = load ]; then
  LOAD --quiet --duration "$2s" --memory 70GiB || code=99
else
  sleep "$2"
fi
end $code
)sh";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

}  // namespace

Workload::Workload(std::filesystem::path folder, std::filesystem::path programs,
                   std::map<std::string, std::string> environment, unsigned seed)
    : folder_(std::move(folder)),
      programs_(std::move(programs)),
      environment_(std::move(environment)),
      random_(seed) {
  const std::string job = replaced(kJob, "WITNESS", (folder_ / "witness").string());
  write("job.sh", replaced(job, "LOAD", endtoend::Takt::program("takt-load")));
}

std::string Workload::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name, std::ios::binary) << text;
  return (folder_ / name).string();
}

double Workload::between(double from, double to) {
  return std::uniform_real_distribution<double>(from, to)(random_);
}

void Workload::run(const Kind& kind) {
  Submission submission;
  submission.tag = next_tag();
  std::vector<std::string> argv = {programs_ / "takt", "run", "-d", "--name", submission.tag};
  argv.insert(argv.end(), kind.flags.begin(), kind.flags.end());
  for (const std::string& word :
       {std::string("--"), std::string("/bin/sh"), (folder_ / "job.sh").string(), submission.tag,
        fmt::format("{:.2f}", kind.seconds), std::to_string(kind.code), kind.manner})
    argv.push_back(word);
  submission.client = std::make_unique<Beside>(argv, environment_, folder_ / "clients");
  submissions_.push_back(std::move(submission));
}

// `fields` are lines of a job file; TAG in them is the submission's.
void Workload::submit(const std::string& fields, double seconds, const std::string& manner,
                      std::size_t jobs, int attempts_max) {
  Submission submission;
  submission.tag = next_tag();
  submission.jobs = jobs;
  submission.attempts_max = attempts_max;
  const std::string file =
      write("clients/" + submission.tag + ".yaml",
            fmt::format("name: {0}\nrun: [/bin/sh, {1}, {0}, \"{2:.2f}\", \"9\", {3}]\n{4}",
                        submission.tag, (folder_ / "job.sh").string(), seconds, manner, fields));
  submission.client =
      std::make_unique<Beside>(std::vector<std::string>{programs_ / "takt", "submit", file},
                               environment_, folder_ / "clients");
  submissions_.push_back(std::move(submission));
}

void Workload::submit_some() {
  run({{}, 0, 0, "plain"});
  run({{"-g", "1"}, 0, 3, "plain"});
  run({{"--memory", "20GiB"}, between(0.5, 2), 7, "plain"});
  run({{"-g", "1"}, between(0.1, 0.5), 0, "load"});
  submit("gpus: {memory: 10GiB}\narray: {n: 0-2}\n", between(0, 0.3), "array", 3, 1);
  if (random_() % 3 == 0)
    submit("retry: {on: [failed, node-lost], max: 4}\n", between(0, 0.2), "retried", 1, 5);
}

void Workload::submit_long() { run({{"--memory", "4GiB"}, between(1, 1.5), 5, "plain"}); }

void Workload::submit_bulky() {
  const std::string pad(60'000, 'x');
  submit("array: {n: 0-23}\nenv: {PAD: " + pad + "}\n", 0, "array", 24, 1);
}

void Workload::cancel(const std::string& job) {
  cancel_asked_.insert(job);
  cancels_.emplace_back(
      job, std::make_unique<Beside>(std::vector<std::string>{programs_ / "takt", "cancel", job},
                                    environment_, folder_ / "clients"));
}

bool Workload::collect_answers() {
  bool all = true;
  for (Submission& submission : submissions_) {
    if (submission.client == nullptr) continue;
    const int code = submission.client->wait(kAnswerSeconds);
    submission.acknowledged = code == 0;
    all = all && code >= 0;
    submission.client.reset();
  }
  for (auto& [job, client] : cancels_) {
    const int code = client->wait(kAnswerSeconds);
    if (code == 0) cancel_acknowledged_.insert(job);
    all = all && code >= 0;
  }
  cancels_.clear();
  return all;
}

bool Workload::wait_until_over() const {
  // A header and no line.
  return endtoend::eventually(
      [&] {
        const Outcome jobs = takt({"ps", "--json"});
        return jobs.code == 0 && jobs.out.find("\"jobs\":[]") != std::string::npos;
      },
      60);
}

Outcome Workload::takt(const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv = {programs_ / "takt"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return endtoend::run_program(argv, environment_, 60, std::nullopt, folder_.string());
}

std::vector<Testimony> Workload::testimonies() const {
  std::vector<Testimony> all;
  std::ifstream in(folder_ / "witness");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    Testimony one;
    std::string what;
    words >> what >> one.tag >> one.attempt;
    one.start = what == "start";
    std::string devices;
    if (one.start)
      words >> one.memory_mib >> devices;
    else
      words >> one.code;
    std::istringstream list(devices == "-" ? "" : devices);
    for (std::string device; std::getline(list, device, ',');) one.devices.push_back(device);
    all.push_back(std::move(one));
  }
  return all;
}

std::size_t Workload::acknowledged_jobs() const {
  std::size_t jobs = 0;
  for (const Submission& submission : submissions_)
    if (submission.acknowledged) jobs += submission.jobs;
  return jobs;
}

}  // namespace takt::crash
