#include "house/code_rules.h"

#include <algorithm>
#include <map>
#include <set>

namespace takt::house {
namespace {

constexpr int file_lines_max = 800;

bool is_cpp(const std::string& path) {
  return ends_with(path, ".cpp") || ends_with(path, ".h") || ends_with(path, ".c");
}

std::string place(const std::string& path, int line) {
  return path + ":" + std::to_string(line) + ": ";
}

// The room of a path below src/: "core/base", "edge/codec"; empty when it is in none.
std::string room_of(const std::string& below_src) {
  const std::size_t first = below_src.find('/');
  if (first == std::string::npos) return "";
  const std::size_t second = below_src.find('/', first + 1);
  return second == std::string::npos ? "" : below_src.substr(0, second);
}

std::string layer_of(const std::string& room) { return room.substr(0, room.find('/')); }

// What each room may include besides itself. A layer's name stands for all of its rooms.
const std::map<std::string, std::set<std::string>>& allowed() {
  static const std::map<std::string, std::set<std::string>> table = {
      {"core/base", {}},
      {"core/model", {"core/base"}},
      {"core/insight", {"core/base", "core/model"}},
      {"core/schedule", {"core/base", "core/model"}},
      {"core/control", {"core/base", "core/model", "core/schedule"}},
      {"core/replay", {"core/base", "core/model", "core/schedule", "core/control"}},
      {"edge/codec", {"core"}},
      {"edge/store", {"core", "edge/codec"}},
      {"edge/device", {"core"}},
      {"edge/launch", {"core"}},
      {"edge/engine", {"core", "edge/codec"}},
      {"edge/ingest", {"core"}},
      {"edge/http", {"core"}},
      {"edge/identity", {"core"}},
      {"app/agent", {"core", "edge"}},
      {"app/report", {"core"}},
      {"app/server", {"core", "edge", "app/report"}},
      {"app/cli", {"core", "edge", "app/report", "app/server", "app/agent"}},
  };
  return table;
}

std::string judge_takt(const std::string& path, const Include& include) {
  const std::string from = room_of(path.substr(4));
  const std::string to = room_of(include.name);
  if (starts_with(include.name, "emulator/"))
    return "takt has no emulation inside; it talks to a library";
  if (starts_with(include.name, "..") || include.name.find("/../") != std::string::npos)
    return "includes are written from src/: \"core/base/ids.h\"";
  if (to.empty() || allowed().count(to) == 0) return "";  // a generated or a foreign header
  const auto rules = allowed().find(from);
  if (rules == allowed().end())
    return "the room " + from + " is not in the table of code_rules.cpp";
  if (from == to || rules->second.count(to) > 0 || rules->second.count(layer_of(to)) > 0) return "";
  return from + " must not include " + to + " (ARCHITECTURE.md, rooms)";
}

std::string judge_emulator(const Include& include) {
  const std::string to = room_of(include.name);
  if (allowed().count(to) == 0 || to == "core/base" || include.name == "edge/device/nvml_abi.h")
    return "";
  return "the emulator includes only core/base and edge/device/nvml_abi.h of takt";
}

const std::set<std::string>& impure_headers() {
  static const std::set<std::string> names = {"chrono",
                                              "ctime",
                                              "time.h",
                                              "thread",
                                              "mutex",
                                              "shared_mutex",
                                              "condition_variable",
                                              "future",
                                              "atomic",
                                              "semaphore",
                                              "stop_token",
                                              "barrier",
                                              "latch",
                                              "fstream",
                                              "filesystem",
                                              "iostream",
                                              "random",
                                              "csignal",
                                              "signal.h",
                                              "unistd.h",
                                              "fcntl.h",
                                              "pthread.h",
                                              "dlfcn.h",
                                              "netdb.h",
                                              "pwd.h",
                                              "grp.h",
                                              "dirent.h",
                                              "sys/stat.h",
                                              "sys/time.h",
                                              "sys/types.h",
                                              "sys/socket.h",
                                              "sys/un.h",
                                              "sys/mman.h",
                                              "sys/wait.h",
                                              "sys/file.h",
                                              "netinet/in.h",
                                              "poll.h",
                                              "sys/epoll.h"};
  return names;
}

// Words that reach the world. Those of C that are also good names ("time", "open") count only as a
// call that is not a member's.
const std::set<std::string>& impure_words() {
  static const std::set<std::string> names = {"getenv",        "secure_getenv", "setenv",
                                              "putenv",        "environ",       "gettimeofday",
                                              "clock_gettime", "localtime",     "localtime_r",
                                              "gmtime",        "random_device", "srand",
                                              "fopen",         "freopen",       "tmpfile",
                                              "ifstream",      "ofstream",      "fstream",
                                              "system_clock",  "steady_clock",  "pthread_create",
                                              "jthread",       "this_thread",   "setlocale",
                                              "cout",          "cerr",          "cin"};
  return names;
}
const std::set<std::string>& impure_calls() {
  static const std::set<std::string> names = {
      "time",    "clock", "rand",   "random",  "system",    "popen", "open",   "read",
      "write",   "close", "socket", "connect", "fork",      "execv", "execve", "printf",
      "fprintf", "puts",  "sleep",  "usleep",  "nanosleep", "async"};
  return names;
}

// TAKT_CHECK says what broke on standard error before it ends the program.
bool may_print(const std::string& path) { return path == "src/core/base/check.h"; }

bool is_name(const std::string& word) {
  static const std::set<std::string> keywords = {"return", "else", "case", "do",
                                                 "throw",  "and",  "or"};
  const bool word_like = std::isalpha(static_cast<unsigned char>(word[0])) != 0 || word[0] == '_';
  return word_like && keywords.count(word) == 0;
}

bool is_declared_or_member(const std::vector<Token>& tokens, std::size_t at) {
  if (at == 0) return false;
  const std::string& before = tokens[at - 1].text;
  if (before == "." || before == "&" || before == "*") return true;
  if (before == ">") return true;  // p->time(), or "vector<int> read(" which declares
  if (before == ":")               // takt::time( is ours, std::time( and ::time( are not
    return at >= 3 && tokens[at - 3].text != "std" && is_name(tokens[at - 3].text);
  return is_name(before);
}

// Names that the file gives to its own variables and lambdas: "const auto clock = ...".
std::set<std::string> own_names(const std::vector<Token>& tokens) {
  std::set<std::string> names;
  for (std::size_t i = 1; i + 1 < tokens.size(); ++i)
    if (tokens[i + 1].text == "=" && is_name(tokens[i - 1].text)) names.insert(tokens[i].text);
  return names;
}

void find_impure_words(const std::string& path, const std::vector<Token>& tokens,
                       std::vector<std::string>& out) {
  const std::set<std::string> own = own_names(tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string& word = tokens[i].text;
    const bool called = i + 1 < tokens.size() && tokens[i + 1].text == "(";
    const bool ours = is_declared_or_member(tokens, i) ||
                      (own.count(word) > 0 && (i == 0 || tokens[i - 1].text != ":"));
    const bool reaches =
        impure_words().count(word) > 0 || (impure_calls().count(word) > 0 && called && !ours);
    if (reaches && !may_print(path))
      out.push_back(place(path, tokens[i].line) + "core must not use '" + word +
                    "': the edge passes in what it needs");
  }
}

// The words up to the end of the declaration that begins at `at`: its ';', or the '{' or '(' or '='
// that opens what is in it.
std::vector<std::string> declaration_at(const std::vector<Token>& tokens, std::size_t at,
                                        std::string& ended_by) {
  std::vector<std::string> words;
  for (std::size_t i = at; i < tokens.size(); ++i) {
    const std::string& text = tokens[i].text;
    if (text == ";" || text == "{" || text == "(" || text == "=") {
      ended_by = text;
      return words;
    }
    words.push_back(text);
  }
  return words;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// constexpr, or const and not merely a pointer to const.
bool is_constant(const std::vector<std::string>& words) {
  if (has(words, "constexpr") || has(words, "consteval")) return true;
  if (!has(words, "const")) return false;
  const auto star = std::find(words.rbegin(), words.rend(), "*");
  return star == words.rend() || std::find(words.rbegin(), star, "const") != star;
}

void find_mutable_statics(const std::string& path, const std::vector<Token>& tokens,
                          std::vector<std::string>& out) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].text == "thread_local") {
      out.push_back(place(path, tokens[i].line) + "core must not keep state in a thread_local");
      continue;
    }
    if (tokens[i].text != "static") continue;
    std::string ended_by;
    const std::vector<std::string> words = declaration_at(tokens, i, ended_by);
    if (ended_by == "(" || has(words, "operator") || is_constant(words)) continue;
    out.push_back(place(path, tokens[i].line) +
                  "core must not have a mutable static: pass the state in and return it");
  }
}

// Walks declarations at namespace scope and jumps over the bodies of everything else.
class GlobalFinder {
 public:
  GlobalFinder(const std::string& path, const std::vector<Token>& tokens)
      : path_(path), tokens_(tokens) {}

  std::vector<std::string> run() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) {
      const std::string& text = tokens_[at_].text;
      if (text == "{") {
        open();
      } else if (text == "}") {
        words_.clear();  // of a namespace
      } else if (text == ";") {
        judge();
      } else {
        if (words_.empty()) line_ = tokens_[at_].line;
        words_.push_back(text);
      }
    }
    return found_;
  }

 private:
  void open() {
    if (has(words_, "namespace") || (has(words_, "extern") && words_.size() == 1)) {
      words_.clear();
      return;
    }
    if (std::count(words_.begin(), words_.end(), "(") >
        std::count(words_.begin(), words_.end(), ")")) {
      skip_braces();  // the {} of a default argument
      return;
    }
    const bool type = is_type();
    const bool function = !type && has_call_before_assignment();
    skip_braces();
    if (function) {
      words_.clear();
    } else if (type) {
      words_.clear();  // what follows up to ';' would be a variable of that type
    }
  }

  // Leaves at_ on the brace that closes the one it is on.
  void skip_braces() {
    int depth = 0;
    for (; at_ < tokens_.size(); ++at_) {
      if (tokens_[at_].text == "{") ++depth;
      if (tokens_[at_].text == "}" && --depth == 0) return;
    }
  }

  bool is_type() const {
    const bool named = has(words_, "struct") || has(words_, "class") || has(words_, "enum") ||
                       has(words_, "union") || has(words_, "concept");
    return named && !has(words_, "=") && !has(words_, "(");
  }

  bool has_call_before_assignment() const {
    if (has(words_, "operator")) return true;
    const auto call = std::find(words_.begin(), words_.end(), "(");
    return call != words_.end() && call < std::find(words_.begin(), words_.end(), "=");
  }

  void judge() {
    static const std::set<std::string> harmless = {
        "using", "typedef", "static_assert", "friend", "struct",
        "class", "enum",    "extern",        "static", "thread_local"};
    const bool plain = words_.empty() || harmless.count(words_.front()) > 0 ||
                       is_constant(words_) || has(words_, "using") || has_call_before_assignment();
    // "template <class T> struct X;" declares, "static int x;" is found with the statics.
    const bool declares =
        has(words_, "template") && (has(words_, "struct") || has(words_, "class"));
    if (!plain && !(declares && !has(words_, "=")))
      found_.push_back(place(path_, line_) + "core must not have a mutable global ('" +
                       words_.back() + "'): pass the state in and return it");
    words_.clear();
  }

  const std::string& path_;
  const std::vector<Token>& tokens_;
  std::size_t at_ = 0;
  int line_ = 0;
  std::vector<std::string> words_;
  std::vector<std::string> found_;
};

bool is_heavy(const std::string& name) {
  if (name == "nlohmann/json_fwd.hpp") return false;  // only the names
  static const std::vector<std::string> prefixes = {
      "nlohmann/",  "CLI/",  "yaml-cpp/",    "spdlog/",   "rapidcheck",
      "SQLiteCpp/", "curl/", "microhttpd.h", "sqlite3.h", "openssl/"};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return starts_with(name, prefix); });
}

}  // namespace

std::vector<std::string> wrong_includes(const Files& files) {
  std::vector<std::string> out;
  for (const auto& [path, text] : files) {
    const bool takt = starts_with(path, "src/");
    if (!is_cpp(path) || (!takt && !starts_with(path, "emulator/"))) continue;
    for (const Include& include : includes_of(text)) {
      const std::string why = takt ? judge_takt(path, include) : judge_emulator(include);
      if (!why.empty()) out.push_back(place(path, include.line) + why + ": " + include.name);
    }
  }
  return out;
}

std::vector<std::string> impurities_of_core(const Files& files) {
  std::vector<std::string> out;
  for (const auto& [path, text] : files) {
    if (!is_cpp(path) || !starts_with(path, "src/core/")) continue;
    for (const Include& include : includes_of(text))
      if (impure_headers().count(include.name) > 0)
        out.push_back(place(path, include.line) + "core must not include <" + include.name +
                      ">: the edge passes in what it needs");
    const std::vector<Token> tokens = tokens_of(code_only(text));
    find_impure_words(path, tokens, out);
    find_mutable_statics(path, tokens, out);
    const std::vector<std::string> globals = GlobalFinder(path, tokens).run();
    out.insert(out.end(), globals.begin(), globals.end());
  }
  return out;
}

std::vector<std::string> heavy_headers_in_headers(const Files& files) {
  std::vector<std::string> out;
  for (const auto& [path, text] : files) {
    if (!ends_with(path, ".h")) continue;
    for (const Include& include : includes_of(text))
      if (is_heavy(include.name))
        out.push_back(
            place(path, include.line) + include.name +
            " takes seconds to compile: include it in a .cpp and keep its types out of headers");
  }
  return out;
}

std::vector<std::string> overlong_files(const Files& files) {
  std::vector<std::string> out;
  for (const auto& [path, text] : files) {
    const bool counts = is_cpp(path) || ends_with(path, ".sh") || ends_with(path, ".cmake") ||
                        ends_with(path, "CMakeLists.txt") || path == "Makefile";
    const auto lines = std::count(text.begin(), text.end(), '\n');
    if (counts && lines > file_lines_max)
      out.push_back(path + ": " + std::to_string(lines) + " lines; a file has at most " +
                    std::to_string(file_lines_max) + ": split it by what changes together");
  }
  return out;
}

}  // namespace takt::house
