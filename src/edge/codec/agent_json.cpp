#include "edge/codec/agent_json.h"

#include <utility>

#include "edge/codec/exact_nouns.h"

namespace takt::codec {
namespace exact {

constexpr Word<ProcessKind> process_words[] = {{ProcessKind::compute, "compute"},
                                               {ProcessKind::graphics, "graphics"},
                                               {ProcessKind::both, "both"}};
constexpr auto& words(Tag<ProcessKind>) { return process_words; }

constexpr Word<GpuHealth> health_words[] = {{GpuHealth::ok, "ok"},
                                            {GpuHealth::unresponsive, "unresponsive"},
                                            {GpuHealth::lost, "lost"},
                                            {GpuHealth::failing, "failing"}};
constexpr auto& words(Tag<GpuHealth>) { return health_words; }

constexpr Word<LinkKind> link_words[] = {{LinkKind::nvlink, "nvlink"},  {LinkKind::pix, "pix"},
                                         {LinkKind::pxb, "pxb"},        {LinkKind::phb, "phb"},
                                         {LinkKind::node, "node"},      {LinkKind::sys, "sys"},
                                         {LinkKind::unknown, "unknown"}};
constexpr auto& words(Tag<LinkKind>) { return link_words; }

constexpr Word<control::AttemptPhase> phase_words[] = {
    {control::AttemptPhase::starting, "starting"},
    {control::AttemptPhase::running, "running"},
    {control::AttemptPhase::exited, "exited"}};
constexpr auto& words(Tag<control::AttemptPhase>) { return phase_words; }

template <class V, class T>
void fields(V& v, T& x, Tag<GpuProcess>) {
  v("pid", x.pid);
  v("kind", x.kind);
  v("name", x.name);
  v("user", x.user);
  v("started", x.started);
  v("memory", x.memory);
  v("sm_percent", x.sm_percent);
  v("mig_instance", x.mig_instance);
  v("attempt", x.attempt);
}

template <class V, class T>
void fields(V& v, T& x, Tag<MigInstance>) {
  v("uuid", x.uuid);
  v("profile", x.profile);
  v("start", x.start);
  v("size", x.size);
  v("compute_slices", x.compute_slices);
  v("gpu_instance", x.gpu_instance);
  v("compute_instance", x.compute_instance);
  v("memory_total", x.memory_total);
  v("memory_used", x.memory_used);
}

template <class V, class T>
void fields(V& v, T& x, Tag<MigState>) {
  v("enabled", x.enabled);
  v("pending", x.pending);
  v("instances", x.instances);
}

template <class V, class T>
void fields(V& v, T& x, Tag<XidEvent>) {
  v("code", x.code);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<Gpu>) {
  v("uuid", x.uuid);
  v("index", x.index);
  v("minor", x.minor);
  v("model", x.model);
  v("pci_bus_id", x.pci_bus_id);
  v("numa_node", x.numa_node);
  v("health", x.health);
  v("health_reason", x.health_reason);
  v("memory_total", x.memory_total);
  v("memory_used", x.memory_used);
  v("memory_reserved", x.memory_reserved);
  v("utilization_percent", x.utilization_percent);
  v("memory_utilization_percent", x.memory_utilization_percent);
  v("sm_active_ratio", x.sm_active_ratio);
  v("tensor_active_ratio", x.tensor_active_ratio);
  v("dram_active_ratio", x.dram_active_ratio);
  v("pcie_rx_bytes_per_second", x.pcie_rx_bytes_per_second);
  v("pcie_tx_bytes_per_second", x.pcie_tx_bytes_per_second);
  v("temperature_celsius", x.temperature_celsius);
  v("power_watts", x.power_watts);
  v("power_limit_watts", x.power_limit_watts);
  v("energy_millijoules", x.energy_millijoules);
  v("sm_clock_mhz", x.sm_clock_mhz);
  v("memory_clock_mhz", x.memory_clock_mhz);
  v("throttle_reasons", x.throttle_reasons);
  v("performance_state", x.performance_state);
  v("fan_percent", x.fan_percent);
  v("ecc_uncorrected", x.ecc_uncorrected);
  v("mig", x.mig);
  v("processes", x.processes);
  v("xids", x.xids);
}

template <class V, class T>
void fields(V& v, T& x, Tag<GpuLink>) {
  v("a", x.a);
  v("b", x.b);
  v("kind", x.kind);
  v("nvlinks", x.nvlinks);
}

template <class V, class T>
void fields(V& v, T& x, Tag<Node>) {
  v("id", x.id);
  v("boot_id", x.boot_id);
  v("cpus", x.cpus);
  v("memory", x.memory);
  v("emulated", x.emulated);
  v("driver_version", x.driver_version);
  v("driver_problem", x.driver_problem);
  v("gpus", x.gpus);
  v("links", x.links);
  v("notes", x.notes);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::AttemptSeen>) {
  v("attempt", x.attempt);
  v("generation", x.generation);
  v("phase", x.phase);
  v("pid", x.pid);
  v("started", x.started);
  v("ended", x.ended);
  v("exit", x.exit);
  v("processes_gone", x.processes_gone);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::NodeReport>) {
  v("sequence", x.sequence);
  v("at", x.at);
  v("node", x.node);
  v("attempts", x.attempts);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::LaunchOrder>) {
  v("attempt", x.attempt);
  v("generation", x.generation);
  v("identity", x.identity);
  v("argv", x.argv);
  v("env", x.env);
  v("workdir", x.workdir);
  v("stdout_path", x.stdout_path);
  v("stderr_path", x.stderr_path);
  v("grant", x.grant);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Start>) {
  v("order", x.order);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Stop>) {
  v("attempt", x.attempt);
  v("generation", x.generation);
  v("grace", x.grace);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Forget>) {
  v("attempt", x.attempt);
}

}  // namespace exact

namespace {

template <class T>
struct FrameType;
template <>
struct FrameType<control::NodeReport> {
  static constexpr const char* name = "report";
};
template <>
struct FrameType<control::Start> {
  static constexpr const char* name = "start";
};
template <>
struct FrameType<control::Stop> {
  static constexpr const char* name = "stop";
};
template <>
struct FrameType<control::Forget> {
  static constexpr const char* name = "forget";
};

template <class T>
std::string frame(const T& value) {
  JsonWriter out(std::is_same_v<T, control::NodeReport> ? 16'384 : 1'024);
  out.begin_object();
  out.field("protocol", agent_protocol);
  out.field("type", FrameType<T>::name);
  out.key("body");
  exact::put(out, value);
  out.end_object();
  return out.take();
}

struct Envelope {
  std::string type;
  JsonValue body;
};

tl::unexpected<Error> bad(const std::string& sentence) {
  return fail(ErrorKind::invalid, "agent frame: " + sentence);
}

Result<Envelope> open_frame(std::string_view text) {
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  if (text.empty()) return bad("is empty");
  Result<JsonValue> document = parse_json(text, agent_frame_bytes_max);
  if (!document) return bad(document.error().message);
  if (document->kind != JsonValue::Kind::object) return bad("is not an object");
  const JsonValue* protocol = document->find("protocol");
  if (protocol == nullptr || protocol->kind != JsonValue::Kind::natural)
    return bad("has no protocol number");
  // Looked at first: the rest of another protocol's frame means nothing to us.
  if (protocol->natural != static_cast<std::uint64_t>(agent_protocol))
    return bad("speaks protocol " + std::to_string(protocol->natural) + " and this takt speaks " +
               std::to_string(agent_protocol) +
               "; controller and agent are of different versions: restart both from the same "
               "installation");
  Envelope envelope;
  for (auto& [name, value] : document->fields) {
    if (name == "protocol") continue;
    if (name == "type" && value.kind == JsonValue::Kind::text) {
      envelope.type = value.text;
    } else if (name == "body" && value.kind == JsonValue::Kind::object) {
      envelope.body = std::move(value);
    } else {
      return bad("'" + printable(name) + "' is not a field of a frame or has the wrong type");
    }
  }
  if (envelope.type.empty()) return bad("has no type");
  if (envelope.body.kind != JsonValue::Kind::object) return bad("has no body");
  return envelope;
}

template <class T, class Out>
Result<Out> read_body(const Envelope& envelope) {
  exact::Fault fault;
  T value{};
  exact::get(envelope.body, exact::Place{nullptr, envelope.type}, fault, value);
  if (fault.any()) return bad(fault.sentence);
  return Out(std::move(value));
}

Result<control::Effect> effect_of(const Envelope& envelope) {
  if (envelope.type == FrameType<control::Start>::name)
    return read_body<control::Start, control::Effect>(envelope);
  if (envelope.type == FrameType<control::Stop>::name)
    return read_body<control::Stop, control::Effect>(envelope);
  if (envelope.type == FrameType<control::Forget>::name)
    return read_body<control::Forget, control::Effect>(envelope);
  return bad("type '" + printable(envelope.type) + "' is not an effect (start, stop, forget)");
}

}  // namespace

std::string encode_report(const control::NodeReport& report) { return frame(report); }

std::string encode_effect(const control::Effect& effect) {
  return std::visit([](const auto& alternative) { return frame(alternative); }, effect);
}

Result<control::NodeReport> decode_report(std::string_view text) {
  const Result<Envelope> envelope = open_frame(text);
  if (!envelope) return tl::make_unexpected(envelope.error());
  if (envelope->type != FrameType<control::NodeReport>::name)
    return bad("type '" + printable(envelope->type) + "' is not a report");
  return read_body<control::NodeReport, control::NodeReport>(*envelope);
}

Result<control::Effect> decode_effect(std::string_view text) {
  const Result<Envelope> envelope = open_frame(text);
  if (!envelope) return tl::make_unexpected(envelope.error());
  return effect_of(*envelope);
}

Result<AgentFrame> decode_frame(std::string_view text) {
  const Result<Envelope> envelope = open_frame(text);
  if (!envelope) return tl::make_unexpected(envelope.error());
  if (envelope->type == FrameType<control::NodeReport>::name)
    return read_body<control::NodeReport, AgentFrame>(*envelope);
  Result<control::Effect> effect = effect_of(*envelope);
  if (!effect) return tl::make_unexpected(effect.error());
  return AgentFrame(std::move(*effect));
}

}  // namespace takt::codec
