// Scenarios of the fault simulator as files.
#include "edge/codec/scenario_yaml.h"

#include <gmock/gmock.h>

namespace takt::codec {
namespace {

using ::testing::HasSubstr;

std::string refusal(const std::string& text) {
  const auto scenario = parse_scenario_yaml(text, "s.yaml");
  return scenario ? "read" : scenario.error().message;
}

TEST(ScenarioFiles, ComeBackAsTheyWereWritten) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const replay::Scenario scenario = replay::scenario_of(seed, 700);
    const auto back = parse_scenario_yaml(scenario_to_yaml(scenario), "s.yaml");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, scenario);
  }
}

TEST(ScenarioFiles, AreRefusedWithThePlaceAndWhatWasExpected) {
  EXPECT_THAT(refusal("seed: -1\n"), HasSubstr("s.yaml: line 1: seed: "));
  EXPECT_THAT(refusal("steps: many\n"), HasSubstr("line 1: steps: "));
  EXPECT_THAT(refusal("engine: steam\n"), HasSubstr("line 1: engine: "));
  EXPECT_THAT(refusal("seed: 3\nnodes: 99\n"), HasSubstr("line 2: nodes: "));
  EXPECT_THAT(refusal("seed: 3\nfaults: [rain]\n"),
              HasSubstr("line 2: faults: there is no 'rain': `takt simulate --list` names all"));
  EXPECT_THAT(refusal("weather: bad\n"), HasSubstr("line 1: weather"));
  EXPECT_THAT(refusal("[1, 2"), HasSubstr("s.yaml: line 1"));
  EXPECT_THAT(refusal("- 1\n"), HasSubstr("expected fields such as seed: 17"));
}

}  // namespace
}  // namespace takt::codec
