#include "core/insight/attempt_meter.h"

#include <gtest/gtest.h>

#include <limits>

#include "fixtures.h"

namespace takt::insight {
namespace {

using namespace testing;  // NOLINT

// A whole GPU on which the attempt's process holds `memory` with GPM telling `sm`.
Gpu working(Bytes memory, double sm, const std::string& uuid = "GPU-a") {
  Gpu g = gpu(uuid);
  g.memory_used = memory + mebibytes(4);
  g.sm_active_ratio = sm;
  g.tensor_active_ratio = sm / 2;
  g.utilization_percent = 99;
  g.processes = std::vector<GpuProcess>{process(attempt_id(7), memory, static_cast<int>(sm * 100))};
  return g;
}

// By hand: 4, 8 and 6 GiB a second each: peak 8, mean 6. SM 0.2, 0.8, 0.5: mean 0.5, max 0.8.
// Three reports cover three of the four seconds.
TEST(AttemptMeter, GoldenOfThreeReportsOnAWholeGpu) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  meter.observe(node(working(gibibytes(4), 0.2)), at(1));
  meter.observe(node(working(gibibytes(8), 0.8)), at(2));
  meter.observe(node(working(gibibytes(6), 0.5)), at(3));
  const AttemptMeasurement m = meter.measurement(at(4), true);
  EXPECT_TRUE(m.ended);
  EXPECT_EQ(m.user, "alice");
  EXPECT_EQ(m.waited, seconds(10));
  EXPECT_EQ(m.ran, seconds(4));
  EXPECT_EQ(m.devices, 1);
  EXPECT_EQ(m.granted_memory, gibibytes(80));
  EXPECT_EQ(m.memory_peak.value(), gibibytes(8));
  EXPECT_EQ(m.memory_mean.value(), gibibytes(6));
  EXPECT_FALSE(m.memory_of_device);
  EXPECT_DOUBLE_EQ(m.memory_coverage, 0.75);
  EXPECT_EQ(m.busy_source, BusySource::gpm);
  EXPECT_NEAR(m.quantiles.at("busy").mean, 0.5, 1e-12);
  EXPECT_NEAR(m.quantiles.at("sm_active").p50, 0.5, 0.006);
  EXPECT_EQ(m.quantiles.at("busy").max, 0.8);
  EXPECT_NEAR(m.quantiles.at("tensor_active").mean, 0.25, 1e-12);
  EXPECT_EQ(m.samples, 3);
  EXPECT_DOUBLE_EQ(m.coverage, 0.75);
  EXPECT_DOUBLE_EQ(m.gpu_seconds, 4);
  EXPECT_EQ(m.first_sample, at(1));
  EXPECT_EQ(m.last_sample, at(3));
  EXPECT_TRUE(m.missing_samples.empty());
}

TEST(AttemptMeter, WithoutReportsKnowsNothingInsteadOfZero) {
  const AttemptMeasurement m = AttemptMeter(subject({whole("GPU-a")})).measurement(at(60), true);
  EXPECT_FALSE(m.memory_peak.has_value());
  EXPECT_FALSE(m.memory_mean.has_value());
  EXPECT_TRUE(m.quantiles.empty());
  EXPECT_EQ(m.busy_source, BusySource::none);
  EXPECT_EQ(m.coverage, 0);
  EXPECT_TRUE(m.attributable);
}

TEST(AttemptMeter, WithoutGpusOnlyCountsTime) {
  const AttemptMeasurement m = AttemptMeter(subject({})).measurement(at(60), true);
  EXPECT_EQ(m.devices, 0);
  EXPECT_FALSE(m.granted_memory.has_value());
  EXPECT_EQ(m.gpu_seconds, 0);
  EXPECT_EQ(m.coverage, 0);
}

TEST(AttemptMeter, IgnoresReportsThatAreNotItsOwnTimeOrNode) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  const Node n = node(working(gibibytes(4), 0.5));
  Node elsewhere = n;
  elsewhere.id = NodeId("n2");
  meter.observe(n, t0 - seconds(1));
  meter.observe(elsewhere, at(1));
  meter.observe(n, at(2));
  meter.observe(node(working(gibibytes(50), 1)), at(2));  // again
  meter.observe(node(working(gibibytes(50), 1)), at(1));  // late
  meter.end(at(3));
  meter.observe(node(working(gibibytes(50), 1)), at(4));  // after the end
  const AttemptMeasurement m = meter.measurement(at(5), true);
  EXPECT_EQ(m.samples, 1);
  EXPECT_EQ(m.memory_peak.value(), gibibytes(4));
  EXPECT_EQ(m.ran, seconds(3));
}

TEST(AttemptMeter, TakesBackTheReportThatCameWithTheNewsOfTheEnd) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  meter.observe(node(working(gibibytes(4), 0.5)), at(1));
  Gpu after = gpu("GPU-a");
  after.sm_active_ratio = 0.0;
  meter.observe(node(after), at(3));
  EXPECT_EQ(meter.measurement(at(3), false).samples, 2);  // the end is not known yet
  meter.end(at(2));
  const AttemptMeasurement m = meter.measurement(at(2), true);
  EXPECT_EQ(m.samples, 1);
  EXPECT_EQ(m.quantiles.at("busy").mean, 0.5);
  EXPECT_EQ(m.memory_mean.value(), gibibytes(4));
  EXPECT_DOUBLE_EQ(m.coverage, 0.5);
}

TEST(AttemptMeter, CountsAGapAsMissingAndNotAsIdle) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  for (int s = 1; s <= 5; ++s) meter.observe(node(working(gibibytes(4), 0.5)), at(s));
  meter.observe(node(working(gibibytes(4), 0.5)), at(15));
  for (int s = 16; s <= 20; ++s) meter.observe(node(working(gibibytes(4), 0.5)), at(s));
  const AttemptMeasurement m = meter.measurement(at(20), false);
  EXPECT_EQ(m.missing_samples.at("no report"), 9);
  EXPECT_DOUBLE_EQ(m.coverage, 0.5);  // 10 of 20 s
  EXPECT_NEAR(m.quantiles.at("busy").mean, 0.5, 1e-12);
  EXPECT_EQ(m.samples, 11);
}

TEST(AttemptMeter, LearnsTheUsualIntervalSoThatASlowAgentHasNoGaps) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  for (int s = 10; s <= 200; s += 10) meter.observe(node(working(gibibytes(4), 0.5)), at(s));
  const AttemptMeasurement m = meter.measurement(at(200), false);
  // Until three intervals are known the expected one second holds: four reports are gaps.
  EXPECT_DOUBLE_EQ(m.coverage, 160.0 / 200);
}

// FACTS C6 67 and 68.
TEST(AttemptMeter, AOneSampleSpikeOf10000Survives) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  for (int s = 1; s <= 10'000; ++s)
    meter.observe(node(working(s == 5'000 ? gibibytes(70) : gibibytes(5), 0.5)), at(s));
  const AttemptMeasurement m = meter.measurement(at(10'000), true);
  EXPECT_EQ(m.memory_peak.value(), gibibytes(70));
  EXPECT_NEAR(static_cast<double>(m.memory_mean->value), 5.0065 * 1024 * 1024 * 1024, 1e6);
}

TEST(AttemptMeter, ASpikeRightAfterAGapSurvivesToo) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  meter.observe(node(working(gibibytes(5), 0.5)), at(1));
  meter.observe(node(working(gibibytes(70), 0.5)), at(100));
  EXPECT_EQ(meter.measurement(at(100), true).memory_peak.value(), gibibytes(70));
}

TEST(AttemptMeter, SumsTheProcessesOfOneDeviceAndTakesTheLargestDevice) {
  AttemptMeter meter(subject({whole("GPU-a"), whole("GPU-b")}));
  Gpu a = working(gibibytes(3), 0.5, "GPU-a");
  a.processes->push_back(process(attempt_id(7), gibibytes(4), 10));
  meter.observe(node({a, working(gibibytes(6), 0.5, "GPU-b")}), at(1));
  const AttemptMeasurement m = meter.measurement(at(1), true);
  EXPECT_EQ(m.memory_peak.value(), gibibytes(7));
  EXPECT_EQ(m.samples, 2);
  EXPECT_EQ(m.memory_coverage, 1);
  EXPECT_EQ(m.gpu_seconds, 2);
}

TEST(AttemptMeter, MemoryIsMissingIfThatOfOneOfItsProcessesOnAShareIs) {
  AttemptMeter meter(subject({share("GPU-a", gibibytes(10))}));
  Gpu a = gpu("GPU-a");
  a.processes =
      std::vector<GpuProcess>{process(attempt_id(7), gibibytes(3), 10),
                              process(attempt_id(7), missing(MissingKind::not_permitted), 10)};
  meter.observe(node(a), at(1));
  const AttemptMeasurement m = meter.measurement(at(1), true);
  EXPECT_FALSE(m.memory_peak.has_value());
  EXPECT_EQ(m.memory_coverage, 0);
  EXPECT_EQ(missing_count(m, "memory: "), 1);
}

TEST(AttemptMeter, AWholeGpuStandsInForItsProcessesAndSaysSo) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  Gpu a = gpu("GPU-a");
  a.memory_used = gibibytes(12);
  a.processes = missing(MissingKind::not_permitted);
  meter.observe(node(a), at(1));
  const AttemptMeasurement m = meter.measurement(at(1), true);
  EXPECT_EQ(m.memory_peak.value(), gibibytes(12));
  EXPECT_TRUE(m.memory_of_device);
}

TEST(AttemptMeter, ADeviceWithAForeignProcessDoesNotStandIn) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  Gpu a = gpu("GPU-a");
  a.memory_used = gibibytes(40);
  a.sm_active_ratio = 0.9;
  a.utilization_percent = 95;
  a.processes = std::vector<GpuProcess>{process(std::nullopt, gibibytes(40))};
  meter.observe(node(a), at(1));
  const AttemptMeasurement m = meter.measurement(at(1), true);
  EXPECT_FALSE(m.memory_peak.has_value());
  EXPECT_TRUE(m.quantiles.empty());
  EXPECT_EQ(missing_count(m, "somebody else's process"), 2);  // memory and busy
}

TEST(AttemptMeter, ADesktopsDisplayServerDoesNotSpoilTheNumbers) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  Gpu a = working(gibibytes(4), 0.5);
  GpuProcess xorg = process(std::nullopt, mebibytes(300));
  xorg.kind = ProcessKind::graphics;
  a.processes->push_back(xorg);
  meter.observe(node(a), at(1));
  const AttemptMeasurement m = meter.measurement(at(1), true);
  EXPECT_EQ(m.busy_source, BusySource::gpm);
  EXPECT_EQ(m.memory_peak.value(), gibibytes(4));
}

TEST(AttemptMeter, TimeBeforeTheFirstProcessIsZeroMemoryOnceProcessesCanBeSeen) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  Gpu before = gpu("GPU-a");
  before.memory_used = mebibytes(900);  // the driver's own
  meter.observe(node(before), at(1));
  meter.observe(node(working(gibibytes(4), 0.5)), at(2));
  const AttemptMeasurement m = meter.measurement(at(2), true);
  EXPECT_FALSE(m.memory_of_device);
  EXPECT_EQ(m.memory_peak.value(), gibibytes(4));
  EXPECT_EQ(m.memory_mean.value(), gibibytes(2));
}

TEST(AttemptMeter, FallsDownTheLadderAndNamesTheRung) {
  const auto rung = [](Gpu g) {
    AttemptMeter meter(subject({whole("GPU-a")}));
    meter.observe(node(std::move(g)), at(1));
    return meter.measurement(at(1), true);
  };
  Gpu g = working(gibibytes(4), 0.5);
  EXPECT_EQ(rung(g).busy_source, BusySource::gpm);
  g.sm_active_ratio = missing(MissingKind::not_supported);
  g.processes->front().sm_percent = 40;
  AttemptMeasurement m = rung(g);
  EXPECT_EQ(m.busy_source, BusySource::process);
  EXPECT_NEAR(m.quantiles.at("busy").mean, 0.40, 1e-12);
  EXPECT_FALSE(m.quantiles.contains("sm_active"));
  g.processes->front().sm_percent = missing(MissingKind::not_supported);
  m = rung(g);
  EXPECT_EQ(m.busy_source, BusySource::gpu_util);
  EXPECT_NEAR(m.quantiles.at("busy").mean, 0.99, 1e-12);
  g.utilization_percent = missing(MissingKind::timed_out);
  m = rung(g);
  EXPECT_EQ(m.busy_source, BusySource::none);
  EXPECT_TRUE(m.attributable);
  EXPECT_EQ(m.missing_samples.at("busy: the device did not answer in time"), 1);
}

TEST(AttemptMeter, NeverMixesTwoRungsInOneSketch) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  Gpu blind = working(gibibytes(4), 0.2);
  blind.sm_active_ratio = missing(MissingKind::timed_out);
  blind.processes->front().sm_percent = missing(MissingKind::not_supported);
  meter.observe(node(blind), at(1));
  for (int s = 2; s <= 4; ++s) {
    Gpu g = working(gibibytes(4), 0.2);
    g.processes->front().sm_percent = missing(MissingKind::not_supported);
    meter.observe(node(g), at(s));
  }
  const AttemptMeasurement m = meter.measurement(at(4), true);
  EXPECT_EQ(m.busy_source, BusySource::gpm);
  EXPECT_EQ(m.quantiles.at("busy").samples, 3);
  EXPECT_EQ(m.quantiles.at("busy").max, 0.2);
  EXPECT_DOUBLE_EQ(m.coverage, 0.75);
}

TEST(AttemptMeter, AnEmptyProcessListIsNotIdlenessWhereProcessesAreNeverSeen) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  Gpu g = gpu("GPU-a");  // a container's view: nobody in the list, the GPU works
  g.memory_used = gibibytes(30);
  g.utilization_percent = 97;
  for (int s = 1; s <= 3; ++s) meter.observe(node(g), at(s));
  const AttemptMeasurement m = meter.measurement(at(3), true);
  EXPECT_EQ(m.busy_source, BusySource::gpu_util);
  EXPECT_NEAR(m.quantiles.at("busy").mean, 0.97, 1e-12);
  EXPECT_EQ(m.memory_peak.value(), gibibytes(30));
  EXPECT_TRUE(m.memory_of_device);
}

// FACTS C1 8.
TEST(AttemptMeter, ZeroAtThreeHundredWattsWithAProcessIsSuspect) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  Gpu g = working(gibibytes(4), 0.0);
  g.utilization_percent = 0;
  g.power_watts = 300.0;
  meter.observe(node(g), at(1));
  const AttemptMeasurement m = meter.measurement(at(1), true);
  EXPECT_TRUE(m.quantiles.empty() || !m.quantiles.contains("busy"));
  EXPECT_EQ(m.samples, 0);
  EXPECT_EQ(missing_count(m, "suspect"), 1);
  EXPECT_EQ(m.devices_unused, 0);
}

TEST(AttemptMeter, ZeroAtIdlePowerIsIdle) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  Gpu g = working(gibibytes(4), 0.0);
  g.power_watts = 90.0;
  meter.observe(node(g), at(1));
  const AttemptMeasurement m = meter.measurement(at(1), true);
  EXPECT_EQ(m.quantiles.at("busy").max, 0);
  EXPECT_EQ(m.idle_held_samples, 1);
}

// FACTS C1 4 and 5.
TEST(AttemptMeter, ImpossibleValuesAreMissingAndCounted) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  Gpu g = working(gibibytes(4), 0.5);
  g.sm_active_ratio = 1.3;
  g.utilization_percent = std::numeric_limits<int>::max();
  g.processes->front().sm_percent = 101;
  meter.observe(node(g), at(1));
  g.sm_active_ratio = std::numeric_limits<double>::quiet_NaN();
  meter.observe(node(g), at(2));
  const AttemptMeasurement m = meter.measurement(at(2), true);
  EXPECT_FALSE(m.quantiles.contains("busy"));
  EXPECT_EQ(missing_count(m, "impossible value"), 2);
}

TEST(AttemptMeter, AProcessListThatHoldsMoreThanTheDeviceTellsNothing) {
  AttemptMeter meter(subject({share("GPU-a", gibibytes(10))}));
  Gpu g = gpu("GPU-a");
  g.processes = std::vector<GpuProcess>{process(attempt_id(7), gibibytes(60), 10),
                                        process(attempt_id(8), gibibytes(60), 10)};
  meter.observe(node(g), at(1));
  EXPECT_FALSE(meter.measurement(at(1), true).memory_peak.has_value());
}

TEST(AttemptMeter, ADeviceThatLeavesTheReportIsMissingAndNotIdle) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  meter.observe(node(working(gibibytes(4), 0.5)), at(1));
  meter.observe(node(gpu("GPU-other")), at(2));
  const AttemptMeasurement m = meter.measurement(at(2), true);
  EXPECT_DOUBLE_EQ(m.coverage, 0.5);
  EXPECT_EQ(missing_count(m, "not in the report"), 2);
  EXPECT_EQ(m.quantiles.at("busy").mean, 0.5);
}

TEST(AttemptMeter, CountsBurstsAndIdlenessWithMemoryHeld) {
  AttemptMeter meter(subject({whole("GPU-a")}));
  int s = 0;
  for (double sm : {0.0, 0.9, 0.0, 0.0, 0.9, 0.9, 0.0})
    meter.observe(node(working(gibibytes(4), sm)), at(++s));
  const AttemptMeasurement m = meter.measurement(at(s), true);
  EXPECT_EQ(m.bursts, 2);
  EXPECT_EQ(m.idle_held_samples, 4);
}

TEST(AttemptMeter, NamesTheGpusOfAGangThatNeverComputed) {
  AttemptMeter meter(subject({whole("GPU-a"), whole("GPU-b"), whole("GPU-c")}));
  for (int s = 1; s <= 10; ++s) {
    Gpu c = working(gibibytes(2), s == 7 ? 0.3 : 0.0, "GPU-c");  // one sample of use is use
    meter.observe(node({working(gibibytes(4), 0.8), working(gibibytes(2), 0.0, "GPU-b"), c}),
                  at(s));
  }
  EXPECT_EQ(meter.measurement(at(10), true).devices_unused, 1);
}

TEST(AttemptMeter, DoesNotCallADeviceUnusedThatItHardlySaw) {
  AttemptMeter meter(subject({whole("GPU-a"), whole("GPU-b")}));
  for (int s = 1; s <= 4; ++s)
    meter.observe(node({working(gibibytes(4), 0.8), working(gibibytes(2), 0.0, "GPU-b")}), at(s));
  EXPECT_EQ(meter.measurement(at(4), true).devices_unused, 1);
  EXPECT_EQ(meter.measurement(at(40), true).devices_unused, 0);  // 4 of 40 s seen
}

}  // namespace
}  // namespace takt::insight
