// The rules about code: what each must catch, what it must leave alone, and the repository itself.
#include "house/code_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/places.h"

namespace takt::house {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Files one(const std::string& path, const std::string& text) { return {{path, text}}; }

std::vector<std::string> core_says(const std::string& text) {
  return impurities_of_core(one("src/core/model/x.cpp", text));
}

const Files& repository() {
  static const Files files = read_repository(::takt::testing::source_folder());
  return files;
}

std::string listed(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += "\n  " + sentence;
  return text;
}

// --- reading C++ without a compiler

TEST(SourceText, CommentsAndLiteralsAreBlankedAndLinesStay) {
  const std::string code =
      code_only("int a; // time(0)\n/* static\n int b; */ f(\"x // y\", 'c', R\"(z\n)\");\n");
  EXPECT_THAT(code, HasSubstr("int a;"));
  EXPECT_THAT(code, HasSubstr("f("));
  for (const char* gone : {"time", "static", "int b", "x", "'c'", "z"})
    EXPECT_EQ(code.find(gone), std::string::npos) << gone;
  EXPECT_EQ(std::count(code.begin(), code.end(), '\n'), 4);
}

TEST(SourceText, AQuoteInsideAStringAndADigitSeparatorEndNothing) {
  EXPECT_THAT(code_only("a(\"\\\"b\"); int n = 1'000; keep;"), HasSubstr("int n = 1'000; keep;"));
}

TEST(SourceText, IncludesAreReadAndCommentedOnesAreNot) {
  const auto found =
      includes_of("#include <chrono>\n//#include <thread>\n#  include \"core/base/ids.h\"  // x\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "chrono");
  EXPECT_FALSE(found[0].quoted);
  EXPECT_EQ(found[1].name, "core/base/ids.h");
  EXPECT_EQ(found[1].line, 3);
  EXPECT_TRUE(found[1].quoted);
}

// --- include directions

struct Arrow {
  const char* from;
  const char* to;
};

TEST(WrongIncludes, EveryForbiddenArrowIsNamed) {
  for (const Arrow& arrow :
       std::vector<Arrow>{{"src/core/model/a.h", "edge/store/journal.h"},
                          {"src/core/model/a.h", "app/cli/command.h"},
                          {"src/core/base/a.h", "core/model/gpu.h"},
                          {"src/core/model/a.h", "core/control/fact.h"},
                          {"src/core/insight/a.cpp", "core/control/view.h"},
                          {"src/core/schedule/a.cpp", "core/insight/profile.h"},
                          {"src/edge/store/a.cpp", "edge/launch/shim.h"},
                          {"src/edge/device/a.cpp", "edge/codec/json.h"},
                          {"src/edge/codec/a.cpp", "app/server/routes.h"},
                          {"src/app/report/a.cpp", "edge/codec/json.h"},
                          {"src/app/agent/a.cpp", "app/server/server.h"},
                          {"src/app/server/a.cpp", "app/cli/command.h"},
                          {"src/app/agent/a.cpp", "emulator/wire.h"},
                          {"src/edge/store/a.cpp", "../launch/shim.h"},
                          {"src/nowhere/new/a.cpp", "core/base/ids.h"},
                          {"emulator/a.cpp", "core/model/device.h"},
                          {"emulator/a.cpp", "edge/device/nvml_library.h"},
                          {"emulator/daemon/a.cpp", "app/agent/agent.h"}}) {
    const auto said =
        wrong_includes(one(arrow.from, std::string("\n#include \"") + arrow.to + "\"\n"));
    ASSERT_EQ(said.size(), 1u) << arrow.from << " -> " << arrow.to;
    EXPECT_THAT(said[0], HasSubstr(std::string(arrow.from) + ":2: "));
    EXPECT_THAT(said[0], HasSubstr(arrow.to));
  }
}

TEST(WrongIncludes, EveryAllowedArrowIsLeftAlone) {
  for (const Arrow& arrow : std::vector<Arrow>{{"src/core/base/a.h", "core/base/ids.h"},
                                               {"src/core/control/a.cpp", "core/schedule/decide.h"},
                                               {"src/edge/store/a.cpp", "edge/codec/json.h"},
                                               {"src/edge/device/a.cpp", "core/model/device.h"},
                                               {"src/edge/device/a.cpp", "edge/device/nvml_abi.h"},
                                               {"src/app/server/a.cpp", "edge/http/server.h"},
                                               {"src/app/server/a.cpp", "app/report/table.h"},
                                               {"src/app/cli/serve.cpp", "app/server/server.h"},
                                               {"src/app/cli/a.cpp", "takt_version.h"},
                                               {"emulator/a.cpp", "core/base/result.h"},
                                               {"emulator/a.cpp", "edge/device/nvml_abi.h"},
                                               {"emulator/a.cpp", "emulator/wire.h"},
                                               {"tests/core/a_test.cpp", "app/server/server.h"}})
    EXPECT_THAT(wrong_includes(one(arrow.from, std::string("#include \"") + arrow.to + "\"\n")),
                IsEmpty())
        << arrow.from << " -> " << arrow.to;
}

TEST(WrongIncludes, TheRepositoryHasNone) {
  EXPECT_THAT(wrong_includes(repository()), IsEmpty()) << listed(wrong_includes(repository()));
}

// --- purity of core

TEST(ImpuritiesOfCore, HeadersThatReachTheWorldAreNamed) {
  for (const char* header : {"chrono", "thread", "mutex", "atomic", "fstream", "filesystem",
                             "iostream", "random", "unistd.h", "sys/socket.h", "future", "ctime"})
    EXPECT_THAT(
        core_says(std::string("#include <") + header + ">\n"),
        ElementsAre(HasSubstr(std::string("x.cpp:1: core must not include <") + header + ">")));
}

TEST(ImpuritiesOfCore, CallsThatReachTheWorldAreNamed) {
  for (const char* call :
       {"auto t = time(nullptr);", "auto t = std::time(nullptr);", "auto clock = std::clock();",
        "return ::time(nullptr);", "auto h = std::getenv(\"HOME\");", "std::random_device d;",
        "int r = rand();", "system(\"ls\");", "auto f = std::fopen(\"a\", \"r\");",
        "std::ifstream in(p);", "std::cout << 1;", "int s = socket(1, 2, 3);",
        "if (fork() == 0) {}", "std::jthread worker;", "printf(\"x\");",
        "auto n = std::chrono::steady_clock::now();"})
    EXPECT_THAT(core_says(std::string("void f() {\n  ") + call + "\n}\n"),
                ElementsAre(HasSubstr("x.cpp:2: core must not use")))
        << call;
}

TEST(ImpuritiesOfCore, MutableStaticsAndGlobalsAreNamed) {
  for (const char* text :
       {"int f() { static int n = 0; return ++n; }", "static std::vector<int> seen;",
        "int counter = 0;", "int counter{0};", "namespace takt { std::map<int, int> cache; }",
        "namespace { bool ready; }", "inline std::string last = \"\";",
        "struct S { static int count; };", "const char* name = \"x\";",
        "static const char* name = \"x\";", "struct S { int a; } shared;", "int computed = f(1);",
        "thread_local int depth = 0;", "int f() { static const char* p; return 0; }"})
    EXPECT_THAT(core_says(text), ElementsAre(HasSubstr("x.cpp:1: core must not"))) << text;
}

TEST(ImpuritiesOfCore, PureCodeIsLeftAlone) {
  const char* pure = R"(
// time(nullptr) and <chrono> are only mentioned here
#include <string>
#include "core/base/ids.h"
namespace takt {
enum class Tier { a, b };
struct Job;
struct Job {
  static constexpr int count_max = 3;
  static Job make(int n);
  Duration time() const { return time_; }
  Duration time_{};
  bool operator==(const Job&) const = default;
};
inline constexpr int limit = 10'000;
constexpr const char* word = "static int n;";
const std::map<int, int> table = {{1, 2}};
static const char* const fixed = "x";
using Jobs = std::vector<Job>;
template <class T> using Result = expected<T, int>;
template <class T> struct Later;
template <class T> T twice(T x) { return x + x; }
Job::Job() : time_{1}, other_(2) { run(); }
bool operator<(const Job& a, const Job& b) { return a.time() < b.time(); }
static int helper(int open) { static const int k = 2; return open * k; }
Duration later(const Job& job, Instant now = {}, int more = 1);
bool valid(int x) { const auto clock = [](int y) { return y < 24; }; return clock(x); }
Duration waited(const Job& job, Instant now = {}) { return job.clock().read(now); }
}  // namespace takt
)";
  EXPECT_THAT(core_says(pure), IsEmpty()) << listed(core_says(pure));
}

TEST(ImpuritiesOfCore, EdgesMayDoAllOfIt) {
  EXPECT_THAT(impurities_of_core(one("src/edge/store/a.cpp",
                                     "#include <thread>\nint n; int f() { return time(0); }")),
              IsEmpty());
}

TEST(ImpuritiesOfCore, TheRepositoryHasNone) {
  EXPECT_THAT(impurities_of_core(repository()), IsEmpty())
      << listed(impurities_of_core(repository()));
}

// --- heavy headers and long files

TEST(HeavyHeaders, AreNamedInHeadersAndLeftAloneInSources) {
  for (const char* header :
       {"nlohmann/json.hpp", "CLI/CLI.hpp", "yaml-cpp/yaml.h", "spdlog/spdlog.h",
        "rapidcheck/gtest.h", "SQLiteCpp/Database.h", "curl/curl.h", "microhttpd.h"}) {
    const std::string text = std::string("#include <") + header + ">\n";
    EXPECT_THAT(heavy_headers_in_headers(one("src/edge/codec/a.h", text)),
                ElementsAre(HasSubstr(header)));
    EXPECT_THAT(heavy_headers_in_headers(one("src/edge/codec/a.cpp", text)), IsEmpty());
  }
  EXPECT_THAT(
      heavy_headers_in_headers(one("src/a.h", "#include <nlohmann_free.h>\n#include <string>\n")),
      IsEmpty());
}

TEST(HeavyHeaders, TheRepositoryHasNoneInHeaders) {
  EXPECT_THAT(heavy_headers_in_headers(repository()), IsEmpty())
      << listed(heavy_headers_in_headers(repository()));
}

TEST(OverlongFiles, EightHundredLinesAreFineAndOneMoreIsNot) {
  std::string text;
  for (int i = 0; i < 800; ++i) text += "\n";
  EXPECT_THAT(overlong_files(one("src/a.cpp", text)), IsEmpty());
  EXPECT_THAT(overlong_files(one("src/a.cpp", text + "\n")),
              ElementsAre(HasSubstr("src/a.cpp: 801 lines")));
  EXPECT_THAT(overlong_files(one("tests/data/a.xml", text + "\n")), IsEmpty());
}

TEST(OverlongFiles, TheRepositoryHasNone) {
  EXPECT_THAT(overlong_files(repository()), IsEmpty()) << listed(overlong_files(repository()));
}

TEST(Repository, IsReallyRead) {
  EXPECT_GT(repository().size(), 50u);
  EXPECT_EQ(repository().count("src/core/base/ids.h"), 1u);
  EXPECT_EQ(repository().count("packages.txt"), 1u);
  EXPECT_EQ(repository().count(".ci/run"), 1u);
  for (const auto& [path, text] : repository()) {
    EXPECT_FALSE(starts_with(path, "build/")) << path;
    EXPECT_FALSE(starts_with(path, ".git/")) << path;
  }
}

}  // namespace
}  // namespace takt::house
