#pragma once
// Places where the crash tests end the process: before and after each write and sync, around forks.
// Only the programs of those tests (tests/crash) define the function; in what users run it is a
// null pointer, and a point costs the test of it. Names are "room.moment": "journal.before-commit".
extern "C" void takt_fault_point(const char* name) __attribute__((weak));

namespace takt {

inline void fault_point(const char* name) {
  if (takt_fault_point != nullptr) takt_fault_point(name);
}

}  // namespace takt
