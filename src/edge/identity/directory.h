#pragma once
// From the uid that the kernel names to the person: login name, home, groups. Reads the system's
// account database (NSS: /etc/passwd, LDAP, sssd), which may be slow or down, hence a cache with a
// bound.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/quantities.h"
#include "core/base/result.h"
#include "core/control/engine_contract.h"

namespace takt::identity {

struct Account {
  std::string user;
  std::uint32_t gid = 0;
  std::string home;
  bool operator==(const Account&) const = default;
};

// Where accounts come from. nullopt: there is none. An Error: it could not be asked (unavailable).
class AccountDatabase {
 public:
  virtual ~AccountDatabase() = default;
  virtual Result<std::optional<Account>> account(std::uint32_t uid) = 0;
  // All groups of the user, the primary one included, ascending, without duplicates.
  virtual Result<std::vector<std::uint32_t>> groups(const Account& account) = 0;
  virtual Result<std::optional<std::uint32_t>> gid_of(const std::string& group) = 0;
};

// getpwuid_r, getgrouplist, getgrnam_r.
std::unique_ptr<AccountDatabase> system_accounts();

class Directory {
 public:
  struct Options {
    std::size_t entries_max = 1024;  // of users and of groups each; the oldest goes
    Duration fresh_for = seconds(60);
  };
  explicit Directory(std::unique_ptr<AccountDatabase> accounts);
  Directory(std::unique_ptr<AccountDatabase> accounts, Options options);
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // An unknown uid (a container's, a deleted account's) is no error: its user is the uid in digits,
  // its home "/", its only group `gid_if_unknown` (the peer's). Errors: unavailable, when the
  // account database cannot be asked and nothing is remembered; something remembered is used past
  // its time then. May be called from several threads.
  Result<control::Identity> look_up(std::uint32_t uid, std::uint32_t gid_if_unknown);

  // Whether the user is in one of the groups, by name. A group that does not exist has no members;
  // a database that cannot be asked gives false: rights are not given on a guess.
  bool in_any_group(std::uint32_t uid, const std::vector<std::string>& groups);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace takt::identity
