// How long does it take until a server that was killed knows its 100,000 jobs again, and what do
// jobs that wait cost in memory?
//
// The journal holds 50,000 single submissions from one shell (an environment of 40 variables) and
// five arrays of 10,000; half of them are over (five facts each), no snapshot was made. Recovery is
// compared with reading the same records without decoding them, in the same run. The memory is the
// growth of the resident set by a state of 100,000 jobs that wait.
//
//   recovery_bench [--jobs N] [--folder DIR] [--out FILE]
#include <fmt/core.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/server/snapshotter.h"
#include "edge/codec/journal_json.h"
#include "edge/store/journal.h"

namespace {

using namespace takt;
using Clock = std::chrono::steady_clock;
using control::Fact;

constexpr Instant kStart{1'790'000'000'000'000};
constexpr std::uint64_t kArrayTasks = 10'000;

void require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "recovery_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class Work>
double seconds_of(const Work& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double resident_mb() {
  std::ifstream file("/proc/self/statm");
  long all = 0;
  long resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

control::Submission submission_of(std::uint64_t first) {
  control::Submission s;
  s.spec.name = "train-resnet";
  s.spec.argv = {"/usr/bin/python3", "train.py", "--lr", "0.01", "--seed", std::to_string(first)};
  s.spec.command_text = fmt::format("python3 train.py --lr 0.01 --seed {}", first);
  s.spec.tier = Tier::batch;
  s.spec.gpus.count = 1;
  s.spec.isolation = Isolation::strict;
  s.spec.cpus = 4;
  s.spec.memory = gibibytes(16);
  s.spec.workdir = "/home/alice/projects/resnet";
  s.environment = 1;
  s.submitter = {1001, 1001, {1001, 27, 44}, "alice", "/home/alice"};
  s.at = kStart;
  s.policy_revision = "built-in";
  return s;
}

Fact accepted(std::uint64_t first, int count) {
  control::JobAccepted f;
  control::Submission s = submission_of(first);
  f.job = JobId(first);
  f.count = count;
  if (count > 1) {
    s.group = JobId(first);
    s.group_size = count;
    s.spec.array = {{"x", {}}};
    for (int i = 0; i < count; ++i) {
      s.spec.array["x"].push_back(std::to_string(i));
      f.parameters.push_back({{"x", std::to_string(i)}});
    }
  }
  f.submission = std::make_shared<const control::Submission>(std::move(s));
  return f;
}

Fact environment() {
  auto variables = std::make_shared<control::Environment>();
  for (int i = 0; i < 40; ++i)
    variables->push_back(
        {fmt::format("VARIABLE_{}", i), std::string(static_cast<std::size_t>(20 + i), 'v'), false});
  return control::EnvironmentKept{1, variables};
}

void add_life(std::vector<Fact>& facts, std::uint64_t job) {
  const AttemptId id{JobId(job), 1};
  Grant grant;
  grant.node = NodeId("node-a");
  const std::string uuid = fmt::format("GPU-8f6bd3c1-5d0c-4d1e-9d54-{:012x}", job % 8);
  grant.devices = {{DeviceKind::whole_gpu, DeviceUuid(uuid), DeviceUuid(uuid), gibibytes(80), 100}};
  grant.cpus = 4;
  grant.memory = gibibytes(16);
  ExitStatus exit;
  exit.cpu_time = seconds(100);
  exit.memory_peak = gibibytes(3);
  facts.push_back(control::Granted{id, job, grant, kStart, "boot-1"});
  facts.push_back(control::Started{id, 4711, kStart});
  facts.push_back(control::Exited{id, exit, kStart + seconds(100)});
  facts.push_back(control::Released{id, kStart + seconds(101)});
  facts.push_back(
      control::Finished{JobId(job), control::Finished::Outcome::done, "", kStart + seconds(100)});
}

// Half single, half in arrays; with `lives` every second job is over.
template <class Take>
void make_facts(std::uint64_t jobs, bool lives, const Take& take) {
  take({environment()});
  std::uint64_t next = 1;
  while (next <= jobs / 2) take({accepted(next++, 1)});
  while (next <= jobs) {
    take({accepted(next, static_cast<int>(std::min(kArrayTasks, jobs + 1 - next)))});
    next += kArrayTasks;
  }
  if (!lives) return;
  for (std::uint64_t job = 1; job <= jobs; job += 2) {
    std::vector<Fact> facts;
    add_life(facts, job);
    take(facts);
  }
}

struct Numbers {
  std::uint64_t records = 0;
  double read_s = 0;
  double recovered_s = 0;
  double snapshot_s = 0;     // the same from a snapshot
  double append_wait_s = 0;  // the longest beside the making of that snapshot
  double pending_mb = 0;
};

void write_journal(store::Journal& journal, std::uint64_t jobs) {
  std::vector<store::Record> batch;
  std::uint64_t sequence = 0;
  const auto flush = [&] {
    const auto ok = journal.append(batch);
    require(ok.has_value(), ok ? "" : ok.error().message);
    batch.clear();
  };
  make_facts(jobs, true, [&](const std::vector<Fact>& facts) {
    for (const Fact& fact : facts) {
      auto record = codec::encode_fact(fact);
      batch.push_back({++sequence, record.version, std::move(record.kind), std::move(record.body)});
    }
    if (batch.size() >= 1000) flush();
  });
  flush();
}

server::Snapshotter::Options quiet() {
  server::Snapshotter::Options options;
  options.fair_share_half_life = hours(24 * 7);
  options.note = [](const std::string& s) { std::fprintf(stderr, "%s\n", s.c_str()); };
  return options;
}

// Makes a snapshot while facts go on being appended; the longest that one of them waited.
double snapshot_beside_appends(store::Journal& journal, server::Snapshotter& snapshotter) {
  std::atomic<bool> done{false};
  double longest = 0;
  std::thread appending([&] {
    const auto fact = codec::encode_fact(control::UsageCarried{"alice", 1, kStart});
    while (!done) {
      longest = std::max(longest, seconds_of([&] {
                           const auto ok = journal.append(
                               {{journal.last_sequence() + 1, fact.version, fact.kind, fact.body}});
                           require(ok.has_value(), ok ? "" : ok.error().message);
                         }));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  snapshotter.keep();
  done = true;
  appending.join();
  require(journal.latest_snapshot().value().has_value(), "no snapshot was kept");
  return longest;
}

double recover(const std::string& path, std::uint64_t jobs, double* append_wait) {
  control::State state;
  std::unique_ptr<store::Journal> journal;
  std::unique_ptr<server::Snapshotter> snapshotter;
  const double time = seconds_of([&] {
    journal = store::Journal::open(path).value();
    snapshotter = std::make_unique<server::Snapshotter>(*journal, quiet());
    auto recovered = snapshotter->recover();
    require(recovered.has_value(), recovered ? "" : recovered.error().message);
    state = std::move(*recovered);
  });
  require(state.jobs.size() == jobs, "not all jobs were recovered");
  if (append_wait != nullptr) *append_wait = snapshot_beside_appends(*journal, *snapshotter);
  return time;
}

Numbers measure(const std::string& folder, std::uint64_t jobs) {
  Numbers numbers;
  {
    const double before = resident_mb();
    control::State state;
    make_facts(jobs, false, [&](const std::vector<Fact>& facts) {
      for (const Fact& fact : facts) fold(state, fact, hours(24 * 7));
    });
    require(state.waiting.size() == jobs, "not all jobs wait");
    ::malloc_trim(0);
    numbers.pending_mb = resident_mb() - before;
  }
  const std::string path = folder + "/journal.db";
  write_journal(*store::Journal::open(path).value(), jobs);
  numbers.read_s = seconds_of([&] {
    const auto journal = store::Journal::open(path).value();
    const auto done = journal->replay(0, [&](const store::Record&) {
      ++numbers.records;
      return Result<void>();
    });
    require(done.has_value(), "the journal cannot be read");
  });
  numbers.recovered_s = recover(path, jobs, &numbers.append_wait_s);
  numbers.snapshot_s = recover(path, jobs, nullptr);
  return numbers;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t jobs = 100'000;
  std::string folder = ".";
  std::string out;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    require(i + 1 < argc, name + " needs a value");
    if (name == "--jobs")
      jobs = static_cast<std::uint64_t>(std::atoll(argv[i + 1]));
    else if (name == "--folder")
      folder = argv[i + 1];
    else if (name == "--out")
      out = argv[i + 1];
    else
      require(false, "unknown option " + name + ": expected --jobs, --folder or --out");
  }
  require(jobs >= 2, "--jobs must be a number from 2 on");
  folder += "/recovery-bench-XXXXXX";
  require(::mkdtemp(folder.data()) != nullptr, "cannot make a folder");
  const Numbers n = measure(folder, jobs);
  std::filesystem::remove_all(folder);
  fmt::print(
      "{} jobs, {} records: read {:.2f} s, recovered {:.2f} s ({:.1f} times), from a snapshot "
      "{:.2f} s\n"
      "{} jobs that wait: {:.0f} MB resident; an append beside a snapshot waits at most {:.0f} "
      "ms\n",
      jobs, n.records, n.read_s, n.recovered_s, n.recovered_s / n.read_s, n.snapshot_s, jobs,
      n.pending_mb, n.append_wait_s * 1e3);
  if (!out.empty())
    std::ofstream(out) << fmt::format(
        "{{\"bench\": \"recovery\", \"jobs\": {}, \"records\": {}, \"read_s\": {:.3f}, "
        "\"recovered_s\": {:.3f}, \"from_snapshot_s\": {:.3f}, \"append_wait_s\": {:.3f}, "
        "\"pending_resident_mb\": {:.1f}}}\n",
        jobs, n.records, n.read_s, n.recovered_s, n.snapshot_s, n.append_wait_s, n.pending_mb);
  return 0;
}
