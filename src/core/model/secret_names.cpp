#include "core/model/secret_names.h"

#include <array>
#include <string>

namespace takt {

bool is_secret_name(std::string_view name) {
  std::string upper(name);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  constexpr std::array<std::string_view, 6> parts = {"TOKEN",  "SECRET",     "PASSWORD",
                                                     "PASSWD", "CREDENTIAL", "AUTH"};
  for (const std::string_view part : parts)
    if (upper.find(part) != std::string::npos) return true;
  constexpr std::string_view ending = "_KEY";
  return upper.size() >= ending.size() &&
         upper.compare(upper.size() - ending.size(), ending.size(), ending) == 0;
}

std::string shown_variable_name(std::string_view name) {
  constexpr std::size_t shown_max = 60;
  std::size_t end = 0;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  while (end < name.size() && end < shown_max && fits(name[end])) ++end;
  return std::string(name.substr(0, end)) + (end < name.size() ? "..." : "");
}

}  // namespace takt
