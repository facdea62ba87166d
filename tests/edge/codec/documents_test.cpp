// The examples in the documents are what takt really accepts.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "edge/codec/job_script.h"
#include "edge/codec/policy_yaml.h"
#include "support/places.h"

namespace takt::codec {
namespace {

// The fenced blocks of a language in a document of docs/.
std::vector<std::string> blocks(const std::string& document, const std::string& language) {
  std::ifstream file(::takt::testing::source_folder() + "/docs/" + document);
  EXPECT_TRUE(file.good()) << document;
  std::vector<std::string> found;
  std::string line;
  bool inside = false;
  while (std::getline(file, line)) {
    if (!inside && line == "```" + language) {
      inside = true;
      found.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  return found;
}

const YamlContext context = {"/home/bob", {}};

TEST(Documents, TheJobFilesOfTheDocumentAreAccepted) {
  const auto files = blocks("job-spec.md", "yaml");
  ASSERT_EQ(files.size(), 1u);
  const auto job = parse_job_yaml(files[0], "job.yaml", context);
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->spec.gpus.count, 2);
  EXPECT_TRUE(job->warnings.empty());
}

TEST(Documents, TheScriptOfTheDocumentIsAccepted) {
  const auto scripts = blocks("job-spec.md", "sh");
  ASSERT_EQ(scripts.size(), 1u);
  const auto job = parse_job_script(scripts[0], "sweep.sh", {}, context);
  ASSERT_TRUE(job.has_value()) << job.error().message;
  EXPECT_EQ(job->spec.name, "sweep");
  EXPECT_EQ(job->spec.kill_after, hours(3));
  EXPECT_EQ(job->spec.array.at("SLURM_ARRAY_TASK_ID").size(), 10u);
}

TEST(Documents, ThePolicyOfTheDocumentIsAcceptedAndNamesEveryField) {
  const auto files = blocks("policy.md", "yaml");
  ASSERT_EQ(files.size(), 1u);
  const auto policy = parse_policy_yaml(files[0], "policy.yaml");
  ASSERT_TRUE(policy.has_value()) << policy.error().message;
  EXPECT_EQ(policy->limits.pending_jobs_max, 50'000u);

  std::ifstream file(::takt::testing::source_folder() + "/docs/policy.md");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::istringstream written(policy_to_yaml(Policy{}));
  for (std::string line; std::getline(written, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    const std::string field = line.substr(begin, line.find(':') - begin);
    if (begin > 0 && field.find("_max") == std::string::npos) continue;  // tiers
    EXPECT_NE(text.find("`" + field + "`"), std::string::npos) << field;
  }
}

}  // namespace
}  // namespace takt::codec
