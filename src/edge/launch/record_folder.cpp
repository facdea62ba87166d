#include "edge/launch/record_folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/fault_point.h"
#include "edge/launch/shim/fields.h"
#include "edge/launch/shim/protocol.h"

namespace takt::launch {
namespace {

std::int64_t number_of(std::string_view text) {
  std::int64_t number = 0;
  return shim::parse_number(text, number) ? number : 0;
}

std::optional<std::string> read_file(const std::string& folder, const char* name, std::size_t max) {
  const std::string path = folder + "/" + name;
  const shim::Blob blob = shim::read_whole(AT_FDCWD, path.c_str(), max);
  if (blob.data == nullptr) {
    if (blob.error == ENOENT || blob.error == ENOTDIR) return std::nullopt;
    return std::string();  // there, but unreadable: as good as damaged
  }
  std::string text(blob.text());
  std::free(blob.data);
  return text;
}

// The fault points around a write.
struct Moments {
  const char* before;
  const char* after;
};

Result<void> write_file(const std::string& folder, const char* name, const std::string& text,
                        const Moments& moments) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return fail(ErrorKind::io,
                fmt::format("record folder {}: {}: is the records folder still there?", folder,
                            std::strerror(errno)));
  }
  const std::string beside = std::string(name) + ".new";
  fault_point(moments.before);
  const int error = std::strcmp(name, shim::exit_file) == 0
                        ? shim::write_exit_record(fd, text)
                        : shim::write_record(fd, name, beside.c_str(), text);
  fault_point(moments.after);
  close(fd);
  if (error == 0) return {};
  return fail(ErrorKind::io,
              fmt::format("record folder {}: {} cannot be written: {}: make room there or mount it "
                          "writable",
                          folder, name, std::strerror(error)));
}

// Calls `take` for each field behind a head of a version that we know. "": fine; else what is
// wrong.
template <class Take>
std::string read_fields(std::string_view text, char end, std::string_view head, const Take& take) {
  shim::FieldReader reader(text, end);
  shim::Field field;
  if (!reader.next(field) || field.name != head) return "is damaged";
  if (!shim::knows_version(field.value)) {
    return fmt::format(
        "is of version '{}' and this takt knows version {}: it was written by "
        "another release, which can read it",
        field.value.substr(0, 20), shim::protocol_version);
  }
  while (reader.next(field)) take(field);
  return reader.damaged() ? "is damaged" : "";
}

const char* name_of(ExitCause cause) {
  switch (cause) {
    case ExitCause::exited: return "exited";
    case ExitCause::signalled: return "signalled";
    case ExitCause::start_failed: return "start_failed";
    case ExitCause::lost: break;
  }
  return "lost";
}

ExitCause cause_of(std::string_view name) {
  for (const ExitCause cause : {ExitCause::exited, ExitCause::signalled, ExitCause::start_failed}) {
    if (name == name_of(cause)) return cause;
  }
  return ExitCause::lost;
}

}  // namespace

std::optional<AttemptId> parse_attempt_name(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::int64_t job = 0;
  std::int64_t number = 0;
  if (!shim::parse_number(name.substr(0, dot), job) ||
      !shim::parse_number(name.substr(dot + 1), number) || job <= 0 || number <= 0 ||
      number > 0xffffffffLL) {
    return std::nullopt;
  }
  const AttemptId id{JobId(static_cast<std::uint64_t>(job)), static_cast<std::uint32_t>(number)};
  if (to_string(id) != name) return std::nullopt;  // "007.1" is nobody's name
  return id;
}

JobRecord parse_job_record(std::string_view text) {
  JobRecord record;
  std::string damage =
      read_fields(text, shim::record_end, shim::job_head, [&](const shim::Field& field) {
        if (field.name == "generation") {
          record.generation = static_cast<std::uint64_t>(number_of(field.value));
        }
        if (field.name == "pid") record.pid = number_of(field.value);
        if (field.name == "pid_start") record.pid_start = number_of(field.value);
        if (field.name == "boot_id") record.boot_id = field.value;
        if (field.name == "shim_pid") record.shim_pid = number_of(field.value);
        if (field.name == "shim_start") record.shim_start = number_of(field.value);
        if (field.name == "cgroup") record.cgroups.emplace_back(field.value);
        if (field.name == "members") record.members = field.value;
        if (field.name == "started_us") record.started.us = number_of(field.value);
      });
  if (damage.empty() && (record.pid <= 0 || record.shim_pid <= 0)) damage = "is damaged";
  if (!damage.empty()) {
    record = JobRecord{};
    record.damage = "its job record " + damage;
  }
  return record;
}

ExitRecord parse_exit_record(std::string_view text) {
  ExitRecord record;
  record.status.cause = ExitCause::lost;
  bool has_cause = false;
  const std::string damage =
      read_fields(text, shim::record_end, shim::exit_head, [&](const shim::Field& field) {
        const std::int64_t number = number_of(field.value);
        if (field.name == "generation") record.generation = static_cast<std::uint64_t>(number);
        if (field.name == "cause") {
          record.status.cause = cause_of(field.value);
          has_cause = true;
        }
        if (field.name == "code") record.status.code = static_cast<int>(number);
        if (field.name == "signal") record.status.signal = static_cast<int>(number);
        if (field.name == "oom") record.status.oom = number == 1;
        if (field.name == "message") record.status.message = field.value;
        if (field.name == "cpu_us") record.status.cpu_time = microseconds(number);
        if (field.name == "memory_peak") record.status.memory_peak = Bytes{number};
        if (field.name == "ended_us") record.ended.us = number;
        if (field.name == "processes_gone") record.processes_gone = number == 1;
      });
  if (damage.empty() && has_cause) return record;
  const std::uint64_t generation = record.generation;
  record = ExitRecord{};
  record.generation = generation;
  record.status.cause = ExitCause::lost;
  record.status.message = fmt::format("its exit record {}: the outcome is unknown",
                                      damage.empty() ? "is damaged" : damage);
  return record;
}

std::string format_exit_record(AttemptId attempt, const ExitRecord& record) {
  shim::LineWriter line;
  line.add(shim::exit_head, shim::protocol_version);
  line.add("attempt", to_string(attempt));
  line.add("generation", std::to_string(record.generation));
  line.add("cause", name_of(record.status.cause));
  if (record.status.cause == ExitCause::exited) line.add("code", std::int64_t{record.status.code});
  if (record.status.cause == ExitCause::signalled) {
    line.add("signal", std::int64_t{record.status.signal});
  }
  if (!record.status.message.empty()) {
    line.add("message", record.status.message.substr(0, shim::message_bytes_max));
  }
  line.add("oom", std::int64_t{record.status.oom});
  line.add("cpu_us", record.status.cpu_time.us);
  if (record.status.memory_peak) line.add("memory_peak", record.status.memory_peak->value);
  line.add("ended_us", record.ended.us);
  line.add("processes_gone", std::int64_t{record.processes_gone});
  return std::string(line.text());
}

Result<std::string> format_spec(const control::LaunchOrder& order, const AttemptCgroups& cgroups,
                                const SpecOptions& options) {
  std::string text;
  bool clean = true;
  const auto add = [&](std::string_view name, std::string_view value) {
    clean = clean && value.find('\0') == std::string_view::npos;
    text.append(name).append("=").append(value).push_back(shim::spec_end);
  };
  add(shim::spec_head, shim::protocol_version);
  add("attempt", to_string(order.attempt));
  add("generation", std::to_string(order.generation));
  add("uid", std::to_string(order.identity.uid));
  add("gid", std::to_string(order.identity.gid));
  for (const std::uint32_t group : order.identity.groups) add("group", std::to_string(group));
  add("user",
      order.identity.user.empty() ? std::to_string(order.identity.uid) : order.identity.user);
  add("switch_user", options.switch_user ? "1" : "0");
  for (const std::string& argument : order.argv) add("arg", argument);
  for (const EnvironmentVariable& variable : order.env) {
    clean = clean && variable.name.find('=') == std::string::npos && !variable.name.empty();
    add("env", variable.name + "=" + variable.value);
  }
  add("workdir", order.workdir);
  add("stdout", order.stdout_path);
  add("stderr", order.stderr_path);
  add("logs_dir", options.logs_dir);
  add("log_bytes_max", std::to_string(order.log_max.value));
  add("leftover_grace_us", std::to_string(options.leftover_grace.us));
  add("kill_patience_us", std::to_string(options.kill_patience.us));
  for (const DeviceGrant& device : order.grant.devices) add("device", device.gpu.value);
  for (const std::string& folder : cgroups.join) add("cgroup", folder);
  add("members", cgroups.members);
  add("kill_file", cgroups.kill_file ? "1" : "0");
  add("memory_v1", cgroups.memory_v1);
  add("memory_v2", cgroups.memory_v2);
  add("cpu_v1", cgroups.cpu_v1);
  add("cpu_v2", cgroups.cpu_v2);
  if (!clean) {
    return fail(ErrorKind::invalid,
                "an argument, a path or a variable holds a NUL, or a variable has no proper name: "
                "no program can be given that; correct the job");
  }
  if (text.size() > shim::spec_bytes_max) {
    return fail(ErrorKind::invalid,
                "arguments and environment are larger than any program may be given: shorten them");
  }
  return text;
}

std::optional<RecordLock> RecordLock::try_take(const std::string& folder, int* error) {
  if (error != nullptr) *error = 0;
  const std::string path = folder + "/" + shim::lock_file;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    if (error != nullptr) *error = errno;
    return std::nullopt;
  }
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) return RecordLock(fd);
  if (error != nullptr && errno != EWOULDBLOCK) *error = errno;
  close(fd);
  return std::nullopt;
}

RecordLock::RecordLock(RecordLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }

RecordLock::~RecordLock() {
  if (fd_ >= 0) close(fd_);
}

bool shim_holds_lock(const std::string& folder) {
  const std::string path = folder + "/" + shim::lock_file;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  close(fd);
  return held;
}

std::optional<JobRecord> read_job_record(const std::string& folder) {
  const auto text = read_file(folder, shim::job_file, shim::record_bytes_max);
  if (!text) return std::nullopt;
  return parse_job_record(*text);
}

std::optional<ExitRecord> read_exit_record(const std::string& folder) {
  const auto text = read_file(folder, shim::exit_file, shim::record_bytes_max);
  if (!text) return std::nullopt;
  return parse_exit_record(*text);
}

std::optional<StopRequest> read_stop_request(const std::string& folder) {
  const auto text = read_file(folder, shim::stop_file, shim::record_bytes_max);
  if (!text) return std::nullopt;
  StopRequest request;
  const auto take = [&](const shim::Field& field) {
    if (field.name == "grace_us") request.grace = microseconds(number_of(field.value));
    if (field.name == "deadline_us") request.deadline_us = number_of(field.value);
  };
  // One that cannot be read is asked for again.
  if (!read_fields(*text, shim::record_end, shim::stop_head, take).empty()) return std::nullopt;
  return request;
}

std::optional<SpecSummary> read_spec_summary(const std::string& folder) {
  SpecSummary summary;
  const auto text = read_file(folder, shim::spec_file, shim::spec_bytes_max);
  if (!text) return std::nullopt;
  (void)read_fields(*text, shim::spec_end, shim::spec_head, [&](const shim::Field& field) {
    if (field.name == "cgroup") summary.cgroups.emplace_back(field.value);
    if (field.name == "members") summary.members = field.value;
    if (field.name == "stdout") summary.stdout_path = field.value;
    if (field.name == "stderr") summary.stderr_path = field.value;
    if (field.name == "logs_dir") summary.logs_dir = field.value;
    if (field.name == "log_bytes_max") summary.log_bytes_max = Bytes{number_of(field.value)};
    if (field.name == "device") summary.devices.emplace_back(field.value);
    if (field.name == "generation") {
      summary.generation = static_cast<std::uint64_t>(number_of(field.value));
    }
  });
  return summary;
}

bool remove_spec(const std::string& folder) {
  return unlink((folder + "/" + shim::spec_file).c_str()) == 0 || errno == ENOENT;
}

Result<void> write_spec(const std::string& folder, const std::string& text) {
  return write_file(folder, shim::spec_file, text,
                    {"launcher.before-write-spec", "launcher.after-write-spec"});
}

Result<void> write_stop_request(const std::string& folder, const StopRequest& request) {
  shim::LineWriter line;
  line.add(shim::stop_head, shim::protocol_version);
  line.add("grace_us", request.grace.us);
  line.add("deadline_us", request.deadline_us);
  return write_file(folder, shim::stop_file, std::string(line.text()),
                    {"launcher.before-write-stop", "launcher.after-write-stop"});
}

Result<void> write_exit(const std::string& folder, AttemptId attempt, const ExitRecord& record) {
  return write_file(folder, shim::exit_file, format_exit_record(attempt, record),
                    {"launcher.before-write-exit", "launcher.after-write-exit"});
}

}  // namespace takt::launch
