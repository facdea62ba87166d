#include "fleet/document.h"

#include <cctype>

namespace takt::emulator {

const Entry* Entry::child(std::string_view wanted) const {
  for (const auto& c : children)
    if (c.name == wanted) return &c;
  return nullptr;
}

const Entry* Entry::first_child(std::initializer_list<std::string_view> names) const {
  for (auto wanted : names)
    if (const Entry* found = child(wanted)) return found;
  return nullptr;
}

std::string trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())))
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())))
    text.remove_suffix(1);
  return std::string(text);
}

std::string normalised(std::string_view name) {
  std::string out;
  for (char c : name) {
    auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u))
      out += static_cast<char>(std::tolower(u));
    else if (!out.empty() && out.back() != '_')
      out += '_';
  }
  while (!out.empty() && out.back() == '_') out.pop_back();
  return out;
}

}  // namespace takt::emulator
