#include "support/places.h"

namespace takt::testing {

std::string source_folder() { return TAKT_SOURCE_DIR; }
std::string build_folder() { return TAKT_BUILD_DIR; }

}  // namespace takt::testing
