#pragma once
// The engine `local`: starts the node agent as a child process, speaks to it over a socket pair,
// and starts it again when it dies or falls silent. Jobs do not depend on it: they run under their
// shims.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/quantities.h"
#include "core/base/result.h"
#include "core/control/engine_contract.h"

namespace takt::engine {

struct LocalEngineOptions {
  // Program and arguments of the agent; "{fd}" in an argument becomes the number of its socket.
  std::vector<std::string> agent_command;
  std::string takt_version;             // ours, for the agent and for sentences
  Duration silent_max = seconds(15);    // without a report for so long it is replaced
  Duration restart_pause = seconds(1);  // between two starts
  // The same when the agent was of another release: it will be so until somebody does something.
  Duration mismatch_pause = seconds(30);
};

class LocalEngine {
 public:
  using OnReport = std::function<void(control::NodeReport)>;
  using OnNote = std::function<void(const std::string&)>;  // sentences for the log

  // Starts the agent. Reports come on the engine's own thread. Errors: the program cannot be
  // started.
  static Result<std::unique_ptr<LocalEngine>> start(LocalEngineOptions options, OnReport on_report,
                                                    OnNote on_note);
  ~LocalEngine();  // stops
  LocalEngine(const LocalEngine&) = delete;
  LocalEngine& operator=(const LocalEngine&) = delete;

  // Hands effects to the agent, in order. What does not arrive is lost without harm: the next
  // report lacks it and reconcile sends it again.
  void send(const std::vector<control::Effect>& effects);
  // Ends the agent (its jobs go on) and waits for it. A second call does nothing.
  void stop();
  std::int64_t agent_pid() const;  // 0 while none runs

 private:
  struct Impl;
  explicit LocalEngine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace takt::engine
