// The text of `nvidia-smi -q`: "Name : value" lines whose indentation is the tree. A line without a
// value that only groups others has no colon ("    MIG Mode").
#include <algorithm>

#include "fleet/document.h"

namespace takt::emulator {
namespace {

std::size_t indentation(std::string_view line) {
  std::size_t n = 0;
  for (char c : line) {
    if (c == ' ')
      n += 1;
    else if (c == '\t')
      n += 8;
    else
      break;
  }
  return n;
}

// The separator is " : " or " :" at the end; a bus id or a Windows path has colons without a space
// before them.
std::size_t separator(std::string_view line) {
  for (std::size_t at = line.find(" :"); at != std::string_view::npos; at = line.find(" :", at + 1))
    if (at + 2 == line.size() || line[at + 2] == ' ') return at;
  return std::string_view::npos;
}

Entry entry_of(std::string_view line, int number) {
  Entry entry;
  entry.line = number;
  auto at = separator(line);
  std::string label = trimmed(line.substr(0, at));
  if (at != std::string_view::npos) entry.value = trimmed(line.substr(at + 2));
  constexpr std::string_view gpu = "GPU ";
  // "GPU 00000000:00:09.0" opens a GPU.
  if (label.rfind(gpu, 0) == 0 && label.find(':') != std::string::npos) {
    entry.name = "gpu";
    entry.id = trimmed(std::string_view(label).substr(gpu.size()));
  } else {
    entry.name = normalised(label);
  }
  return entry;
}

struct Open {
  std::size_t indent;
  Entry entry;
};

void close_to(std::vector<Open>& open, std::size_t indent) {
  while (open.size() > 1 && open.back().indent >= indent) {
    Entry done = std::move(open.back().entry);
    open.pop_back();
    open.back().entry.children.push_back(std::move(done));
  }
}

}  // namespace

Result<Entry> parse_smi_text(std::string_view text, const std::string& place, int first_line) {
  Entry top;
  top.line = first_line;
  std::vector<Open> open;
  open.push_back({0, std::move(top)});
  int number = first_line - 1;
  while (!text.empty()) {
    auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line.front() == '=') continue;
    // The root is below every line: indentation is counted from 1.
    std::size_t indent = indentation(line) + 1;
    close_to(open, indent);
    open.push_back({indent, entry_of(line, number)});
  }
  close_to(open, 1);
  if (open.front().entry.children.empty())
    return fail(ErrorKind::invalid, place + ": line " + std::to_string(first_line) +
                                        ": nothing to read; expected the output of nvidia-smi -q");
  return std::move(open.front().entry);
}

}  // namespace takt::emulator
