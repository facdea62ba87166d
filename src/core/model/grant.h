#pragma once
// What one attempt was given, and how it ended.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/base/quantities.h"
#include "core/model/job_spec.h"

namespace takt {

enum class DeviceKind { whole_gpu, mig_instance, share };

struct DeviceGrant {
  DeviceKind kind = DeviceKind::whole_gpu;
  DeviceUuid uuid;  // what CUDA_VISIBLE_DEVICES names: the GPU, or the MIG instance
  DeviceUuid gpu;   // the physical GPU
  Bytes memory;     // what the attempt may use on it
  int compute_percent = 100;
  bool operator==(const DeviceGrant&) const = default;
};

// Who may sit on the same GPU: only grants with an equal domain. Empty: nobody else.
using SharingDomain = std::string;

struct Grant {
  NodeId node;
  std::vector<DeviceGrant> devices;
  int cpus = 0;
  Bytes memory;
  Isolation isolation = Isolation::strict;
  SharingDomain domain;
  bool operator==(const Grant&) const = default;
};

enum class ExitCause {
  exited,        // code holds it
  signalled,     // signal holds it
  start_failed,  // the program could not be executed; message says why
  lost,          // the host restarted or the record is gone: the outcome is unknown
};

struct ExitStatus {
  ExitCause cause = ExitCause::exited;
  int code = 0;
  int signal = 0;
  bool oom = false;                  // the kernel's out-of-memory killer struck in its cgroup
  std::string message;               // for start_failed and lost: a sentence
  Duration cpu_time;                 // of all its processes, where known
  std::optional<Bytes> memory_peak;  // of the host, where the cgroup tells
  bool operator==(const ExitStatus&) const = default;
};

std::string to_string(DeviceKind kind);
// "exit code 3", "killed by signal 9 (out of memory)", ...
std::string describe(const ExitStatus& exit);

}  // namespace takt
