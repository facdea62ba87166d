#include "core/model/job_spec_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace takt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

JobSpec sound() {
  JobSpec spec;
  spec.name = "train";
  spec.argv = {"/bin/sh", "-c", "python3 train.py"};
  spec.command_text = "python3 train.py";
  spec.workdir = "/home/bob";
  return spec;
}

// Breaks a sound spec and gives the fields that are then complained about.
std::vector<std::string> fields_of(const std::function<void(JobSpec&)>& spoil) {
  JobSpec spec = sound();
  spoil(spec);
  std::vector<std::string> fields;
  for (const SpecProblem& problem : spec_problems(spec, Limits{})) fields.push_back(problem.field);
  return fields;
}

TEST(SpecRules, ASoundSpecHasNoProblems) {
  EXPECT_THAT(spec_problems(sound(), Limits{}), IsEmpty());
  EXPECT_TRUE(validate(sound(), Limits{}).has_value());
}

TEST(SpecRules, SoundVariationsHaveNoProblems) {
  const std::vector<std::function<void(JobSpec&)>> variations = {
      [](JobSpec& s) { s.gpus.count = 0; },
      [](JobSpec& s) { s.gpus.count = 8, s.gpus.link = LinkNeed::nvlink; },
      [](JobSpec& s) { s.gpus.count = 2, s.gpus.memory = gibibytes(60), s.gpus.types = {"h100"}; },
      [](JobSpec& s) { s.gpus.memory = gibibytes(12), s.gpus.compute_percent = 100; },
      [](JobSpec& s) { s.gpus.memory = gibibytes(120), s.gpus.distributed = true; },
      [](JobSpec& s) { s.gpus.from_profile = true, s.gpus.types = {"a100"}; },
      [](JobSpec& s) { s.tier = Tier::serving, s.replicas = 4; },
      [](JobSpec& s) { s.isolation = Isolation::strict; },
      [](JobSpec& s) { s.isolation = Isolation::watched, s.tier = Tier::batch; },
      [](JobSpec& s) { s.deadline = "07:00"; },
      [](JobSpec& s) { s.deadline = "2026-01-31T07:00:00Z"; },
      [](JobSpec& s) { s.deadline = "2026-01-31T07:00+02:00"; },
      [](JobSpec& s) { s.time = hours(1), s.kill_after = hours(1); },
      [](JobSpec& s) {
        s.retry = {{RetryCause::oom, RetryCause::failed}, 3};
      },
      [](JobSpec& s) {
        s.env = {{"A", "1", false}, {"_B", "", true}};
      },
      [](JobSpec& s) {
        s.array = {{"seed", {"0", "1"}}};
      },
      [](JobSpec& s) { s.name = ""; },
      [](JobSpec& s) { s.min_speed = 0.8; },
  };
  for (std::size_t i = 0; i < variations.size(); ++i)
    EXPECT_THAT(fields_of(variations[i]), IsEmpty()) << "variation " << i;
}

TEST(SpecRules, EachBrokenRuleIsNamedByItsField) {
  const std::vector<std::pair<std::string, std::function<void(JobSpec&)>>> broken = {
      {"name", [](JobSpec& s) { s.name = "a b"; }},
      {"name", [](JobSpec& s) { s.name = "-rf"; }},
      {"name", [](JobSpec& s) { s.name = "../x"; }},
      {"name", [](JobSpec& s) { s.name = std::string(129, 'a'); }},
      {"run", [](JobSpec& s) { s.argv.clear(); }},
      {"run", [](JobSpec& s) { s.argv = {""}; }},
      {"run",
       [](JobSpec& s) {
         s.argv = {"echo", std::string("a\0b", 3)};
       }},
      {"run",
       [](JobSpec& s) {
         s.argv = {"echo", std::string(131'072, 'x')};
       }},
      {"workdir", [](JobSpec& s) { s.workdir = "relative"; }},
      {"gpus.count", [](JobSpec& s) { s.gpus.count = -1; }},
      {"gpus.count", [](JobSpec& s) { s.gpus.count = 1'000'000; }},
      {"gpus.memory", [](JobSpec& s) { s.gpus.memory = Bytes{0}; }},
      {"gpus.compute",
       [](JobSpec& s) { s.gpus.memory = gibibytes(1), s.gpus.compute_percent = 0; }},
      {"gpus.compute",
       [](JobSpec& s) {
         s.gpus.count = 1, s.gpus.memory = gibibytes(1), s.gpus.compute_percent = 30;
       }},
      {"gpus.compute", [](JobSpec& s) { s.gpus.compute_percent = 30; }},
      {"gpus.distributed", [](JobSpec& s) { s.gpus.distributed = true; }},
      {"gpus.distributed",
       [](JobSpec& s) {
         s.gpus.count = 2, s.gpus.memory = gibibytes(1), s.gpus.distributed = true;
       }},
      {"gpus", [](JobSpec& s) { s.gpus.from_profile = true, s.gpus.count = 1; }},
      {"gpus", [](JobSpec& s) { s.gpus.count = 0, s.gpus.types = {"h100"}; }},
      {"gpus.link", [](JobSpec& s) { s.gpus.count = 1, s.gpus.link = LinkNeed::nvlink; }},
      {"gpus.type", [](JobSpec& s) { s.gpus.types = {"h100"}; }},
      {"gpus.type", [](JobSpec& s) { s.gpus.count = 1, s.gpus.types = {"h100;rm"}; }},
      {"gpus.type",
       [](JobSpec& s) {
         s.gpus.count = 1, s.gpus.types = {"h100", "h100"};
       }},
      {"nodes", [](JobSpec& s) { s.nodes = 2; }},
      {"nodes", [](JobSpec& s) { s.nodes = 0; }},
      {"isolation", [](JobSpec& s) { s.isolation = Isolation::limited; }},
      {"isolation", [](JobSpec& s) { s.isolation = Isolation::watched, s.tier = Tier::serving; }},
      {"cpus", [](JobSpec& s) { s.cpus = -1; }},
      {"memory", [](JobSpec& s) { s.memory = Bytes{-1}; }},
      {"time", [](JobSpec& s) { s.time = Duration{0}; }},
      {"time", [](JobSpec& s) { s.time = hours(24 * 4000); }},
      {"kill_after", [](JobSpec& s) { s.kill_after = minutes(1), s.time = hours(1); }},
      {"deadline", [](JobSpec& s) { s.deadline = "25:00"; }},
      {"deadline", [](JobSpec& s) { s.deadline = "7am"; }},
      {"deadline", [](JobSpec& s) { s.deadline = "2026-13-01T07:00Z"; }},
      {"deadline", [](JobSpec& s) { s.deadline = "2026-01-31T07:00"; }},
      {"deadline", [](JobSpec& s) { s.deadline = "2026-01-31T07:00:"; }},
      {"slo", [](JobSpec& s) { s.slo = ServiceLevel{}; }},
      {"slo.ttft_p95",
       [](JobSpec& s) {
         s.slo = ServiceLevel{Duration{-1}, {}, {}};
       }},
      {"min_speed", [](JobSpec& s) { s.min_speed = 0; }},
      {"min_speed", [](JobSpec& s) { s.min_speed = std::numeric_limits<double>::quiet_NaN(); }},
      {"checkpoint.signal",
       [](JobSpec& s) {
         s.checkpoint = CheckpointSpec{"KILL", seconds(1)};
       }},
      {"checkpoint.grace",
       [](JobSpec& s) {
         s.checkpoint = CheckpointSpec{"USR1", seconds(0)};
       }},
      {"retry.on", [](JobSpec& s) { s.retry.max = 1; }},
      {"retry.max", [](JobSpec& s) { s.retry.on = {RetryCause::oom}; }},
      {"retry.on",
       [](JobSpec& s) {
         s.retry = {{RetryCause::oom, RetryCause::oom}, 1};
       }},
      {"env",
       [](JobSpec& s) {
         s.env = {{"1A", "", false}};
       }},
      {"env",
       [](JobSpec& s) {
         s.env = {{"", "", false}};
       }},
      {"env.A",
       [](JobSpec& s) {
         s.env = {{"A", "1", false}, {"A", "2", false}};
       }},
      {"env.A",
       [](JobSpec& s) {
         s.env = {{"A", std::string(1, '\0'), false}};
       }},
      {"replicas", [](JobSpec& s) { s.replicas = 2; }},
      {"replicas", [](JobSpec& s) { s.replicas = 0; }},
      {"replicas", [](JobSpec& s) { s.tier = Tier::serving, s.replicas = 65; }},
      {"array",
       [](JobSpec& s) {
         s.tier = Tier::serving, s.replicas = 2, s.array = {{"a", {"1"}}};
       }},
      {"array",
       [](JobSpec& s) {
         s.array = {{"learning rate", {"1"}}};
       }},
      {"array.a",
       [](JobSpec& s) {
         s.array = {{"a", {}}};
       }},
      {"array",
       [](JobSpec& s) {
         s.array = {{"a", std::vector<std::string>(101, "1")},
                    {"b", std::vector<std::string>(100, "1")}};
       }},
  };
  for (std::size_t i = 0; i < broken.size(); ++i)
    EXPECT_THAT(fields_of(broken[i].second), ElementsAre(broken[i].first)) << "case " << i;
}

TEST(SpecRules, AllProblemsAreToldAtOnce) {
  JobSpec spec = sound();
  spec.nodes = 4;
  spec.gpus.count = -3;
  spec.min_speed = -1;
  const auto result = validate(spec, Limits{});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().kind, ErrorKind::invalid);
  EXPECT_EQ(result.error().message,
            "gpus.count: '-3' is not a number of GPUs; expected 0 to 65536\n"
            "nodes: this version of takt cannot run a job on more than one node yet; remove the "
            "field or use nodes: 1\n"
            "min_speed: '-1' is out of range; expected a number above 0, at most 100: the speed as "
            "a multiple of the "
            "reference type's");
}

TEST(SpecRules, ValuesOfTheEnvironmentAreNeverInAMessage) {
  JobSpec spec = sound();
  spec.env = {{"A=hunter2", "hunter2", true}, {"B", std::string("hunter2\0", 8), true}};
  const auto result = validate(spec, Limits{});
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, Not(HasSubstr("hunter2")));
  EXPECT_THAT(result.error().message, HasSubstr("'A...'"));
}

TEST(SpecRules, TheLimitsAreThePolicys) {
  Limits limits;
  limits.environment_bytes_max = 10;
  limits.array_tasks_max = 2;
  JobSpec spec = sound();
  spec.env = {{"ABC", "1234567", false}};
  spec.array = {{"a", {"1", "2", "3"}}};
  const auto problems = spec_problems(spec, limits);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].sentence,
            "the environment has 12 bytes; at most 10 are accepted (policy "
            "limits.environment_bytes_max)");
  EXPECT_EQ(
      problems[1].sentence,
      "has 3 tasks; at most 2 are accepted in one submission (policy limits.array_tasks_max)");
}

TEST(SpecWarnings, NameWhatIsRecordedButNotUsed) {
  JobSpec spec = sound();
  EXPECT_THAT(spec_warnings(spec), IsEmpty());
  spec.slo = ServiceLevel{seconds(1), {}, {}};
  spec.min_speed = 0.5;
  spec.deadline = "07:00";
  spec.checkpoint = CheckpointSpec{};
  EXPECT_THAT(spec_warnings(spec), ElementsAre(HasSubstr("slo:"), HasSubstr("min_speed:"),
                                               HasSubstr("deadline:"), HasSubstr("checkpoint:")));
}

TEST(DefaultName, IsTheProgramsFileName) {
  const auto of_text = [](const char* text) { return default_name({"/bin/sh", "-c", text}, text); };
  EXPECT_EQ(of_text("torchrun --nproc 2 train.py"), "torchrun");
  EXPECT_EQ(of_text("  /opt/bin/python3 x.py"), "python3");
  EXPECT_EQ(of_text("A=1 B='x' exec env C=2 ./serve --port 1"), "serve");
  EXPECT_EQ(of_text("\"$HOME/bin/run me\""), "run");
  EXPECT_EQ(of_text(""), "job");
  EXPECT_EQ(of_text("$()"), "job");
  EXPECT_EQ(default_name({"/usr/bin/nvidia-smi", "-L"}, ""), "nvidia-smi");
  EXPECT_EQ(default_name({}, "vllm serve"), "vllm");
  EXPECT_EQ(default_name({"---"}, ""), "job");
  EXPECT_EQ(default_name({std::string(500, 'a')}, "").size(), 128u);
}

TEST(JobCount, IsTheProductOfTheArrayOrTheReplicas) {
  JobSpec spec;
  EXPECT_EQ(job_count(spec), 1);
  spec.replicas = 3;
  EXPECT_EQ(job_count(spec), 3);
  spec.array = {{"a", {"1", "2"}}, {"b", {"1", "2", "3"}}};
  EXPECT_EQ(job_count(spec), 6);
  spec.array["c"] = {};
  EXPECT_EQ(job_count(spec), 0);
  spec.array.clear();
  for (char c = 'a'; c <= 'z'; ++c)
    spec.array[std::string(1, c)] = std::vector<std::string>(1000, "x");
  EXPECT_EQ(job_count(spec), std::numeric_limits<std::int64_t>::max());
}

TEST(ExpandRange, ExpandsRangesAndLeavesTheRest) {
  EXPECT_THAT(*expand_range("0-4", 100), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_THAT(*expand_range("0-10:5", 100), ElementsAre("0", "5", "10"));
  EXPECT_THAT(*expand_range("0-9:5", 100), ElementsAre("0", "5"));
  EXPECT_THAT(*expand_range("7-7", 100), ElementsAre("7"));
  for (const char* text : {"1e-4", "3", "a-b", "-1-4", "1-", "1-2-3", "1-2:", "1-2:x", "2026-01-31",
                           "", "-", "99999999999999999999-1"})
    EXPECT_THAT(*expand_range(text, 100), ElementsAre(text));
}

TEST(ExpandRange, RefusesImpossibleOnes) {
  EXPECT_EQ(expand_range("4-0", 100).error().message,
            "'4-0' runs backwards; expected the smaller number first");
  EXPECT_EQ(expand_range("0-4:0", 100).error().message, "'0-4:0' has a step of 0");
  EXPECT_EQ(expand_range("0-100", 100).error().message, "'0-100' has more than 100 values");
  EXPECT_EQ(expand_range("0-99", 100)->size(), 100u);
  EXPECT_EQ(expand_range("0-9223372036854775807:9223372036854775807", 100)->size(), 2u);
  EXPECT_FALSE(expand_range("0-9223372036854775807", 10'000).has_value());
}

}  // namespace
}  // namespace takt
