#pragma once
// A server of the benchmark's own on an emulated fleet, and what a client asks of it. Whatever goes
// wrong ends the benchmark with a sentence.
#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "edge/http/client.h"

namespace takt::bench {

[[noreturn]] void give_up(const std::string& why);

struct Server {
  pid_t pid = 0;
  std::string socket;
};

// `build`: the folder with takt in it. State, socket and log are below `folder`.
Server serve(const std::filesystem::path& build, const std::filesystem::path& folder, int gpus);
// Ends it and removes the folder.
void clean_up(const Server& server, const std::filesystem::path& folder);
// Starts a program whose output goes to the end of `log`.
pid_t start(const std::vector<std::string>& argv, const std::filesystem::path& log);
// 0: it has none.
long only_child(long pid);

// The body of a submission; each job wants so many whole GPUs.
std::string submission(std::vector<std::string> argv, const std::filesystem::path& folder, int gpus,
                       std::map<std::string, std::vector<std::string>> array = {});
// The number of its first job.
std::string submit(http::Client& client, const std::string& body);
void await_end(http::Client& client, const std::string& id);

}  // namespace takt::bench
