#pragma once
// Reading and writing of record files without the C++ run-time library: the shim is resident once
// per job and should cost less than a megabyte.
#include <array>
#include <cstdint>
#include <string_view>

#include "edge/launch/shim/protocol.h"

namespace takt::shim {

struct Field {
  std::string_view name;
  std::string_view value;
};

// Walks `name=value` fields that each end in `end`.
class FieldReader {
 public:
  FieldReader(std::string_view text, char end) : rest_(text), end_(end) {}
  // False at the end of the text, or when what is left is no whole field: then damaged() is true.
  bool next(Field& field);
  bool damaged() const { return damaged_; }

 private:
  std::string_view rest_;
  char end_;
  bool damaged_ = false;
};

// Decimal, an optional minus, nothing else. False: not a number, or out of range.
bool parse_number(std::string_view text, std::int64_t& number);

// Collects the lines of a record in place. What does not fit is cut, and fits() says so.
class LineWriter {
 public:
  void add(std::string_view name, std::string_view value);  // line breaks become blanks
  void add(std::string_view name, std::int64_t value);
  std::string_view text() const { return {buffer_.data(), size_}; }
  bool fits() const { return fits_; }

 private:
  void put(std::string_view text, bool clean);
  std::array<char, record_bytes_max> buffer_;
  std::size_t size_ = 0;
  bool fits_ = true;
};

// A whole file in memory of malloc. data is null when it could not be read: error holds errno.
struct Blob {
  char* data = nullptr;
  std::size_t size = 0;
  int error = 0;
  std::string_view text() const { return {data, size}; }
};
// EFBIG above `bytes_max`. A NUL follows the data.
Blob read_whole(int folder, const char* name, std::size_t bytes_max);

// Makes `name` appear at once and complete: written beside it, then renamed. Returns 0 or errno; on
// failure nothing is left behind.
int write_record(int folder, const char* name, const char* beside, std::string_view text);

// Keeps room for the exit record, so that a disk that is full when the job ends loses no outcome.
int reserve_exit_record(int folder);
// Fills and publishes it; without a reserve it is written like any other.
int write_exit_record(int folder, std::string_view text);

// Writes all of it. Returns 0 or errno.
int write_all(int fd, std::string_view text);

}  // namespace takt::shim
