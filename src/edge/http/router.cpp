#include "edge/http/router.h"

#include <set>
#include <string_view>
#include <utility>

#include "core/base/check.h"

namespace takt::http {
namespace {

// "/a/b" to {"a", "b"}; "/" to {""}. Expects the leading slash.
std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> out;
  path.remove_prefix(1);
  while (true) {
    const std::size_t slash = path.find('/');
    out.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    path.remove_prefix(slash + 1);
  }
}

bool is_capture(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

void check_pattern(const std::string& pattern, const std::vector<std::string>& segments) {
  std::set<std::string> names;
  for (const std::string& segment : segments) {
    const bool braces = segment.find_first_of("{}") != std::string::npos;
    TAKT_CHECK(!braces || is_capture(segment), "a capture is a whole segment: {name}");
    TAKT_CHECK(!segment.empty() || pattern == "/", "a pattern has no empty segment");
    if (braces) TAKT_CHECK(names.insert(segment).second, "a capture's name occurs twice");
  }
}

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (is_capture(pattern[i]) ? path[i].empty() : pattern[i] != path[i]) return false;
  }
  return true;
}

// Whether `a` is the closer match of two that match the same path: the first literal decides.
bool closer(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_capture(a[i]) != is_capture(b[i])) return !is_capture(a[i]);
  }
  return false;
}

}  // namespace

void Router::add(std::string method, std::string pattern, RouteHandler handler) {
  TAKT_CHECK(!pattern.empty() && pattern.front() == '/', "a pattern starts with a slash");
  TAKT_CHECK(handler != nullptr, "a route has a handler");
  for (const Entry& entry : entries_) {
    TAKT_CHECK(entry.route.method != method || entry.route.pattern != pattern,
               "a route is added once");
  }
  std::vector<std::string> segments = split_path(pattern);
  check_pattern(pattern, segments);
  entries_.push_back(
      Entry{Route{std::move(method), std::move(pattern)}, std::move(segments), std::move(handler)});
}

Response Router::route(const Request& request) const {
  if (request.path.empty() || request.path.front() != '/') {
    return error_response(400, "the path '" + request.path + "' does not start with a slash");
  }
  std::vector<std::string> segments = split_path(request.path);
  for (std::string& segment : segments) {
    auto decoded = percent_decoded(segment, false);
    if (!decoded) return error_response(decoded.error());
    segment = *std::move(decoded);
  }
  const std::string wanted = request.method == "HEAD" ? "GET" : request.method;
  const Entry* best = nullptr;
  std::set<std::string> allowed;
  for (const Entry& entry : entries_) {
    if (!matches(entry.segments, segments)) continue;
    allowed.insert(entry.route.method);
    if (entry.route.method != wanted) continue;
    if (best == nullptr || closer(entry.segments, best->segments)) best = &entry;
  }
  if (best != nullptr) {
    Captures captures;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const std::string& name = best->segments[i];
      if (is_capture(name)) captures[name.substr(1, name.size() - 2)] = segments[i];
    }
    return best->handler(request, captures);
  }
  if (allowed.empty()) {
    return error_response(
        404, "there is nothing at " + request.path + ": see the API description for its addresses");
  }
  std::string list;
  for (const std::string& method : allowed) list += (list.empty() ? "" : ", ") + method;
  Response response = error_response(
      405, request.path + " cannot be used with " + request.method + ": expected " + list);
  response.headers["allow"] = list;
  return response;
}

std::vector<Route> Router::routes() const {
  std::vector<Route> out;
  for (const Entry& entry : entries_) out.push_back(entry.route);
  return out;
}

}  // namespace takt::http
