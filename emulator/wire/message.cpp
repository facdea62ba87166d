#include "wire/message.h"

#include <cstring>

namespace takt::emulator {
namespace {

template <class T>
void put(std::string& out, T value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  out.append(raw, sizeof raw);
}

void put_text(std::string& out, const std::string& text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

// Takes values from the front of a packet; once it is too short, nothing is ok any more.
class Cursor {
 public:
  explicit Cursor(std::string_view packet) : left_(packet) {}

  template <class T>
  T take() {
    T value{};
    if (left_.size() < sizeof value) {
      ok_ = false;
      return value;
    }
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return value;
  }

  std::string take_text() {
    auto size = take<std::uint32_t>();
    if (!ok_ || size > left_.size()) {
      ok_ = false;
      return {};
    }
    std::string text(left_.substr(0, size));
    left_.remove_prefix(size);
    return text;
  }

  // A count of items of at least `least` bytes each.
  std::uint32_t take_count(std::size_t least) {
    auto count = take<std::uint32_t>();
    if (count > left_.size() / least) ok_ = false;
    return ok_ ? count : 0;
  }

  bool done() const { return ok_ && left_.empty(); }

 private:
  std::string_view left_;
  bool ok_ = true;
};

}  // namespace

std::string encode(const Request& request) {
  std::string out;
  put_text(out, request.call);
  put(out, request.mig);
  put(out, static_cast<std::uint32_t>(request.numbers.size()));
  for (auto n : request.numbers) put(out, n);
  put_text(out, request.text);
  return out;
}

std::string encode(const Reply& reply) {
  std::string out;
  put(out, static_cast<std::int32_t>(reply.code));
  put(out, static_cast<std::uint32_t>(reply.numbers.size()));
  for (auto n : reply.numbers) put(out, n);
  put(out, static_cast<std::uint32_t>(reply.texts.size()));
  for (const auto& t : reply.texts) put_text(out, t);
  return out;
}

std::optional<Request> decode_request(std::string_view packet) {
  Cursor in(packet);
  Request request;
  request.call = in.take_text();
  request.mig = in.take<std::int32_t>();
  auto count = in.take_count(sizeof(std::uint64_t));
  for (std::uint32_t i = 0; i < count; ++i) request.numbers.push_back(in.take<std::uint64_t>());
  request.text = in.take_text();
  return in.done() ? std::optional(std::move(request)) : std::nullopt;
}

std::optional<Reply> decode_reply(std::string_view packet) {
  Cursor in(packet);
  Reply reply;
  reply.code = static_cast<Code>(in.take<std::int32_t>());
  auto numbers = in.take_count(sizeof(std::uint64_t));
  for (std::uint32_t i = 0; i < numbers; ++i) reply.numbers.push_back(in.take<std::uint64_t>());
  auto texts = in.take_count(sizeof(std::uint32_t));
  for (std::uint32_t i = 0; i < texts; ++i) reply.texts.push_back(in.take_text());
  return in.done() ? std::optional(std::move(reply)) : std::nullopt;
}

}  // namespace takt::emulator
