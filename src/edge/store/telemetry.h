#pragma once
// What finished attempts measured: telemetry.db. Losing it loses advice, never jobs: every method
// returns quickly with an Error instead of waiting, and the caller logs it and goes on.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace takt::store {

// One finished attempt's measurements.
struct Summary {
  std::string workload;
  std::string attempt;        // "17.1"
  std::int64_t ended_us = 0;  // since 1970-01-01T00:00:00Z
  std::string json;           // made by edge/codec; opaque here
  bool operator==(const Summary&) const = default;
};

class Telemetry {
 public:
  struct Options {
    std::size_t per_workload_max = 1000;  // of each workload the newest are kept (and a 16th more)
    std::size_t summaries_max = 200'000;  // of all together the newest are kept
    std::size_t json_bytes_max = 1u << 20;
  };

  // Errors as of Journal::open. A damaged telemetry.db is refused with the advice to move it away.
  static Result<std::unique_ptr<Telemetry>> open(const std::string& path);
  static Result<std::unique_ptr<Telemetry>> open(const std::string& path, Options options);
  ~Telemetry();
  Telemetry(const Telemetry&) = delete;
  Telemetry& operator=(const Telemetry&) = delete;

  // Saving an attempt again replaces what was there. May be called from several threads.
  Result<void> save_summary(const std::string& workload, const std::string& attempt,
                            std::int64_t ended_us, const std::string& json);
  // Newest first, at most `limit`; of one workload, or of all (nullopt).
  Result<std::vector<Summary>> load_summaries(const std::optional<std::string>& workload,
                                              std::size_t limit);

 private:
  struct Impl;
  explicit Telemetry(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace takt::store
