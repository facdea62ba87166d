#pragma once
// A folder that goes away, and records to fill journals with.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "edge/store/journal_port.h"

namespace takt::store {

class TempFolder {
 public:
  explicit TempFolder(const std::filesystem::path& in = std::filesystem::temp_directory_path()) {
    std::string pattern = (in / "takt-store-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A record whose every field follows from its sequence and size, so that a test can tell a whole
// one.
inline Record record_of(std::uint64_t sequence, std::size_t bytes = 40) {
  Record record;
  record.sequence = sequence;
  record.version = static_cast<int>(sequence % 3 + 1);
  record.kind = sequence % 2 == 0 ? "granted" : "job_accepted";
  record.body = "{\"n\": " + std::to_string(sequence) + ", \"x\": \"";
  while (record.body.size() < bytes) {
    record.body += static_cast<char>('a' + (sequence + record.body.size()) % 26);
  }
  record.body += "\"}";
  return record;
}

inline std::vector<Record> records_of(std::uint64_t first, std::uint64_t last,
                                      std::size_t bytes = 40) {
  std::vector<Record> out;
  for (std::uint64_t i = first; i <= last; ++i) out.push_back(record_of(i, bytes));
  return out;
}

inline std::vector<Record> all_after(JournalPort& journal, std::uint64_t after) {
  std::vector<Record> out;
  const auto done = journal.replay(after, [&](const Record& record) {
    out.push_back(record);
    return Result<void>();
  });
  EXPECT_TRUE(done) << done.error().message;
  return out;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return "";
  std::string bytes(static_cast<std::size_t>(file.tellg()), '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace takt::store
