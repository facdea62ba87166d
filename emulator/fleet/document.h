#pragma once
// What `nvidia-smi -q` and `-q -x` have in common: a tree of named entries. Names are normalised
// ("FB Memory Usage" -> "fb_memory_usage") so that one interpreter serves both.
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace takt::emulator {

struct Entry {
  std::string name;   // normalised
  std::string value;  // trimmed text; empty where the entry only groups others
  std::string id;     // the id of <gpu id="..."> or the rest of the line "GPU 00000000:00:09.0"
  int line = 0;
  std::vector<Entry> children;

  const Entry* child(std::string_view name) const;
  // The first of several names, which changed over driver versions.
  const Entry* first_child(std::initializer_list<std::string_view> names) const;
};

std::string normalised(std::string_view name);
std::string trimmed(std::string_view text);

// Elements become entries. Attributes other than id, comments and DOCTYPE are skipped.
Result<Entry> parse_xml(std::string_view text, const std::string& place);

// The indented text of `nvidia-smi -q`; lines before the first entry are skipped.
Result<Entry> parse_smi_text(std::string_view text, const std::string& place, int first_line = 1);

}  // namespace takt::emulator
