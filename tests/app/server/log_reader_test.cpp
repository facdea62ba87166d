// Output files with holes: what was dropped is said in its place, and offsets stay right.
#include "app/server/log_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

namespace takt::server {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t mib = 1 << 20;
constexpr Bytes log_max = mebibytes(1);

class LogFileReader : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "takt-log-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = (folder_ / "out").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  // As the shim cuts. Skips where the file system makes no holes.
  void punch(std::int64_t begin, std::int64_t end) {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    const int done =
        ::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin);
    ::close(fd);
    if (done != 0) GTEST_SKIP() << "no holes in files of " << folder_;
  }
  // All from `offset` on, as a client reads it; the last offset is in `offset`.
  std::string read_all(std::int64_t& offset) {
    std::string text;
    for (;;) {
      const auto piece = read_log_file(path_, offset, log_max);
      EXPECT_TRUE(piece) << piece.error().message;
      if (!piece || piece->bytes.empty()) return text;
      EXPECT_LE(piece->bytes.size(), 256u << 10);
      EXPECT_GT(piece->next_offset, offset);
      text += piece->bytes;
      offset = piece->next_offset;
    }
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(LogFileReader, SaysInPlaceOfAHoleWhatWasDropped) {
  write(std::string(mib, 'a') + std::string(4 * mib, 'b') + std::string(mib, 'c') + "end\n");
  punch(mib, 5 * mib);
  std::int64_t offset = 0;
  const std::string text = read_all(offset);
  EXPECT_EQ(text, std::string(mib, 'a') +
                      "\n[takt: 4.0 MiB dropped here: log_bytes_max is 1.0 MiB]\n" +
                      std::string(mib, 'c') + "end\n");
  EXPECT_EQ(offset, 6 * mib + 4) << "offsets are the file's";
  write("more\n");
  EXPECT_EQ(read_all(offset), "more\n") << "and right for who follows";
}

TEST_F(LogFileReader, WhoFollowsAndWasOvertakenHearsWhatItMissed) {
  write(std::string(6 * mib, 'a'));
  punch(mib, 5 * mib);
  std::int64_t offset = 3 * mib;
  EXPECT_EQ(read_all(offset),
            "\n[takt: 2.0 MiB dropped here: log_bytes_max is 1.0 MiB]\n" + std::string(mib, 'a'));
}

TEST_F(LogFileReader, AHoleAtTheEndIsSaidToo) {
  write("a");
  std::filesystem::resize_file(path_, 8 * mib);
  std::int64_t offset = 0;
  EXPECT_THAT(read_all(offset), HasSubstr("8.0 MiB dropped here"));
  EXPECT_EQ(offset, 8 * mib);
}

TEST_F(LogFileReader, AnOffsetBeyondTheEndIsTheEnd) {
  write("0123456789");
  for (const std::int64_t beyond :
       {std::int64_t{10}, std::int64_t{11}, std::numeric_limits<std::int64_t>::max() - 1,
        std::numeric_limits<std::int64_t>::max()}) {
    const auto piece = read_log_file(path_, beyond, log_max);
    ASSERT_TRUE(piece) << piece.error().message;
    EXPECT_EQ(piece->bytes, "");
    EXPECT_EQ(piece->next_offset, 10) << "a file that was cut short is read on from its end";
  }
}

TEST_F(LogFileReader, AFileThatIsNotThereYetIsEmpty) {
  const auto piece = read_log_file(path_, 5, log_max);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->bytes, "");
  EXPECT_EQ(piece->next_offset, 5);
}

}  // namespace
}  // namespace takt::server
