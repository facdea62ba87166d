#include "edge/identity/directory.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace takt::identity {
namespace {

using ::testing::ElementsAre;

// What the database holds, how often it was asked, and whether it is down. Outlives the Directory.
struct Accounts {
  std::map<std::uint32_t, Account> people;
  std::map<std::string, std::vector<std::uint32_t>> groups_of;
  std::map<std::string, std::uint32_t> gids;
  std::atomic<bool> down{false};
  std::atomic<int> asked{0};
};

class FakeAccounts final : public AccountDatabase {
 public:
  explicit FakeAccounts(Accounts& accounts) : accounts_(accounts) {}
  Result<std::optional<Account>> account(std::uint32_t uid) override {
    if (auto failed = ask(); !failed) return tl::make_unexpected(failed.error());
    const auto found = accounts_.people.find(uid);
    if (found == accounts_.people.end()) return std::optional<Account>();
    return std::optional<Account>(found->second);
  }
  Result<std::vector<std::uint32_t>> groups(const Account& account) override {
    if (accounts_.down) return fail(ErrorKind::unavailable, "the directory is down");
    return accounts_.groups_of[account.user];
  }
  Result<std::optional<std::uint32_t>> gid_of(const std::string& group) override {
    if (auto failed = ask(); !failed) return tl::make_unexpected(failed.error());
    const auto found = accounts_.gids.find(group);
    if (found == accounts_.gids.end()) return std::optional<std::uint32_t>();
    return std::optional<std::uint32_t>(found->second);
  }

 private:
  Result<void> ask() {
    ++accounts_.asked;
    if (accounts_.down) return fail(ErrorKind::unavailable, "the directory is down");
    return {};
  }
  Accounts& accounts_;
};

class DirectoryOfFakes : public ::testing::Test {
 protected:
  DirectoryOfFakes() {
    accounts_.people = {{1000, {"ada", 100, "/home/ada"}}, {1001, {"bob", 100, ""}}};
    accounts_.groups_of = {{"ada", {100, 200, 300}}, {"bob", {100}}};
    accounts_.gids = {{"users", 100}, {"gpu-admins", 300}, {"empty", 999}};
  }
  std::unique_ptr<Directory> directory(Directory::Options options = {}) {
    return std::make_unique<Directory>(std::make_unique<FakeAccounts>(accounts_), options);
  }
  Accounts accounts_;
};

TEST_F(DirectoryOfFakes, GivesNameHomeAndGroups) {
  const auto identity = directory()->look_up(1000, 7).value();
  EXPECT_EQ(identity.uid, 1000u);
  EXPECT_EQ(identity.gid, 100u) << "the account's, not the peer's";
  EXPECT_EQ(identity.user, "ada");
  EXPECT_EQ(identity.home, "/home/ada");
  EXPECT_THAT(identity.groups, ElementsAre(100, 200, 300));
}

TEST_F(DirectoryOfFakes, AnUnknownUidIsItsDigitsAndHasOnlyThePeersGroup) {
  const auto identity = directory()->look_up(4242, 7).value();
  EXPECT_EQ(identity.uid, 4242u);
  EXPECT_EQ(identity.gid, 7u);
  EXPECT_EQ(identity.user, "4242");
  EXPECT_EQ(identity.home, "/");
  EXPECT_THAT(identity.groups, ElementsAre(7));
}

TEST_F(DirectoryOfFakes, AnUnknownUidsGroupIsThatOfEachAsking) {
  const auto d = directory();
  EXPECT_EQ(d->look_up(4242, 7)->gid, 7u);
  EXPECT_EQ(d->look_up(4242, 8)->gid, 8u) << "it is not remembered from the first";
}

TEST_F(DirectoryOfFakes, AnAccountWithoutHomeLivesInTheRoot) {
  EXPECT_EQ(directory()->look_up(1001, 7)->home, "/");
}

TEST_F(DirectoryOfFakes, KnowsMembersOfGroupsByName) {
  const auto d = directory();
  EXPECT_TRUE(d->in_any_group(1000, {"gpu-admins"}));
  EXPECT_TRUE(d->in_any_group(1000, {"none", "empty", "gpu-admins"}));
  EXPECT_TRUE(d->in_any_group(1001, {"users"})) << "the primary group counts";
  EXPECT_FALSE(d->in_any_group(1001, {"gpu-admins"}));
  EXPECT_FALSE(d->in_any_group(1000, {"none", "empty", ""}));
  EXPECT_FALSE(d->in_any_group(1000, {}));
}

TEST_F(DirectoryOfFakes, AnUnknownUidIsInNoGroup) {
  EXPECT_FALSE(directory()->in_any_group(4242, {"users", "gpu-admins"}));
}

TEST_F(DirectoryOfFakes, RemembersForAWhile) {
  const auto d = directory();
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(d->look_up(1000, 7));
    EXPECT_TRUE(d->look_up(4242, 7));
    EXPECT_TRUE(d->in_any_group(1000, {"users"}));
  }
  EXPECT_EQ(accounts_.asked.load(), 3) << "ada, the unknown one, the group: once each";
}

TEST_F(DirectoryOfFakes, AsksAgainAfterAWhile) {
  Directory::Options options;
  options.fresh_for = microseconds(0);
  const auto d = directory(options);
  EXPECT_EQ(d->look_up(1000, 7)->user, "ada");
  accounts_.people[1000].user = "ada2";
  EXPECT_EQ(d->look_up(1000, 7)->user, "ada2");
}

TEST_F(DirectoryOfFakes, ADatabaseThatIsDownIsAnErrorForStrangersAndNoRights) {
  const auto d = directory();
  accounts_.down = true;
  const auto identity = d->look_up(1000, 7);
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.error().kind, ErrorKind::unavailable);
  EXPECT_FALSE(d->in_any_group(1000, {"users"}));
  accounts_.down = false;
  EXPECT_EQ(d->look_up(1000, 7)->user, "ada") << "the failure is not remembered";
}

TEST_F(DirectoryOfFakes, WhomItKnowsItKnowsWhileTheDatabaseIsDown) {
  Directory::Options options;
  options.fresh_for = microseconds(0);
  const auto d = directory(options);
  EXPECT_TRUE(d->in_any_group(1000, {"gpu-admins"}));
  accounts_.down = true;
  EXPECT_EQ(d->look_up(1000, 7)->user, "ada");
  EXPECT_TRUE(d->in_any_group(1000, {"gpu-admins"}));
  EXPECT_FALSE(d->in_any_group(1000, {"users"})) << "this group was never asked for";
}

TEST_F(DirectoryOfFakes, ForgetsTheOldestBeyondItsBound) {
  Directory::Options options;
  options.entries_max = 2;
  options.fresh_for = hours(1);
  const auto d = directory(options);
  EXPECT_TRUE(d->look_up(1, 7));
  EXPECT_TRUE(d->look_up(2, 7));
  EXPECT_TRUE(d->look_up(3, 7));
  EXPECT_EQ(accounts_.asked.load(), 3);
  EXPECT_TRUE(d->look_up(2, 7));
  EXPECT_TRUE(d->look_up(3, 7));
  EXPECT_EQ(accounts_.asked.load(), 3) << "these are remembered";
  EXPECT_TRUE(d->look_up(1, 7));
  EXPECT_EQ(accounts_.asked.load(), 4) << "this one was pushed out";
}

TEST_F(DirectoryOfFakes, MayBeAskedByManyThreads) {
  Directory::Options options;
  options.entries_max = 8;
  options.fresh_for = microseconds(50);
  const auto d = directory(options);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 500; ++i) {
        const std::uint32_t uid = 990 + (i * 7 + static_cast<std::uint32_t>(t)) % 20;
        const auto identity = d->look_up(uid, 7);
        if (!identity || identity->uid != uid) ++wrong;
        if (d->in_any_group(uid, {"gpu-admins"}) != (uid == 1000)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// The real one, held against what the C library says in other ways.

TEST(SystemAccounts, KnowsRoot) {
  const auto account = system_accounts()->account(0).value();
  ASSERT_TRUE(account);
  EXPECT_EQ(account->user, "root");
  EXPECT_EQ(account->gid, 0u);
  EXPECT_EQ(account->home.front(), '/') << account->home;
  const auto groups = system_accounts()->groups(*account).value();
  EXPECT_TRUE(std::binary_search(groups.begin(), groups.end(), 0u));
}

TEST(SystemAccounts, FitsEveryAccountOfThisMachine) {
  const auto accounts = system_accounts();
  std::set<uid_t> seen;
  ::setpwent();
  while (const passwd* entry = ::getpwent()) {
    if (!seen.insert(entry->pw_uid).second) continue;  // a second name of the same uid
    const std::string user = entry->pw_name;
    const auto account = accounts->account(entry->pw_uid).value();
    ASSERT_TRUE(account) << user;
    EXPECT_EQ(account->user, user);
    const auto groups = accounts->groups(*account).value();
    EXPECT_TRUE(std::is_sorted(groups.begin(), groups.end()));
    EXPECT_TRUE(std::binary_search(groups.begin(), groups.end(), account->gid)) << user;
  }
  ::endpwent();
  EXPECT_GE(seen.size(), 2u);
}

TEST(SystemAccounts, FitsEveryGroupOfThisMachineAndItsMembers) {
  const auto accounts = system_accounts();
  std::vector<std::pair<std::string, gid_t>> groups;
  ::setgrent();
  while (const group* entry = ::getgrent()) groups.emplace_back(entry->gr_name, entry->gr_gid);
  ::endgrent();
  ASSERT_FALSE(groups.empty());
  for (const auto& [name, gid] : groups) EXPECT_EQ(accounts->gid_of(name).value(), gid) << name;
}

TEST(SystemAccounts, WhatDoesNotExistIsNoError) {
  const auto accounts = system_accounts();
  EXPECT_EQ(accounts->account(3'999'999'999u).value(), std::nullopt);
  EXPECT_EQ(accounts->gid_of("takt-no-such-group").value(), std::nullopt);
  EXPECT_EQ(accounts->gid_of("").value(), std::nullopt);
  EXPECT_EQ(accounts->gid_of(std::string(100'000, 'x')).value(), std::nullopt);
}

TEST(SystemAccounts, ADirectoryOverItKnowsThisProcess) {
  Directory directory(system_accounts());
  const auto identity = directory.look_up(::getuid(), ::getgid());
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->uid, ::getuid());
  EXPECT_FALSE(identity->user.empty());
  EXPECT_FALSE(identity->groups.empty());
  const auto stranger = directory.look_up(3'999'999'999u, 5);
  ASSERT_TRUE(stranger);
  EXPECT_EQ(stranger->user, "3999999999");
}

}  // namespace
}  // namespace takt::identity
