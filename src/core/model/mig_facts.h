#pragma once
// How NVIDIA GPUs can be partitioned (MIG): the profiles of each family, where their instances may
// begin, and how the driver's names come about.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/quantities.h"

namespace takt {

struct MigProfile {
  std::string name;  // "1g.10gb", "1g.10gb+me"
  int compute_slices = 0;
  int memory_slices = 0;    // 3g takes 4 of 8: half the memory with 3/7 of the compute
  std::vector<int> starts;  // memory slices an instance may begin at
  int most = 0;             // instances of this profile on one GPU
  bool media_extensions = false;
};

struct MigFamily {
  std::string key;         // "a100-80"
  int compute_slices = 0;  // of the whole GPU; the sum over instances never exceeds it
  int memory_slices = 0;
  std::vector<MigProfile> profiles;  // smallest first
};

// The family of a GPU by the driver's name and its memory (zero: the name must tell). None for GPUs
// that cannot be partitioned or whose profiles are not known.
std::optional<MigFamily> mig_family_for(std::string_view model, Bytes device_memory);

// Every family, for tables and tests.
std::vector<MigFamily> all_mig_families();

struct MigShape {
  int gpu_slices = 0;      // of the GPU instance
  int compute_slices = 0;  // of the compute instance in it
  Bytes memory;            // of the GPU instance, as the driver gives it
  Bytes device_memory;     // of the whole GPU; zero: unknown
  bool media_extensions = false;
};

// The name the driver's tools give a shape: "1g.10gb", "1c.3g.40gb" for a compute instance that is
// a part of its GPU instance, "+me" with media extensions. Memory is not rounded by itself: its
// share of the GPU is rounded up to eighths, and that share of the GPU's whole gibibytes is rounded
// to the nearest one (NVIDIA/go-nvlib, pkg/nvlib/device/mig_profile.go), so that 10.75 GiB of an
// H100 NVL is "1g.12gb".
std::string mig_profile_name(const MigShape& shape);

}  // namespace takt
