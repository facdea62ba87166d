// Finding and laying out cgroups, on fake hosts: folders that look like /proc and /sys/fs/cgroup.
#include <gmock/gmock.h>

#include "edge/launch/cgroup_tree.h"
#include "launch_fixture.h"

namespace takt::launch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr char hybrid_cgroup[] =
    "9:name=systemd:/\n8:pids:/\n4:memory:/box/a\n2:cpuacct:/\n1:cpu:/\n0::/\n";
constexpr char hybrid_mounts[] =
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr char v2_cgroup[] = "0::/system.slice/takt.service\n";
constexpr char v2_mounts[] =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(FindHierarchies, A_hybrid_host_has_each_controller_where_its_mount_is) {
  const auto found = find_hierarchies(hybrid_cgroup, hybrid_mounts, "");
  ASSERT_EQ(found.size(), 4u);  // no mount shows cpu and name=systemd
  EXPECT_EQ(found[0], (CgroupHierarchy{false, {"pids"}, "/sys/fs/cgroup/pids"}));
  EXPECT_EQ(found[1], (CgroupHierarchy{false, {"memory"}, "/sys/fs/cgroup/memory/box/a"}));
  EXPECT_EQ(found[3], (CgroupHierarchy{true, {}, "/sys/fs/cgroup/unified"}));
}

TEST(FindHierarchies, A_v2_host_has_one) {
  EXPECT_THAT(find_hierarchies(v2_cgroup, v2_mounts, ""),
              ElementsAre(CgroupHierarchy{true, {}, "/sys/fs/cgroup/system.slice/takt.service"}));
}

TEST(FindHierarchies, A_parent_replaces_our_own_place) {
  EXPECT_THAT(find_hierarchies(v2_cgroup, v2_mounts, "/jobs"),
              ElementsAre(CgroupHierarchy{true, {}, "/sys/fs/cgroup/jobs"}));
}

TEST(FindHierarchies, Controllers_that_share_a_mount_are_kept_together) {
  const auto found = find_hierarchies(
      "5:cpu,cpuacct:/x\n", "33 31 0:30 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n", "");
  EXPECT_THAT(found, ElementsAre(CgroupHierarchy{false, {"cpu", "cpuacct"}, "/cg/cpu/x"}));
}

TEST(FindHierarchies, A_bind_mount_of_a_part_shows_only_that_part) {
  const char mounts[] = "33 31 0:30 /docker/abc /cg/memory rw - cgroup cgroup rw,memory\n";
  EXPECT_THAT(find_hierarchies("4:memory:/docker/abc/x\n", mounts, ""),
              ElementsAre(CgroupHierarchy{false, {"memory"}, "/cg/memory/x"}));
  EXPECT_THAT(find_hierarchies("4:memory:/docker/abc\n", mounts, ""),
              ElementsAre(CgroupHierarchy{false, {"memory"}, "/cg/memory"}));
  EXPECT_THAT(find_hierarchies("4:memory:/docker/abcd\n", mounts, ""), IsEmpty());
  EXPECT_THAT(find_hierarchies("4:memory:/other\n", mounts, ""), IsEmpty());
}

TEST(FindHierarchies, A_place_outside_of_our_namespace_is_not_used) {
  EXPECT_THAT(find_hierarchies("0::/../../else\n", v2_mounts, ""), IsEmpty());
}

TEST(FindHierarchies, Blanks_in_mount_points_are_unescaped) {
  EXPECT_THAT(find_hierarchies("0::/x\n", "1 2 0:1 / /my\\040cg rw - cgroup2 c rw\n", ""),
              ElementsAre(CgroupHierarchy{true, {}, "/my cg/x"}));
}

TEST(FindHierarchies, Nonsense_gives_nothing) {
  EXPECT_THAT(find_hierarchies("", "", ""), IsEmpty());
  EXPECT_THAT(find_hierarchies("::\n:\n0\n\n", "- - -\n1 2 3\n - cgroup2\n", ""), IsEmpty());
  EXPECT_THAT(find_hierarchies("0::/x\n", "1 2 0:1 / /cg rw - cgroup2\n", ""), IsEmpty());
}

// A host whose cgroup file systems are plain folders; new cgroups get the files the kernel would
// make.
class FakeHost : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/takt-cgroups-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    options.root = pattern;
    options.populate = [this](const std::string& folder) { populate(folder); };
    std::filesystem::create_directories(pattern + "/proc/self");
  }
  void TearDown() override { std::filesystem::remove_all(options.root); }

  void host(const std::string& cgroup, const std::string& mounts) {
    write("/proc/self/cgroup", cgroup);
    write("/proc/self/mountinfo", mounts);
  }
  void write(const std::string& path, const std::string& text) {
    std::ofstream(options.root + path) << text;
  }
  std::string read(const std::string& path) const { return read_text(options.root + path); }
  void cgroup(const std::string& path, const std::string& controllers = "") {
    std::filesystem::create_directories(options.root + path);
    populate(options.root + path);
    if (!controllers.empty()) write(path + "/cgroup.controllers", controllers);
  }
  void populate(const std::string& folder) const {
    const auto touch = [&](const char* name) { std::ofstream(folder + "/" + name) << ""; };
    touch("cgroup.procs");
    if (folder.find("/memory") != std::string::npos) {
      touch("memory.limit_in_bytes");
      if (swap_accounting) touch("memory.memsw.limit_in_bytes");
      return;
    }
    const bool v2 =
        folder.find("unified") != std::string::npos || folder.find("slice") != std::string::npos;
    if (!v2) return;
    touch("cgroup.kill");
    touch("cgroup.subtree_control");
    if (folder.find("slice") == std::string::npos) return;
    for (const char* name : {"memory.max", "memory.swap.max", "memory.oom.group"}) touch(name);
  }
  std::unique_ptr<CgroupTree> open() { return CgroupTree::open(options); }

  CgroupTree::Options options;
  bool swap_accounting = true;
};

TEST_F(FakeHost, A_hybrid_host_counts_memory_in_v1_and_keeps_its_members_in_v2) {
  host(hybrid_cgroup, hybrid_mounts);
  for (const char* path : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory/box/a",
                           "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup/unified"}) {
    cgroup(path);
  }
  const auto tree = open();
  EXPECT_THAT(tree->notes(), IsEmpty());
  EXPECT_TRUE(tree->limits_memory());
  const auto made = tree->create("17.2", mebibytes(64));
  ASSERT_TRUE(made) << made.error().message;
  const std::string memory = options.root + "/sys/fs/cgroup/memory/box/a/takt/17.2";
  const std::string unified = options.root + "/sys/fs/cgroup/unified/takt/17.2";
  EXPECT_THAT(made->join, ElementsAre(memory, unified));
  EXPECT_EQ(made->members, unified);
  EXPECT_TRUE(made->kill_file);
  EXPECT_EQ(made->memory_v1, memory);
  EXPECT_EQ(made->memory_v2, "");
  EXPECT_EQ(made->cpu_v2, unified);
  EXPECT_EQ(read_text(memory + "/memory.limit_in_bytes"), "67108864");
  EXPECT_EQ(read_text(memory + "/memory.memsw.limit_in_bytes"), "67108864");
}

TEST_F(FakeHost, Without_swap_accounting_the_memory_limit_stands_alone) {
  swap_accounting = false;
  host(hybrid_cgroup, hybrid_mounts);
  cgroup("/sys/fs/cgroup/memory/box/a");
  const auto made = open()->create("1.1", mebibytes(1));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(read_text(made->memory_v1 + "/memory.limit_in_bytes"), "1048576");
}

TEST_F(FakeHost, Without_a_limit_none_is_written) {
  host(hybrid_cgroup, hybrid_mounts);
  cgroup("/sys/fs/cgroup/memory/box/a");
  const auto made = open()->create("1.1", Bytes{});
  ASSERT_TRUE(made);
  EXPECT_EQ(read_text(made->memory_v1 + "/memory.limit_in_bytes"), "");
}

TEST_F(FakeHost, A_v1_host_keeps_its_members_in_the_first_hierarchy_of_use) {
  host("8:pids:/\n4:memory:/box/a\n2:cpuacct:/\n", hybrid_mounts);
  cgroup("/sys/fs/cgroup/pids");
  cgroup("/sys/fs/cgroup/memory/box/a");
  cgroup("/sys/fs/cgroup/cpuacct");
  const auto made = open()->create("1.1", Bytes{});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->members, options.root + "/sys/fs/cgroup/pids/takt/1.1");
  EXPECT_FALSE(made->kill_file);
  EXPECT_EQ(made->cpu_v1, options.root + "/sys/fs/cgroup/cpuacct/takt/1.1");
  EXPECT_EQ(made->join.size(), 3u);
}

TEST_F(FakeHost, A_v2_host_hands_its_controllers_on_and_kills_the_job_as_a_whole) {
  host(v2_cgroup, v2_mounts);
  const std::string own = "/sys/fs/cgroup/system.slice/takt.service";
  cgroup(own, "cpuset cpu io memory pids\n");
  const auto tree = open();
  EXPECT_THAT(tree->notes(), IsEmpty());
  EXPECT_THAT(read(own + "/cgroup.subtree_control"), StartsWith("+pids"));  // the last one written
  EXPECT_THAT(read(own + "/takt/cgroup.subtree_control"), StartsWith("+pids"));
  const auto made = tree->create("3.1", gibibytes(2));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(made->join, ElementsAre(options.root + own + "/takt/3.1"));
  EXPECT_EQ(made->memory_v2, made->join[0]);
  EXPECT_EQ(made->members, made->join[0]);
  EXPECT_EQ(read_text(made->join[0] + "/memory.max"), "2147483648");
  EXPECT_EQ(read_text(made->join[0] + "/memory.swap.max"), "0");
  EXPECT_EQ(read_text(made->join[0] + "/memory.oom.group"), "1");
}

TEST_F(FakeHost, An_agent_that_had_moved_aside_finds_its_tree_again) {
  host("0::/system.slice/takt.service/takt.self\n", v2_mounts);
  cgroup("/sys/fs/cgroup/system.slice/takt.service", "memory\n");
  const auto made = open()->create("3.1", Bytes{});
  ASSERT_TRUE(made);
  EXPECT_EQ(made->members, options.root + "/sys/fs/cgroup/system.slice/takt.service/takt/3.1");
}

TEST_F(FakeHost, A_v2_cgroup_without_a_memory_controller_is_used_for_the_rest_with_a_note) {
  host(v2_cgroup, v2_mounts);
  cgroup("/sys/fs/cgroup/system.slice/takt.service", "cpu pids\n");
  const auto tree = open();
  EXPECT_FALSE(tree->limits_memory());
  ASSERT_EQ(tree->notes().size(), 1u);
  EXPECT_THAT(tree->notes()[0], HasSubstr("memory limits of jobs are not in force"));
  const auto made = tree->create("3.1", gibibytes(1));
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->members.empty());
}

TEST_F(FakeHost, A_memory_controller_that_cannot_be_handed_on_is_a_note_with_the_next_step) {
  host(v2_cgroup, v2_mounts);
  const std::string own = "/sys/fs/cgroup/system.slice/takt.service";
  cgroup(own, "memory\n");
  std::filesystem::remove(options.root + own + "/cgroup.subtree_control");
  const auto tree = open();
  EXPECT_FALSE(tree->limits_memory());
  ASSERT_FALSE(tree->notes().empty());
  EXPECT_THAT(tree->notes()[0], HasSubstr("cannot hand on its memory controller"));
  EXPECT_THAT(tree->notes()[0], HasSubstr("Delegate=yes"));
}

TEST_F(FakeHost, A_host_without_cgroups_is_a_note_and_attempts_join_nothing) {
  host("", "");
  const auto tree = open();
  ASSERT_EQ(tree->notes().size(), 1u);
  EXPECT_THAT(tree->notes()[0], HasSubstr("no cgroup file system is mounted"));
  const auto made = tree->create("1.1", gibibytes(1));
  ASSERT_TRUE(made);
  EXPECT_EQ(*made, AttemptCgroups{});
}

TEST_F(FakeHost, A_host_without_proc_is_a_note) {
  const auto tree = open();
  ASSERT_EQ(tree->notes().size(), 1u);
  EXPECT_THAT(tree->notes()[0], HasSubstr("/proc/self/cgroup"));
}

TEST_F(FakeHost, A_mount_where_no_folder_can_be_made_is_named_in_the_note) {
  host(v2_cgroup, v2_mounts);  // and no such folder
  const auto tree = open();
  ASSERT_EQ(tree->notes().size(), 1u);
  EXPECT_THAT(tree->notes()[0], HasSubstr("takt.service/takt cannot be made: No such file"));
}

TEST_F(FakeHost, A_limit_that_cannot_be_set_fails_and_names_the_place) {
  host(hybrid_cgroup, hybrid_mounts);
  cgroup("/sys/fs/cgroup/memory/box/a");
  const auto tree = open();
  options.populate = nullptr;
  const auto bare = CgroupTree::open(options);  // new folders have no files at all
  const auto made = bare->create("1.1", mebibytes(1));
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("memory limit of 1048576 bytes cannot be set in"));
  EXPECT_FALSE(std::filesystem::exists(options.root + "/sys/fs/cgroup/memory/box/a/takt/1.1"));
}

TEST_F(FakeHost, A_name_that_is_taken_is_not_shared) {
  host(hybrid_cgroup, hybrid_mounts);
  cgroup("/sys/fs/cgroup/unified");
  const auto tree = open();
  EXPECT_TRUE(tree->create("1.1", Bytes{})->members.ends_with("/takt/1.1"));
  EXPECT_TRUE(tree->create("1.1", Bytes{})->members.ends_with("/takt/1.1-2"));
  EXPECT_TRUE(tree->create("1.1", Bytes{})->members.ends_with("/takt/1.1-3"));
}

TEST_F(FakeHost, All_folders_of_an_attempt_are_found_and_no_others) {
  host(v2_cgroup, v2_mounts);
  cgroup("/sys/fs/cgroup/system.slice/takt.service", "memory pids");
  const auto tree = open();
  const std::string above = options.root + "/sys/fs/cgroup/system.slice/takt.service/takt/";
  EXPECT_THAT(tree->folders_of("7.1-ab"), IsEmpty());
  for (const char* name : {"7.1-ab", "7.1-ab-2", "7.1-ab-17", "7.1-abc", "7.1-ab-x", "17.1-ab"})
    std::filesystem::create_directory(above + name);
  EXPECT_THAT(tree->folders_of("7.1-ab"),
              UnorderedElementsAre(above + "7.1-ab", above + "7.1-ab-2", above + "7.1-ab-17"));
}

TEST_F(FakeHost, Kill_and_remove_say_whether_they_worked) {
  cgroup("/unified/x");
  const std::string folder = options.root + "/unified/x";
  EXPECT_TRUE(kill_cgroup(folder));
  EXPECT_EQ(read_text(folder + "/cgroup.kill"), "1");
  EXPECT_FALSE(kill_cgroup(options.root + "/none"));
  EXPECT_FALSE(kill_cgroup(""));
  EXPECT_FALSE(remove_cgroup(folder)) << "as with processes in it";
  EXPECT_TRUE(remove_cgroup(options.root + "/none")) << "gone is gone";
  std::filesystem::create_directories(options.root + "/empty/a/b");
  EXPECT_TRUE(remove_cgroup(options.root + "/empty")) << "with what the job made below it";
}

}  // namespace
}  // namespace takt::launch
