#pragma once
// Which handler answers which method and path. Built once, then read by all threads.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "edge/http/message.h"

namespace takt::http {

// The captured parts of a path, decoded: "/v1/jobs/{id}" gives {"id": "17"}. Never empty strings.
using Captures = std::map<std::string, std::string>;
using RouteHandler = std::function<Response(const Request&, const Captures&)>;

struct Route {
  std::string method;
  std::string pattern;
};

class Router {
 public:
  // A pattern is "/" or segments each a literal or "{name}"; literals win over captures. A
  // malformed pattern or the same method and pattern twice is a programmer error.
  void add(std::string method, std::string pattern, RouteHandler handler);

  // 404 for an unknown path, 405 with `allow` for a known path with another method (HEAD is
  // answered by GET's handler), both with the JSON error body. OPTIONS is not special.
  Response route(const Request& request) const;

  // In the order they were added: for the comparison with the OpenAPI file.
  std::vector<Route> routes() const;

 private:
  struct Entry {
    Route route;
    std::vector<std::string> segments;
    RouteHandler handler;
  };
  std::vector<Entry> entries_;
};

}  // namespace takt::http
