#pragma once
// Which environment variables are secrets by their name alone. Their values are never shown.
#include <string_view>

namespace takt {

// Ignoring case: contains TOKEN, SECRET, PASSWORD, PASSWD, CREDENTIAL or AUTH, or ends in _KEY.
bool is_secret_name(std::string_view name);

}  // namespace takt
