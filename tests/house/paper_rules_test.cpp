// The rules about documents and packages: what each must catch, and the repository itself.
#include "house/paper_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/places.h"

namespace takt::house {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Files& repository() {
  static const Files files = read_repository(::takt::testing::source_folder());
  return files;
}

std::string listed(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += "\n  " + sentence;
  return text;
}

// --- READMEs

TEST(Readmes, ARoomWithCodeNeedsAShortOne) {
  const Files files = {{"src/core/base/ids.h", ""},
                       {"src/edge/store/a.cpp", ""},
                       {"src/edge/store/README.md", std::string(16, '\n')},
                       {"src/edge/ingest/CMakeLists.txt", ""},
                       {"emulator/daemon/a.cpp", ""},
                       {"emulator/README.md", "# emulator\n"}};
  EXPECT_THAT(rooms_without_short_readme(files),
              ElementsAre(HasSubstr("src/core/base/README.md: missing"),
                          HasSubstr("src/edge/store/README.md: 16 lines; at most 15")));
}

TEST(Readmes, EveryRoomOfTheRepositoryHasAShortOne) {
  EXPECT_THAT(rooms_without_short_readme(repository()), IsEmpty())
      << listed(rooms_without_short_readme(repository()));
}

// --- traces of a machine

TEST(TracesOfAMachine, HostsAndPathsAreNamed) {
  const std::string work =
                        "/wo"
                        "rk",
                    root =
                        "/ro"
                        "ot",
                    host =
                        "registry.npmjs"
                        ".org";
  EXPECT_THAT(traces_of_a_machine({{"a.md", "fine\nget it from https://" + host + "/x\n"}}),
              ElementsAre(HasSubstr("a.md:2: names a host")));
  for (const std::string& line :
       {"cd " + work + "/main", "\"" + work + "\"", "x=" + root + "/.cache",
        std::string("see /home/alice/s"
                    "rc/takt")})
    EXPECT_THAT(traces_of_a_machine({{"a.sh", line + "\n"}}),
                ElementsAre(HasSubstr("a.sh:1: names an absolute path")))
        << line;
}

TEST(TracesOfAMachine, OrdinaryPathsAreLeftAlone) {
  EXPECT_THAT(
      traces_of_a_machine(
          {{"a.cpp", "\"/var/lib/takt\" \"/home/alice\" a/work/b /workspace network/root\n"}}),
      IsEmpty());
}

TEST(TracesOfAMachine, TheRepositoryHasNone) {
  EXPECT_THAT(traces_of_a_machine(repository()), IsEmpty())
      << listed(traces_of_a_machine(repository()));
}

// --- documents

TEST(BrokenDocuments, VerbsScriptsAndLinksThatAreNotThereAreNamed) {
  const Files files = {{"Makefile", "test: packages ## x\n"},
                       {"scripts/demo.sh", ""},
                       {"examples/day/a.yaml", ""},
                       {"docs/a.md",
                        "`make test` and `make toast`\n    make nothing\n    ARGS=1 make none\n"
                        "it can make sense; scripts/demo.sh and scripts/gone.sh\n"
                        "[x](b.md) [y](../Makefile) [z](https://example.org/a) [w](#here)\n"
                        "examples/day and examples/day/a.yaml, not examples/night/b.yaml\n"}};
  EXPECT_THAT(
      broken_documents(files),
      ElementsAre(HasSubstr("docs/a.md:1: 'make toast'"), HasSubstr("docs/a.md:2: 'make nothing'"),
                  HasSubstr("docs/a.md:3: 'make none'"), HasSubstr("docs/a.md:4: scripts/gone.sh"),
                  HasSubstr("docs/a.md:5: the link b.md"), HasSubstr("examples/night/b.yaml")));
}

TEST(BrokenDocuments, CommandsThatTaktDoesNotHaveAreNamed) {
  const Files files = {
      {"src/app/cli/options.cpp",
       "app.add_subcommand(\"ps\", \"x\");\n app.add_subcommand(\n\"why\");"},
      {"a.md",
       "`takt ps` and `takt plan`: takt does it\n    takt why 17\n    takt fly; takt ps\n"}};
  EXPECT_THAT(broken_documents(files),
              ElementsAre(HasSubstr("a.md:1: 'takt plan'"), HasSubstr("a.md:3: 'takt fly'")));
}

TEST(BrokenDocuments, TheRepositoryHasNone) {
  EXPECT_THAT(broken_documents(repository()), IsEmpty()) << listed(broken_documents(repository()));
}

// --- packages

TEST(Packages, AListWithMistakesIsNamedLineByLine) {
  const Files files = {
      {"packages.txt",
       "# c\nearly # x\n[run]\nb # x\na # x\nb # x\nno-reason\nc # two words\n[odd]\n"},
      {"docs/dependencies.md", "| `a` | `b` |"}};
  EXPECT_THAT(
      wrong_packages(files),
      ElementsAre(HasSubstr("packages.txt:2: a package outside"),
                  HasSubstr("packages.txt:5: a comes before b"),
                  HasSubstr("packages.txt:6: b is listed twice"),
                  HasSubstr("packages.txt:7: expected"), HasSubstr("packages.txt:8: expected"),
                  HasSubstr("packages.txt:9: unknown section [odd]")));
}

TEST(Packages, WhatTheBuildFindsMustBeListed) {
  const Files files = {{"packages.txt", "[run]\nlibfmt-dev # text\n"},
                       {"docs/dependencies.md", ""},
                       {"a/CMakeLists.txt",
                        "find_package(fmt REQUIRED)\nfind_package(CURL)\nfind_package(Strange)\n"
                        "pkg_check_modules(S REQUIRED IMPORTED_TARGET sqlite3>=3.37)\n"},
                       {"b.cpp", "#include <fmt/core.h>\n#include <CLI/CLI.hpp>\n"}};
  EXPECT_THAT(wrong_packages(files),
              ElementsAre(HasSubstr("no row for `libfmt-dev`"),
                          HasSubstr("CURL needs libcurl4-openssl-dev"),
                          HasSubstr("no package is known for Strange"),
                          HasSubstr("sqlite3 needs libsqlite3-dev"),
                          HasSubstr("b.cpp:2: CLI/CLI.hpp needs libcli11-dev")));
}

TEST(Packages, OfTheRepositoryAreRight) {
  EXPECT_THAT(wrong_packages(repository()), IsEmpty()) << listed(wrong_packages(repository()));
}

}  // namespace
}  // namespace takt::house
