// Who gets which number on devices that are shared or partitioned: FACTS C1 and C2.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "core/insight/attempt_meter.h"
#include "fixtures.h"

namespace takt::insight {
namespace {

using namespace testing;  // NOLINT

AttemptMeasurement measure(const Gpu& g, const DeviceGrant& device, std::uint64_t job) {
  AttemptMeter meter(subject({device}, attempt_id(job)));
  meter.observe(node(g), at(1));
  return meter.measurement(at(1), true);
}

// C2 26: the sum is 1.0, not 2.0.
TEST(Attribution, TwoSharesOfOneGpuSplitItByTheirProcesses) {
  Gpu g = gpu("GPU-a");
  g.utilization_percent = 100;
  g.sm_active_ratio = 1.0;
  g.processes = std::vector<GpuProcess>{process(attempt_id(1), gibibytes(10), 70),
                                        process(attempt_id(2), gibibytes(20), 30)};
  const auto one = measure(g, share("GPU-a", gibibytes(40)), 1);
  const auto two = measure(g, share("GPU-a", gibibytes(40)), 2);
  EXPECT_EQ(one.busy_source, BusySource::process);
  EXPECT_NEAR(one.quantiles.at("busy").mean, 0.7, 1e-12);
  EXPECT_NEAR(two.quantiles.at("busy").mean, 0.3, 1e-12);
  EXPECT_EQ(one.memory_peak.value(), gibibytes(10));
  EXPECT_EQ(two.memory_peak.value(), gibibytes(20));
  EXPECT_FALSE(one.quantiles.contains("sm_active"));  // the whole GPU's is never copied
}

TEST(Attribution, AShareWithoutProcessNumbersIsNotAttributable) {
  Gpu g = gpu("GPU-a");
  g.utilization_percent = 100;
  g.sm_active_ratio = 0.9;
  g.processes = std::vector<GpuProcess>{process(attempt_id(1), gibibytes(10))};
  const auto m = measure(g, share("GPU-a", gibibytes(40)), 1);
  EXPECT_FALSE(m.attributable);
  EXPECT_EQ(m.busy_source, BusySource::none);
  EXPECT_TRUE(m.quantiles.empty());
  EXPECT_EQ(missing_count(m, "shared, not attributable"), 1);
  EXPECT_EQ(m.memory_peak.value(), gibibytes(10));  // memory is told per process
}

Gpu with_mig() {
  Gpu g = gpu("GPU-a");
  g.mig.enabled = true;
  g.utilization_percent = 0;  // as old drivers say
  g.memory_used = gibibytes(30);
  for (const char* name : {"MIG-1", "MIG-2"}) {
    MigInstance i;
    i.uuid = DeviceUuid(name);
    i.memory_total = gibibytes(10);
    i.memory_used = gibibytes(name[4] == '1' ? 6 : 2);
    g.mig.instances.push_back(i);
  }
  return g;
}

// C1 1: GPU_UTIL on MIG is not 0 %, it is not valid.
TEST(Attribution, GpuUtilOfAParentIsNotValidOnItsMigInstance) {
  Gpu g = with_mig();
  g.processes = missing(MissingKind::not_permitted);
  const auto m = measure(g, instance("MIG-1", "GPU-a", gibibytes(10)), 1);
  EXPECT_EQ(m.busy_source, BusySource::none);
  EXPECT_FALSE(m.attributable);
  EXPECT_EQ(missing_count(m, "GPU_UTIL is not valid"), 1);
}

// C1 16: the instance's own handle, or unknown; never the parent's number.
TEST(Attribution, MemoryOfAMigInstanceIsItsOwnAndNeverTheParents) {
  Gpu g = with_mig();
  g.processes = missing(MissingKind::not_permitted);
  auto m = measure(g, instance("MIG-1", "GPU-a", gibibytes(10)), 1);
  EXPECT_EQ(m.memory_peak.value(), gibibytes(6));
  EXPECT_TRUE(m.memory_of_device);
  g.mig.instances[0].memory_used = missing(MissingKind::not_supported);
  m = measure(g, instance("MIG-1", "GPU-a", gibibytes(10)), 1);
  EXPECT_FALSE(m.memory_peak.has_value());
  m = measure(g, instance("MIG-9", "GPU-a", gibibytes(10)), 1);
  EXPECT_FALSE(m.memory_peak.has_value());
}

TEST(Attribution, ProcessesOfANeighbouringInstanceAreNotCounted) {
  Gpu g = with_mig();
  GpuProcess mine = process(attempt_id(1), gibibytes(5));
  mine.mig_instance = DeviceUuid("MIG-1");
  GpuProcess other = process(attempt_id(2), gibibytes(2));
  other.mig_instance = DeviceUuid("MIG-2");
  g.processes = std::vector<GpuProcess>{mine, other};
  EXPECT_EQ(measure(g, instance("MIG-1", "GPU-a", gibibytes(10)), 1).memory_peak.value(),
            gibibytes(5));
  EXPECT_EQ(measure(g, instance("MIG-2", "GPU-a", gibibytes(10)), 2).memory_peak.value(),
            gibibytes(2));
}

TEST(Attribution, AProcessOfUnknownInstanceIsOursIfWeHaveOnlyOneInstanceThere) {
  Gpu g = with_mig();
  g.processes = std::vector<GpuProcess>{process(attempt_id(1), gibibytes(5))};
  EXPECT_EQ(measure(g, instance("MIG-1", "GPU-a", gibibytes(10)), 1).memory_peak.value(),
            gibibytes(5));
  AttemptMeter two(subject(
      {instance("MIG-1", "GPU-a", gibibytes(10)), instance("MIG-2", "GPU-a", gibibytes(10))},
      attempt_id(1)));
  two.observe(node(g), at(1));
  const auto m = two.measurement(at(1), true);
  EXPECT_TRUE(m.memory_of_device);  // cannot be placed: the instances' own numbers stand in
  EXPECT_EQ(m.memory_peak.value(), gibibytes(6));
}

TEST(Attribution, AnAttemptIsNotItsOwnRetry) {
  Gpu g = gpu("GPU-a");
  g.processes = std::vector<GpuProcess>{process(attempt_id(1, 1), gibibytes(5), 50)};
  AttemptMeter second(subject({whole("GPU-a")}, attempt_id(1, 2)));
  second.observe(node(g), at(1));
  EXPECT_FALSE(second.measurement(at(1), true).memory_peak.has_value());
}

// C2 25 and 32: whatever the driver says, the owners of a device together never exceed it.
TEST(Attribution, OwnersTogetherNeverExceedTheDevice) {
  EXPECT_TRUE(rc::check([] {
    const int owners = *rc::gen::inRange(1, 6);
    Gpu g = gpu("GPU-a");
    g.processes = std::vector<GpuProcess>{};
    for (int i = 0; i < owners; ++i) {
      const int processes = *rc::gen::inRange(0, 3);
      for (int p = 0; p < processes; ++p)
        g.processes->push_back(
            process(attempt_id(i + 1), mebibytes(*rc::gen::inRange(0, 60'000)),
                    *rc::gen::oneOf(rc::gen::inRange(0, 101), rc::gen::just(4'000'000))));
    }
    double busy = 0;
    Bytes memory;
    for (int i = 0; i < owners; ++i) {
      const auto m = measure(g, share("GPU-a", gibibytes(80)), i + 1);
      RC_ASSERT(m.coverage >= 0 && m.coverage <= 1);
      RC_ASSERT(m.memory_coverage >= 0 && m.memory_coverage <= 1);
      if (m.quantiles.contains("busy")) busy += m.quantiles.at("busy").max;
      if (m.memory_peak) memory += *m.memory_peak;
    }
    RC_ASSERT(busy <= 1 + 1e-9);
    RC_ASSERT(memory <= *g.memory_total);
  }));
}

// Any sequence of times and values: coverage stays within 0-1 and the mean below the peak.
TEST(Attribution, CoverageAndMeansStayInRangeWhateverArrives) {
  EXPECT_TRUE(rc::check([] {
    AttemptMeter meter(subject({whole("GPU-a")}, attempt_id(1)));
    const int reports = *rc::gen::inRange(0, 40);
    std::int64_t last = 0;
    for (int i = 0; i < reports; ++i) {
      const std::int64_t t = *rc::gen::inRange(-5, 60);
      last = std::max(last, t);
      Gpu g = gpu("GPU-a");
      g.sm_active_ratio = *rc::gen::inRange(-10, 150) / 100.0;
      g.processes =
          std::vector<GpuProcess>{process(attempt_id(1), mebibytes(*rc::gen::inRange(0, 100'000)))};
      meter.observe(node(g), at(t));
    }
    const auto m = meter.measurement(at(*rc::gen::inRange<std::int64_t>(0, 100)), true);
    RC_ASSERT(m.coverage >= 0 && m.coverage <= 1);
    RC_ASSERT(m.memory_coverage >= 0 && m.memory_coverage <= 1);
    if (m.memory_peak) {
      RC_ASSERT(*m.memory_mean <= *m.memory_peak);
      RC_ASSERT(*m.memory_peak <= gibibytes(80));
    }
    for (const auto& [metric, q] : m.quantiles)
      RC_ASSERT(q.p50 <= q.p95 && q.p95 <= q.max && q.max <= 1 && q.mean <= q.max + 1e-12);
  }));
}

}  // namespace
}  // namespace takt::insight
