#pragma once
// The HTTP routes of docs/openapi.json: who asks is who the kernel says; commands go to the loop,
// everything else is read from what the loop published.
#include <string>

#include "app/server/archive.h"
#include "app/server/backup.h"
#include "app/server/controller.h"
#include "app/server/measurements.h"
#include "edge/http/router.h"
#include "edge/identity/directory.h"

namespace takt::server {

struct ApiContext {
  Controller& controller;
  const Measurements& measurements;
  identity::Directory& directory;
  std::string version;
  std::string state_dir;
  Instant started;
  std::int64_t pid = 0;
  std::uint32_t server_uid = 0;  // whoever runs the server may do everything, like root
  Clock clock;
  Backups* backups = nullptr;          // null: none can be made
  const Archivist* archive = nullptr;  // null: only the live state is looked at
};

// The context must outlive the router.
http::Router make_router(ApiContext& context);

}  // namespace takt::server
