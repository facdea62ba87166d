#pragma once
// Strong identifiers: a job's number cannot be passed where a node's name is expected.
#include <compare>
#include <cstdint>
#include <string>
#include <utility>

namespace takt {

template <class Tag, class Rep>
struct StrongId {
  Rep value{};
  StrongId() = default;
  explicit StrongId(Rep v) : value(std::move(v)) {}
  auto operator<=>(const StrongId&) const = default;
  bool operator==(const StrongId&) const = default;
};

// A physical GPU ("GPU-...") or a MIG instance ("MIG-..."): the UUID the driver gives. Index and
// minor number change with reboots and order, so they are facts about a device and never its
// identity.
using DeviceUuid = StrongId<struct DeviceUuidTag, std::string>;
// A host, named as it names itself.
using NodeId = StrongId<struct NodeIdTag, std::string>;
// One submission. Numbers count up from 1 and are never reused.
using JobId = StrongId<struct JobIdTag, std::uint64_t>;

// One execution of a job. Printed as "17.1".
struct AttemptId {
  JobId job;
  std::uint32_t number = 0;  // from 1
  auto operator<=>(const AttemptId&) const = default;
  bool operator==(const AttemptId&) const = default;
};

inline std::string to_string(JobId id) { return std::to_string(id.value); }
inline std::string to_string(AttemptId id) {
  return std::to_string(id.job.value) + "." + std::to_string(id.number);
}

}  // namespace takt
