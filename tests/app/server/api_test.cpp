// The API through its router: statuses, rights, and what is never told.
#include "app/server/api.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "edge/codec/api_json.h"
#include "fixture.h"
#include "support/places.h"

namespace takt::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint32_t kServer = 900;
constexpr std::uint32_t kAlice = 1001;
constexpr std::uint32_t kBob = 1002;
constexpr std::uint32_t kCarol = 1003;  // in takt-admin
constexpr const char* kSecret = "hf_never_to_be_seen";

class Accounts final : public identity::AccountDatabase {
 public:
  Result<std::optional<identity::Account>> account(std::uint32_t uid) override {
    static const std::map<std::uint32_t, std::string> names = {
        {kAlice, "alice"}, {kBob, "bob"}, {kCarol, "carol"}};
    const auto it = names.find(uid);
    if (it == names.end()) return std::optional<identity::Account>();
    return std::optional<identity::Account>({it->second, uid, "/home/" + it->second});
  }
  Result<std::vector<std::uint32_t>> groups(const identity::Account& account) override {
    if (account.user == "carol") return std::vector<std::uint32_t>{kCarol, 5000};
    return std::vector<std::uint32_t>{account.gid};
  }
  Result<std::optional<std::uint32_t>> gid_of(const std::string& group) override {
    if (group == "takt-admin") return std::optional<std::uint32_t>(5000);
    return std::optional<std::uint32_t>();
  }
};

class ApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "takt-api-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    logs_ = pattern;
    life_ = std::make_unique<Life>(failing_, 1'000'000, logs_.string());
    life_->begin();
    life_->hear(node_);
    context_ = std::make_unique<ApiContext>(ApiContext{*life_->controller, *life_->measurements,
                                                       directory_, "1.2.3", "/var/lib/takt", t0, 77,
                                                       kServer, [] { return t0; }});
    router_ = std::make_unique<http::Router>(make_router(*context_));
  }
  void TearDown() override {
    life_->controller->stop();
    std::filesystem::remove_all(logs_);
  }

  http::Response ask(const std::string& method, const std::string& target,
                     std::uint32_t uid = kAlice, const std::string& body = "") {
    http::Request request;
    request.method = method;
    request.path = target.substr(0, target.find('?'));
    if (target.find('?') != std::string::npos)
      request.query = http::parse_query(target.substr(target.find('?') + 1)).value();
    request.body = body;
    request.peer = {uid, uid, 4711};
    http::Response response = router_->route(request);
    told_ += response.body;
    for (const auto& [name, value] : response.headers) told_ += name + value;
    return response;
  }
  int status(const std::string& method, const std::string& target, std::uint32_t uid = kAlice,
             const std::string& body = "") {
    return ask(method, target, uid, body).status;
  }
  static std::string body_of(const JobSpec& spec) {
    return codec::submit_request_json({spec, Tier::batch});
  }
  std::string submitted(const JobSpec& spec, std::uint32_t uid = kAlice) {
    const http::Response r = ask("POST", "/v1/jobs", uid, body_of(spec));
    EXPECT_EQ(r.status, 201) << r.body;
    return std::to_string(json::parse(r.body).at("ids").at(0).get<int>());
  }
  static std::string error_of(const http::Response& r) {
    return json::parse(r.body).at("error").get<std::string>();
  }
  // Grants it and says that it runs.
  control::AttemptSeen run(const std::string& id) {
    const JobId job(std::stoull(id));
    EXPECT_TRUE(eventually([&] { return life_->published().jobs.at(job).attempt.has_value(); }));
    const control::Attempt a = *life_->published().jobs.at(job).attempt;
    const control::AttemptSeen seen = running(a.id, a.generation, t0);
    life_->hear(node_, {seen});
    return seen;
  }

  store::MemoryJournal memory_;
  store::FailingJournal failing_{memory_};
  Node node_ = node_of("n1", 2, h100());
  identity::Directory directory_{std::make_unique<Accounts>()};
  std::filesystem::path logs_;
  std::unique_ptr<Life> life_;
  std::unique_ptr<ApiContext> context_;
  std::unique_ptr<http::Router> router_;
  std::string told_;  // everything that was ever answered
};

TEST_F(ApiTest, ItsRoutesAreThoseOfTheOpenApiFile) {
  std::ifstream in(::takt::testing::source_folder() + "/docs/openapi.json");
  const json file = json::parse(in);
  std::set<std::string> written;
  for (const auto& [path, methods] : file.at("paths").items())
    for (const auto& [method, rest] : methods.items()) written.insert(method + " " + path);
  std::set<std::string> made;
  for (const http::Route& r : router_->routes()) {
    std::string method = r.method;
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    made.insert(method + " " + r.pattern);
  }
  EXPECT_EQ(made, written);
}

TEST_F(ApiTest, ASubmissionIs201WithItsNumberAndTheSpecThatIsShown) {
  const http::Response r = ask("POST", "/v1/jobs", kAlice, body_of(whole_gpus(1)));
  ASSERT_EQ(r.status, 201) << r.body;
  const json reply = json::parse(r.body);
  EXPECT_EQ(reply.at("takt"), "1.2.3");
  EXPECT_EQ(reply.at("ids"), json::array({1}));
  EXPECT_EQ(life_->published().jobs.at(JobId(1)).submitter().user, "alice");
}

TEST_F(ApiTest, ASubmissionThatIsAskedForAgainIsMadeOnce) {
  codec::SubmitRequest request{whole_gpus(1), Tier::batch, "0123abc"};
  const std::string body = codec::submit_request_json(request);
  const http::Response first = ask("POST", "/v1/jobs", kAlice, body);
  const http::Response again = ask("POST", "/v1/jobs", kAlice, body);
  ASSERT_EQ(first.status, 201) << first.body;
  ASSERT_EQ(again.status, 201) << again.body;
  EXPECT_EQ(json::parse(again.body), json::parse(first.body));
  EXPECT_EQ(life_->published().jobs.size(), 1u);
  EXPECT_EQ(status("POST", "/v1/jobs", kBob, body), 201) << "somebody else's id is another";
  EXPECT_EQ(life_->published().jobs.size(), 2u);
  request.spec = whole_gpus(2);
  const http::Response other = ask("POST", "/v1/jobs", kAlice, codec::submit_request_json(request));
  EXPECT_EQ(other.status, 409);
  EXPECT_THAT(error_of(other), HasSubstr("request_id"));
  EXPECT_EQ(status("POST", "/v1/jobs?dry_run=true", kAlice, body), 200);
  for (const std::string& id :
       {std::string("a b"), std::string(65, 'a'), std::string("\xC3\xA9")}) {
    request.request_id = id;
    const http::Response bad = ask("POST", "/v1/jobs", kAlice, codec::submit_request_json(request));
    EXPECT_EQ(bad.status, 400) << id;
    EXPECT_THAT(error_of(bad), HasSubstr("request_id"));
  }
}

TEST_F(ApiTest, AnUnknownUidSubmitsUnderItsNumber) {
  submitted(whole_gpus(1), 4242);
  EXPECT_EQ(life_->published().jobs.at(JobId(1)).submitter().user, "4242");
}

TEST_F(ApiTest, ADryRunIs200AndMakesNoJob) {
  const http::Response r = ask("POST", "/v1/jobs?dry_run=true", kAlice, body_of(whole_gpus(1)));
  EXPECT_EQ(r.status, 200) << r.body;
  EXPECT_EQ(json::parse(r.body).at("would_start"), true);
  EXPECT_TRUE(life_->published().jobs.empty());
  EXPECT_EQ(status("POST", "/v1/jobs?dry_run=true", kAlice, body_of(whole_gpus(9))), 409);
}

TEST_F(ApiTest, EveryRefusalHasItsStatusAndASentence) {
  submitted(whole_gpus(1), kAlice);
  const struct {
    std::string method, target, body;
    std::uint32_t uid;
    int status;
  } rows[] = {
      {"POST", "/v1/jobs", "{", kAlice, 400},
      {"POST", "/v1/jobs", "", kAlice, 400},
      {"POST", "/v1/jobs", "[]", kAlice, 400},
      {"POST", "/v1/jobs", R"({"spec": {"run": ["true"], "gups": 1}})", kAlice, 400},
      {"POST", "/v1/jobs", body_of(whole_gpus(9)), kAlice, 409},
      {"POST", "/v1/jobs", body_of(of_type(whole_gpus(1), {"h20"})), kAlice, 409},
      {"GET", "/v1/jobs/99", "", kAlice, 404},
      {"GET", "/v1/jobs/abc", "", kAlice, 400},
      {"GET", "/v1/jobs/0", "", kAlice, 400},
      {"GET", "/v1/jobs/-1", "", kAlice, 400},
      {"GET", "/v1/jobs/99999999999999999999", "", kAlice, 400},
      {"GET", "/v1/jobs/1?wait=sometime", "", kAlice, 400},
      {"GET", "/v1/jobs/1?wait=ended&timeout_ms=-1", "", kAlice, 400},
      {"GET", "/v1/jobs/1?format=xml", "", kAlice, 400},
      {"GET", "/v1/jobs?format=xml", "", kAlice, 400},
      {"GET", "/v1/jobs?state=sleeping", "", kAlice, 400},
      {"GET", "/v1/jobs?limit=many", "", kAlice, 400},
      {"GET", "/v1/jobs?format=text&width=0", "", kAlice, 400},
      {"GET", "/v1/gpus?format=xml", "", kAlice, 400},
      {"GET", "/v1/workloads?format=xml", "", kAlice, 400},
      {"POST", "/v1/jobs/99/cancel", "", kAlice, 404},
      {"POST", "/v1/jobs/1/cancel", "", kBob, 403},
      {"GET", "/v1/jobs/1/logs", "", kBob, 403},
      {"GET", "/v1/jobs/99/logs", "", kAlice, 404},
      {"GET", "/v1/jobs/1/logs?stream=stdboth", "", kAlice, 400},
      {"GET", "/v1/jobs/1/logs?offset=-1", "", kAlice, 400},
      {"GET", "/v1/jobs/1/logs?offset=9223372036854775808", "", kAlice, 400},
      {"GET", "/v1/nothing", "", kAlice, 404},
      {"DELETE", "/v1/jobs/1", "", kAlice, 405},
  };
  for (const auto& row : rows) {
    const http::Response r = ask(row.method, row.target, row.uid, row.body);
    EXPECT_EQ(r.status, row.status) << row.method << " " << row.target << "\n" << r.body;
    ASSERT_GE(r.status, 400) << row.target;
    EXPECT_GT(error_of(r).size(), 10u) << row.target;
  }
  EXPECT_EQ(life_->published().jobs.size(), 1u);
}

TEST_F(ApiTest, OnlyOwnerServerRootAndAdminsCancel) {
  for (const std::uint32_t uid : {kAlice, 0u, kServer, kCarol}) {
    const std::string id = submitted(whole_gpus(1), kAlice);
    EXPECT_EQ(status("POST", "/v1/jobs/" + id + "/cancel", kBob), 403);
    EXPECT_EQ(status("POST", "/v1/jobs/" + id + "/cancel", uid), 200) << uid;
  }
}

TEST_F(ApiTest, WhatHasEndedCannotBeCancelledAgain) {
  submitted(whole_gpus(2));
  const std::string id = submitted(whole_gpus(2));
  EXPECT_EQ(status("POST", "/v1/jobs/" + id + "/cancel"), 200);
  const http::Response again = ask("POST", "/v1/jobs/" + id + "/cancel");
  EXPECT_EQ(again.status, 409);
  EXPECT_THAT(error_of(again), HasSubstr("already ended"));
}

TEST_F(ApiTest, WhatIsInTheArchiveIsShownAndHasEnded) {
  submitted(whole_gpus(2));
  const std::string id = submitted(whole_gpus(2));
  ASSERT_EQ(status("POST", "/v1/jobs/" + id + "/cancel"), 200);
  Archivist archivist(store::Archive::open((logs_ / "archive.db").string()).value(),
                      *life_->controller,
                      {logs_.string(), [] { return t0 + hours(48); }, [](const std::string&) {}});
  context_->archive = &archivist;
  ASSERT_EQ(archivist.archive_finished(), 1u);
  ASSERT_EQ(life_->published().jobs.count(JobId(2)), 0u);
  EXPECT_EQ(json::parse(ask("GET", "/v1/jobs/" + id).body).at("state"), "cancelled");
  EXPECT_EQ(json::parse(ask("GET", "/v1/jobs?all=true").body).at("jobs").size(), 2u);
  EXPECT_EQ(status("GET", "/v1/jobs/" + id + "/logs"), 200);
  const http::Response again = ask("POST", "/v1/jobs/" + id + "/cancel");
  EXPECT_EQ(again.status, 409);
  EXPECT_THAT(error_of(again), HasSubstr("already ended (cancelled)"));
  EXPECT_EQ(status("POST", "/v1/jobs/99/cancel"), 404);
}

TEST_F(ApiTest, CancelAllEndsOnlyTheCallersJobs) {
  submitted(whole_gpus(2), kAlice);
  submitted(whole_gpus(1), kAlice);
  submitted(whole_gpus(1), kBob);
  EXPECT_EQ(status("POST", "/v1/jobs/cancel", kAlice), 200);
  const control::State state = life_->published();
  EXPECT_FALSE(state.jobs.at(JobId(3)).cancel_requested);
  EXPECT_TRUE(state.jobs.at(JobId(2)).finished.has_value());
}

TEST_F(ApiTest, EverybodySeesEverybodysJobsAndMayPickSome) {
  submitted(whole_gpus(2), kAlice);
  submitted(whole_gpus(1), kBob);
  EXPECT_EQ(json::parse(ask("GET", "/v1/jobs", kCarol).body).at("jobs").size(), 2u);
  const auto bobs = json::parse(ask("GET", "/v1/jobs?user=bob", kAlice).body).at("jobs");
  ASSERT_EQ(bobs.size(), 1u);
  EXPECT_EQ(bobs[0].at("user"), "bob");
  EXPECT_EQ(json::parse(ask("GET", "/v1/jobs?limit=1").body).at("jobs").size(), 1u);
  ask("POST", "/v1/jobs/2/cancel", kBob);
  EXPECT_EQ(json::parse(ask("GET", "/v1/jobs").body).at("jobs").size(), 1u);
  EXPECT_EQ(json::parse(ask("GET", "/v1/jobs?all=true").body).at("jobs").size(), 2u);
  EXPECT_EQ(json::parse(ask("GET", "/v1/jobs?state=cancelled").body).at("jobs").size(), 1u);
}

TEST_F(ApiTest, EveryViewAnswers) {
  run(submitted(whole_gpus(1)));
  submitted(whole_gpus(2));
  for (const char* target :
       {"/v1/version", "/v1/status", "/v1/jobs", "/v1/jobs?format=text", "/v1/jobs?format=live",
        "/v1/jobs?format=day&all=true", "/v1/jobs/1", "/v1/jobs/2?format=text", "/v1/gpus",
        "/v1/gpus?format=text", "/v1/workloads", "/v1/workloads?format=text"}) {
    const http::Response r = ask("GET", target);
    EXPECT_EQ(r.status, 200) << target << "\n" << r.body;
    EXPECT_FALSE(r.body.empty()) << target;
    const bool text = std::string(target).find("format") != std::string::npos;
    EXPECT_NE(json::accept(r.body), text) << target;
  }
}

TEST_F(ApiTest, StatusNamesTheCallerAndWhatIsWrong) {
  json s = json::parse(ask("GET", "/v1/status", kCarol).body);
  EXPECT_THAT(s.dump(), HasSubstr("carol"));
  failing_.fail_calls(1, 1, {ErrorKind::unavailable, "the disk is full"});
  const http::Response refused = ask("POST", "/v1/jobs", kAlice, body_of(whole_gpus(1)));
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(error_of(refused), HasSubstr("the disk is full"));
  EXPECT_THAT(ask("GET", "/v1/status").body, HasSubstr("nothing can be acknowledged"));
}

TEST_F(ApiTest, SecretsAreInNoAnswerWhateverIsAsked) {
  JobSpec spec = whole_gpus(1);
  spec.env = {{"HF_TOKEN", kSecret, true}, {"PLAIN", kSecret, false}};
  const std::string id = submitted(spec);
  ask("POST", "/v1/jobs?dry_run=true", kAlice, body_of(spec));
  spec.gpus.count = 99;
  ask("POST", "/v1/jobs", kAlice, body_of(spec));
  spec.gpus.count = -5;
  ask("POST", "/v1/jobs", kAlice, body_of(spec));
  spec.env.push_back(spec.env[0]);
  ask("POST", "/v1/jobs", kAlice, body_of(spec));
  ask("POST", "/v1/jobs", kAlice,
      "{\"spec\": {\"env\": {\"HF_TOKEN\": [\"" + std::string(kSecret) + "\"]}}}");
  run(id);
  for (const std::string& target : std::vector<std::string>{
           "/v1/jobs", "/v1/jobs?all=true&format=text", "/v1/jobs?format=live", "/v1/jobs/" + id,
           "/v1/jobs/" + id + "?format=text", "/v1/gpus", "/v1/workloads", "/v1/status"})
    ask("GET", target, kBob);
  EXPECT_THAT(told_, HasSubstr("HF_TOKEN"));
  EXPECT_THAT(told_, Not(HasSubstr(kSecret)));
  // And yet the job gets it.
  const control::State state = life_->published();
  EXPECT_EQ(state.environment_of(state.jobs.at(JobId(1))).at(0).value, kSecret);
}

TEST_F(ApiTest, LogsComeInPiecesToTheOwnerAndAdminsOnly) {
  const std::string id = submitted(whole_gpus(1));
  const control::AttemptSeen seen = run(id);
  std::ofstream(logs_ / "1.1.out") << "hello from the job";
  std::ofstream(logs_ / "1.1.err") << "a warning";
  const http::Response first = ask("GET", "/v1/jobs/1/logs");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "hello from the job");
  EXPECT_EQ(first.headers.at("X-Takt-Next-Offset"), "18");
  EXPECT_EQ(first.headers.at("X-Takt-Ended"), "false");
  EXPECT_EQ(ask("GET", "/v1/jobs/1/logs?offset=6").body, "from the job");
  EXPECT_EQ(ask("GET", "/v1/jobs/1/logs?stream=stderr").body, "a warning");
  const http::Response beyond = ask("GET", "/v1/jobs/1/logs?offset=9223372036854775807");
  EXPECT_EQ(beyond.status, 200);
  EXPECT_EQ(beyond.headers.at("X-Takt-Next-Offset"), "18") << "it means the end";
  EXPECT_EQ(ask("GET", "/v1/jobs/1/logs", kCarol).status, 200);
  const http::Response refused = ask("GET", "/v1/jobs/1/logs", kBob);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, Not(HasSubstr("hello")));

  life_->hear(node_, {exited(seen.attempt, seen.generation, t0, at(1), exit_code(0))});
  const http::Response end = ask("GET", "/v1/jobs/1/logs?offset=18");
  EXPECT_EQ(end.body, "");
  EXPECT_EQ(end.headers.at("X-Takt-Ended"), "true");
}

TEST_F(ApiTest, LogsDoNotFollowALinkOutOfTheirFolder) {
  run(submitted(whole_gpus(1)));
  std::filesystem::create_symlink("/etc/passwd", logs_ / "1.1.out");
  const http::Response r = ask("GET", "/v1/jobs/1/logs");
  EXPECT_EQ(r.status, 500);
  EXPECT_THAT(r.body, Not(HasSubstr("root:")));
}

TEST_F(ApiTest, ALongPollEndsWhenTheJobHasStartedOrItsTimeIsOver) {
  submitted(whole_gpus(2));
  const std::string waiting = submitted(whole_gpus(2));
  EXPECT_EQ(status("GET", "/v1/jobs/" + waiting + "?wait=started&timeout_ms=20"), 200);
  std::thread later([&] { run("1"); });
  const http::Response r = ask("GET", "/v1/jobs/1?wait=started&timeout_ms=20000");
  later.join();
  EXPECT_EQ(json::parse(r.body).at("state"), "running");
}

TEST_F(ApiTest, ABackupIsForRootAdministratorsAndTheServersOwner) {
  int copies = 0;
  Backups backups(logs_.string(), [&](const std::string& to) -> Result<void> {
    ++copies;
    std::ofstream(to) << "a copy";
    return {};
  });
  context_->backups = &backups;
  EXPECT_EQ(status("GET", "/v1/backup", kAlice), 403);
  EXPECT_EQ(copies, 0);
  for (const std::uint32_t uid : {0u, kServer, kCarol}) {
    const http::Response answer = ask("GET", "/v1/backup", uid);
    EXPECT_EQ(answer.status, 200);
    ASSERT_TRUE(answer.file);
    EXPECT_EQ(answer.file->bytes(), 6u);
    EXPECT_TRUE(std::filesystem::is_empty(logs_)) << "no name is left in the folder";
  }
  Backups failing(logs_.string(), [](const std::string&) -> Result<void> {
    return fail(ErrorKind::unavailable, "the disk is full: free some space");
  });
  context_->backups = &failing;
  const http::Response refused = ask("GET", "/v1/backup", kCarol);
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, HasSubstr("the disk is full"));
}

}  // namespace
}  // namespace takt::server
