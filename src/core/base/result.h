#pragma once
// How functions of takt fail: with a sentence that names the place, what was expected and what to
// do next. No exceptions cross a room's border.
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace takt {

// What kind of failure it is. It decides the exit code and the HTTP status, never the wording.
enum class ErrorKind {
  invalid,      // the input is wrong and stays wrong: HTTP 400
  not_found,    // HTTP 404
  forbidden,    // HTTP 403
  conflict,     // the state does not allow it now: HTTP 409
  unavailable,  // retry later: HTTP 503
  io,           // disk, socket or device failed: HTTP 500
};

struct Error {
  ErrorKind kind = ErrorKind::io;
  std::string message;
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return tl::make_unexpected(Error{kind, std::move(message)});
}

// Puts the place in front of an error that comes from below: "spec.yaml: line 3: ...".
inline tl::unexpected<Error> fail_at(const std::string& place, Error error) {
  error.message = place + ": " + error.message;
  return tl::make_unexpected(std::move(error));
}

}  // namespace takt
