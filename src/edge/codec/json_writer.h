#pragma once
// Appends JSON to one string: no tree, no copies, so that a list of 10,000 jobs takes milliseconds.
// Commas are set by the writer; that begins and ends match is the caller's duty. Internal.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace takt::codec {

class JsonWriter {
 public:
  explicit JsonWriter(std::size_t reserve = 1024) { out_.reserve(reserve); }
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void begin_object() { open('{'); }
  void end_object() { close('}'); }
  void begin_array() { open('['); }
  void end_array() { close(']'); }
  // `name` is written as it is: letters, digits, '_' and such only.
  void key(std::string_view name);
  // For keys that come from outside.
  void key_text(std::string_view name);

  // Bytes that are not UTF-8 become U+FFFD.
  void text(std::string_view value);
  void integer(std::int64_t value);
  void natural(std::uint64_t value);
  // Shortest form that reads back as the same double. Not finite: null.
  void number(double value);
  void boolean(bool value);
  void null();
  // A text that needs no escaping, or a piece of JSON.
  void plain_text(std::string_view value);
  void raw(std::string_view json);

  void field(std::string_view name, std::string_view value) { key(name), text(value); }
  void field(std::string_view name, const std::string& value) { key(name), text(value); }
  void field(std::string_view name, const char* value) { key(name), text(value); }
  void field(std::string_view name, std::int64_t value) { key(name), integer(value); }
  void field(std::string_view name, int value) { key(name), integer(value); }
  void field(std::string_view name, unsigned value) { key(name), natural(value); }
  void field(std::string_view name, std::uint64_t value) { key(name), natural(value); }
  void field(std::string_view name, double value) { key(name), number(value); }
  void field(std::string_view name, bool value) { key(name), boolean(value); }
  void null_field(std::string_view name) { key(name), null(); }

  std::string take() {
    flush();
    return std::move(out_);
  }

 private:
  void open(char c) {
    comma();
    put(c);
    comma_due_ = false;
  }
  void close(char c) {
    put(c);
    comma_due_ = true;
  }
  void comma() {
    if (comma_due_) put(',');
    comma_due_ = true;
  }
  void put(char c) {
    if (used_ == stage_.size()) flush();
    stage_[used_++] = c;
  }
  void put(std::string_view piece);
  void flush();
  void escaped(std::string_view value);

  std::string out_;
  // Small pieces gather here: cheaper than growing a string by a few bytes at a time.
  std::array<char, 4096> stage_;
  std::size_t used_ = 0;
  bool comma_due_ = false;
};

}  // namespace takt::codec
