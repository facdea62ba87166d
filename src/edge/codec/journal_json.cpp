#include "edge/codec/journal_json.h"

#include <array>
#include <string>
#include <utility>

#include "edge/codec/exact_facts.h"

namespace takt::codec {
namespace {

// No record of ours is near this; a longer one is damage.
constexpr std::size_t kRecordBytesMax = std::size_t{64} << 20;

// What the journal calls a fact, and the version that is written today.
template <class T>
struct Record;
template <>
struct Record<control::JobAccepted> {
  static constexpr const char* kind = "job-accepted";
  static constexpr int version = 2;
};
template <>
struct Record<control::CancelRequested> {
  static constexpr const char* kind = "cancel-requested";
  static constexpr int version = 1;
};
template <>
struct Record<control::JobCancelled> {
  static constexpr const char* kind = "job-cancelled";
  static constexpr int version = 1;
};
template <>
struct Record<control::Granted> {
  static constexpr const char* kind = "granted";
  static constexpr int version = 2;
};
template <>
struct Record<control::StopRequested> {
  static constexpr const char* kind = "stop-requested";
  static constexpr int version = 1;
};
template <>
struct Record<control::Started> {
  static constexpr const char* kind = "started";
  static constexpr int version = 1;
};
template <>
struct Record<control::Exited> {
  static constexpr const char* kind = "exited";
  static constexpr int version = 1;
};
template <>
struct Record<control::Released> {
  static constexpr const char* kind = "released";
  static constexpr int version = 1;
};
template <>
struct Record<control::Requeued> {
  static constexpr const char* kind = "requeued";
  static constexpr int version = 1;
};
template <>
struct Record<control::Finished> {
  static constexpr const char* kind = "finished";
  static constexpr int version = 1;
};
template <>
struct Record<control::UsageCarried> {
  static constexpr const char* kind = "usage-carried";
  static constexpr int version = 1;
};
template <>
struct Record<control::CountersCarried> {
  static constexpr const char* kind = "counters-carried";
  static constexpr int version = 2;
};
template <>
struct Record<control::StateCreated> {
  static constexpr const char* kind = "state-created";
  static constexpr int version = 1;
};
template <>
struct Record<control::EnvironmentKept> {
  static constexpr const char* kind = "environment-kept";
  static constexpr int version = 1;
};
template <>
struct Record<control::Placed> {
  static constexpr const char* kind = "placed";
  static constexpr int version = 1;
};
template <>
struct Record<control::KillFailed> {
  static constexpr const char* kind = "kill-failed";
  static constexpr int version = 1;
};
template <>
struct Record<control::JobHeld> {
  static constexpr const char* kind = "job-held";
  static constexpr int version = 1;
};
template <>
struct Record<control::HoldLifted> {
  static constexpr const char* kind = "hold-lifted";
  static constexpr int version = 1;
};
template <>
struct Record<control::Archived> {
  static constexpr const char* kind = "archived";
  static constexpr int version = 1;
};
template <>
struct Record<control::ClockSet> {
  static constexpr const char* kind = "clock-set";
  static constexpr int version = 1;
};

template <std::size_t I>
using FactAt = std::variant_alternative_t<I, control::Fact>;

std::string name_of(const JournalRecord& record) {
  return "journal record '" + printable(record.kind) + "' version " +
         std::to_string(record.version);
}

// Lifts the body step by step to `version`.
Result<std::string> lifted(const JournalRecord& record, int version,
                           const std::vector<Upcaster>& upcasters) {
  std::string body = record.body;
  for (int from = record.version; from < version; ++from) {
    const Upcaster* step = nullptr;
    for (const Upcaster& candidate : upcasters)
      if (candidate.kind == record.kind && candidate.from == from) step = &candidate;
    if (step == nullptr)
      return fail(ErrorKind::invalid,
                  name_of(record) + " is too old: this version of takt reads version " +
                      std::to_string(version) + " and has no way up from " + std::to_string(from) +
                      "; start the takt version in between once, then this one");
    Result<std::string> next = step->lift(body);
    if (!next) return fail_at(name_of(record), next.error());
    body = std::move(*next);
  }
  return body;
}

template <class T>
Result<void> check(const T&) {
  return {};
}
// What `fold` relies on.
Result<void> check(const control::JobAccepted& fact) {
  if (fact.count >= 1 && fact.group_index >= 0 &&
      (fact.parameters.empty() || fact.parameters.size() == static_cast<std::size_t>(fact.count)))
    return {};
  return fail(ErrorKind::invalid, "count and parameters do not fit each other");
}

template <class T>
Result<control::Fact> decode_as(const JournalRecord& record,
                                const std::vector<Upcaster>& upcasters) {
  constexpr int version = Record<T>::version;
  if (record.version > version)
    return fail(ErrorKind::invalid,
                name_of(record) + " is newer than this version of takt (it reads up to " +
                    std::to_string(version) + "); start the takt version that wrote it");
  const Result<std::string> body = lifted(record, version, upcasters);
  if (!body) return tl::make_unexpected(body.error());
  Result<T> fact = exact::from_json<T>(*body, kRecordBytesMax);
  if (!fact) return fail_at(name_of(record), fact.error());
  if (const auto sound = check(*fact); !sound) return fail_at(name_of(record), sound.error());
  return control::Fact(std::move(*fact));
}

template <std::size_t I = 0>
Result<control::Fact> decode_any(const JournalRecord& record,
                                 const std::vector<Upcaster>& upcasters) {
  if constexpr (I == std::variant_size_v<control::Fact>) {
    return fail(ErrorKind::invalid, name_of(record) +
                                        " is of a kind that this version of takt does not know; "
                                        "start the takt version that wrote it");
  } else {
    if (record.kind == Record<FactAt<I>>::kind) return decode_as<FactAt<I>>(record, upcasters);
    return decode_any<I + 1>(record, upcasters);
  }
}

template <std::size_t... I>
std::vector<std::string> kinds(std::index_sequence<I...>) {
  return {Record<FactAt<I>>::kind...};
}

}  // namespace

JournalRecord encode_fact(const control::Fact& fact) {
  return std::visit(
      [](const auto& alternative) {
        using T = std::decay_t<decltype(alternative)>;
        return JournalRecord{Record<T>::kind, Record<T>::version, exact::to_json(alternative)};
      },
      fact);
}

Result<control::Fact> decode_fact(const JournalRecord& record) {
  return decode_fact(record, upcasters());
}

Result<control::Fact> decode_fact(const JournalRecord& record,
                                  const std::vector<Upcaster>& upcasters) {
  return decode_any(record, upcasters);
}

std::vector<std::string> fact_kinds() {
  return kinds(std::make_index_sequence<std::variant_size_v<control::Fact>>{});
}

std::string encode_job_spec(const JobSpec& spec) { return exact::to_json(spec); }
std::string encode_grant(const Grant& grant) { return exact::to_json(grant); }
std::string encode_exit(const ExitStatus& exit) { return exact::to_json(exit); }
std::string encode_identity(const control::Identity& identity) { return exact::to_json(identity); }

Result<JobSpec> decode_job_spec(std::string_view json) {
  return exact::from_json<JobSpec>(json, kRecordBytesMax);
}
Result<Grant> decode_grant(std::string_view json) {
  return exact::from_json<Grant>(json, kRecordBytesMax);
}
Result<ExitStatus> decode_exit(std::string_view json) {
  return exact::from_json<ExitStatus>(json, kRecordBytesMax);
}
Result<control::Identity> decode_identity(std::string_view json) {
  return exact::from_json<control::Identity>(json, kRecordBytesMax);
}

}  // namespace takt::codec
