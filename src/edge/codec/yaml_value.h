#pragma once
// A YAML document as it was read, with line numbers: the only thing in the codec that a YAML parser
// fills. Only what a settings file needs is accepted: one document, no anchors, aliases or tags.
// Internal.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace takt::codec {

struct YamlEntry;

struct YamlValue {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false;  // of a scalar
  int line = 1;
  std::string text;  // of a scalar
  std::vector<YamlValue> items;
  std::vector<YamlEntry> entries;  // in the order of the file; a repeated key only once
};

struct YamlEntry {
  std::string key;
  int line = 1;
  YamlValue value;
};

// What is wrong with a file: collected, to be told all at once.
class YamlFaults {
 public:
  explicit YamlFaults(std::string file) : file_(std::move(file)) {}

  // `field` is a dotted path, or empty.
  void add(int line, const std::string& field, const std::string& sentence);
  bool any() const { return !faults_.empty(); }
  // Whether something was found at the path or below it.
  bool any_at(const std::string& field) const;
  // "file: line N: field: sentence", by line, at most 20 of them.
  tl::unexpected<Error> error() const;

 private:
  struct OneFault {
    int line;
    std::string field;
    std::string sentence;
  };
  std::string file_;
  std::vector<OneFault> faults_;
};

inline constexpr int yaml_depth_max = 16;

// False when the text is not YAML at all; then the fault that says so is in `faults`. Repeated keys
// and the like are added to `faults` too, and reading goes on.
bool parse_yaml(std::string_view text, std::size_t bytes_max, YamlValue& root, YamlFaults& faults);

// "a list", "'text'", ...: for messages.
std::string describe(const YamlValue& value);

// The candidate that `word` was probably meant to be (few letters differ); empty when none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// ---- taking values apart. On failure they add a fault and return false; `to` keeps its value.
// ----

class YamlFields {
 public:
  explicit YamlFields(YamlFaults& collected) : faults(collected) {}

  YamlFaults& faults;
  std::map<std::string, int> lines;  // path -> line, of everything that was there

  using Read = std::function<void(const YamlValue& value, const std::string& path)>;
  using Readers = std::vector<std::pair<std::string, Read>>;
  // Calls the reader of each key that is there; an unknown key is a fault. `expected` is for the
  // case that the value is no mapping.
  bool map(const YamlValue& value, const std::string& path, const Readers& readers,
           const std::string& expected = "a mapping of fields");

  bool text(const YamlValue& value, const std::string& path, std::string& to);
  bool whole(const YamlValue& value, const std::string& path, std::int64_t min, std::int64_t max,
             const std::string& what, std::int64_t& to);
  bool boolean(const YamlValue& value, const std::string& path, bool& to);
  // A list of texts, or one text for a list of one.
  bool texts(const YamlValue& value, const std::string& path, std::vector<std::string>& to);
  // A word of `words`; its index.
  bool word(const YamlValue& value, const std::string& path, const std::vector<std::string>& words,
            const std::string& what, std::size_t& to);
  // A text that `parse` understands (quantity_text.h).
  template <class T>
  bool parsed(const YamlValue& value, const std::string& path, Result<T> (*parse)(std::string_view),
              T& to) {
    std::string word;
    if (!text(value, path, word)) return false;
    Result<T> result = parse(word);
    if (!result) {
      faults.add(value.line, path, result.error().message);
      return false;
    }
    to = *result;
    return true;
  }
};

}  // namespace takt::codec
