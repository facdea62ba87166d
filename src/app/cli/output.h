#pragma once
// Standard output of the commands. A full disk or a reader that went away is never dropped: a
// script that trusts half a document is worse off than one that gets an exit code.
#include <string_view>

#include "core/base/result.h"

namespace takt::cli {

// All of it, or an Error of kind io. Its sentence is empty when the reader has closed the pipe:
// that was the reader's wish, and nobody needs to be told.
Result<void> write_all(int fd, std::string_view bytes);

// Writes to standard output and gives `code`; where that fails it says so and gives 1.
int put(std::string_view text, int code = 0);

// Descriptors 0 to 2 that were closed when we were started would be given to the next file or
// socket that is opened, and what is printed would go there. They are taken; writing to them fails.
void hold_standard_descriptors();

}  // namespace takt::cli
