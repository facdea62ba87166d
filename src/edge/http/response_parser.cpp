#include "edge/http/response_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace takt::http {
namespace {

constexpr std::size_t kHeadBytesMax = 64u << 10;
constexpr std::string_view kHeadEnd = "\r\n\r\n";

tl::unexpected<Error> not_http(std::string why) {
  return fail(ErrorKind::io, "the answer is not what takt sends (" + std::move(why) +
                                 "): is it a takt that listens on this socket?");
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

// "HTTP/1.1 200 OK" to 200, 0 when it is something else.
int status_in(std::string_view line) {
  if (line.size() < 12 || line.substr(0, 7) != "HTTP/1." || !is_digit(line[7]) || line[8] != ' ') {
    return 0;
  }
  if (!std::all_of(line.begin() + 9, line.begin() + 12, is_digit)) return 0;
  if (line.size() > 12 && line[12] != ' ') return 0;
  const int status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  return status >= 100 ? status : 0;
}

}  // namespace

Result<bool> ResponseParser::feed(std::string_view bytes) {
  begun_ = begun_ || !bytes.empty();
  while (!head_done_) {
    const std::size_t searched = head_.size() < 3 ? 0 : head_.size() - 3;
    const std::size_t had = head_.size();
    head_.append(bytes.substr(0, kHeadBytesMax + kHeadEnd.size() - std::min(had, kHeadBytesMax)));
    const std::size_t end = head_.find(kHeadEnd, searched);
    if (end == std::string::npos) {
      if (head_.size() > kHeadBytesMax) return not_http("its headers are too long");
      if (status_in(head_.substr(0, 12)) == 0 && head_.size() >= 12) {
        return not_http("it does not start with HTTP/1.1 and a status");
      }
      return false;
    }
    bytes.remove_prefix(end + kHeadEnd.size() - had);
    auto final_answer = parse_head(std::string_view(head_).substr(0, end));
    if (!final_answer) return final_answer;
    head_.clear();
    head_done_ = *final_answer;  // else an interim answer (100 Continue): the next head follows
    if (!head_done_ && bytes.empty()) return false;
  }
  return take_body(bytes);
}

// True for the final answer, false for an interim one (1xx).
Result<bool> ResponseParser::parse_head(std::string_view head) {
  std::size_t end = head.find("\r\n");
  const std::string_view line = head.substr(0, end);
  const int status = status_in(line);
  if (status == 0) return not_http("it does not start with HTTP/1.1 and a status");
  if (status < 200) return false;
  response_ = Response{};
  response_.status = status;
  response_.content_type.clear();
  keeps_alive_ = line[7] != '0';
  while (end != std::string_view::npos) {
    head.remove_prefix(end + 2);
    end = head.find("\r\n");
    if (auto parsed = parse_field(head.substr(0, end)); !parsed) {
      return tl::make_unexpected(parsed.error());
    }
  }
  const bool no_body = head_request_ || status == 204 || status == 304;
  if (no_body) {
    body_bytes_ = 0;
  } else if (!length_known_) {
    return not_http("it has no Content-Length");
  }
  if (status != 200) sink_ = nullptr;
  if (!sink_ && body_bytes_ > body_bytes_max_) {
    return fail(ErrorKind::io,
                fmt::format("the answer has {} bytes, more than the {} that this program takes: "
                            "ask for less at once",
                            body_bytes_, body_bytes_max_));
  }
  return true;
}

Result<void> ResponseParser::parse_field(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return not_http("a header has no name");
  const std::string name = lower_case(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (name == "content-length") {
    if (value.empty() || value.size() > 18 || !std::all_of(value.begin(), value.end(), is_digit)) {
      return not_http("its Content-Length is no number");
    }
    std::size_t bytes = 0;
    for (const char c : value) bytes = bytes * 10 + static_cast<std::size_t>(c - '0');
    if (length_known_ && bytes != body_bytes_) return not_http("it has two Content-Lengths");
    length_known_ = true;
    body_bytes_ = bytes;
  } else if (name == "transfer-encoding") {
    return not_http("it has a transfer encoding");
  } else if (name == "connection") {
    if (lower_case(value) == "close") keeps_alive_ = false;
  } else if (name == "content-type") {
    response_.content_type = value;
  } else {
    response_.headers[name] = value;
  }
  return {};
}

Result<bool> ResponseParser::take_body(std::string_view bytes) {
  const std::size_t missing = body_bytes_ - body_bytes_taken_;
  const std::string_view piece = bytes.substr(0, missing);
  if (!sink_) {
    response_.body.append(piece);
  } else if (auto taken = sink_(piece); !taken) {
    return tl::make_unexpected(taken.error());
  }
  body_bytes_taken_ += piece.size();
  surplus_ = bytes.size() > missing;
  return body_bytes_taken_ == body_bytes_;
}

}  // namespace takt::http
