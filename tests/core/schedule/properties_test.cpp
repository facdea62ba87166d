// What holds of every plan, whatever the cluster and the queue.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <random>

#include "core/schedule/foreign.h"
#include "reading.h"

namespace takt::schedule {

std::string text_of(const Plan& plan) {
  std::string text = fmt::format("version {}\n", plan.version);
  for (const Placement& p : plan.placements) {
    text += fmt::format("{} on {} cpus {} memory {} {} '{}'", to_string(p.job), p.grant.node.value,
                        p.grant.cpus, p.grant.memory.value, to_string(p.grant.isolation),
                        p.grant.domain);
    for (const DeviceGrant& d : p.grant.devices)
      text += fmt::format(" [{} {} {} {} {}]", to_string(d.kind), d.uuid.value, d.gpu.value,
                          d.memory.value, d.compute_percent);
    for (const std::string& sentence : p.decision) text += " | " + sentence;
    text += "\n";
  }
  for (const auto& [id, why] : plan.waiting) {
    text += fmt::format("{} waits, start {} {}\n{}", to_string(id),
                        why->expected_start ? why->expected_start->us : -1,
                        why->expected_start_unknown, text_of(why->blockers));
    for (const std::string& sentence : why->decision) text += " | " + sentence;
  }
  return text;
}

namespace {

using namespace takt::testing;

int pick(int min, int max) { return *rc::gen::inRange(min, max + 1); }

Gpu random_gpu() {
  Gpu g = pick(0, 2) == 0 ? h100() : pick(0, 1) == 0 ? a100() : l40s();
  switch (pick(0, 11)) {
    case 0: return sick(g, GpuHealth::lost, "fell off the bus");
    case 1: return occupied(g, process(pick(1, 9999), "eve", "vllm", gibibytes(pick(1, 30))));
    case 2: return occupied(g, process(1, "root", "Xorg", mebibytes(pick(10, 1000))));
    case 3: g.memory_total = missing(MissingKind::timed_out); return g;
    case 4: g.memory_used = gibibytes(pick(0, 20)); return g;
    case 5: g.processes = missing(MissingKind::not_permitted); return g;
    case 6: g.memory_reserved = mebibytes(pick(0, 900)); return g;
    case 7:
    case 8:
      return with_mig(a100(), {mig("3g.20gb", mebibytes(20'096), 0, 4, 3),
                               mig("2g.10gb", mebibytes(9856), 4, 2, 2),
                               mig("1g.5gb", mebibytes(4864), 6, 1, 1)});
    case 9: g.throttle_reasons = std::vector<std::string>{"hw_thermal_slowdown"}; return g;
    default: return g;
  }
}

JobSpec random_spec() {
  const Tier tier = static_cast<Tier>(pick(0, 3));
  JobSpec s;
  switch (pick(0, 3)) {
    case 0: s = whole_gpus(pick(1, 6), tier); break;
    case 1: s = share_of(gibibytes(pick(1, 50)), tier); break;
    case 2: s = strict_memory(gibibytes(pick(1, 50)), tier); break;
    default: s = job(tier); break;
  }
  if (pick(0, 3) == 0)
    s.gpus.types = {*rc::gen::element<std::string>("h100", "a100", "l40s", "h20")};
  if (pick(0, 5) == 0 && s.gpus.count) s.gpus.link = LinkNeed::nvlink;
  if (pick(0, 3) == 0 && s.gpus.memory) s.gpus.compute_percent = pick(1, 99);
  if (pick(0, 2) == 0) s.cpus = pick(1, 20);
  if (pick(0, 4) == 0) s.memory = gibibytes(pick(1, 300));
  if (pick(0, 1) == 0) s.time = minutes(pick(1, 600));
  s.wait_for_capacity = true;
  return s;
}

Snapshot random_snapshot() {
  std::vector<Node> nodes;
  for (int i = pick(0, 3); i > 0; --i) {
    std::vector<Gpu> gpus;
    for (int g = pick(0, 6); g > 0; --g) gpus.push_back(random_gpu());
    Node n = node_of("n" + std::to_string(i), std::move(gpus), pick(1, 64));
    for (unsigned a = 0; a + 1 < n.gpus.size(); a += 2)
      if (pick(0, 1) == 0) link_nvlink(n, a, a + 1, 12);
    nodes.push_back(std::move(n));
  }
  Snapshot s = snapshot_of_nodes(std::move(nodes));
  for (SeenNode& n : s.nodes) n.reachable = pick(0, 9) != 0;
  for (int i = pick(0, 12); i > 0; --i)
    submit(s, random_spec(), *rc::gen::element<std::string>("alice", "bob", "carol"));
  for (WaitingJob& w : s.waiting)
    if (pick(0, 9) == 0) w.not_before = at(5);
  return s;
}

// A cluster that already runs something: the plan for one queue, applied, and then another queue.
Snapshot random_busy_snapshot() {
  Snapshot s = random_snapshot();
  const Plan first = plan_for(s);
  s = applied(s, first);
  s.waiting.clear();
  for (Holding& h : s.holdings) {
    if (pick(0, 1) == 0) h.expected_end = at(pick(-100, 5000));
    h.attempt = AttemptId{JobId(1000 + h.attempt.job.value), 1};
    h.ended = pick(0, 4) == 0;
  }
  for (int i = pick(1, 12); i > 0; --i)
    submit(s, random_spec(), *rc::gen::element<std::string>("alice", "bob", "carol"));
  return s;
}

const Gpu* gpu_in(const Snapshot& s, const DeviceUuid& uuid) {
  for (const SeenNode& n : s.nodes)
    for (const Gpu& g : n.node.gpus)
      if (g.uuid == uuid) return &g;
  return nullptr;
}

// Once in this room: a plan's devices are on the named node, open, and large enough for all that
// is granted on them beside what others really use.
void assert_grants_are_real(const Snapshot& s, const Plan& plan) {
  const Snapshot after = applied(s, plan);
  RC_ASSERT(overlap(after) == std::nullopt);
  std::map<DeviceUuid, Bytes> shares;
  for (const Holding& h : after.holdings)
    for (const DeviceGrant& d : h.grant.devices)
      if (d.kind == DeviceKind::share) shares[d.gpu] += d.memory;
  for (const Placement& p : plan.placements) {
    for (const DeviceGrant& d : p.grant.devices) {
      const Gpu* g = gpu_in(s, d.gpu);
      RC_ASSERT(g != nullptr);
      RC_ASSERT(g->uuid.value.find(p.grant.node.value) != std::string::npos);
      RC_ASSERT(!closed_because(*g, "gpu", Policy{}));
      if (d.kind != DeviceKind::share) continue;
      Bytes foreign;
      for (const GpuProcess& process : *g->processes)
        if (process.foreign()) foreign += *process.memory;
      RC_ASSERT(shares[d.gpu] + foreign + g->memory_reserved.value_or(Bytes{}) <= *g->memory_total);
    }
  }
  for (const SeenNode& n : after.nodes) {
    int cpus = 0;
    Bytes memory;
    for (const Holding& h : after.holdings) {
      if (h.grant.node != n.node.id) continue;
      cpus += h.grant.cpus;
      memory += h.grant.memory;
    }
    RC_ASSERT(cpus <= n.node.cpus && memory <= n.node.memory);
  }
}

RC_GTEST_PROP(Plans, NeverOverlapAndFitTheRealMemoryOfAnEmptyCluster, ()) {
  const Snapshot s = random_snapshot();
  assert_grants_are_real(s, plan_for(s));
}

RC_GTEST_PROP(Plans, NeverOverlapAndFitTheRealMemoryOfABusyCluster, ()) {
  const Snapshot s = random_busy_snapshot();
  assert_grants_are_real(s, plan_for(s));
}

RC_GTEST_PROP(Plans, PlaceEachJobOnceOrSayWithNumbersAndAnActionWhyItWaits, ()) {
  const Snapshot s = random_busy_snapshot();
  const Plan plan = plan_for(s);
  std::set<JobId> placed;
  for (const Placement& p : plan.placements) {
    RC_ASSERT(placed.insert(p.job).second);
    RC_ASSERT(!p.decision.empty());
  }
  RC_ASSERT(placed.size() + plan.waiting.size() == s.waiting.size());
  for (const WaitingJob& job : s.waiting) {
    if (placed.count(job.id) != 0) continue;
    const auto it = plan.waiting.find(job.id);
    RC_ASSERT(it != plan.waiting.end());
    const Explanation& why = *it->second;
    RC_ASSERT(!why.blockers.empty());
    for (const Blocker& b : why.blockers)
      RC_ASSERT(!b.needed.empty() && !b.available.empty() && !b.action.empty());
    RC_ASSERT(why.expected_start.has_value() == why.expected_start_unknown.empty());
    if (why.expected_start) RC_ASSERT(*why.expected_start >= t0);
  }
}

RC_GTEST_PROP(Plans, AreTheSameByteForByteInWhateverOrderTheirInputCame, ()) {
  Snapshot s = random_busy_snapshot();
  const std::string before = text_of(plan_for(s));
  std::mt19937_64 random(*rc::gen::arbitrary<std::uint64_t>());
  std::shuffle(s.waiting.begin(), s.waiting.end(), random);
  std::shuffle(s.holdings.begin(), s.holdings.end(), random);
  std::shuffle(s.nodes.begin(), s.nodes.end(), random);
  RC_ASSERT(text_of(plan_for(s)) == before);
  RC_ASSERT(text_of(plan_for(s)) == before);
}

RC_GTEST_PROP(Plans, WhatNoEmptyMachineHoldsIsNeverPlacedAndWhatOneHoldsIsPlacedOnIt, ()) {
  Snapshot s = random_snapshot();
  RC_PRE(!s.waiting.empty());
  s.waiting.resize(1);
  s.waiting[0].not_before = Instant{};
  for (SeenNode& n : s.nodes) {
    n.reachable = true;
    for (Gpu& g : n.node.gpus) {
      g.health = GpuHealth::ok;
      g.processes = std::vector<GpuProcess>{};
      g.memory_used = Bytes{0};
    }
  }
  Request request;
  request.spec = s.waiting[0].spec.get();
  request.tier = *request.spec->tier;
  request.isolation = *request.spec->isolation;
  const bool never = s.nodes.empty() || never_fits(request, s.nodes, Policy{}).has_value();
  RC_ASSERT(plan_for(s).placements.empty() == never);
}

TEST(Overlap, NamesBothHoldersOfADeviceThatIsGivenTwice) {
  const Node n = node_of("n1", {a100(), with_mig(a100(), {mig("1g.5gb", gibibytes(4), 0, 1, 1)})});
  Grant instance;
  instance.node = n.id;
  instance.devices = {
      {DeviceKind::mig_instance, DeviceUuid("MIG-n1-1-0"), n.gpus[1].uuid, gibibytes(4), 100}};
  const std::vector<std::pair<Grant, Grant>> clashes = {
      {whole_grant(n, {0}), whole_grant(n, {0})},
      {whole_grant(n, {0}), share_grant(n, 0, gibibytes(1))},
      {instance, instance},
      {whole_grant(n, {1}), instance},
      {share_grant(n, 0, gibibytes(30)), share_grant(n, 0, gibibytes(11))},
  };
  for (const auto& [a, b] : clashes) {
    Snapshot s = snapshot_of_nodes({n});
    hold(s, a, std::nullopt);
    EXPECT_EQ(overlap(s), std::nullopt);
    hold(s, b, std::nullopt);
    EXPECT_NE(overlap(s), std::nullopt);
  }
  Snapshot fine = snapshot_of_nodes({n});
  hold(fine, share_grant(n, 0, gibibytes(30)), std::nullopt);
  hold(fine, share_grant(n, 0, gibibytes(10)), std::nullopt);
  hold(fine, instance, std::nullopt);
  EXPECT_EQ(overlap(fine), std::nullopt);
}

TEST(Passes, TenThousandWaitingJobsOfAFewShapesAreLookedAtInLittleTime) {
  const Node n = node_of("n1", 8, h100());
  Snapshot s = snapshot_of_nodes({n});
  hold(s, whole_grant(n, {0, 1, 2, 3, 4, 5, 6, 7}), at(3600));
  for (int i = 0; i < 10'000; ++i)
    submit(s, whole_gpus(1 + i % 4), "user" + std::to_string(i % 50));
  const auto begin = std::chrono::steady_clock::now();
  const Plan plan = plan_for(s);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(plan.waiting.size(), 10'000u);
  EXPECT_LT(took.count(), 2.0) << "unoptimised builds on a busy machine included";
}

}  // namespace
}  // namespace takt::schedule
