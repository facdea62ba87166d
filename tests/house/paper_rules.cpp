#include "house/paper_rules.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace takt::house {
namespace {

constexpr int readme_lines_max = 15;

std::string place(const std::string& path, int line) {
  return path + ":" + std::to_string(line) + ": ";
}

bool is_code(const std::string& path) { return ends_with(path, ".cpp") || ends_with(path, ".h"); }

// The folder that must have the README for a file of code, or empty.
std::string room_of_file(const std::string& path) {
  static const std::regex inside(R"(^(src/[^/]+/[^/]+|emulator|bench|tests/(house|endtoend))/.*)");
  std::smatch match;
  return std::regex_match(path, match, inside) ? match[1].str() : "";
}

// One row: what CMake or an #include says -> the Debian package that has it.
const std::map<std::string, std::string>& package_of() {
  static const std::map<std::string, std::string> table = {
      {"Threads", "build-essential"},
      {"PkgConfig", "pkg-config"},
      {"fmt", "libfmt-dev"},
      {"tl-expected", "libexpected-dev"},
      {"nlohmann_json", "nlohmann-json3-dev"},
      {"yaml-cpp", "libyaml-cpp-dev"},
      {"CLI11", "libcli11-dev"},
      {"SQLiteCpp", "libsqlitecpp-dev"},
      {"sqlite3", "libsqlite3-dev"},
      {"SQLite3", "libsqlite3-dev"},
      {"CURL", "libcurl4-openssl-dev"},
      {"libcurl", "libcurl4-openssl-dev"},
      {"libmicrohttpd", "libmicrohttpd-dev"},
      {"OpenSSL", "libssl-dev"},
      {"ZLIB", "zlib1g-dev"},
      {"GTest", "libgtest-dev"},
      {"rapidcheck", "librapidcheck-dev"},
      {"benchmark", "libbenchmark-dev"},
      {"spdlog", "libspdlog-dev"},
  };
  return table;
}
const std::map<std::string, std::string>& package_of_include() {
  static const std::map<std::string, std::string> table = {
      {"nlohmann/", "nlohmann-json3-dev"},
      {"CLI/", "libcli11-dev"},
      {"yaml-cpp/", "libyaml-cpp-dev"},
      {"SQLiteCpp/", "libsqlitecpp-dev"},
      {"sqlite3.h", "libsqlite3-dev"},
      {"curl/", "libcurl4-openssl-dev"},
      {"microhttpd.h", "libmicrohttpd-dev"},
      {"openssl/", "libssl-dev"},
      {"zlib.h", "zlib1g-dev"},
      {"gtest/", "libgtest-dev"},
      {"gmock/", "libgmock-dev"},
      {"rapidcheck", "librapidcheck-dev"},
      {"fmt/", "libfmt-dev"},
      {"tl/expected.hpp", "libexpected-dev"},
      {"spdlog/", "libspdlog-dev"},
      {"benchmark/", "libbenchmark-dev"},
  };
  return table;
}

std::string text_of(const Files& files, const std::string& path) {
  const auto found = files.find(path);
  return found == files.end() ? "" : found->second;
}

struct PackageList {
  std::set<std::string> names;
  std::vector<std::string> violations;
};

void read_package_line(const std::string& line, int number, std::string& last, PackageList& list) {
  static const std::regex shape(R"(^([a-z0-9][a-z0-9.+-]*) +# (\S+)$)");
  std::smatch match;
  const std::string where = place("packages.txt", number);
  if (!std::regex_match(line, match, shape)) {
    list.violations.push_back(where + "expected 'package  # reason' with a reason of one word");
    return;
  }
  const std::string name = match[1].str();
  if (!list.names.insert(name).second) list.violations.push_back(where + name + " is listed twice");
  if (!last.empty() && name < last)
    list.violations.push_back(where + name + " comes before " + last + " in the alphabet");
  last = name;
}

PackageList read_packages(const std::string& text) {
  static const std::set<std::string> sections = {"[build]", "[run]", "[test]", "[lint]"};
  PackageList list;
  std::string last;
  bool inside = false;
  int number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      inside = sections.count(line) > 0;
      if (!inside)
        list.violations.push_back(place("packages.txt", number) + "unknown section " + line);
      last.clear();
    } else if (!inside) {
      list.violations.push_back(place("packages.txt", number) +
                                "a package outside the known sections");
    } else {
      read_package_line(line, number, last, list);
    }
  }
  return list;
}

void need(const std::string& where, const std::string& what,
          const std::map<std::string, std::string>& table, const PackageList& list,
          std::vector<std::string>& out) {
  const auto row = table.find(what);
  if (row == table.end())
    out.push_back(where + "no package is known for " + what + ": add a row to paper_rules.cpp");
  else if (list.names.count(row->second) == 0)
    out.push_back(where + what + " needs " + row->second + " in packages.txt");
}

void check_cmake(const std::string& path, const std::string& text, const PackageList& list,
                 std::vector<std::string>& out) {
  static const std::regex find(R"(^\s*find_package\(\s*([A-Za-z0-9_.+-]+))");
  static const std::regex modules(R"(^\s*pkg_check_modules\(\s*\w+\s+([^)]*)\))");
  static const std::set<std::string> words = {"REQUIRED", "QUIET", "IMPORTED_TARGET", "GLOBAL"};
  int number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    std::smatch match;
    if (std::regex_search(line, match, find))
      need(place(path, number), match[1].str(), package_of(), list, out);
    if (!std::regex_search(line, match, modules)) continue;
    static const std::regex name(R"([^\s<>=]+)");
    const std::string rest = match[1].str();
    for (std::sregex_iterator it(rest.begin(), rest.end(), name), end; it != end; ++it)
      if (words.count(it->str()) == 0 &&
          std::isdigit(static_cast<unsigned char>(it->str()[0])) == 0)
        need(place(path, number), it->str(), package_of(), list, out);
  }
}

void check_includes(const std::string& path, const std::string& text, const PackageList& list,
                    std::vector<std::string>& out) {
  for (const Include& include : includes_of(text))
    for (const auto& [prefix, package] : package_of_include())
      if (!include.quoted && starts_with(include.name, prefix) && list.names.count(package) == 0)
        out.push_back(place(path, include.line) + include.name + " needs " + package +
                      " in packages.txt");
}

std::set<std::string> verbs_of(const std::string& makefile) {
  static const std::regex rule(R"(^([a-z]+):)");
  std::set<std::string> verbs;
  for (const std::string& line : lines_of(makefile)) {
    std::smatch match;
    if (std::regex_search(line, match, rule)) verbs.insert(match[1].str());
  }
  return verbs;
}

void check_commands(const std::string& where, const std::string& line, const Files& files,
                    const std::set<std::string>& verbs, std::vector<std::string>& out) {
  // In code only: `make test`, or a line of an indented block. "to make sense" is English.
  static const std::regex command(R"((?:`|^ {2,}(?:\$ )?|&& )(?:[A-Z_]+=\S+ )*make ([a-z]+))");
  for (std::sregex_iterator it(line.begin(), line.end(), command), end; it != end; ++it)
    if (verbs.count((*it)[1].str()) == 0)
      out.push_back(where + "'make " + (*it)[1].str() + "' is no verb of the Makefile");
  static const std::regex script(R"(\b(scripts/[a-z0-9_-]+\.sh|examples/[A-Za-z0-9_/.-]*[a-z]))");
  for (std::sregex_iterator it(line.begin(), line.end(), script), end; it != end; ++it) {
    const std::string name = (*it)[1].str();
    const bool folder = std::any_of(files.begin(), files.end(), [&](const auto& file) {
      return starts_with(file.first, name + "/");
    });
    if (files.count(name) == 0 && !folder) out.push_back(where + name + " is not there");
  }
}

// What the program `takt` can be asked: the names given to CLI11.
std::set<std::string> commands_of(const std::string& options) {
  static const std::regex added(R"re(add_subcommand\(\s*"([a-z]+)")re");
  std::set<std::string> commands;
  for (std::sregex_iterator it(options.begin(), options.end(), added), end; it != end; ++it)
    commands.insert((*it)[1].str());
  return commands;
}

void check_takt_commands(const std::string& where, const std::string& line,
                         const std::set<std::string>& commands, std::vector<std::string>& out) {
  static const std::regex command(R"((?:`|^ {4,}(?:\$ )?|&& |; )takt ([a-z]+))");
  for (std::sregex_iterator it(line.begin(), line.end(), command), end; it != end; ++it)
    if (commands.count((*it)[1].str()) == 0)
      out.push_back(where + "'takt " + (*it)[1].str() + "' is no command of takt");
}

// "docs/adr/" + "../x.md" -> "docs/x.md".
std::string join(const std::string& folder, const std::string& link) {
  std::filesystem::path path = std::filesystem::path(folder) / link;
  return path.lexically_normal().generic_string();
}

void check_links(const std::string& path, const std::string& where, const std::string& line,
                 const Files& files, std::vector<std::string>& out) {
  static const std::regex link(R"(\]\(([^)#\s]+)[^)]*\))");
  for (std::sregex_iterator it(line.begin(), line.end(), link), end; it != end; ++it) {
    const std::string target = (*it)[1].str();
    if (target.find("://") != std::string::npos) continue;
    std::string found = join(folder_of(path), target);
    if (ends_with(found, "/")) found.pop_back();
    const bool folder = std::any_of(files.begin(), files.end(), [&](const auto& file) {
      return starts_with(file.first, found + "/");
    });
    if (files.count(found) == 0 && !folder)
      out.push_back(where + "the link " + target + " leads nowhere");
  }
}

}  // namespace

std::vector<std::string> rooms_without_short_readme(const Files& files) {
  std::set<std::string> rooms;
  for (const auto& [path, text] : files)
    if (is_code(path) && !room_of_file(path).empty()) rooms.insert(room_of_file(path));
  std::vector<std::string> out;
  for (const std::string& room : rooms) {
    const std::string readme = text_of(files, room + "/README.md");
    const auto lines = std::count(readme.begin(), readme.end(), '\n');
    if (readme.empty())
      out.push_back(room + "/README.md: missing: say in at most 15 lines what the room is for");
    else if (lines > readme_lines_max)
      out.push_back(room + "/README.md: " + std::to_string(lines) + " lines; at most 15");
  }
  return out;
}

std::vector<std::string> traces_of_a_machine(const Files& files) {
  // Written in two halves, since this file is read by the rule as well.
  static const std::vector<std::string> hosts = {
      "deb.debian"
      ".org",
      "security.debian"
      ".org",
      "archive.ubuntu"
      ".com",
      "registry.npmjs"
      ".org",
      "registry.yarnpkg"
      ".com",
      "pypi"
      ".org",
      "files.pythonhosted"
      ".org",
      "crates"
      ".io",
      "proxy.golang"
      ".org",
      "repo.maven"
      ".apache.org"};
  static const std::regex machine(
      R"((^|[\s"'`(=:])(/work|/root|/home/[a-z]+/(src|git|work|dev|takt))(/|[\s"'`)]|$))");
  std::vector<std::string> out;
  for (const auto& [path, text] : files) {
    int number = 0;
    for (const std::string& line : lines_of(text)) {
      ++number;
      for (const std::string& host : hosts)
        if (line.find(host) != std::string::npos)
          out.push_back(place(path, number) + "names a host of a package registry (" + host + ")");
      if (line.find('/') != std::string::npos && std::regex_search(line, machine))
        out.push_back(place(path, number) + "names an absolute path of one machine");
    }
  }
  return out;
}

std::vector<std::string> broken_documents(const Files& files) {
  const std::set<std::string> verbs = verbs_of(text_of(files, "Makefile"));
  const std::set<std::string> commands = commands_of(text_of(files, "src/app/cli/options.cpp"));
  std::vector<std::string> out;
  for (const auto& [path, text] : files) {
    if (!ends_with(path, ".md")) continue;
    int number = 0;
    for (const std::string& line : lines_of(text)) {
      ++number;
      check_commands(place(path, number), line, files, verbs, out);
      check_takt_commands(place(path, number), line, commands, out);
      check_links(path, place(path, number), line, files, out);
    }
  }
  return out;
}

std::vector<std::string> wrong_packages(const Files& files) {
  const PackageList list = read_packages(text_of(files, "packages.txt"));
  std::vector<std::string> out = list.violations;
  const std::string rows = text_of(files, "docs/dependencies.md");
  for (const std::string& name : list.names)
    if (rows.find("`" + name + "`") == std::string::npos)
      out.push_back("docs/dependencies.md: no row for `" + name + "` of packages.txt");
  for (const auto& [path, text] : files) {
    if (ends_with(path, "CMakeLists.txt") || ends_with(path, ".cmake"))
      check_cmake(path, text, list, out);
    if (is_code(path)) check_includes(path, text, list, out);
  }
  return out;
}

}  // namespace takt::house
