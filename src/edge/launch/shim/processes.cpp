#include "edge/launch/shim/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "edge/launch/shim/fields.h"

namespace takt::shim {
namespace {

std::string_view next_word(std::string_view& text) {
  const std::size_t end = text.find_first_of(" \n");
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

bool is_alive(const ProcessStat& row) { return row.state != 'Z' && row.state != 'X'; }

}  // namespace

bool parse_stat(std::string_view text, ProcessStat& stat) {
  // "pid (name) state ppid pgrp session ...": the last bracket ends the name.
  const std::size_t open = text.find(" (");
  const std::size_t close = text.rfind(") ");
  std::int64_t number = 0;
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return false;
  if (!parse_number(text.substr(0, open), number)) return false;
  stat.pid = static_cast<pid_t>(number);
  std::string_view rest = text.substr(close + 2);
  int field = 3;
  for (; field <= 22 && !rest.empty(); ++field) {
    const std::string_view word = next_word(rest);
    if (field == 3) {
      if (word.size() != 1) return false;
      stat.state = word[0];
      continue;
    }
    if (field != 4 && field != 6 && field != 22) continue;
    if (!parse_number(word, number)) return false;
    if (field == 4) stat.parent = static_cast<pid_t>(number);
    if (field == 6) stat.session = static_cast<pid_t>(number);
    if (field == 22) stat.start = number;
  }
  return field > 22;
}

bool read_stat(pid_t pid, ProcessStat& stat) {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[1024];
  const ssize_t size = read(fd, text, sizeof text);
  close(fd);
  return size > 0 && parse_stat({text, static_cast<std::size_t>(size)}, stat);
}

std::int64_t start_of(pid_t pid) {
  ProcessStat stat;
  return read_stat(pid, stat) ? stat.start : 0;
}

bool is_running(pid_t pid, std::int64_t start) {
  ProcessStat stat;
  return pid > 0 && read_stat(pid, stat) && stat.start == start && is_alive(stat);
}

PidList::~PidList() { std::free(data_); }

bool PidList::has(pid_t pid) const {
  for (const pid_t known : *this) {
    if (known == pid) return true;
  }
  return false;
}

void PidList::add(pid_t pid) {
  if (has(pid)) return;
  if (size_ == room_) {
    const std::size_t room = room_ == 0 ? 64 : room_ * 2;
    void* const larger = std::realloc(data_, room * sizeof(pid_t));
    if (larger == nullptr) return;
    data_ = static_cast<pid_t*>(larger);
    room_ = room;
  }
  data_[size_++] = pid;
}

ProcessTable::ProcessTable() {
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) return;
  std::size_t room = 0;
  while (const dirent* const entry = readdir(folder)) {
    std::int64_t pid = 0;
    if (!parse_number(entry->d_name, pid)) continue;
    ProcessStat stat;
    if (!read_stat(static_cast<pid_t>(pid), stat)) continue;
    if (size_ == room) {
      room = room == 0 ? 256 : room * 2;
      void* const larger = std::realloc(rows_, room * sizeof(ProcessStat));
      if (larger == nullptr) break;
      rows_ = static_cast<ProcessStat*>(larger);
    }
    rows_[size_++] = stat;
  }
  closedir(folder);
}

ProcessTable::~ProcessTable() { std::free(rows_); }

// Grows the family by its descendants; zombies belong to it, since their children do.
void ProcessTable::add_children(PidList& family, PidList& pids) const {
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t i = 0; i < size_; ++i) {
      const ProcessStat& row = rows_[i];
      if (!family.has(row.parent) || family.has(row.pid)) continue;
      family.add(row.pid);
      if (is_alive(row)) pids.add(row.pid);
      grown = true;
    }
  }
}

void ProcessTable::add_descendants(pid_t ancestor, PidList& pids) const {
  PidList family;
  family.add(ancestor);
  add_children(family, pids);
}

void ProcessTable::add_orphans(pid_t main, std::int64_t start, PidList& pids) const {
  PidList family;
  for (std::size_t i = 0; i < size_; ++i) {
    const ProcessStat& row = rows_[i];
    const bool is_main = row.pid == main && row.start == start;
    const bool is_of_session = row.session == main && row.start >= start;
    if (row.pid == main && !is_main) return;  // the number belongs to somebody else now
    if (!is_main && !is_of_session) continue;
    family.add(row.pid);
    if (is_alive(row)) pids.add(row.pid);
  }
  add_children(family, pids);
}

bool add_members(const char* cgroup_folder, PidList& pids) {
  const int folder = open(cgroup_folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  const Blob blob = read_whole(folder, "cgroup.procs", std::size_t{1} << 24);
  close(folder);
  std::string_view rest = blob.text();
  while (!rest.empty()) {
    std::int64_t pid = 0;
    if (parse_number(next_word(rest), pid) && pid > 0) pids.add(static_cast<pid_t>(pid));
  }
  std::free(blob.data);
  return true;
}

BootId read_boot_id() {
  BootId id;
  const Blob blob = read_whole(AT_FDCWD, "/proc/sys/kernel/random/boot_id", record_bytes_max);
  std::size_t size = 0;
  while (size < blob.size && size + 1 < sizeof id.text && blob.data[size] > ' ') {
    id.text[size] = blob.data[size];
    ++size;
  }
  id.text[size] = '\0';
  std::free(blob.data);
  return id;
}

}  // namespace takt::shim
