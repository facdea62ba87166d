#pragma once
// A server that answers what a test says: for what a real one does too seldom to be tested with.
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace takt::endtoend {

struct Asked {
  std::string method;
  std::string target;
  std::string body;
};

class ScriptedServer {
 public:
  // The whole answer; nullopt hangs up without one. Called from a thread for each connection.
  using Answer = std::function<std::optional<std::string>(const Asked&)>;
  ScriptedServer(const std::string& socket_path, Answer answer);
  ~ScriptedServer();  // `answer` must not wait any more
  ScriptedServer(const ScriptedServer&) = delete;

  std::vector<Asked> asked(const std::string& method = "") const;

 private:
  void accept_all();
  void serve(int fd);

  const std::string path_;
  const Answer answer_;
  int listening_ = -1;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::vector<Asked> asked_;
  std::vector<std::thread> connections_;
  std::thread accepting_;
};

// An HTTP answer with this body; `headers` end in \r\n each.
std::string http_answer(int status, const std::string& body, const std::string& headers = "");

}  // namespace takt::endtoend
