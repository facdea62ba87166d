#include "edge/http/server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "edge/http/listen_socket.h"

namespace takt::http {
namespace {

// How long stop() lets answers that handlers gave go out before connections are cut.
constexpr std::chrono::milliseconds kDrainMax{500};
// Connections beyond all limits that are told so at once; more wait in the kernel's queue.
constexpr unsigned kRefusedMax = 32;
constexpr std::size_t kThreadStackBytes = 1u << 20;

// One request on its way. Made when the request line is read, deleted when the answer has gone out.
// One connection: who is there, and how it was let in.
struct Guest {
  Peer peer;
  bool reserved = false;  // on a place of the reserve
  bool refused = false;
};

struct Exchange {
  std::string target;  // raw: "/v1/jobs?state=queued"
  bool begun = false;
  bool too_large = false;
  std::uint64_t body_bytes_seen = 0;
  std::string body;
  std::string answer;  // libmicrohttpd sends from here, no copy is made
};

Peer peer_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (info == nullptr ||
      ::getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    // Nobody: (uid_t)-1 is no user (chown(2)), so it has no rights anywhere.
    return Peer{std::numeric_limits<std::uint32_t>::max(),
                std::numeric_limits<std::uint32_t>::max(), 0};
  }
  return Peer{credentials.uid, credentials.gid, credentials.pid};
}

const Guest& guest_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return *static_cast<const Guest*>(info->socket_context);
}

// The token of somebody who does not wait.
std::stop_token tripped() {
  std::stop_source source;
  source.request_stop();
  return source.get_token();
}

std::string header(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string() : std::string(value);
}

Response too_large_response(std::size_t bytes_max) {
  return error_response(
      413, fmt::format("the request's body is larger than {} bytes: send less at once", bytes_max));
}

}  // namespace

struct Server::Impl {
  Impl(ServerOptions options_in, Handler handler_in, ListenSocket socket_in)
      : options(std::move(options_in)),
        handler(std::move(handler_in)),
        socket(std::move(socket_in)) {}

  // The callbacks of libmicrohttpd; `self` is the Impl.
  static void* on_request_line(void* self, const char* target, MHD_Connection* connection);
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url,
                               const char* method, const char* version, const char* upload,
                               std::size_t* upload_size, void** context);
  static void on_completed(void* self, MHD_Connection* connection, void** context,
                           MHD_RequestTerminationCode code);
  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code);

  Result<void> run();
  bool takes_ordinary_place(const Peer& peer, bool& user_full);
  bool takes_reserved_place(const Peer& peer);
  std::string admit(Guest& guest);
  void opened(MHD_Connection* connection, Guest& guest);
  void closed(const Guest& guest);
  MHD_Result begin(MHD_Connection* connection, Exchange& exchange);
  MHD_Result receive(Exchange& exchange, const char* upload, std::size_t* upload_size) const;
  Response answer_of(MHD_Connection* connection, const char* method, Exchange& exchange);
  MHD_Result answer(MHD_Connection* connection, Exchange& exchange, Response response);

  unsigned idle_seconds() const {
    return static_cast<unsigned>(
        std::clamp<std::int64_t>((options.idle_timeout.us + 999'999) / 1'000'000, 1, 24 * 3600));
  }

  const ServerOptions options;
  const Handler handler;
  ListenSocket socket;
  MHD_Daemon* daemon = nullptr;
  std::stop_source stopping;
  std::mutex stop_mutex;  // one stop at a time

  std::mutex mutex;
  std::condition_variable exchange_ended;
  std::size_t exchanges = 0;                   // guarded by mutex
  std::map<std::uint32_t, unsigned> per_user;  // open connections by uid; guarded by mutex
  unsigned ordinary = 0;                       // open, let in within the limits; guarded by mutex
  unsigned reserved = 0;                       // open, of the reserve; guarded by mutex
  std::atomic<unsigned> open_connections{0};
};

void* Server::Impl::on_request_line(void* self, const char* target, MHD_Connection*) {
  auto* impl = static_cast<Impl*>(self);
  auto* exchange = new Exchange;
  exchange->target = target;
  const std::lock_guard lock(impl->mutex);
  ++impl->exchanges;
  return exchange;
}

void Server::Impl::on_completed(void* self, MHD_Connection*, void** context,
                                MHD_RequestTerminationCode) {
  auto* impl = static_cast<Impl*>(self);
  if (*context == nullptr) return;
  delete static_cast<Exchange*>(*context);
  *context = nullptr;
  const std::lock_guard lock(impl->mutex);
  --impl->exchanges;
  impl->exchange_ended.notify_all();
}

// False when the limits leave no place; `user_full` says which.
bool Server::Impl::takes_ordinary_place(const Peer& peer, bool& user_full) {
  const std::lock_guard lock(mutex);
  const auto found = per_user.find(peer.uid);
  user_full = found != per_user.end() && found->second >= options.connections_per_user_max;
  if (user_full || ordinary >= options.connections_max) return false;
  ++per_user[peer.uid];
  ++ordinary;
  return true;
}

bool Server::Impl::takes_reserved_place(const Peer& peer) {
  // Asked without the lock: accounts may be slow to look up.
  if (!options.privileged || !options.privileged(peer.uid)) return false;
  const std::lock_guard lock(mutex);
  if (reserved >= options.connections_reserved) return false;
  ++reserved;
  return true;
}

// Counts the guest; a sentence when there is no place.
std::string Server::Impl::admit(Guest& guest) {
  bool user_full = false;
  if (takes_ordinary_place(guest.peer, user_full)) return "";
  guest.reserved = takes_reserved_place(guest.peer);
  if (guest.reserved) return "";
  guest.refused = true;
  if (user_full)
    return fmt::format(
        "the user with uid {} already has {} connections open, the most one user may have: close "
        "some and try again",
        guest.peer.uid, options.connections_per_user_max);
  return fmt::format("all {} connections are taken: try again in a moment",
                     options.connections_max);
}

void Server::Impl::opened(MHD_Connection* connection, Guest& guest) {
  ++open_connections;
  const std::string sentence = admit(guest);
  if (!guest.refused) return;
  // The answer is written by hand, since no request was read; then the connection ends.
  const std::string body = error_response(503, sentence).body;
  const std::string text = fmt::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
      "Retry-After: 1\r\nConnection: close\r\n\r\n{}",
      body.size(), body);
  const int fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  // A peer that does not take it gets nothing: we do not wait for it.
  [[maybe_unused]] const ssize_t sent =
      ::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(fd, SHUT_RDWR);
}

void Server::Impl::on_connection(void* self, MHD_Connection* connection, void** context,
                                 MHD_ConnectionNotificationCode code) {
  auto* impl = static_cast<Impl*>(self);
  switch (code) {
    case MHD_CONNECTION_NOTIFY_STARTED: {
      auto* guest = new Guest{peer_of(connection)};
      *context = guest;
      impl->opened(connection, *guest);
      break;
    }
    case MHD_CONNECTION_NOTIFY_CLOSED: {
      auto* guest = static_cast<Guest*>(*context);
      impl->closed(*guest);
      delete guest;
      *context = nullptr;
      break;
    }
  }
}

void Server::Impl::closed(const Guest& guest) {
  --open_connections;
  if (guest.refused) return;
  const std::lock_guard lock(mutex);
  if (guest.reserved) {
    --reserved;
    return;
  }
  --ordinary;
  const auto found = per_user.find(guest.peer.uid);
  if (found != per_user.end() && --found->second == 0) per_user.erase(found);
}

MHD_Result Server::Impl::on_request(void* self, MHD_Connection* connection, const char* /*url*/,
                                    const char* method, const char* /*version*/, const char* upload,
                                    std::size_t* upload_size, void** context) {
  auto* impl = static_cast<Impl*>(self);
  auto& exchange = *static_cast<Exchange*>(*context);
  if (!exchange.begun) return impl->begin(connection, exchange);
  if (*upload_size > 0) return impl->receive(exchange, upload, upload_size);
  // The handler may take longer than the idle time-out, which would cut its answer off: time-outs
  // are off while it runs. Setting one again restarts the count.
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, 0u);
  Response response = impl->answer_of(connection, method, exchange);
  MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT, impl->idle_seconds());
  return impl->answer(connection, exchange, std::move(response));
}

// The first call, before the body. An answer given here ends the connection, so only the one case
// answers where the body is not wanted at all.
MHD_Result Server::Impl::begin(MHD_Connection* connection, Exchange& exchange) {
  exchange.begun = true;
  const std::string length = header(connection, "Content-Length");
  const bool too_long =
      length.size() > 18 ||
      (!length.empty() && std::strtoull(length.c_str(), nullptr, 10) > options.body_bytes_max);
  if (too_long) return answer(connection, exchange, too_large_response(options.body_bytes_max));
  return MHD_YES;
}

MHD_Result Server::Impl::receive(Exchange& exchange, const char* upload,
                                 std::size_t* upload_size) const {
  // Only a chunked body gets here when it is too large. It is read to its end for the sake of the
  // 413, but not for ever.
  exchange.body_bytes_seen += *upload_size;
  if (exchange.body_bytes_seen > options.body_bytes_max) {
    exchange.too_large = true;
    exchange.body = std::string();
    if (exchange.body_bytes_seen / 2 > options.body_bytes_max) return MHD_NO;
  } else {
    exchange.body.append(upload, *upload_size);
  }
  *upload_size = 0;
  return MHD_YES;
}

Response Server::Impl::answer_of(MHD_Connection* connection, const char* method,
                                 Exchange& exchange) {
  if (exchange.too_large) return too_large_response(options.body_bytes_max);
  const std::size_t mark = exchange.target.find('?');
  Request request;
  request.method = method;
  request.path = exchange.target.substr(0, mark);
  if (request.path.empty() || request.path.front() != '/') {
    return error_response(400, "the path '" + request.path + "' does not start with a slash");
  }
  if (auto decoded = percent_decoded(request.path, false); !decoded) {
    return error_response(decoded.error());
  }
  if (mark != std::string::npos) {
    auto query = parse_query(std::string_view(exchange.target).substr(mark + 1));
    if (!query) return error_response(query.error());
    request.query = *std::move(query);
  }
  for (const char* name : {"content-type", "accept"}) {
    if (std::string value = header(connection, name); !value.empty()) {
      request.headers[name] = std::move(value);
    }
  }
  request.body = std::move(exchange.body);
  request.peer = guest_of(connection).peer;
  const bool short_visit = guest_of(connection).reserved;
  request.stop = short_visit ? tripped() : stopping.get_token();
  try {
    Response response = handler(request);
    if (short_visit) response.headers["Connection"] = "close";
    return response;
  } catch (const std::exception& e) {
    return error_response(500, fmt::format("internal error: {}; this is a bug in takt", e.what()));
  }
}

MHD_Result Server::Impl::answer(MHD_Connection* connection, Exchange& exchange, Response response) {
  exchange.answer = std::move(response.body);
  MHD_Response* out = nullptr;
  if (response.file) {  // the library closes the descriptor that it is given
    const int fd = ::fcntl(response.file->fd(), F_DUPFD_CLOEXEC, 0);
    out = MHD_create_response_from_fd64(response.file->bytes(), fd);
    if (out == nullptr && fd >= 0) ::close(fd);
  } else {
    out = MHD_create_response_from_buffer(exchange.answer.size(), exchange.answer.data(),
                                          MHD_RESPMEM_PERSISTENT);
  }
  if (out == nullptr) return MHD_NO;
  if (!response.content_type.empty()) {
    MHD_add_response_header(out, "Content-Type", response.content_type.c_str());
  }
  for (const auto& [name, value] : response.headers) {
    MHD_add_response_header(out, name.c_str(), value.c_str());
  }
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(response.status), out);
  MHD_destroy_response(out);
  return queued;
}

Result<void> Server::Impl::run() {
  // No unescaping by the library: it lets invalid escapes pass. Ours refuses them.
  const auto keep_as_is = [](void*, MHD_Connection*, char* text) { return std::strlen(text); };
  daemon = MHD_start_daemon(
      MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC,
      0, nullptr, nullptr, &Impl::on_request, this,                    //
      MHD_OPTION_LISTEN_SOCKET, static_cast<MHD_socket>(socket.fd()),  //
      MHD_OPTION_CONNECTION_LIMIT,
      options.connections_max + options.connections_reserved + kRefusedMax,                       //
      MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds(),                                              //
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, std::max<std::size_t>(options.header_bytes_max, 1024),  //
      MHD_OPTION_THREAD_STACK_SIZE, kThreadStackBytes,                                            //
      MHD_OPTION_URI_LOG_CALLBACK, &Impl::on_request_line, this,                                  //
      MHD_OPTION_UNESCAPE_CALLBACK,
      static_cast<std::size_t (*)(void*, MHD_Connection*, char*)>(keep_as_is), nullptr,  //
      MHD_OPTION_NOTIFY_COMPLETED, &Impl::on_completed, this,                            //
      MHD_OPTION_NOTIFY_CONNECTION, &Impl::on_connection, this,                          //
      MHD_OPTION_END);
  if (daemon == nullptr) {
    return fail(ErrorKind::io, fmt::format("cannot start the server on {}: {}", options.socket_path,
                                           std::strerror(errno)));
  }
  return {};
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Handler handler) {
  auto socket = ListenSocket::take(options.socket_path, options.socket_mode);
  if (!socket) return tl::make_unexpected(socket.error());
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler), *std::move(socket));
  if (auto running = impl->run(); !running) return tl::make_unexpected(running.error());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Server::~Server() { stop(); }

void Server::stop() {
  const std::lock_guard one_at_a_time(impl_->stop_mutex);
  if (impl_->daemon == nullptr) return;
  impl_->socket.remove_file();
  MHD_quiesce_daemon(impl_->daemon);
  impl_->stopping.request_stop();
  {
    std::unique_lock lock(impl_->mutex);
    impl_->exchange_ended.wait_for(lock, kDrainMax, [this] { return impl_->exchanges == 0; });
  }
  MHD_stop_daemon(impl_->daemon);
  impl_->daemon = nullptr;
}

unsigned Server::connections() const { return impl_->open_connections.load(); }

}  // namespace takt::http
