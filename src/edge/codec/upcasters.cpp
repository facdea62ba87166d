// How records that earlier versions of takt wrote are lifted to today's shape. Bodies are JSON, and
// each step is written against the shapes of its two versions, never against today's structs.
#include <nlohmann/json.hpp>

#include "edge/codec/journal_json.h"

namespace takt::codec {
namespace {

using Json = nlohmann::json;

// `lift` changes the parsed body; what does not have the expected shape is an error.
template <class Lift>
Upcaster step(const char* kind, int from, Lift lift) {
  return {kind, from, [lift](std::string_view body) -> Result<std::string> {
            try {
              Json json = Json::parse(body);
              lift(json);
              return json.dump(-1, ' ', false, Json::error_handler_t::strict);
            } catch (const Json::exception& e) {
              return fail(ErrorKind::invalid, std::string("is damaged: ") + e.what());
            }
          }};
}

// 0.1 wrote one record for each task of an array, with the whole spec and its environment.
void job_accepted_2(Json& old) {
  Json submission = {{"spec", old.at("spec")},
                     {"environment", 0},
                     {"submitter", old.at("submitter")},
                     {"at", old.at("at")},
                     {"policy_revision", old.at("policy_revision")},
                     {"group_size", old.at("group_size")},
                     {"request", ""}};
  if (old.contains("group")) submission["group"] = old.at("group");
  Json parameters = Json::array();
  if (!old.at("parameters").empty()) parameters.push_back(old.at("parameters"));
  old = {{"job", old.at("job")},
         {"count", 1},
         {"group_index", old.at("group_index")},
         {"submission", std::move(submission)},
         {"parameters", std::move(parameters)}};
}

}  // namespace

const std::vector<Upcaster>& upcasters() {
  static const std::vector<Upcaster> all = {
      step("job-accepted", 1, job_accepted_2),
      // Unknown boots were not told apart.
      step("granted", 1, [](Json& old) { old["boot_id"] = ""; }),
      step("counters-carried", 1, [](Json& old) { old["next_environment"] = 1; }),
  };
  return all;
}

}  // namespace takt::codec
