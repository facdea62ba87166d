#include "app/server/api.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "app/report/report.h"
#include "app/server/job_list.h"
#include "app/server/log_reader.h"
#include "app/server/recent_requests.h"
#include "edge/codec/api_json.h"

namespace takt::server {
namespace {

using http::Captures;
using http::Request;
using http::Response;

constexpr Duration kWaitMax = seconds(30);  // of one long poll
constexpr std::size_t kDayMax = 20'000;     // jobs that the summary of a day looks at

Response json(std::string body, int status = 200) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

Response text(std::string body) {
  Response response;
  response.content_type = "text/plain; charset=utf-8";
  response.body = std::move(body);
  return response;
}

std::string query(const Request& request, const std::string& name, const std::string& otherwise) {
  const auto it = request.query.find(name);
  return it == request.query.end() ? otherwise : it->second;
}

Result<std::int64_t> number(const std::string& name, const std::string& word, std::int64_t min,
                            std::int64_t max) {
  std::int64_t value = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), value);
  if (read.ec != std::errc() || read.ptr != word.data() + word.size() || value < min || value > max)
    return fail(ErrorKind::invalid,
                fmt::format("{}: '{}' is not a whole number from {} to {}", name, word, min, max));
  return value;
}

// A word of the query that must be one of a few.
Result<std::string> one_of(const Request& request, const std::string& name,
                           const std::string& otherwise, const std::vector<std::string>& words) {
  std::string word = query(request, name, otherwise);
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  std::string all;
  for (const std::string& w : words)
    if (!w.empty()) all += (all.empty() ? "" : ", ") + w;
  return fail(ErrorKind::invalid, fmt::format("{}: '{}' is not one of {}", name, word, all));
}

Result<JobId> job_id(const Captures& captures) {
  auto id = number("job id", captures.at("id"), 1, INT64_MAX);
  if (!id) return tl::make_unexpected(id.error());
  return JobId(static_cast<std::uint64_t>(*id));
}

Error no_such_job(JobId id) {
  return {ErrorKind::not_found,
          fmt::format("there is no job {}: `takt ps --all` lists all", to_string(id))};
}

class Api {
 public:
  explicit Api(ApiContext& context) : context_(context) {}

  codec::DocumentHead head(std::vector<std::string> warnings = {}) const {
    const std::string problem = context_.controller.problem();
    if (!problem.empty()) warnings.push_back(problem);
    return {context_.version, std::move(warnings)};
  }

  bool admin(const http::Peer& peer) const {
    return peer.uid == 0 || peer.uid == context_.server_uid ||
           context_.directory.in_any_group(peer.uid, context_.controller.policy().admin_groups);
  }

  // ---- jobs -----------------------------------------------------------------------------------

  Response list(const Request& request) const {
    JobsAsked asked;
    asked.finished = query(request, "all", "false") == "true";
    asked.user = query(request, "user", "");
    auto state =
        one_of(request, "state", "",
               {"", "waiting", "starting", "running", "stopping", "done", "failed", "cancelled"});
    if (!state) return http::error_response(state.error());
    asked.state = *state;
    auto format_asked = one_of(request, "format", "json", {"json", "text", "live", "day"});
    if (!format_asked) return http::error_response(format_asked.error());
    const std::string& format = *format_asked;
    auto limit =
        number("limit", query(request, "limit", std::to_string(JobsAsked::kListed)), 0, 1'000'000);
    if (!limit) return http::error_response(limit.error());
    const auto rows = static_cast<std::size_t>(*limit);
    asked.limit = rows;
    const Instant now = context_.clock();
    if (format == "day") {
      asked.ended_from = now - hours(24);
      asked.limit = kDayMax;
    }
    auto found = find_jobs(context_.controller, context_.archive, asked);
    if (!found) return http::error_response(found.error());
    std::vector<std::string> notes;
    if (found->hidden > 0)
      notes.push_back(fmt::format("{} older jobs that are over are not shown: --limit 0 shows all",
                                  found->hidden));
    std::vector<control::JobView>& jobs = found->jobs;
    if (format == "json") {
      if (rows > 0 && jobs.size() > rows) jobs.resize(rows);
      return json(codec::jobs_json(head(notes), jobs));
    }
    auto screen = screen_of(request);
    if (!screen) return http::error_response(screen.error());
    if (format == "day") return day(jobs, now, *screen);
    if (format == "live") return live(jobs, now, *screen, *limit);
    std::string table = report::jobs_table(jobs, now, *screen, rows);
    for (const std::string& note : notes) table += "… " + note + "\n";
    return text(std::move(table));
  }

  // The number of unfinished jobs that will end by themselves lets a watcher know when to leave.
  Response live(const std::vector<control::JobView>& jobs, Instant now,
                const report::Screen& screen, std::int64_t rows) const {
    std::vector<control::NodeView> nodes;
    control::Counts counts;
    context_.controller.read([&](const control::Sight& sight) {
      nodes = control::node_views(sight.cluster);
      counts = control::counts(sight.state);
    });
    Response response =
        text(report::live_screen(jobs, nodes, counts, now, screen, static_cast<std::size_t>(rows)));
    const auto unfinished = std::count_if(jobs.begin(), jobs.end(), [](const control::JobView& j) {
      return j.tier != Tier::serving && j.state != control::JobState::done &&
             j.state != control::JobState::failed && j.state != control::JobState::cancelled;
    });
    response.headers["X-Takt-Unfinished"] = std::to_string(unfinished);
    return response;
  }

  Response day(const std::vector<control::JobView>& jobs, Instant now,
               const report::Screen& screen) const {
    std::vector<control::NodeView> nodes;
    context_.controller.read(
        [&](const control::Sight& sight) { nodes = control::node_views(sight.cluster); });
    return text(report::day_summary(
        jobs, context_.measurements.summaries(context_.controller.policy(), now), nodes, now,
        screen, context_.controller.waits()));
  }

  Response submit(const Request& request) const {
    const Policy& policy = context_.controller.policy();
    auto body = codec::submit_request_from_json(request.body, policy.limits);
    if (!body) return http::error_response(body.error());
    auto identity = context_.directory.look_up(request.peer.uid, request.peer.gid);
    if (!identity) return http::error_response(identity.error());
    control::Submit command{std::move(body->spec), std::move(*identity), body->default_tier, ""};
    codec::SubmitReply reply;
    if (query(request, "dry_run", "false") == "true") {
      auto trial = context_.controller.try_out(command);
      if (!trial) return http::error_response(trial.error());
      reply.dry_run = true;
      reply.count = trial->count;
      reply.spec = trial->spec;
      reply.would_start = trial->would_start;
      reply.waiting_for = trial->waiting_for;
      reply.decision = trial->decision;
      return json(codec::submit_reply_json(head(trial->warnings), reply));
    }
    command.request = body->request_id;
    const auto submit = [&] { return context_.controller.submit(std::move(command)); };
    const auto accepted =
        body->request_id.empty()
            ? submit()
            : requests_.once(request.peer.uid, body->request_id, request.body, submit);
    if (!accepted) return http::error_response(accepted.error());
    reply.ids = accepted->jobs;
    reply.count = static_cast<int>(accepted->jobs.size());
    context_.controller.read([&](const control::Sight& sight) {
      const auto it = sight.state.jobs.find(accepted->jobs.front());
      if (it != sight.state.jobs.end()) reply.spec = it->second.spec();
    });
    return json(codec::submit_reply_json(head(accepted->warnings), reply), 201);
  }

  Response show(const Request& request, const Captures& captures) const {
    auto id = job_id(captures);
    if (!id) return http::error_response(id.error());
    auto wait_for = one_of(request, "wait", "", {"", "started", "ended"});
    if (!wait_for) return http::error_response(wait_for.error());
    auto format = one_of(request, "format", "json", {"json", "text"});
    if (!format) return http::error_response(format.error());
    if (!wait_for->empty()) {
      auto timeout = number("timeout_ms", query(request, "timeout_ms", "30000"), 0, 600'000);
      if (!timeout) return http::error_response(timeout.error());
      wait(*id, *wait_for == "ended", std::min(milliseconds(*timeout), kWaitMax), request.stop);
    }
    auto found = find_job(context_.controller, context_.archive, *id);
    if (!found) return http::error_response(found.error());
    const auto& view = *found;
    if (!view) return http::error_response(no_such_job(*id));
    if (*format == "text") {
      auto screen = screen_of(request);
      if (!screen) return http::error_response(screen.error());
      return text(report::job_why(*view, context_.clock(), *screen));
    }
    return json(codec::job_json(head(), *view));
  }

  void wait(JobId id, bool ended, Duration at_most, std::stop_token stop) const {
    (void)context_.controller.wait(
        [&](const control::Sight& sight) {
          const auto it = sight.state.jobs.find(id);
          if (it == sight.state.jobs.end() || it->second.finished) return true;
          return !ended && it->second.attempt && it->second.attempt->started.has_value();
        },
        at_most, std::move(stop));
  }

  // The loop does not know jobs that have left for the archive.
  Error refusal(const Error& error, JobId id) const {
    if (error.kind != ErrorKind::not_found) return error;
    const auto found = find_job(context_.controller, context_.archive, id);
    if (!found || !*found) return error;
    return {ErrorKind::conflict, fmt::format("job {} has already ended ({})", to_string(id),
                                             control::to_string((*found)->state))};
  }

  Response cancel(const Request& request, const Captures& captures) const {
    auto id = job_id(captures);
    if (!id) return http::error_response(id.error());
    auto identity = context_.directory.look_up(request.peer.uid, request.peer.gid);
    if (!identity) return http::error_response(identity.error());
    auto accepted = context_.controller.cancel({*id, std::move(*identity), admin(request.peer)});
    if (!accepted) return http::error_response(refusal(accepted.error(), *id));
    return json(codec::changed_reply_json(head(), "cancelled", accepted->jobs));
  }

  // `Command`: HoldJob or ReleaseJob; `act` hands it to the controller.
  template <class Command, class Act>
  Response change(const Request& request, const Captures& captures, const char* done,
                  Act act) const {
    auto id = job_id(captures);
    if (!id) return http::error_response(id.error());
    auto identity = context_.directory.look_up(request.peer.uid, request.peer.gid);
    if (!identity) return http::error_response(identity.error());
    auto accepted = act(Command{*id, std::move(*identity), admin(request.peer)});
    if (!accepted) return http::error_response(refusal(accepted.error(), *id));
    return json(codec::changed_reply_json(head(accepted->warnings), done, accepted->jobs));
  }
  Response hold(const Request& request, const Captures& captures) const {
    return change<control::HoldJob>(
        request, captures, "held", [&](auto command) { return context_.controller.hold(command); });
  }
  Response release(const Request& request, const Captures& captures) const {
    return change<control::ReleaseJob>(request, captures, "released", [&](auto command) {
      return context_.controller.release(command);
    });
  }

  Response cancel_all(const Request& request) const {
    auto identity = context_.directory.look_up(request.peer.uid, request.peer.gid);
    if (!identity) return http::error_response(identity.error());
    auto accepted = context_.controller.cancel(control::CancelAll{std::move(*identity)});
    if (!accepted) return http::error_response(accepted.error());
    return json(codec::changed_reply_json(head(), "cancelled", accepted->jobs));
  }

  Response logs(const Request& request, const Captures& captures) const {
    auto id = job_id(captures);
    if (!id) return http::error_response(id.error());
    auto offset = number("offset", query(request, "offset", "0"), 0, INT64_MAX);
    if (!offset) return http::error_response(offset.error());
    auto wait_ms = number("wait_ms", query(request, "wait_ms", "0"), 0, 600'000);
    if (!wait_ms) return http::error_response(wait_ms.error());
    auto stream = one_of(request, "stream", "stdout", {"stdout", "stderr"});
    if (!stream) return http::error_response(stream.error());
    LogRequest log{*id,
                   *stream == "stderr",
                   *offset,
                   std::min(milliseconds(*wait_ms), kWaitMax),
                   request.peer.uid,
                   admin(request.peer)};
    auto piece = read_log(context_.controller, context_.archive, log, request.stop);
    if (!piece) return http::error_response(piece.error());
    Response response;
    response.content_type = "application/octet-stream";
    response.body = std::move(piece->bytes);
    response.headers["X-Takt-Next-Offset"] = std::to_string(piece->next_offset);
    response.headers["X-Takt-Ended"] = piece->ended ? "true" : "false";
    return response;
  }

  // Everybody's jobs with their environments are in it.
  Response backup(const Request& request) const {
    if (!admin(request.peer))
      return http::error_response(
          {ErrorKind::forbidden,
           "only root, administrators and whoever runs the server may copy the journal"});
    if (context_.backups == nullptr)
      return http::error_response({ErrorKind::unavailable, "this server cannot make backups"});
    auto file = context_.backups->make();
    if (!file) return http::error_response(file.error());
    Response response;
    response.content_type = "application/vnd.sqlite3";
    response.file = std::move(*file);
    return response;
  }

  // ---- the rest -------------------------------------------------------------------------------

  Response gpus(const Request& request) const {
    auto format = one_of(request, "format", "json", {"json", "text"});
    if (!format) return http::error_response(format.error());
    std::vector<control::NodeView> nodes;
    context_.controller.read(
        [&](const control::Sight& sight) { nodes = control::node_views(sight.cluster); });
    if (*format != "text") return json(codec::gpus_json(head(), nodes));
    auto screen = screen_of(request);
    if (!screen) return http::error_response(screen.error());
    return text(report::gpus_table(nodes, context_.clock(), *screen));
  }

  Response workloads(const Request& request) const {
    auto format = one_of(request, "format", "json", {"json", "text"});
    if (!format) return http::error_response(format.error());
    const auto summaries =
        context_.measurements.summaries(context_.controller.policy(), context_.clock());
    if (*format != "text") return json(codec::workloads_json(head(), summaries));
    auto screen = screen_of(request);
    if (!screen) return http::error_response(screen.error());
    return text(report::workloads_table(summaries, *screen));
  }

  Response status(const Request& request) const {
    codec::ServerStatus status;
    status.pid = context_.pid;
    status.started = context_.started;
    status.policy_revision = context_.controller.policy().revision;
    status.state_dir = context_.state_dir;
    status.problem = context_.controller.problem();
    if (auto who = context_.directory.look_up(request.peer.uid, request.peer.gid))
      status.caller = who->user;
    status.caller_admin = admin(request.peer);
    context_.controller.read([&](const control::Sight& sight) {
      status.counts = control::counts(sight.state);
      for (const auto& [id, seen] : sight.cluster.nodes) {
        ++status.nodes;
        status.nodes_reachable += seen.reachable() ? 1 : 0;
        status.gpus += static_cast<int>(seen.report.node.gpus.size());
        status.emulated = status.emulated || seen.report.node.emulated;
      }
    });
    return json(codec::status_json(head(), status));
  }

 private:
  static Result<report::Screen> screen_of(const Request& request) {
    report::Screen screen;
    auto width = number("width", query(request, "width", "100"), 1, 10'000);
    if (!width) return tl::make_unexpected(width.error());
    auto offset =
        number("utc_offset_seconds", query(request, "utc_offset_seconds", "0"), -86'400, 86'400);
    if (!offset) return tl::make_unexpected(offset.error());
    screen.width = static_cast<int>(*width);
    screen.utc_offset = seconds(*offset);
    screen.colour = query(request, "colour", "false") == "true";
    return screen;
  }

  ApiContext& context_;
  mutable RecentRequests requests_;
};

}  // namespace

http::Router make_router(ApiContext& context) {
  const auto api = std::make_shared<Api>(context);
  http::Router router;
  router.add("GET", "/v1/version", [api](const Request&, const Captures&) {
    return json(codec::version_json(api->head()));
  });
  router.add("GET", "/v1/status",
             [api](const Request& r, const Captures&) { return api->status(r); });
  router.add("GET", "/v1/jobs", [api](const Request& r, const Captures&) { return api->list(r); });
  router.add("POST", "/v1/jobs",
             [api](const Request& r, const Captures&) { return api->submit(r); });
  router.add("POST", "/v1/jobs/cancel",
             [api](const Request& r, const Captures&) { return api->cancel_all(r); });
  router.add("GET", "/v1/jobs/{id}",
             [api](const Request& r, const Captures& c) { return api->show(r, c); });
  router.add("POST", "/v1/jobs/{id}/hold",
             [api](const Request& r, const Captures& c) { return api->hold(r, c); });
  router.add("POST", "/v1/jobs/{id}/release",
             [api](const Request& r, const Captures& c) { return api->release(r, c); });
  router.add("POST", "/v1/jobs/{id}/cancel",
             [api](const Request& r, const Captures& c) { return api->cancel(r, c); });
  router.add("GET", "/v1/jobs/{id}/logs",
             [api](const Request& r, const Captures& c) { return api->logs(r, c); });
  router.add("GET", "/v1/backup",
             [api](const Request& r, const Captures&) { return api->backup(r); });
  router.add("GET", "/v1/gpus", [api](const Request& r, const Captures&) { return api->gpus(r); });
  router.add("GET", "/v1/workloads",
             [api](const Request& r, const Captures&) { return api->workloads(r); });
  return router;
}

}  // namespace takt::server
