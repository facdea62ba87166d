// One server a runtime folder.
#include "app/server/folder_lock.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

namespace takt::server {
namespace {

using ::testing::HasSubstr;

TEST(FolderLock, NamesThePidThatHasItAndGoesWithIt) {
  std::string folder = (std::filesystem::temp_directory_path() / "takt-lock-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  {
    const auto first = lock_runtime_folder(folder);
    ASSERT_TRUE(first) << first.error().message;
    const auto second = lock_runtime_folder(folder);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::conflict);
    EXPECT_THAT(second.error().message, HasSubstr("pid " + std::to_string(::getpid())));
    EXPECT_THAT(second.error().message, HasSubstr("--runtime-dir"));
  }
  EXPECT_TRUE(lock_runtime_folder(folder)) << "the file that is left means nothing";
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(lock_runtime_folder(folder)) << "there is no such folder";
}

}  // namespace
}  // namespace takt::server
