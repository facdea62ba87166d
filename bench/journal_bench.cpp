// What does durability cost?
// append: a batch through the journal, against the bare minimum: write(2) of the same bytes at the
// end of a file and fdatasync(2). Both take turns in one run, so that a disk that is busy is busy
// for both; the numbers are medians and their ratio.
// submitters: how long people wait for an acknowledgement when a sync takes 10 ms and so many
// submit at the same time, one after the other each. Ratio to one sync: 1 or 2 means that batching
// works, the number of submitters that it does not.
//
//   journal_bench [--batches N] [--folder DIR] [--out FILE]
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "app/server/controller.h"
#include "edge/store/fake_journal.h"
#include "edge/store/journal.h"

namespace {

using Clock = std::chrono::steady_clock;
using takt::store::Journal;
using takt::store::Record;

struct Options {
  int batches = 200;
  std::string folder = ".";
  std::string out;
};

struct Row {
  std::size_t records = 0;
  std::size_t bytes = 0;  // of bodies, a batch
  double journal_us = 0;
  double journal_p95_us = 0;
  double bare_us = 0;
  double bare_p95_us = 0;
};

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(q * last)];
}

template <class Work>
double microseconds_of(const Work& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "journal_bench: %s\n", what.c_str());
  std::exit(1);
}

Row measure(Journal& journal, int fd, std::size_t records, std::size_t body_bytes, int batches) {
  Row row;
  row.records = records;
  row.bytes = records * body_bytes;
  const std::string body(body_bytes, 'x');
  const std::string all(row.bytes, 'x');
  std::vector<double> journal_times;
  std::vector<double> bare_times;
  for (int i = 0; i < batches; ++i) {
    std::vector<Record> batch;
    const std::uint64_t first = journal.last_sequence() + 1;
    for (std::size_t k = 0; k < records; ++k) {
      batch.push_back(Record{first + k, 1, "job_accepted", body});
    }
    journal_times.push_back(microseconds_of([&] {
      const auto appended = journal.append(batch);
      require(appended.has_value(), appended ? "" : appended.error().message);
    }));
    bare_times.push_back(microseconds_of([&] {
      const ssize_t written = ::write(fd, all.data(), all.size());
      require(written == static_cast<ssize_t>(all.size()), "cannot write the bare file");
      require(::fdatasync(fd) == 0, "cannot sync the bare file");
    }));
  }
  row.journal_us = quantile(journal_times, 0.5);
  row.journal_p95_us = quantile(journal_times, 0.95);
  row.bare_us = quantile(bare_times, 0.5);
  row.bare_p95_us = quantile(bare_times, 0.95);
  return row;
}

struct Crowd {
  int submitters = 0;
  double median_syncs = 0;  // waiting for the acknowledgement, in syncs
  double p95_syncs = 0;
};

constexpr std::chrono::milliseconds kSlowSync(10);

std::vector<double> waits_of_one(takt::server::Controller& controller, int submissions) {
  takt::control::Submit command;
  command.spec.name = "bench";
  command.spec.argv = {"/bin/true"};
  command.spec.command_text = "true";
  command.spec.workdir = "/";
  command.spec.gpus.count = 1;
  command.spec.wait_for_capacity = true;
  command.submitter.user = "bench";
  std::vector<double> waits;
  for (int i = 0; i < submissions; ++i) {
    waits.push_back(microseconds_of([&] {
      const auto accepted = controller.submit(command);
      require(accepted.has_value(), accepted ? "" : accepted.error().message);
    }));
  }
  return waits;
}

Crowd measure_crowd(int submitters) {
  takt::store::MemoryJournal memory;
  takt::store::SlowJournal slow(memory, kSlowSync);
  takt::server::Measurements measurements(nullptr, {});
  takt::server::ControllerOptions options;
  options.clock = [] {
    return takt::Instant{std::chrono::duration_cast<std::chrono::microseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count()};
  };
  options.note = [](const std::string&) {};
  takt::server::Controller controller(slow, measurements, std::move(options));
  require(controller.recover().has_value(), "cannot recover from nothing");
  controller.start({});
  std::vector<std::vector<double>> waits(static_cast<std::size_t>(submitters));
  std::vector<std::thread> threads;
  for (auto& mine : waits) {
    threads.emplace_back([&] { mine = waits_of_one(controller, 20); });
  }
  for (std::thread& thread : threads) thread.join();
  controller.stop();
  std::vector<double> all;
  for (const auto& mine : waits) all.insert(all.end(), mine.begin(), mine.end());
  const double sync_us = std::chrono::duration<double, std::micro>(kSlowSync).count();
  return {submitters, quantile(all, 0.5) / sync_us, quantile(all, 0.95) / sync_us};
}

std::string json_of(const std::vector<Crowd>& crowds) {
  std::string out = "\"submitters\": [";
  for (std::size_t i = 0; i < crowds.size(); ++i) {
    out += fmt::format(
        "{}\n  {{\"submitters\": {}, \"ack_median_syncs\": {:.2f}, \"ack_p95_syncs\": {:.2f}}}",
        i == 0 ? "" : ",", crowds[i].submitters, crowds[i].median_syncs, crowds[i].p95_syncs);
  }
  return out + "\n]";
}

std::string json_of(const std::vector<Row>& rows, int batches) {
  std::string out = fmt::format("\"bench\": \"journal\", \"batches\": {}, \"append\": [", batches);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    out += fmt::format(
        "{}\n  {{\"records\": {}, \"bytes\": {}, \"journal_median_us\": {:.1f}, "
        "\"journal_p95_us\": {:.1f}, \"bare_median_us\": {:.1f}, \"bare_p95_us\": {:.1f}, "
        "\"ratio_median\": {:.3f}}}",
        i == 0 ? "" : ",", row.records, row.bytes, row.journal_us, row.journal_p95_us, row.bare_us,
        row.bare_p95_us, row.journal_us / row.bare_us);
  }
  return out + "\n]";
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    require(i + 1 < argc, name + " needs a value");
    const std::string value = argv[i + 1];
    if (name == "--batches") {
      options.batches = std::atoi(value.c_str());
      require(options.batches > 0, "--batches must be a number from 1 on");
    } else if (name == "--folder") {
      options.folder = value;
    } else if (name == "--out") {
      options.out = value;
    } else {
      require(false, "unknown option " + name + ": expected --batches, --folder or --out");
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  std::string folder = options.folder + "/journal-bench-XXXXXX";
  require(::mkdtemp(folder.data()) != nullptr, "cannot make a folder in " + options.folder);
  std::vector<Row> rows;
  {
    auto journal = Journal::open(folder + "/journal.db");
    require(journal.has_value(), journal ? "" : journal.error().message);
    const int fd =
        ::open((folder + "/bare").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    require(fd >= 0, "cannot make the bare file");
    // Warm up until the log has its lasting size: while it still grows (its first 4 MiB after each
    // start), a commit allocates blocks too and costs up to twice as much.
    measure(**journal, fd, 1000, 5000, 2);
    for (const std::size_t records : {1u, 10u, 100u, 1000u}) {
      rows.push_back(measure(**journal, fd, records, 500, options.batches));
      const Row& row = rows.back();
      fmt::print("{:5} records, {:7} bytes: journal {:8.0f} us, bare {:8.0f} us, ratio {:.2f}\n",
                 row.records, row.bytes, row.journal_us, row.bare_us, row.journal_us / row.bare_us);
    }
    ::close(fd);
  }
  std::filesystem::remove_all(folder);
  std::vector<Crowd> crowds;
  for (const int submitters : {1, 10, 100, 400}) {
    crowds.push_back(measure_crowd(submitters));
    const Crowd& crowd = crowds.back();
    fmt::print("{:5} submitters, syncs of 10 ms: acknowledged in {:.2f} syncs, 95 % in {:.2f}\n",
               crowd.submitters, crowd.median_syncs, crowd.p95_syncs);
  }
  if (!options.out.empty()) {
    std::ofstream file(options.out);
    file << "{" << json_of(rows, options.batches) << ",\n" << json_of(crowds) << "}\n";
    require(file.good(), "cannot write " + options.out);
  }
  return 0;
}
