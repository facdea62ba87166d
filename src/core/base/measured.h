#pragma once
// A measured number, or the reason why there is none. Missing is never zero.
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace takt {

enum class MissingKind {
  not_supported,  // this device or driver does not offer it
  not_permitted,  // it needs rights that we do not have
  not_found,      // asked for something that is not there
  no_sample_yet,  // nothing was measured so far
  timed_out,      // the device did not answer before the deadline
  device_lost,    // the device fell off the bus or needs a reset
  out_of_range,   // the device answered something impossible; counted, not used
  driver_error,   // any other error of the driver; detail has its words
};

struct Missing {
  MissingKind kind = MissingKind::no_sample_yet;
  std::string detail;  // may be empty
  bool operator==(const Missing&) const = default;
};

template <class T>
using Measured = tl::expected<T, Missing>;

inline tl::unexpected<Missing> missing(MissingKind kind, std::string detail = {}) {
  return tl::make_unexpected(Missing{kind, std::move(detail)});
}

// Words for people and for `missing.<field>` in JSON.
inline std::string to_string(const Missing& m) {
  const char* words = "no sample yet";
  switch (m.kind) {
    case MissingKind::not_supported: words = "not supported by this device or driver"; break;
    case MissingKind::not_permitted: words = "not permitted"; break;
    case MissingKind::not_found: words = "not found"; break;
    case MissingKind::no_sample_yet: break;
    case MissingKind::timed_out: words = "the device did not answer in time"; break;
    case MissingKind::device_lost: words = "the device is lost or needs a reset"; break;
    case MissingKind::out_of_range: words = "impossible value from the driver"; break;
    case MissingKind::driver_error: words = "driver error"; break;
  }
  return m.detail.empty() ? words : std::string(words) + ": " + m.detail;
}

}  // namespace takt
