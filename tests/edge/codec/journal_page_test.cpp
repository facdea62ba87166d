// docs/formats/journal.md names every kind of record with its version and its fields.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "edge/codec/arbitrary.h"
#include "edge/codec/exact_facts.h"
#include "edge/codec/journal_json.h"
#include "support/places.h"

namespace takt::codec {
namespace {

std::string page() {
  std::ifstream file(testing::source_folder() + "/docs/formats/journal.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Whatever optional fields some of many values have.
template <class T>
void add_fields(std::set<std::string>& fields, std::set<std::string>& of_submission) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    exact::Dice dice(seed);
    const auto record = encode_fact(exact::arbitrary<T>(dice));
    const auto body = nlohmann::json::parse(record.body);
    for (const auto& [name, value] : body.items()) fields.insert(name);
    if (body.contains("submission"))
      for (const auto& [name, value] : body["submission"].items()) of_submission.insert(name);
  }
}

template <std::size_t I = 0>
void expect_named(const std::string& text, std::set<std::string>& of_submission) {
  if constexpr (I < std::variant_size_v<control::Fact>) {
    using T = std::variant_alternative_t<I, control::Fact>;
    exact::Dice dice(1);
    const auto record = encode_fact(exact::arbitrary<T>(dice));
    const std::string start = "| `" + record.kind + "` | " + std::to_string(record.version) + " | ";
    const std::size_t at = text.find(start);
    EXPECT_NE(at, std::string::npos) << "no row begins with " << start;
    if (at != std::string::npos) {
      const std::string row = text.substr(at, text.find('\n', at) - at);
      std::set<std::string> fields;
      add_fields<T>(fields, of_submission);
      for (const std::string& field : fields)
        EXPECT_NE(row.find("`" + field + "`"), std::string::npos) << field << " in: " << row;
    }
    expect_named<I + 1>(text, of_submission);
  }
}

TEST(JournalPage, NamesEveryKindOfRecordWithItsVersionAndFields) {
  const std::string text = page();
  std::set<std::string> of_submission;
  expect_named(text, of_submission);
  EXPECT_GE(of_submission.size(), 8u);
  const std::size_t at = text.find("`submission` of `job-accepted`:");
  ASSERT_NE(at, std::string::npos);
  const std::string paragraph = text.substr(at, text.find("\n\n", at) - at);
  for (const std::string& field : of_submission)
    EXPECT_NE(paragraph.find("`" + field + "`"), std::string::npos) << field;
}

}  // namespace
}  // namespace takt::codec
