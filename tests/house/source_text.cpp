#include "house/source_text.h"

#include <cctype>
#include <fstream>
#include <sstream>

namespace takt::house {
namespace {

constexpr std::uintmax_t file_bytes_max = 1 << 20;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Reads one literal or comment beginning at `at`; blanks it in `out` and returns where it ends.
class Blanker {
 public:
  explicit Blanker(const std::string& text) : text_(text), out_(text) {}

  std::string run() {
    std::size_t at = 0;
    while (at < text_.size()) at = step(at);
    return out_;
  }

 private:
  std::size_t step(std::size_t at) {
    if (at_line_start(at) && is_include(at)) return end_of_line(at);
    if (text_.compare(at, 2, "//") == 0) return blank(at, end_of_line(at));
    if (text_.compare(at, 2, "/*") == 0) return blank(at, after("*/", at + 2));
    if (text_.compare(at, 2, "R\"") == 0 && (at == 0 || !is_word(text_[at - 1]))) return raw(at);
    if (text_[at] == '"') return blank(at, end_of_literal(at, '"'));
    // 1'000 is a number.
    if (text_[at] == '\'' && (at == 0 || !is_word(text_[at - 1])))
      return blank(at, end_of_literal(at, '\''));
    return at + 1;
  }

  bool at_line_start(std::size_t at) const { return at == 0 || text_[at - 1] == '\n'; }
  bool is_include(std::size_t at) const {
    const std::size_t hash = text_.find_first_not_of(" \t", at);
    if (hash == std::string::npos || text_[hash] != '#') return false;
    const std::size_t word = text_.find_first_not_of(" \t", hash + 1);
    return word != std::string::npos && text_.compare(word, 7, "include") == 0;
  }
  std::size_t end_of_line(std::size_t at) const {
    const std::size_t end = text_.find('\n', at);
    return end == std::string::npos ? text_.size() : end;
  }
  std::size_t after(const std::string& mark, std::size_t at) const {
    const std::size_t found = text_.find(mark, at);
    return found == std::string::npos ? text_.size() : found + mark.size();
  }
  std::size_t end_of_literal(std::size_t at, char quote) const {
    for (std::size_t i = at + 1; i < text_.size() && text_[i] != '\n'; ++i) {
      if (text_[i] == '\\')
        ++i;
      else if (text_[i] == quote)
        return i + 1;
    }
    return end_of_line(at);
  }
  std::size_t raw(std::size_t at) {
    const std::size_t open = text_.find('(', at);
    if (open == std::string::npos) return text_.size();
    return blank(at, after(")" + text_.substr(at + 2, open - at - 2) + "\"", open));
  }
  std::size_t blank(std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && i < out_.size(); ++i)
      if (out_[i] != '\n') out_[i] = ' ';
    return to;
  }

  const std::string& text_;
  std::string out_;
};

bool is_hidden_or_built(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  return name == "build" || name == "node_modules" || (starts_with(name, ".") && name != ".ci");
}

}  // namespace

Files read_repository(const std::filesystem::path& root) {
  Files files;
  std::filesystem::recursive_directory_iterator walk(root), end;
  for (; walk != end; ++walk) {
    if (walk->is_directory()) {
      if (is_hidden_or_built(walk->path())) walk.disable_recursion_pending();
      continue;
    }
    if (walk->path().filename() == ".git") continue;  // a file in a worktree
    if (!walk->is_regular_file() || walk->file_size() > file_bytes_max) continue;
    std::ifstream in(walk->path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (text.str().find('\0') != std::string::npos) continue;
    files[std::filesystem::relative(walk->path(), root).generic_string()] = text.str();
  }
  return files;
}

std::string code_only(const std::string& text) { return Blanker(text).run(); }

std::vector<Include> includes_of(const std::string& text) {
  std::vector<Include> found;
  int number = 0;
  for (const std::string& line : lines_of(code_only(text))) {
    ++number;
    std::size_t at = line.find_first_not_of(" \t");
    if (at == std::string::npos || line[at] != '#') continue;
    at = line.find_first_not_of(" \t", at + 1);
    if (at == std::string::npos || line.compare(at, 7, "include") != 0) continue;
    const std::size_t open = line.find_first_of("\"<", at);
    if (open == std::string::npos) continue;
    const std::size_t close = line.find(line[open] == '"' ? '"' : '>', open + 1);
    if (close == std::string::npos) continue;
    found.push_back({number, line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return found;
}

std::vector<Token> tokens_of(const std::string& code) {
  std::vector<Token> tokens;
  int number = 0;
  bool continued = false;
  for (const std::string& line : lines_of(code)) {
    ++number;
    const std::size_t first = line.find_first_not_of(" \t");
    const bool directive = continued || (first != std::string::npos && line[first] == '#');
    continued = directive && ends_with(line, "\\");
    if (directive) continue;
    for (std::size_t i = 0; i < line.size();) {
      std::size_t end = i + 1;
      if (is_word(line[i]))
        while (end < line.size() && is_word(line[end])) ++end;
      if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
        tokens.push_back({number, line.substr(i, end - i)});
      i = end;
    }
  }
  return tokens;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool starts_with(const std::string& text, const std::string& prefix) {
  return text.compare(0, prefix.size(), prefix) == 0;
}

bool ends_with(const std::string& text, const std::string& suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace takt::house
