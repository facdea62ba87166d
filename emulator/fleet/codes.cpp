#include "fleet/codes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace takt::emulator {
namespace {

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

constexpr std::array kNames = {
    std::pair{"uninitialized", Code::uninitialized},
    std::pair{"invalid_argument", Code::invalid_argument},
    std::pair{"not_supported", Code::not_supported},
    std::pair{"no_permission", Code::no_permission},
    std::pair{"already_initialized", Code::already_initialized},
    std::pair{"not_found", Code::not_found},
    std::pair{"insufficient_size", Code::insufficient_size},
    std::pair{"insufficient_power", Code::insufficient_power},
    std::pair{"driver_not_loaded", Code::driver_not_loaded},
    std::pair{"timeout", Code::timeout},
    std::pair{"irq_issue", Code::irq_issue},
    std::pair{"library_not_found", Code::library_not_found},
    std::pair{"function_not_found", Code::function_not_found},
    std::pair{"corrupted_inforom", Code::corrupted_inforom},
    std::pair{"gpu_is_lost", Code::gpu_is_lost},
    std::pair{"reset_required", Code::reset_required},
    std::pair{"operating_system", Code::operating_system},
    std::pair{"lib_rm_version_mismatch", Code::lib_rm_version_mismatch},
    std::pair{"in_use", Code::in_use},
    std::pair{"memory", Code::memory},
    std::pair{"no_data", Code::no_data},
    std::pair{"argument_version_mismatch", Code::argument_version_mismatch},
    std::pair{"deprecated", Code::deprecated},
    std::pair{"not_ready", Code::not_ready},
    std::pair{"unknown", Code::unknown},
};

// Longer phrases first where one contains another. Wordings as seen in captures and in the texts
// that nvmlErrorString gives for its codes.
constexpr std::array kPhrases = {
    std::pair{"has been deprecated", Code::deprecated},
    std::pair{"requires reset", Code::reset_required},
    std::pair{"needs reset", Code::reset_required},
    std::pair{"requires a reset", Code::reset_required},
    std::pair{"is lost", Code::gpu_is_lost},
    std::pair{"gpu lost", Code::gpu_is_lost},
    std::pair{"insufficient permission", Code::no_permission},
    std::pair{"no permission", Code::no_permission},
    std::pair{"not available in wddm", Code::not_supported},
    std::pair{"not supported", Code::not_supported},
    std::pair{"function not found", Code::function_not_found},
    std::pair{"redacted", Code::no_data},  // by whoever published the capture
    std::pair{"not found", Code::not_found},
    std::pair{"unknown error", Code::unknown},
    std::pair{"timeout", Code::timeout},
    std::pair{"err!", Code::unknown},
};

}  // namespace

std::optional<Code> code_by_name(std::string_view name) {
  std::string wanted = lowered(name);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  constexpr std::string_view prefix = "nvml_error_";
  if (wanted.rfind(prefix, 0) == 0) wanted.erase(0, prefix.size());
  for (const auto& [known, code] : kNames)
    if (wanted == known) return code;
  return std::nullopt;
}

std::optional<Code> code_by_words(std::string_view words) {
  std::string text = lowered(words);
  std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.erase(0, 1);
  if (text.empty() || text == "n/a" || text == "none") return Code::not_supported;
  if (text == "err" || text == "error" || text == "unknown") return Code::unknown;
  for (const auto& [phrase, code] : kPhrases)
    if (text.find(phrase) != std::string::npos) return code;
  return std::nullopt;
}

}  // namespace takt::emulator
