#include "edge/identity/directory.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace takt::identity {
namespace {

using Clock = std::chrono::steady_clock;

// Remembers answers for a while. Not for several threads at once.
template <class Key, class Value>
class Cache {
 public:
  Cache(std::size_t entries_max, Duration fresh_for)
      : entries_max_(std::max<std::size_t>(entries_max, 1)), fresh_for_(fresh_for) {}

  struct Entry {
    Value value;
    Clock::time_point learnt;
  };

  // nullptr when it was never asked or was pushed out.
  const Entry* find(const Key& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  bool fresh(const Entry& entry) const {
    return Clock::now() - entry.learnt < std::chrono::microseconds(fresh_for_.us);
  }
  void put(const Key& key, Value value) {
    if (entries_.size() >= entries_max_ && entries_.count(key) == 0) {
      entries_.erase(std::min_element(
          entries_.begin(), entries_.end(),
          [](const auto& a, const auto& b) { return a.second.learnt < b.second.learnt; }));
    }
    entries_.insert_or_assign(key, Entry{std::move(value), Clock::now()});
  }

 private:
  const std::size_t entries_max_;
  const Duration fresh_for_;
  std::map<Key, Entry> entries_;
};

// What is known about a uid: the account with its groups, or that there is none.
struct Person {
  std::optional<Account> account;
  std::vector<std::uint32_t> groups;
};

}  // namespace

struct Directory::Impl {
  Impl(std::unique_ptr<AccountDatabase> accounts_in, const Options& options)
      : accounts(std::move(accounts_in)),
        people(options.entries_max, options.fresh_for),
        gids(options.entries_max, options.fresh_for) {}

  Result<Person> ask_person(std::uint32_t uid) const {
    auto account = accounts->account(uid);
    if (!account) return tl::make_unexpected(account.error());
    Person person{*account, {}};
    if (!person.account) return person;
    auto groups = accounts->groups(*person.account);
    if (!groups) return tl::make_unexpected(groups.error());
    person.groups = *std::move(groups);
    return person;
  }

  // `ask` is called without the lock: a directory service that hangs must not hold up those whom we
  // know. Two threads may ask the same at once; both get the same answer.
  template <class Key, class Value, class Ask>
  Result<Value> remembered(Cache<Key, Value>& cache, const Key& key, const Ask& ask) {
    std::optional<Value> stale;
    {
      const std::lock_guard lock(mutex);
      const auto* entry = cache.find(key);
      if (entry != nullptr && cache.fresh(*entry)) return entry->value;
      if (entry != nullptr) stale = entry->value;
    }
    Result<Value> answer = ask();
    if (!answer) {
      if (stale) return *stale;
      return answer;
    }
    const std::lock_guard lock(mutex);
    cache.put(key, *answer);
    return answer;
  }

  Result<Person> person(std::uint32_t uid) {
    return remembered(people, uid, [&] { return ask_person(uid); });
  }
  Result<std::optional<std::uint32_t>> gid(const std::string& group) {
    return remembered(gids, group, [&] { return accounts->gid_of(group); });
  }

  const std::unique_ptr<AccountDatabase> accounts;
  std::mutex mutex;
  Cache<std::uint32_t, Person> people;                    // guarded by mutex
  Cache<std::string, std::optional<std::uint32_t>> gids;  // guarded by mutex
};

Directory::Directory(std::unique_ptr<AccountDatabase> accounts)
    : Directory(std::move(accounts), Options{}) {}
Directory::Directory(std::unique_ptr<AccountDatabase> accounts, Options options)
    : impl_(std::make_unique<Impl>(std::move(accounts), options)) {}
Directory::~Directory() = default;

Result<control::Identity> Directory::look_up(std::uint32_t uid, std::uint32_t gid_if_unknown) {
  auto person = impl_->person(uid);
  if (!person) return tl::make_unexpected(person.error());
  control::Identity identity;
  identity.uid = uid;
  if (!person->account) {
    identity.gid = gid_if_unknown;
    identity.groups = {gid_if_unknown};
    identity.user = std::to_string(uid);
    identity.home = "/";
    return identity;
  }
  identity.gid = person->account->gid;
  identity.groups = person->groups;
  identity.user = person->account->user;
  identity.home = person->account->home.empty() ? "/" : person->account->home;
  return identity;
}

bool Directory::in_any_group(std::uint32_t uid, const std::vector<std::string>& groups) {
  if (groups.empty()) return false;
  const auto person = impl_->person(uid);
  if (!person) return false;
  for (const std::string& group : groups) {
    const auto gid = impl_->gid(group);
    if (!gid || !*gid) continue;
    if (std::binary_search(person->groups.begin(), person->groups.end(), **gid)) return true;
  }
  return false;
}

}  // namespace takt::identity
