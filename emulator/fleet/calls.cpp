#include "fleet/calls.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "fleet/fleet.h"

namespace takt::emulator {
namespace {

// Calls to one GPU; those to the system have no GPU that could fail.
constexpr std::array<std::string_view, 38> kCalls = {"handlebyindex",
                                                     "handlebyuuid",
                                                     "uuid",
                                                     "index",
                                                     "minornumber",
                                                     "name",
                                                     "pciinfo",
                                                     "numanodeid",
                                                     "memoryinfo",
                                                     "utilizationrates",
                                                     "temperature",
                                                     "powerusage",
                                                     "enforcedpowerlimit",
                                                     "totalenergyconsumption",
                                                     "clockinfo",
                                                     "currentclockseventreasons",
                                                     "currentclocksthrottlereasons",
                                                     "performancestate",
                                                     "fanspeed",
                                                     "totaleccerrors",
                                                     "pciethroughput",
                                                     "computerunningprocesses",
                                                     "graphicsrunningprocesses",
                                                     "processutilization",
                                                     "migmode",
                                                     "maxmigdevicecount",
                                                     "migdevicehandlebyindex",
                                                     "gpuinstanceid",
                                                     "computeinstanceid",
                                                     "attributes",
                                                     "gpuinstancebyid",
                                                     "gpuinstancegetinfo",
                                                     "topologycommonancestor",
                                                     "nvlinkstate",
                                                     "nvlinkremotepciinfo",
                                                     "registerevents",
                                                     "gpmquerydevicesupport",
                                                     "gpmsampleget"};

}  // namespace

bool is_known_call(const std::string& name) {
  std::string call = canonical_call(name);
  return std::find(kCalls.begin(), kCalls.end(), call) != kCalls.end();
}

}  // namespace takt::emulator
