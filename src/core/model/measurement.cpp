#include "core/model/measurement.h"

namespace takt {

std::string to_string(Category category) {
  switch (category) {
    case Category::serving: return "serving";
    case Category::training: return "training";
    case Category::batch: return "batch";
    case Category::experimental: return "experimental";
    case Category::unknown: break;
  }
  return "unknown";
}

}  // namespace takt
