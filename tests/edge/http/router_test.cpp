#include "edge/http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace takt::http {
namespace {

using ::testing::HasSubstr;

// A handler that answers with its name and its captures.
RouteHandler named(const std::string& name) {
  return [name](const Request&, const Captures& captures) {
    Response response;
    response.body = name;
    for (const auto& [key, value] : captures) response.body += " " + key + "=" + value;
    return response;
  };
}

Response ask(const Router& router, const std::string& method, const std::string& path) {
  Request request;
  request.method = method;
  request.path = path;
  return router.route(request);
}

Router example() {
  Router router;
  router.add("GET", "/", named("root"));
  router.add("GET", "/v1/jobs", named("list"));
  router.add("POST", "/v1/jobs", named("submit"));
  router.add("GET", "/v1/jobs/{id}", named("job"));
  router.add("DELETE", "/v1/jobs/{id}", named("cancel"));
  router.add("GET", "/v1/jobs/events", named("events"));
  router.add("GET", "/v1/jobs/{id}/logs/{stream}", named("logs"));
  return router;
}

TEST(Router, FindsTheHandlerByMethodAndPath) {
  const Router router = example();
  EXPECT_EQ(ask(router, "GET", "/").body, "root");
  EXPECT_EQ(ask(router, "GET", "/v1/jobs").body, "list");
  EXPECT_EQ(ask(router, "POST", "/v1/jobs").body, "submit");
  EXPECT_EQ(ask(router, "DELETE", "/v1/jobs/17").body, "cancel id=17");
}

TEST(Router, CapturesPartsOfThePathDecoded) {
  const Router router = example();
  EXPECT_EQ(ask(router, "GET", "/v1/jobs/17/logs/stdout").body, "logs id=17 stream=stdout");
  EXPECT_EQ(ask(router, "GET", "/v1/jobs/team%2Ftrain").body, "job id=team/train")
      << "an escaped slash belongs to its segment";
}

TEST(Router, PrefersALiteralToACapture) {
  const Router router = example();
  EXPECT_EQ(ask(router, "GET", "/v1/jobs/events").body, "events");
  Router other;
  other.add("GET", "/{a}/x", named("capture first"));
  other.add("GET", "/b/{c}", named("literal first"));
  EXPECT_EQ(ask(other, "GET", "/b/x").body, "literal first c=x") << "the first literal decides";
}

TEST(Router, AnotherMethodThanTheLiteralsStillFindsTheCapture) {
  EXPECT_EQ(ask(example(), "DELETE", "/v1/jobs/events").body, "cancel id=events");
}

TEST(Router, HeadIsAnsweredByGet) { EXPECT_EQ(ask(example(), "HEAD", "/v1/jobs").body, "list"); }

TEST(Router, UnknownPathsAre404WithASentence) {
  const Router router = example();
  for (const char* path : {"/v1", "/v1/jobs/", "//v1/jobs", "/v1/jobs/1/logs", "/V1/jobs",
                           "/v1/jobs/1/logs/x/y", "/v1//jobs", "/.."}) {
    const Response response = ask(router, "GET", path);
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_THAT(response.body, HasSubstr("{\"error\": \"there is nothing at")) << path;
  }
}

TEST(Router, AnotherMethodIs405AndNamesTheAllowedOnes) {
  const Response response = ask(example(), "PUT", "/v1/jobs");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.headers.at("allow"), "GET, POST");
  EXPECT_THAT(response.body, HasSubstr("expected GET, POST"));
  EXPECT_EQ(ask(example(), "get", "/v1/jobs").status, 405) << "methods are case-sensitive";
}

TEST(Router, APathThatCannotBeDecodedIs400) {
  EXPECT_EQ(ask(example(), "GET", "/v1/jobs/%zz").status, 400);
  EXPECT_EQ(ask(example(), "GET", "v1/jobs").status, 400);
  EXPECT_EQ(ask(example(), "GET", "").status, 400);
}

TEST(Router, ListsItsRoutesInTheOrderTheyWereAdded) {
  const auto routes = example().routes();
  ASSERT_EQ(routes.size(), 7u);
  EXPECT_EQ(routes[2].method, "POST");
  EXPECT_EQ(routes[2].pattern, "/v1/jobs");
  EXPECT_EQ(routes[6].pattern, "/v1/jobs/{id}/logs/{stream}");
}

TEST(RouterDeathTest, MistakesInTheTableAreProgrammerErrors) {
  const auto add = [](const std::string& pattern) {
    Router router;
    router.add("GET", "/v1/jobs", named("list"));
    router.add("GET", pattern, named("x"));
  };
  EXPECT_DEATH(add("v1"), "starts with a slash");
  EXPECT_DEATH(add("/v1/jobs"), "added once");
  EXPECT_DEATH(add("/v1/{id"), "whole segment");
  EXPECT_DEATH(add("/v1/x{id}"), "whole segment");
  EXPECT_DEATH(add("/v1/{}"), "whole segment");
  EXPECT_DEATH(add("/v1//x"), "no empty segment");
  EXPECT_DEATH(add("/{a}/{a}"), "occurs twice");
}

}  // namespace
}  // namespace takt::http
