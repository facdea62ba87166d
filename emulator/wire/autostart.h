#pragma once
// Finds the daemon of a fleet and starts it where none runs, so that nobody has to start or end it.
#include <string>

#include "core/base/result.h"
#include "wire/channel.h"

namespace takt::emulator {

inline constexpr const char* kFleetVariable = "TAKT_EMULATED_FLEET";
inline constexpr const char* kFolderVariable =
    "TAKT_EMULATOR_DIR";  // for tests: another socket folder
inline constexpr const char* kIdleVariable = "TAKT_EMULATOR_IDLE";  // seconds; default 5

struct FleetPlace {
  std::string selector;  // real path, and "#load" where a state was named
  std::string folder;    // of the sockets and the lock
  std::string driver_socket() const { return folder + "/driver.sock"; }
  std::string gpu_socket(std::size_t index) const {
    return folder + "/gpu" + std::to_string(index) + ".sock";
  }
};

// The folder is the same for every user and every way to write the path: jobs of all users meet.
Result<FleetPlace> place_of(const std::string& selector);

// Connects to driver.sock; starts `program` (takt-emulator) first if nothing listens there. An
// error is the daemon's own sentence, for example about the fleet file.
Result<Channel> connect_or_start(const FleetPlace& place, const std::string& program);

// The folder's lock, held while the daemon is started or ends. Creates folder and lock.
class FolderLock {
 public:
  enum class Wait { yes, no };
  static Result<FolderLock> take(const std::string& folder, Wait wait);
  FolderLock(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace takt::emulator
