#pragma once
// A bound on what an output file takes of the disk, which may hold the server's journal too: its
// beginning and its newest part stay, and the middle becomes a hole. Who reads sees the hole by
// SEEK_DATA; offsets stay as they were. No C++ run-time library.
#include <cstdint>

namespace takt::shim {

// Opens for cutting what `fd` has open, with an offset of its own. -1: not possible.
int reopen_for_cutting(int fd);
// The same for a plain file below `logs_dir`, without following any link. -1: there is none.
int open_for_cutting(const char* path, const char* logs_dir);

// Drops the middle when the file takes more than `bytes_max`; an eighth of that stays of the
// beginning and three eighths of the newest, so that it is not cut again at once. Where the file
// system makes no holes, all behind the beginning goes and a line says so. Returns what is left, in
// bytes (holes not counted); -1: the file cannot be looked at.
std::int64_t cap_log(int fd, std::int64_t bytes_max);

}  // namespace takt::shim
