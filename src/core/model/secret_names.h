#pragma once
// Which environment variables are secrets by their name alone. Their values are never shown.
#include <string>
#include <string_view>

namespace takt {

// Ignoring case: contains TOKEN, SECRET, PASSWORD, PASSWD, CREDENTIAL or AUTH, or ends in _KEY.
bool is_secret_name(std::string_view name);

// What a message may show of a variable's name: up to the first character that no name has, so that
// "TOKEN=hunter2", written where a name belongs, shows "TOKEN...".
std::string shown_variable_name(std::string_view name);

}  // namespace takt
