#include "app/server/folder_lock.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace takt::server {

Result<store::FileLock> lock_runtime_folder(const std::string& folder) {
  using Kind = store::FileLock::Refusal::Kind;
  const std::string path = folder + "/lock";
  auto lock = store::FileLock::take(path, 0644);
  if (lock) return *std::move(lock);
  const auto& [kind, error, holder] = lock.error();
  if (kind == Kind::held)
    return fail(ErrorKind::conflict,
                fmt::format("the runtime folder {} is in use by a running takt (pid {}): stop that "
                            "one first, or choose another folder with --runtime-dir",
                            folder, holder.empty() ? "unknown" : holder));
  if (kind == Kind::cannot_lock)
    return fail(ErrorKind::io, fmt::format("cannot lock {}: {}", path, std::strerror(error)));
  return fail(error == EACCES || error == EROFS ? ErrorKind::forbidden : ErrorKind::io,
              fmt::format("cannot open {}: {}: choose another folder with --runtime-dir", path,
                          std::strerror(error)));
}

}  // namespace takt::server
