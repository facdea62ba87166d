// takt submit: a job file or a script into the queue.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "app/cli/commands.h"
#include "app/cli/job_flags.h"
#include "app/cli/output.h"
#include "app/cli/session.h"
#include "app/cli/submission.h"
#include "edge/codec/api_json.h"
#include "edge/codec/job_script.h"
#include "edge/codec/job_spec_yaml.h"

namespace takt::cli {
namespace {

// A job file of more than this is a mistake in the path.
constexpr std::size_t kFileMax = 4u << 20;

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(kFileMax + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (in.bad() || (in.fail() && !in.eof()))
      return fail(ErrorKind::invalid, fmt::format("{}: cannot be read: is it a file?", path));
    text.resize(static_cast<std::size_t>(in.gcount()));
  } else {
    return fail(ErrorKind::invalid, fmt::format("{}: {}: give the path of a job file or script",
                                                path, std::strerror(errno)));
  }
  if (text.size() > kFileMax)
    return fail(ErrorKind::invalid,
                fmt::format("{}: more than {} MiB: is it a job file?", path, kFileMax >> 20));
  return text;
}

Result<codec::ParsedJob> parse(const SubmitFlags& flags) {
  auto text = read_file(flags.file);
  if (!text) return tl::make_unexpected(text.error());
  codec::YamlContext context;
  auto folder = current_folder();
  if (!folder) return tl::make_unexpected(folder.error());
  context.workdir = *folder;
  if (codec::looks_like_script(*text))
    return codec::parse_job_script(*text, flags.file, flags.arguments, context);
  if (!flags.arguments.empty())
    return fail(ErrorKind::invalid,
                fmt::format("{} is a job file and takes no arguments: put them into its run: line",
                            flags.file));
  return codec::parse_job_yaml(*text, flags.file, context);
}

std::string trial_text(const codec::SubmitReceipt& receipt) {
  std::string text =
      fmt::format("{} job{}; nothing was queued\n", receipt.count, receipt.count == 1 ? "" : "s");
  for (const std::string& rule : receipt.decision) text += "  " + rule + "\n";
  text += receipt.would_start ? "it would start now\n" : "it would wait:\n";
  for (const Blocker& b : receipt.waiting_for)
    text += fmt::format("  needs {}; {}. {}\n", b.needed, b.available, b.action);
  return text;
}

std::string receipt_text(const codec::SubmitReceipt& receipt) {
  if (receipt.ids.size() == 1) return fmt::format("job {}\n", to_string(receipt.ids.front()));
  return fmt::format("jobs {} to {}\n", to_string(receipt.ids.front()),
                     to_string(receipt.ids.back()));
}

}  // namespace

int submit(const SubmitFlags& flags) {
  auto parsed = parse(flags);
  if (!parsed) return complain(parsed.error());
  if (auto ok = apply_flags(flags.job, parsed->spec); !ok) return complain(ok.error());
  inherit_environment(parsed->spec);
  Query query;
  if (flags.dry_run) query["dry_run"] = "true";
  const int signals = signal_descriptor();
  const Sent sent = send_submission({std::move(parsed->spec), Tier::batch}, query, signals);
  if (sent.code) return *sent.code;
  const int code = sent.signal == 0 ? kExitFine : 128 + sent.signal;
  if (flags.json) return put(sent.answer + "\n", code);
  auto receipt = codec::read_submit_reply(sent.answer);
  if (!receipt) return complain(receipt.error());
  // What the file's reader noticed, and what the server says beyond that.
  std::vector<std::string> warnings = parsed->warnings;
  for (const std::string& w : receipt->warnings)
    if (std::find(warnings.begin(), warnings.end(), w) == warnings.end()) warnings.push_back(w);
  warn(warnings);
  if (receipt->dry_run) return put(trial_text(*receipt), code);
  if (sent.signal != 0) tell("it was queued before the interrupt: `takt cancel` ends it");
  return put(receipt_text(*receipt), code);
}

}  // namespace takt::cli
