#pragma once
// Text that is safe to print and knows how wide it is on a terminal.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace takt::report {

// Without anything that could drive a terminal: control characters (C0, DEL, C1), direction marks
// and other invisible characters, and invalid UTF-8 become '?'; line breaks and tabs become spaces.
std::string harmless(std::string_view text);

// Columns on a terminal of harmless UTF-8 text: combining characters 0, East Asian wide and
// emoji 2. Our own colour sequences (ESC [ … m) count 0.
std::size_t columns(std::string_view text);

// At most `width` columns; what is cut off is shown by "…". Never cuts a character.
std::string cut(std::string_view text, std::size_t width);

// Filled with spaces to `width` columns (cut, if longer).
std::string pad(std::string_view text, std::size_t width);
std::string pad_left(std::string_view text, std::size_t width);

// Broken at spaces into lines of at most `width` columns; a longer word is broken.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// `lead` and then the text, wrapped to `width`; following lines stand below the text's beginning.
// Every line ends in a newline.
std::string paragraph(std::string_view lead, std::string_view text, std::size_t width);

}  // namespace takt::report
