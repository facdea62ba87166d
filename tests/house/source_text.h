#pragma once
// The repository as text, and what the rules need to read C++ without a compiler.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace takt::house {

// Path relative to the root of the repository ("src/core/base/ids.h") -> its text.
using Files = std::map<std::string, std::string>;

// The files of the repository that people wrote: everything but build/, hidden folders other than
// .ci, and files of more than 1 MiB or with a NUL byte (data, pictures).
Files read_repository(const std::filesystem::path& root);

// The same text with comments, string and character literals blanked out; lines stay where they
// are. The names in #include lines are kept.
std::string code_only(const std::string& text);

struct Include {
  int line = 0;  // from 1
  std::string name;
  bool quoted = false;  // "x.h", not <x.h>
};
std::vector<Include> includes_of(const std::string& text);

// A word of code: an identifier, or one character of punctuation.
struct Token {
  int line = 0;
  std::string text;
};
std::vector<Token> tokens_of(const std::string& code);

std::vector<std::string> lines_of(const std::string& text);
bool starts_with(const std::string& text, const std::string& prefix);
bool ends_with(const std::string& text, const std::string& suffix);
// The folder a file is in, without the slash at the end: "src/core/base".
std::string folder_of(const std::string& path);

}  // namespace takt::house
