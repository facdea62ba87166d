#pragma once
// Strict reading of one YAML mapping: every key is known, every value has the expected form, and
// the first problem is kept as a sentence with file, line and field.
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"

namespace YAML {
class Node;  // yaml-cpp's, which is heavy to include
}

namespace takt::emulator {

class Problems {
 public:
  explicit Problems(std::string place) : place_(std::move(place)) {}
  void add(const YAML::Node& node, const std::string& field, const std::string& what);
  const std::optional<Error>& first() const { return first_; }

 private:
  std::string place_;
  std::optional<Error> first_;
};

// One mapping. `where` is the path to it ("gpus[2].fault"), for messages.
class Fields {
 public:
  Fields(const YAML::Node& node, std::string where, Problems& problems,
         std::initializer_list<const char*> known);

  bool has(const char* key) const;
  YAML::Node node(const char* key) const;
  std::string path(const char* key) const;
  Problems& problems() { return problems_; }

  std::optional<std::string> text(const char* key);
  // Parses the text of a scalar; `expected` says what it should have been.
  template <class T>
  std::optional<T> value(const char* key, const std::string& expected,
                         const std::function<std::optional<T>(const std::string&)>& parse) {
    auto raw = text(key);
    if (!raw) return std::nullopt;
    auto parsed = parse(*raw);
    if (!parsed) refuse(key, *raw, expected);
    return parsed;
  }
  std::optional<std::uint64_t> whole(const char* key, std::uint64_t least, std::uint64_t most);
  // The elements of a sequence; a scalar or mapping in its place is a problem.
  std::vector<YAML::Node> list(const char* key);

 private:
  void refuse(const char* key, const std::string& raw, const std::string& expected);

  std::shared_ptr<YAML::Node> node_;
  std::string where_;
  Problems& problems_;
};

}  // namespace takt::emulator
