#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "edge/identity/directory.h"

namespace takt::identity {
namespace {

constexpr std::size_t kEntryBytesMax = 1u << 20;  // one line of the database; groups can be long
constexpr int kGroupsMax = 65536;                 // the kernel's NGROUPS_MAX

Error unavailable(const std::string& what, int error) {
  return Error{ErrorKind::unavailable,
               fmt::format("the account database cannot be asked about {}: {}; is the directory "
                           "service (LDAP, sssd) up?",
                           what, std::strerror(error))};
}

// getpwuid_r(3): these mean "no such entry" as 0 does, depending on where accounts come from.
bool means_unknown(int error) {
  return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

// Calls an NSS function with a buffer that grows until the entry fits.
template <class Ask>
int with_growing_buffer(std::vector<char>& buffer, const Ask& ask) {
  buffer.resize(4096);
  while (true) {
    const int error = ask(buffer.data(), buffer.size());
    if (error == EINTR) continue;
    if (error != ERANGE || buffer.size() >= kEntryBytesMax) return error;
    buffer.resize(buffer.size() * 2);
  }
}

class SystemAccounts final : public AccountDatabase {
 public:
  Result<std::optional<Account>> account(std::uint32_t uid) override {
    std::vector<char> buffer;
    passwd entry{};
    passwd* found = nullptr;
    const int error = with_growing_buffer(buffer, [&](char* bytes, std::size_t size) {
      return ::getpwuid_r(uid, &entry, bytes, size, &found);
    });
    if (found == nullptr) {
      if (means_unknown(error)) return std::optional<Account>();
      return tl::make_unexpected(unavailable(fmt::format("uid {}", uid), error));
    }
    return std::optional<Account>(Account{found->pw_name, found->pw_gid, found->pw_dir});
  }

  Result<std::vector<std::uint32_t>> groups(const Account& account) override {
    std::vector<gid_t> found(64);
    int count = static_cast<int>(found.size());
    while (::getgrouplist(account.user.c_str(), account.gid, found.data(), &count) < 0) {
      // glibc says in `count` how many there are; others leave it, so it at least doubles.
      const int wanted = std::max(count, static_cast<int>(found.size()) * 2);
      if (wanted > kGroupsMax) {
        return fail(ErrorKind::unavailable,
                    fmt::format("the account database names more than {} groups of {}", kGroupsMax,
                                account.user));
      }
      found.resize(static_cast<std::size_t>(wanted));
      count = wanted;
    }
    found.resize(static_cast<std::size_t>(count));
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return std::vector<std::uint32_t>(found.begin(), found.end());
  }

  Result<std::optional<std::uint32_t>> gid_of(const std::string& name) override {
    std::vector<char> buffer;
    group entry{};
    group* found = nullptr;
    const int error = with_growing_buffer(buffer, [&](char* bytes, std::size_t size) {
      return ::getgrnam_r(name.c_str(), &entry, bytes, size, &found);
    });
    if (found == nullptr) {
      if (means_unknown(error)) return std::optional<std::uint32_t>();
      return tl::make_unexpected(unavailable("group " + name, error));
    }
    return std::optional<std::uint32_t>(found->gr_gid);
  }
};

}  // namespace

std::unique_ptr<AccountDatabase> system_accounts() { return std::make_unique<SystemAccounts>(); }

}  // namespace takt::identity
