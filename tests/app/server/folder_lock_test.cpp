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
    const auto first = FolderLock::take(folder);
    ASSERT_TRUE(first) << first.error().message;
    const auto second = FolderLock::take(folder);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().kind, ErrorKind::conflict);
    EXPECT_THAT(second.error().message, HasSubstr("pid " + std::to_string(::getpid())));
    EXPECT_THAT(second.error().message, HasSubstr("--runtime-dir"));
  }
  EXPECT_TRUE(FolderLock::take(folder)) << "the file that is left means nothing";
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(FolderLock::take(folder)) << "there is no such folder";
}

}  // namespace
}  // namespace takt::server
