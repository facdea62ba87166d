#include "edge/codec/policy_yaml.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/model/quantity_text.h"
#include "edge/codec/yaml_value.h"

namespace takt::codec {
namespace {

constexpr std::size_t kFileBytesMax = 64 << 10;

// FNV-1a with 64 bits: a name for a text, not a protection of it.
std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 14'695'981'039'346'656'037U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1'099'511'628'211U;
  return hash;
}

class PolicyReader {
 public:
  PolicyReader(YamlFields& fields, Policy& policy) : f_(fields), policy_(policy) {}

  void read(const YamlValue& root) {
    f_.map(
        root, "",
        {{"version", [this](auto& v, auto& p) { version(v, p); }},
         {"revision", [this](auto& v, auto& p) { revision(v, p); }},
         {"admin_groups", [this](auto& v, auto& p) { f_.texts(v, p, policy_.admin_groups); }},
         {"fair_share_half_life",
          [this](auto& v, auto& p) {
            span(v, p, minutes(1), hours(24 * 365), policy_.fair_share_half_life);
          }},
         {"ignored_programs",
          [this](auto& v, auto& p) { f_.texts(v, p, policy_.ignored_programs); }},
         {"ignored_memory_max",
          [this](auto& v, auto& p) { f_.parsed(v, p, parse_size, policy_.ignored_memory_max); }},
         {"stop_grace",
          [this](auto& v, auto& p) { span(v, p, Duration{0}, hours(1), policy_.stop_grace); }},
         {"node_silent_max",
          [this](auto& v, auto& p) { span(v, p, seconds(1), hours(1), policy_.node_silent_max); }},
         {"node_unreachable_after",
          [this](auto& v, auto& p) {
            span(v, p, seconds(2), hours(24), policy_.node_unreachable_after);
          }},
         {"node_lost_after",
          [this](auto& v, auto& p) { span(v, p, seconds(3), hours(48), policy_.node_lost_after); }},
         {"kill_proof_max",
          [this](auto& v, auto& p) { span(v, p, seconds(1), hours(24), policy_.kill_proof_max); }},
         {"kill_failures_max", [this](auto& v, auto& p) { kill_failures(v, p); }},
         {"time_estimate", [this](auto& v, auto& p) { time_estimate(v, p); }},
         {"size_margin", [this](auto& v, auto& p) { size_margin(v, p); }},
         {"finished", [this](auto& v, auto& p) { finished(v, p); }},
         {"logs", [this](auto& v, auto& p) { logs(v, p); }},
         {"limits", [this](auto& v, auto& p) { limits(v, p); }}},
        "a policy; expected fields such as stop_grace: 10s");
    order_of_silence();
  }

 private:
  void version(const YamlValue& v, const std::string& p) {
    std::int64_t n = 0;
    if (!f_.whole(v, p, 0, std::numeric_limits<int>::max(), "a version", n) || n == 1) return;
    f_.faults.add(v.line, p, describe(v) + " is not a version that this takt reads; expected 1");
  }
  void revision(const YamlValue& v, const std::string& p) {
    if (f_.text(v, p, policy_.revision) &&
        (policy_.revision.empty() || policy_.revision.size() > 128))
      f_.faults.add(v.line, p,
                    "has " + std::to_string(policy_.revision.size()) + " bytes; expected 1 to 128");
  }
  void span(const YamlValue& v, const std::string& p, Duration min, Duration max, Duration& to) {
    Duration found;
    if (!f_.parsed(v, p, parse_duration, found)) return;
    if (found < min || found > max)
      return f_.faults.add(v.line, p,
                           describe(v) + " is out of range; expected " + format_duration(min) +
                               " to " + format_duration(max));
    to = found;
  }
  void kill_failures(const YamlValue& v, const std::string& p) {
    std::int64_t n = 0;
    if (f_.whole(v, p, 1, 1000, "a number of attempts", n))
      policy_.kill_failures_max = static_cast<int>(n);
  }
  // Suspect, unreachable, lost: each comes after the one before. What is not written keeps that
  // order.
  void order_of_silence() {
    const auto later = [&](const char* field, Duration& span, const char* other, Duration before) {
      if (span > before) return;
      const auto line = f_.lines.find(field);
      if (line == f_.lines.end())
        span = before + before;
      else
        f_.faults.add(line->second, field,
                      fmt::format("{} is not longer than {}, {}", format_duration(span), other,
                                  format_duration(before)));
    };
    later("node_unreachable_after", policy_.node_unreachable_after, "node_silent_max",
          policy_.node_silent_max);
    later("node_lost_after", policy_.node_lost_after, "node_unreachable_after",
          policy_.node_unreachable_after);
  }
  void time_estimate(const YamlValue& v, const std::string& p) {
    const auto of = [this](Tier tier) {
      return [this, tier](const YamlValue& value, const std::string& at) {
        Duration found;
        span(value, at, seconds(1), hours(24 * 365), found);
        if (found.us > 0) policy_.time_estimate[tier] = found;
      };
    };
    f_.map(v, p,
           {{"serving", of(Tier::serving)},
            {"training", of(Tier::training)},
            {"batch", of(Tier::batch)},
            {"experimental", of(Tier::experimental)}});
  }
  void size_margin(const YamlValue& v, const std::string& p) {
    int percent = 0;
    if (!f_.parsed(v, p, parse_percent, percent)) return;
    if (percent > 1000)
      return f_.faults.add(v.line, p, describe(v) + " is out of range; expected 0% to 1000%");
    policy_.size_margin_percent = percent;
  }
  YamlFields::Read count(std::size_t& to, std::int64_t max) {
    return [this, &to, max](const YamlValue& v, const std::string& p) {
      std::int64_t n = 0;
      if (f_.whole(v, p, 1, max, "a limit", n)) to = static_cast<std::size_t>(n);
    };
  }
  YamlFields::Read size(std::size_t& to, Bytes max) {
    return [this, &to, max](const YamlValue& v, const std::string& p) {
      Bytes found;
      if (!f_.parsed(v, p, parse_size, found)) return;
      if (found < kibibytes(1) || found > max)
        return f_.faults.add(
            v.line, p, describe(v) + " is out of range; expected 1KiB to " + format_size(max));
      to = static_cast<std::size_t>(found.value);
    };
  }
  YamlFields::Read bytes(Bytes& to, Bytes min, Bytes max) {
    return [this, &to, min, max](const YamlValue& v, const std::string& p) {
      Bytes found;
      if (!f_.parsed(v, p, parse_size, found)) return;
      if (found < min || found > max)
        return f_.faults.add(v.line, p,
                             describe(v) + " is out of range; expected " + format_size(min) +
                                 " to " + format_size(max));
      to = found;
    };
  }
  YamlFields::Read days(Duration& to) {
    return [this, &to](const YamlValue& v, const std::string& p) {
      span(v, p, minutes(1), hours(24 * 3650), to);
    };
  }
  void finished(const YamlValue& v, const std::string& p) {
    FinishedRules& rules = policy_.finished;
    f_.map(v, p,
           {{"live_max", count(rules.live_max, 1'000'000)},
            {"live_for", days(rules.live_for)},
            {"keep", days(rules.keep)},
            {"archive_bytes_max", bytes(rules.archive_bytes_max, mebibytes(1), gibibytes(1024))}});
  }
  void logs(const YamlValue& v, const std::string& p) {
    f_.map(v, p,
           {{"keep", days(policy_.logs.keep)},
            {"bytes_max", bytes(policy_.logs.bytes_max, mebibytes(1), gibibytes(1 << 20))}});
  }
  void limits(const YamlValue& v, const std::string& p) {
    Limits& l = policy_.limits;
    bool per_user = false;
    const auto replicas = [&](const YamlValue& value, const std::string& at) {
      std::int64_t n = 0;
      if (f_.whole(value, at, 1, 10'000, "a limit", n)) l.replicas_max = static_cast<int>(n);
    };
    const auto log_size = [&](const YamlValue& value, const std::string& at) {
      Bytes found;
      if (!f_.parsed(value, at, parse_size, found)) return;
      if (found < mebibytes(1) || found > gibibytes(1024))
        return f_.faults.add(value.line, at,
                             describe(value) + " is out of range; expected 1MiB to 1TiB");
      l.log_bytes_max = found;
    };
    f_.map(v, p,
           {{"pending_jobs_max", count(l.pending_jobs_max, 10'000'000)},
            {"array_tasks_max", count(l.array_tasks_max, 1'000'000)},
            {"spec_bytes_max", size(l.spec_bytes_max, mebibytes(64))},
            {"environment_bytes_max", size(l.environment_bytes_max, mebibytes(16))},
            {"pending_jobs_per_user_max", count(l.pending_jobs_per_user_max, 10'000'000)},
            {"inputs_batch_max", count(l.inputs_batch_max, 100'000)},
            {"engine_waiting_max", count(l.engine_waiting_max, 1'000'000)},
            {"connections_max", count(l.connections_max, 100'000)},
            {"connections_per_user_max",
             [&](const YamlValue& value, const std::string& at) {
               per_user = true;
               count(l.connections_per_user_max, 100'000)(value, at);
             }},
            {"replicas_max", replicas},
            {"log_bytes_max", log_size}});
    if (!per_user) l.connections_per_user_max = std::max<std::size_t>(1, l.connections_max / 4);
    if (l.connections_per_user_max > l.connections_max)
      f_.faults.add(v.line, p + ".connections_per_user_max",
                    fmt::format("{} is more than connections_max, {}", l.connections_per_user_max,
                                l.connections_max));
  }

  YamlFields& f_;
  Policy& policy_;
};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else
      out += c;
  }
  return out + "\"";
}

std::string list(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? ", " : "") + quoted(text);
  return out + "]";
}

// The largest unit that divides it: exact.
std::string exact_span(Duration span) {
  struct Unit {
    std::int64_t us;
    const char* name;
  };
  constexpr std::array<Unit, 5> units = {
      {{3'600'000'000, "h"}, {60'000'000, "m"}, {1'000'000, "s"}, {1'000, "ms"}, {1, "us"}}};
  for (const Unit& unit : units)
    if (span.us != 0 && span.us % unit.us == 0)
      return std::to_string(span.us / unit.us) + unit.name;
  return "0s";
}

}  // namespace

Result<Policy> parse_policy_yaml(std::string_view text, const std::string& file) {
  YamlFaults faults(file);
  YamlValue root;
  if (!parse_yaml(text, kFileBytesMax, root, faults)) return faults.error();
  Policy policy;
  policy.revision = fmt::format("file-{:016x}", fnv1a(text));
  // A file with comments only is the default policy.
  if (root.kind != YamlValue::Kind::null) {
    YamlFields fields(faults);
    PolicyReader(fields, policy).read(root);
  }
  if (faults.any()) return faults.error();
  return policy;
}

std::string policy_to_yaml(const Policy& policy) {
  std::string out =
      fmt::format("version: {}\nrevision: {}\n", policy.version, quoted(policy.revision));
  out += fmt::format("admin_groups: {}\n", list(policy.admin_groups));
  out += fmt::format("fair_share_half_life: {}\n", exact_span(policy.fair_share_half_life));
  out += fmt::format("ignored_programs: {}\n", list(policy.ignored_programs));
  out += fmt::format("ignored_memory_max: {}B\n", policy.ignored_memory_max.value);
  out += fmt::format("stop_grace: {}\n", exact_span(policy.stop_grace));
  out += fmt::format("node_silent_max: {}\n", exact_span(policy.node_silent_max));
  out += fmt::format("node_unreachable_after: {}\n", exact_span(policy.node_unreachable_after));
  out += fmt::format("node_lost_after: {}\n", exact_span(policy.node_lost_after));
  out += fmt::format("kill_proof_max: {}\n", exact_span(policy.kill_proof_max));
  out += fmt::format("kill_failures_max: {}\n", policy.kill_failures_max);
  out += policy.time_estimate.empty() ? "" : "time_estimate:\n";
  for (const auto& [tier, span] : policy.time_estimate)
    out += fmt::format("  {}: {}\n", to_string(tier), exact_span(span));
  out += fmt::format("size_margin: {}%\n", policy.size_margin_percent);
  const FinishedRules& f = policy.finished;
  out += fmt::format(
      "finished:\n  live_max: {}\n  live_for: {}\n  keep: {}\n  archive_bytes_max: {}B\n",
      f.live_max, exact_span(f.live_for), exact_span(f.keep), f.archive_bytes_max.value);
  out += fmt::format("logs:\n  keep: {}\n  bytes_max: {}B\n", exact_span(policy.logs.keep),
                     policy.logs.bytes_max.value);
  const Limits& l = policy.limits;
  out += fmt::format(
      "limits:\n  pending_jobs_max: {}\n  array_tasks_max: {}\n  spec_bytes_max: {}B\n"
      "  environment_bytes_max: {}B\n  pending_jobs_per_user_max: {}\n  inputs_batch_max: {}\n"
      "  engine_waiting_max: {}\n"
      "  connections_max: {}\n  connections_per_user_max: {}\n  replicas_max: {}\n"
      "  log_bytes_max: {}B\n",
      l.pending_jobs_max, l.array_tasks_max, l.spec_bytes_max, l.environment_bytes_max,
      l.pending_jobs_per_user_max, l.inputs_batch_max, l.engine_waiting_max, l.connections_max,
      l.connections_per_user_max, l.replicas_max, l.log_bytes_max.value);
  return out;
}

}  // namespace takt::codec
