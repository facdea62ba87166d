#pragma once
// One of each checker; what each holds is said in its file.
#include <memory>

#include "core/replay/checker.h"

namespace takt::replay {

std::unique_ptr<Checker> check_devices();
std::unique_ptr<Checker> check_launches();
std::unique_ptr<Checker> check_promises();
std::unique_ptr<Checker> check_orders();
std::unique_ptr<Checker> check_reasons();
std::unique_ptr<Checker> check_evidence();
std::unique_ptr<Checker> check_stops();
std::unique_ptr<Checker> check_outcomes();
std::unique_ptr<Checker> check_views();
std::unique_ptr<Checker> check_replay();
std::unique_ptr<Checker> check_ledger();
std::unique_ptr<Checker> check_ends();

}  // namespace takt::replay
