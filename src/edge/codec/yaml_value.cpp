#include "edge/codec/yaml_value.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <sstream>

#include "edge/codec/utf8.h"

namespace takt::codec {
namespace {

// Put behind the text as a comment. yaml-cpp 0.7 takes a quoted text that never ends as ended by
// the end of the file; then this is found in it.
constexpr std::string_view kEnd = "# end of the file, says takt \x7F";

// Leaves the parser at the first thing that makes the rest meaningless. Does not leave this file.
struct GiveUp {
  int line;
  std::string sentence;
};

int line_of(const YAML::Mark& mark) { return mark.line < 0 ? 1 : mark.line + 1; }

class Builder : public YAML::EventHandler {
 public:
  Builder(YamlValue& root, YamlFaults& faults) : root_(root), faults_(faults) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      throw GiveUp{line_of(mark), "a second document begins here; expected one per file"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (expects_key()) throw GiveUp{line_of(mark), "an empty key; expected the name of a field"};
    place(mark).kind = YamlValue::Kind::null;
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw GiveUp{line_of(mark), "an alias (*name); takt reads none, write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (expects_key()) {
      Level& level = open_.back();
      level.key = value;
      level.key_line = line_of(mark);
      level.has_key = true;
      return;
    }
    if (value.find(kEnd) != std::string::npos)
      throw GiveUp{line_of(mark), "a quotation mark opens here and is never closed"};
    YamlValue& v = place(mark);
    v.kind = YamlValue::Kind::scalar;
    v.quoted = tag == "!";
    v.text = value;
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    start(mark, tag, anchor, YamlValue::Kind::list);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    start(mark, tag, anchor, YamlValue::Kind::map);
  }
  void OnMapEnd() override { open_.pop_back(); }

  int documents() const { return documents_; }

 private:
  struct Level {
    YamlValue* value;
    bool has_key = false;
    std::string key;
    int key_line = 1;
    std::map<std::string, int> seen;  // key -> its first line
  };

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0)
      throw GiveUp{line_of(mark), "an anchor (&name); takt reads none, write the value out"};
  }
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!")
      throw GiveUp{line_of(mark), "a tag (" + printable(tag) + "); takt reads none, remove it"};
  }
  bool expects_key() const {
    return !open_.empty() && open_.back().value->kind == YamlValue::Kind::map &&
           !open_.back().has_key;
  }

  // Where the next value goes.
  YamlValue& place(const YAML::Mark& mark) {
    YamlValue* at = &root_;
    if (!open_.empty() && open_.back().value->kind == YamlValue::Kind::list) {
      open_.back().value->items.emplace_back();
      at = &open_.back().value->items.back();
    } else if (!open_.empty()) {
      Level& level = open_.back();
      level.has_key = false;
      const auto [first, fresh] = level.seen.emplace(level.key, level.key_line);
      if (fresh) {
        level.value->entries.push_back({level.key, level.key_line, {}});
        at = &level.value->entries.back().value;
      } else {
        faults_.add(level.key_line, printable(level.key),
                    "is given twice, first in line " + std::to_string(first->second));
        ignored_.emplace_back(std::make_unique<YamlValue>());
        at = ignored_.back().get();
      }
    }
    *at = {};
    at->line = line_of(mark);
    return *at;
  }
  void start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YamlValue::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (expects_key())
      throw GiveUp{line_of(mark), "a key that is a list or a mapping; expected a word"};
    if (open_.size() >= static_cast<std::size_t>(yaml_depth_max))
      throw GiveUp{line_of(mark),
                   "nested deeper than " + std::to_string(yaml_depth_max) + " levels"};
    YamlValue& v = place(mark);
    v.kind = kind;
    // Stays valid: a container grows only while none of its elements is open.
    open_.push_back({&v, false, {}, 1, {}});
  }

  YamlValue& root_;
  YamlFaults& faults_;
  std::vector<Level> open_;
  std::vector<std::unique_ptr<YamlValue>> ignored_;  // values of repeated keys
  int documents_ = 0;
};

// One plain way to end lines, and nothing that no editor writes. False: a fault was added.
bool cleaned(std::string_view text, std::size_t bytes_max, std::string& out, YamlFaults& faults) {
  if (text.size() > bytes_max) {
    faults.add(1, "",
               "the file has " + std::to_string(text.size()) + " bytes; at most " +
                   std::to_string(bytes_max) + " are read");
    return false;
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);  // byte order mark
  int line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text.substr(i));
    if (length == 0) {
      faults.add(line, "", "the text is not UTF-8; save the file as UTF-8");
      return false;
    }
    const char c = text[i];
    const bool line_end = c == '\r' && i + 1 < text.size() && text[i + 1] == '\n';
    if (line_end) {
      ++i;
      continue;
    }
    if (length == 1 && c != '\n' && c != '\t' &&
        (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)) {
      faults.add(line, "",
                 std::string(c == '\0' ? "a NUL byte" : "the control character ") +
                     (c == '\0' ? "" : printable(text.substr(i, 1))) +
                     " is in the text; this is not a text file");
      return false;
    }
    if (c == '\n') ++line;
    out.append(text, i, length);
    i += length;
  }
  return true;
}

// Edits between two words, where swapping neighbours counts once (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return out;
}

std::string joined(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

}  // namespace

void YamlFaults::add(int line, const std::string& field, const std::string& sentence) {
  faults_.push_back({line, field, sentence});
}

bool YamlFaults::any_at(const std::string& field) const {
  return std::any_of(faults_.begin(), faults_.end(), [&](const OneFault& fault) {
    return fault.field == field || fault.field.rfind(field + ".", 0) == 0;
  });
}

tl::unexpected<Error> YamlFaults::error() const {
  constexpr std::size_t shown_max = 20;
  std::vector<OneFault> sorted = faults_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const OneFault& a, const OneFault& b) { return a.line < b.line; });
  std::string message;
  for (std::size_t i = 0; i < sorted.size() && i < shown_max; ++i) {
    if (i > 0) message += '\n';
    message += file_ + ": line " + std::to_string(sorted[i].line) + ": ";
    if (!sorted[i].field.empty()) message += sorted[i].field + ": ";
    message += sorted[i].sentence;
  }
  if (sorted.size() > shown_max)
    message += "\n" + file_ + ": and " + std::to_string(sorted.size() - shown_max) + " more";
  return fail(ErrorKind::invalid, message);
}

bool parse_yaml(std::string_view text, std::size_t bytes_max, YamlValue& root, YamlFaults& faults) {
  std::string clean;
  if (!cleaned(text, bytes_max, clean, faults)) return false;
  Builder builder(root, faults);
  try {
    std::istringstream stream(clean + "\n" + std::string(kEnd) + "\n");
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const GiveUp& stop) {
    faults.add(stop.line, "", stop.sentence);
    return false;
  } catch (const YAML::Exception& error) {
    // What is missing at the end is found behind it.
    const auto lines = static_cast<int>(std::count(clean.begin(), clean.end(), '\n')) +
                       (clean.empty() || clean.back() == '\n' ? 0 : 1);
    faults.add(std::min(line_of(error.mark), std::max(lines, 1)), "", "not YAML: " + error.msg);
    return false;
  } catch (const std::exception& error) {
    faults.add(1, "", std::string("not YAML: ") + error.what());
    return false;
  }
  return true;
}

std::string describe(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null: return "nothing";
    case YamlValue::Kind::scalar: return "'" + printable(value.text) + "'";
    case YamlValue::Kind::list: return "a list";
    case YamlValue::Kind::map: break;
  }
  return "a mapping";
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  if (word.size() > 40) return {};
  std::string best;
  std::size_t best_distance = word.size() < 4 ? 2 : 3;  // below this
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(word, candidate);
    if (d < best_distance && d < candidate.size()) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

bool YamlFields::map(const YamlValue& value, const std::string& path, const Readers& readers,
                     const std::string& expected) {
  if (value.kind != YamlValue::Kind::map) {
    faults.add(value.line, path, describe(value) + " is not " + expected);
    return false;
  }
  for (const YamlEntry& entry : value.entries) {
    const std::string at = joined(path, printable(entry.key));
    lines[at] = entry.line;
    const auto reader = std::find_if(readers.begin(), readers.end(),
                                     [&](const auto& r) { return r.first == entry.key; });
    if (reader != readers.end()) {
      reader->second(entry.value, at);
      continue;
    }
    std::vector<std::string> names;
    for (const auto& r : readers) names.push_back(r.first);
    const std::string near = nearest(entry.key, names);
    faults.add(entry.line, at,
               near.empty() ? "is not a field; expected " + listed(names)
                            : "is not a field; did you mean '" + near + "'?");
  }
  return true;
}

bool YamlFields::text(const YamlValue& value, const std::string& path, std::string& to) {
  if (value.kind == YamlValue::Kind::scalar) {
    to = value.text;
    return true;
  }
  faults.add(value.line, path,
             value.kind == YamlValue::Kind::null ? "has no value; write one or remove the field"
                                                 : describe(value) + " is not a single value");
  return false;
}

bool YamlFields::whole(const YamlValue& value, const std::string& path, std::int64_t min,
                       std::int64_t max, const std::string& what, std::int64_t& to) {
  std::string word;
  if (!text(value, path, word)) return false;
  std::int64_t number = 0;
  const char* const last = word.data() + word.size();
  const auto [end, code] = std::from_chars(word.data(), last, number);
  if (code != std::errc() || end != last || word.empty() || number < min || number > max) {
    faults.add(value.line, path,
               describe(value) + " is not " + what + "; expected a whole number from " +
                   std::to_string(min) + " to " + std::to_string(max));
    return false;
  }
  to = number;
  return true;
}

bool YamlFields::boolean(const YamlValue& value, const std::string& path, bool& to) {
  if (value.kind == YamlValue::Kind::scalar && (value.text == "true" || value.text == "false")) {
    to = value.text == "true";
    return true;
  }
  faults.add(value.line, path, describe(value) + " is neither true nor false");
  return false;
}

bool YamlFields::texts(const YamlValue& value, const std::string& path,
                       std::vector<std::string>& to) {
  if (value.kind != YamlValue::Kind::list) {
    std::string one;
    if (!text(value, path, one)) return false;
    to = {one};
    return true;
  }
  std::vector<std::string> all;
  for (const YamlValue& item : value.items) {
    std::string one;
    if (!text(item, path, one)) return false;
    all.push_back(std::move(one));
  }
  to = std::move(all);
  return true;
}

bool YamlFields::word(const YamlValue& value, const std::string& path,
                      const std::vector<std::string>& words, const std::string& what,
                      std::size_t& to) {
  std::string found;
  if (!text(value, path, found)) return false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] != found) continue;
    to = i;
    return true;
  }
  const std::string near = nearest(found, words);
  faults.add(value.line, path,
             describe(value) + " is not " + what + "; expected " + listed(words) +
                 (near.empty() ? "" : " (did you mean '" + near + "'?)"));
  return false;
}

}  // namespace takt::codec
