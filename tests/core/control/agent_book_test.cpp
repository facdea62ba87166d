// The rules by which a node agent obeys and reports.
#include "core/control/agent_book.h"

#include <gmock/gmock.h>

#include "support/cluster_builder.h"

namespace takt::control {
namespace {

using namespace takt::testing;
using ::testing::SizeIs;

constexpr std::uint64_t kLife = 7;
const AttemptId kFirst{JobId(1), 1};

struct Desk {
  AgentBook book{kLife};
  Node node = node_of("n1", 2, a100());
  std::uint64_t looks = 1;  // the number of the newest look

  NodeReport report(std::vector<AttemptSeen> attempts = {}) {
    NodeReport r = report_of(node, t0, std::move(attempts));
    book.sign(
        r, {looks, node}, [this] { return looks + 1; },
        [this](AttemptId) { return std::vector{node.gpus[0].uuid.value}; });
    return r;
  }
  Start start(const NodeReport& answers, AttemptId attempt = kFirst) {
    Start s;
    s.order.attempt = attempt;
    s.basis = {node.boot_id, answers.life, answers.sequence};
    return s;
  }
};

TEST(AgentBook, NumbersReportsWithinItsLife) {
  Desk desk;
  EXPECT_EQ(desk.report().sequence, 1u);
  EXPECT_EQ(desk.report().sequence, 2u);
  EXPECT_EQ(desk.report().life, kLife);
}

TEST(AgentBook, ObeysAStartThatAnswersAReportOfThisLifeAndBoot) {
  Desk desk;
  const Start start = desk.start(desk.report());
  EXPECT_TRUE(desk.book.obeys(start, desk.node.boot_id));
  EXPECT_FALSE(desk.book.obeys(start, "another boot"));
  EXPECT_FALSE(AgentBook(kLife + 1).obeys(start, desk.node.boot_id));
}

TEST(AgentBook, DropsAStartFromBeforeSomethingWasForgotten) {
  Desk desk;
  const Start late = desk.start(desk.report());
  desk.book.forget({JobId(9), 1});
  EXPECT_FALSE(desk.book.obeys(late, desk.node.boot_id));
  EXPECT_TRUE(desk.book.obeys(desk.start(desk.report()), desk.node.boot_id));
}

TEST(AgentBook, TellsAClosedAttemptUntilItIsForgottenAndNeverStartsIt) {
  Desk desk;
  const Start start = desk.start(desk.report());
  desk.book.close(kFirst, 3, ExitCause::lost, "stopped before it started", t0);
  EXPECT_FALSE(desk.book.obeys(start, desk.node.boot_id));
  desk.report();
  ++desk.looks;
  const NodeReport told = desk.report();
  ASSERT_THAT(told.attempts, SizeIs(1));
  EXPECT_EQ(told.attempts[0].generation, 3u);
  EXPECT_EQ(told.attempts[0].exit->cause, ExitCause::lost);
  EXPECT_TRUE(told.attempts[0].processes_gone);
  desk.book.forget(kFirst);
  EXPECT_THAT(desk.report().attempts, SizeIs(0));
}

TEST(AgentBook, CallsAnAttemptGoneOnlyAfterALookThatBeganAfterItsEnd) {
  Desk desk;
  const std::vector<AttemptSeen> ended = {exited(kFirst, 1, t0, t0, exit_code(0))};
  EXPECT_FALSE(desk.report(ended).attempts[0].processes_gone);
  EXPECT_FALSE(desk.report(ended).attempts[0].processes_gone) << "the same look";
  ++desk.looks;
  EXPECT_TRUE(desk.report(ended).attempts[0].processes_gone);
}

TEST(AgentBook, CallsNothingGoneThatTheDriverStillShowsOrCannotTellJustNow) {
  Desk desk;
  const std::vector<AttemptSeen> ended = {exited(kFirst, 1, t0, t0, exit_code(0))};
  desk.report(ended);
  ++desk.looks;
  GpuProcess left = process(77, "alice", "python3", gibibytes(3));
  left.attempt = kFirst;
  desk.node.gpus[1].processes->push_back(left);
  EXPECT_FALSE(desk.report(ended).attempts[0].processes_gone) << "on any GPU";
  desk.node.gpus[1].processes->clear();
  desk.node.gpus[0].processes = missing(MissingKind::timed_out);
  EXPECT_FALSE(desk.report(ended).attempts[0].processes_gone);
  desk.node.gpus[0].processes = missing(MissingKind::device_lost);
  EXPECT_TRUE(desk.report(ended).attempts[0].processes_gone) << "it will never be told";
}

}  // namespace
}  // namespace takt::control
