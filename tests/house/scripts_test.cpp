// scripts/install-packages.sh with a machine made of five small fake programs: dpkg-query, apt-get,
// id, sudo, sleep.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/places.h"

namespace takt::house {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Said {
  int exit = -1;
  std::string text;      // what the person saw
  std::string commands;  // what was run, one a line
};

class InstallPackages : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              (std::string("takt-house-") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "bin");
    for (const char* name :
         {"awk", "bash", "cat", "cut", "dirname", "env", "grep", "mktemp", "rm", "tail", "true"})
      link_real(name);
    write("packages", "[run]\nalpha # first\nbeta # second\n[lint]\ngamma # third\n");
    program("dpkg-query",
            "for p in $(cat $M/installed 2>/dev/null); do echo \"installed $p\"; done\n"
            "echo 'config-files beta'; exit 1");
    program("apt-get", "echo \"apt-get $*\" >>$M/commands\n" + apt_);
    program("sleep", "echo \"sleep $*\" >>$M/commands");
    be_root(true);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void be_root(bool root) { program("id", std::string("echo ") + (root ? "0" : "1000")); }
  void apt_does(const std::string& body) {
    program("apt-get", "echo \"apt-get $*\" >>$M/commands\n" + body);
  }
  void installed(const std::string& names) { write("installed", names); }
  void program(const std::string& name, const std::string& body) {
    write("bin/" + name, "#!/bin/bash\nM='" + folder_.string() + "'\n" + body + "\n");
    fs::permissions(folder_ / "bin" / name, fs::perms::owner_all);
  }

  Said run(const std::string& sections = "run") {
    const std::string command = "PATH='" + (folder_ / "bin").string() + "' TAKT_PACKAGES='" +
                                (folder_ / "packages").string() + "' TAKT_LOCK_WAIT=" + lock_wait_ +
                                " /bin/bash '" + ::takt::testing::source_folder() +
                                "/scripts/install-packages.sh' " + sections + " >'" +
                                (folder_ / "said").string() + "' 2>&1 </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("said"), read("commands")};
  }

  std::string lock_wait_ = "600";

 private:
  void link_real(const std::string& name) {
    for (const char* folder : {"/usr/bin/", "/bin/"})
      if (fs::exists(folder + name)) {
        fs::create_symlink(folder + name, folder_ / "bin" / name);
        return;
      }
    FAIL() << name << " is not on this machine";
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
  }
  std::string read(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder_ / name).rdbuf();
    return text.str();
  }

  fs::path folder_;
  const std::string apt_ = "case \"$*\" in *install*) echo alpha beta gamma >$M/installed;; esac";
};

TEST_F(InstallPackages, SaysAndDoesNothingWhenNothingIsMissing) {
  installed("alpha beta");
  be_root(false);  // and needs no rights
  const Said said = run();
  EXPECT_EQ(said.exit, 0);
  EXPECT_THAT(said.text, IsEmpty());
  EXPECT_THAT(said.commands, IsEmpty());
}

TEST_F(InstallPackages, AsRootInstallsExactlyWhatIsMissingAndSaysWhy) {
  installed("alpha");
  const Said said = run();
  EXPECT_EQ(said.exit, 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("installing 1 missing packages"));
  EXPECT_THAT(said.text, HasSubstr("second"));
  EXPECT_THAT(said.text, Not(HasSubstr("alpha")));
  EXPECT_EQ(said.commands,
            "apt-get -q update\napt-get -q install -y --no-install-recommends beta\n");
}

TEST_F(InstallPackages, OnlyTheSectionsAskedForCount) {
  installed("alpha beta");
  EXPECT_EQ(run("run").commands, "");
  EXPECT_THAT(run("run lint").commands, HasSubstr("recommends gamma\n"));
}

TEST_F(InstallPackages, AnUnknownSectionIsRefused) {
  const Said said = run("rum");
  EXPECT_EQ(said.exit, 2);
  EXPECT_THAT(said.text, HasSubstr("no section called 'rum'"));
}

TEST_F(InstallPackages, WithoutRootAndSudoNamesTheCommandForAnAdministrator) {
  be_root(false);
  const Said said = run();
  EXPECT_EQ(said.exit, 1);
  EXPECT_THAT(said.text, HasSubstr("2 packages are missing"));
  EXPECT_THAT(said.text,
              HasSubstr("apt-get update && apt-get install --no-install-recommends alpha beta\n"));
  EXPECT_THAT(said.commands, IsEmpty());
}

TEST_F(InstallPackages, UsesSudoAsAnOrdinaryUser) {
  be_root(false);
  program("sudo", "echo \"sudo $*\" >>$M/commands; [ \"$1\" = -n ] && shift; exec \"$@\"");
  const Said said = run();
  EXPECT_EQ(said.exit, 0) << said.text;
  EXPECT_THAT(said.commands, HasSubstr("apt-get -q update\n"));
  EXPECT_THAT(said.commands, HasSubstr("sudo -n env DEBIAN_FRONTEND=noninteractive"));
}

TEST_F(InstallPackages, ASudoThatRefusesEndsInTheCommandForAnAdministrator) {
  be_root(false);
  program("sudo", "exit 1");
  const Said said = run();
  EXPECT_EQ(said.exit, 1);
  EXPECT_THAT(said.text, HasSubstr("there is no terminal"));
  EXPECT_THAT(said.text, HasSubstr("recommends alpha beta\n"));
  EXPECT_THAT(said.commands, IsEmpty());
}

TEST_F(InstallPackages, ABrokenSourceOfSomebodyElseDoesNotStopIt) {
  apt_does(
      "case \"$*\" in *update*) echo 'E: not signed'; exit 100;; *) echo alpha beta "
      ">$M/installed;; esac");
  const Said said = run();
  EXPECT_EQ(said.exit, 0) << said.text;
  EXPECT_THAT(said.text, HasSubstr("trying to install all the same"));
  EXPECT_THAT(said.text, HasSubstr("takt: installed."));
}

TEST_F(InstallPackages, WaitsForAnotherPackageManagerAndSaysSoOnce) {
  apt_does(
      "n=$(cat $M/n 2>/dev/null || echo 0); echo $((n+1)) >$M/n\n"
      "[ $n -lt 3 ] && { echo 'E: Could not get lock /var/lib/apt/lists/lock'; exit 100; }\n"
      "case \"$*\" in *install*) echo alpha beta >$M/installed;; esac");
  const Said said = run();
  EXPECT_EQ(said.exit, 0) << said.text;
  const std::size_t first = said.text.find("another package manager is at work");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(said.text.find("another package manager", first + 1), std::string::npos);
  EXPECT_THAT(said.commands, HasSubstr("sleep 2\napt-get -q update\nsleep 2\n"));
}

TEST_F(InstallPackages, DoesNotWaitForALockForEver) {
  lock_wait_ = "0";
  apt_does("echo 'E: Could not get lock /var/lib/dpkg/lock-frontend'; exit 100");
  const Said said = run();
  EXPECT_EQ(said.exit, 1);
  EXPECT_THAT(said.text, HasSubstr("Could not get lock"));
}

TEST_F(InstallPackages, AnInstallThatFailsShowsAptsLastWords) {
  apt_does("case \"$*\" in *install*) echo 'E: Unable to locate package alpha'; exit 100;; esac");
  const Said said = run();
  EXPECT_EQ(said.exit, 1);
  EXPECT_THAT(said.text, HasSubstr("Unable to locate package alpha"));
  EXPECT_THAT(said.text, HasSubstr("Ask an administrator to run"));
}

TEST_F(InstallPackages, AnAptThatInstalledNothingIsNotBelieved) {
  apt_does("exit 0");
  const Said said = run();
  EXPECT_EQ(said.exit, 1);
  EXPECT_THAT(said.text, HasSubstr("still missing: alpha beta"));
}

}  // namespace
}  // namespace takt::house
