#pragma once
// Checks for programmer errors. Bad input is an Error, never a Check.
#include <cstdio>
#include <cstdlib>

#define TAKT_CHECK(condition, why)                                                                \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      std::fprintf(stderr, "takt: internal error at %s:%d: %s (%s)\n", __FILE__, __LINE__, (why), \
                   #condition);                                                                   \
      std::abort();                                                                               \
    }                                                                                             \
  } while (false)
