#pragma once
// Facts as journal records: a kind, a version and a JSON body. Exact: what is decoded equals what
// was encoded, byte for byte, text that is not UTF-8 included (it is stored as {"b64": ...}).
//
// A record's shape never changes under its version. A new shape gets the next version and an
// upcaster from the old one; records of unknown kind or version are refused with a sentence.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/control/fact.h"

namespace takt::codec {

struct JournalRecord {
  std::string kind;  // "job-accepted", "granted", ...
  int version = 1;
  std::string body;  // JSON, one line
  bool operator==(const JournalRecord&) const = default;
};

// Lifts the body of `kind` from version `from` to `from + 1`.
struct Upcaster {
  std::string kind;
  int from = 0;
  std::function<Result<std::string>(std::string_view body)> lift;
};

JournalRecord encode_fact(const control::Fact& fact);

// The ways up from records of earlier versions (upcasters.cpp).
const std::vector<Upcaster>& upcasters();
// With these.
Result<control::Fact> decode_fact(const JournalRecord& record);
Result<control::Fact> decode_fact(const JournalRecord& record,
                                  const std::vector<Upcaster>& upcasters);

// All kinds, in the order of the alternatives of control::Fact.
std::vector<std::string> fact_kinds();

// The nouns inside the records, for snapshots. One line of JSON each.
std::string encode_job_spec(const JobSpec& spec);
std::string encode_grant(const Grant& grant);
std::string encode_exit(const ExitStatus& exit);
std::string encode_identity(const control::Identity& identity);
Result<JobSpec> decode_job_spec(std::string_view json);
Result<Grant> decode_grant(std::string_view json);
Result<ExitStatus> decode_exit(std::string_view json);
Result<control::Identity> decode_identity(std::string_view json);

}  // namespace takt::codec
