#include "private_server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "edge/codec/api_json.h"

namespace takt::bench {

namespace fs = std::filesystem;
using http::Client;

void give_up(const std::string& why) {
  fmt::print(stderr, "takt: benchmark: {}\n", why);
  std::exit(1);
}

pid_t start(const std::vector<std::string>& argv, const fs::path& log) {
  std::vector<std::string> words = argv;
  std::vector<char*> list;
  for (std::string& w : words) list.push_back(w.data());
  list.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int fd = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(fd, 1);
    ::dup2(fd, 2);
    ::execv(list[0], list.data());
    ::_exit(127);
  }
  return pid;
}

Server serve(const fs::path& build, const fs::path& folder, int gpus) {
  const std::string socket = (folder / "takt.sock").string();
  ::setenv("TAKT_SOCKET", socket.c_str(), 1);
  ::setenv("TAKT_NVML", (build / "emulator/libnvidia-ml.so.1").c_str(), 1);
  const fs::path fleet = folder / "fleet.yaml";
  std::ofstream gpus_of(fleet);
  gpus_of << "gpus:\n";
  for (int i = 0; i < gpus; ++i) gpus_of << "  - {model: a100-80}\n";
  gpus_of.close();
  ::setenv("TAKT_EMULATED_FLEET", fleet.c_str(), 1);
  const pid_t pid = start({(build / "takt").string(), "serve", "--user", "--state-dir",
                           (folder / "state").string(), "--runtime-dir", (folder / "run").string()},
                          folder / "serve.log");
  Client client(socket);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!client.call("GET", "/v1/version", "", takt::seconds(1))) {
    if (std::chrono::steady_clock::now() > end)
      give_up("the server did not start; see " + (folder / "serve.log").string());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {pid, socket};
}

std::string submission(std::vector<std::string> argv, const fs::path& folder, int gpus,
                       std::map<std::string, std::vector<std::string>> array) {
  takt::codec::SubmitRequest request;
  request.spec.argv = std::move(argv);
  request.spec.command_text = request.spec.argv.front();
  request.spec.workdir = folder.string();
  request.spec.gpus.count = gpus;
  request.spec.array = std::move(array);
  request.spec.env.push_back({"PATH", "/usr/bin:/bin", false});
  return takt::codec::submit_request_json(request);
}

std::string submit(Client& client, const std::string& body) {
  auto answer = client.call("POST", "/v1/jobs", body, takt::seconds(60));
  if (!answer) give_up(answer.error().message);
  if (answer->status != 201) give_up(answer->body);
  auto receipt = takt::codec::read_submit_reply(answer->body);
  if (!receipt) give_up(receipt.error().message);
  return to_string(receipt->ids.front());
}

void await_end(Client& client, const std::string& id) {
  (void)client.call("GET", "/v1/jobs/" + id + "?wait=ended&timeout_ms=10000", "",
                    takt::seconds(20));
}

long only_child(long pid) {
  for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", pid))) {
    std::ifstream in(task.path() / "children");
    long child = 0;
    if (in >> child) return child;
  }
  return 0;
}

void clean_up(const Server& server, const fs::path& folder) {
  ::kill(server.pid, SIGTERM);
  ::waitpid(server.pid, nullptr, 0);
  fs::remove_all(folder);
}

}  // namespace takt::bench
