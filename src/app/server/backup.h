#pragma once
// Copies of the journal for `takt backup`, made while the server goes on.
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/base/result.h"
#include "edge/http/message.h"

namespace takt::server {

class Backups {
 public:
  // Makes a consistent copy in a new file; of the journal.
  using Copy = std::function<Result<void>(const std::string& to)>;

  // Copies are made in the folder and have no name there once they are complete. What an earlier
  // server left half-made is removed.
  Backups(std::string folder, Copy copy);

  // One at a time, else conflict. The file goes away with the last reference to it.
  Result<std::shared_ptr<const http::BodyFile>> make();

 private:
  const std::string path_;
  const Copy copy_;
  std::mutex mutex_;
};

}  // namespace takt::server
