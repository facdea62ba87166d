#include "edge/launch/shim/spec.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace takt::shim {
namespace {

template <class T>
bool append(T*& list, std::size_t& size, T value, bool null_ended) {
  // Grown by doubling: sizes 0, 1, 2, 4, ... are the moments to make room.
  const std::size_t places = null_ended ? 2 : 1;
  if ((size & (size - 1)) == 0) {
    const std::size_t room = size == 0 ? 1 : size * 2;
    void* const larger = std::realloc(list, (room + places) * sizeof(T));
    if (larger == nullptr) return false;
    list = static_cast<T*>(larger);
  }
  list[size++] = value;
  if (null_ended) list[size] = T{};
  return true;
}

struct TextField {
  const char* name;
  const char* Spec::*place;
};
constexpr TextField text_fields[] = {
    {"attempt", &Spec::attempt},     {"generation", &Spec::generation},
    {"user", &Spec::user},           {"workdir", &Spec::workdir},
    {"stdout", &Spec::stdout_path},  {"stderr", &Spec::stderr_path},
    {"logs_dir", &Spec::logs_dir},   {"members", &Spec::members},
    {"memory_v1", &Spec::memory_v1}, {"memory_v2", &Spec::memory_v2},
    {"cpu_v1", &Spec::cpu_v1},       {"cpu_v2", &Spec::cpu_v2},
};

bool take_number(const Field& field, Spec& spec, bool& taken) {
  std::int64_t number = 0;
  taken = true;
  const bool is_number = parse_number(field.value, number) && number >= 0;
  const bool is_id = is_number && number <= 0xffffffffLL;
  if (field.name == "uid") {
    spec.uid = static_cast<uid_t>(number);
    return is_id;
  }
  if (field.name == "gid") {
    spec.gid = static_cast<gid_t>(number);
    return is_id;
  }
  if (field.name == "group") {
    return is_id && append(spec.groups, spec.groups_size, static_cast<gid_t>(number), false);
  }
  if (field.name == "switch_user") {
    spec.switch_user = number == 1;
    return is_number;
  }
  if (field.name == "kill_file") {
    spec.kill_file = number == 1;
    return is_number;
  }
  if (field.name == "leftover_grace_us") {
    spec.leftover_grace_us = number;
    return is_number;
  }
  if (field.name == "log_bytes_max") {
    spec.log_bytes_max = number;
    return is_number;
  }
  if (field.name == "kill_patience_us") {
    spec.kill_patience_us = number;
    return is_number;
  }
  taken = false;
  return true;
}

bool take(const Field& field, Spec& spec) {
  bool taken = false;
  if (!take_number(field, spec, taken)) return false;
  if (taken) return true;
  // The values end in NUL in the blob: their string_views are C strings.
  if (field.name == "arg") {
    return append(spec.argv, spec.argv_size, const_cast<char*>(field.value.data()), true);
  }
  if (field.name == "env") {
    return append(spec.env, spec.env_size, const_cast<char*>(field.value.data()), true);
  }
  if (field.name == "cgroup") {
    if (spec.cgroups_size == cgroups_max) return false;
    spec.cgroups[spec.cgroups_size++] = field.value.data();
    return true;
  }
  for (const TextField& text : text_fields) {
    if (field.name == text.name) spec.*text.place = field.value.data();
  }
  return true;  // unknown fields of the same version are additions that this shim may ignore
}

}  // namespace

const char* read_spec(int folder, Spec& spec) {
  spec.blob = read_whole(folder, spec_file, spec_bytes_max);
  if (spec.blob.data == nullptr) {
    return spec.blob.error == EFBIG
               ? "arguments and environment are larger than any program may be given: shorten them"
               : "the launch order cannot be read: start the attempt again";
  }
  FieldReader reader(spec.blob.text(), spec_end);
  Field field;
  if (!reader.next(field) || field.name != spec_head) {
    return "the launch order is damaged: start the attempt again";
  }
  if (!knows_version(field.value)) {
    return "the launch order has a version that this takt-shim does not know: install takt and "
           "takt-shim of the same release";
  }
  if (!append(spec.env, spec.env_size, static_cast<char*>(nullptr), true)) return "out of memory";
  spec.env_size = 0;
  while (reader.next(field)) {
    if (!take(field, spec)) return "the launch order is damaged: start the attempt again";
  }
  if (reader.damaged() || spec.argv_size == 0) {
    return "the launch order is damaged: start the attempt again";
  }
  return nullptr;
}

void free_spec(Spec& spec) {
  std::free(spec.argv);
  std::free(spec.env);
  std::free(spec.groups);
  std::free(spec.blob.data);
  spec = Spec{};
}

const char* find_env(const Spec& spec, const char* name) {
  const std::size_t size = std::strlen(name);
  for (std::size_t i = 0; i < spec.env_size; ++i) {
    if (std::strncmp(spec.env[i], name, size) == 0 && spec.env[i][size] == '=') {
      return spec.env[i] + size + 1;
    }
  }
  return nullptr;
}

}  // namespace takt::shim
