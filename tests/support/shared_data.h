#pragma once
// Where tests find recorded data of real clusters that is not part of the repository.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace takt::testing {

// The folder named by TAKT_SHARED, if set.
inline std::optional<std::filesystem::path> shared_folder() {
  const char* value = std::getenv("TAKT_SHARED");
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::filesystem::path(value);
}

}  // namespace takt::testing

// Defines `name` as the file or folder `relative` below TAKT_SHARED. Where TAKT_SHARED is not set
// the test is skipped with a sentence; where it is set and the data is missing, the test fails: on
// the machine that is to check the data, a skip would hide that it did not.
#define TAKT_SHARED_DATA(name, relative)                                                      \
  if (!::takt::testing::shared_folder())                                                      \
    GTEST_SKIP() << "TAKT_SHARED is not set: this test reads recorded data that is not part " \
                    "of the repository";                                                      \
  const std::filesystem::path name = *::takt::testing::shared_folder() / (relative);          \
  ASSERT_TRUE(std::filesystem::exists(name)) << name << " is missing below TAKT_SHARED"
