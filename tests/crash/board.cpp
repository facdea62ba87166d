#include "crash/board.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace takt::crash {

FaultBoard::FaultBoard(const std::filesystem::path& programs) {
  const std::filesystem::path path = programs / kBoardName;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, sizeof(Board)) != 0) std::abort();
  void* const at = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (at == MAP_FAILED || points().size() > kBoardRowsMax) std::abort();
  board_ = static_cast<Board*>(at);
  for (std::size_t i = 0; i < points().size(); ++i) {
    std::snprintf(board_->row[i].process, sizeof board_->row[i].process, "%s", points()[i].process);
    std::snprintf(board_->row[i].point, sizeof board_->row[i].point, "%s", points()[i].name);
  }
  board_->rows = static_cast<std::int64_t>(points().size());
}

FaultBoard::~FaultBoard() { ::munmap(board_, sizeof(Board)); }

void FaultBoard::arm(std::size_t point, int at_time) {
  BoardRow& row = board_->row[point];
  fired_before_[point] = row.fired;
  row.fatal_at = row.reached + at_time;
}

void FaultBoard::disarm(std::size_t point) { board_->row[point].fatal_at = 0; }

bool FaultBoard::fired(std::size_t point) const {
  return board_->row[point].fired > fired_before_[point];
}

std::int64_t FaultBoard::reached(std::size_t point) const { return board_->row[point].reached; }

std::string FaultBoard::victim(std::size_t point) const { return board_->row[point].victim; }

std::string FaultBoard::unknown_point() const {
  return board_->unknown == 0 ? "" : board_->unknown_point;
}

}  // namespace takt::crash
