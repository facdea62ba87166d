#pragma once
// Every fault point, the process that reaches it, and what has to be done that it does. A test
// holds this table against the source.
#include <string>
#include <vector>

namespace takt::crash {

// What makes a process reach a point.
enum class Way {
  jobs,       // jobs that are submitted, run and end
  fresh,      // the first start in an empty state folder
  stop,       // SIGTERM to the server
  restart,    // a new server: what waits for one is done at its start
  backup,     // `takt backup`
  cancel,     // `takt cancel` of a job that runs
  lost_shim,  // a shim is killed, and its job ends
  trim,       // more in the archive than may be
};

struct Point {
  const char* process;
  const char* name;
  Way way = Way::jobs;
  int later = 3;  // at which time of reaching it the second kind of round ends the process; 0: no
                  // such round, it is reached once in the life of a state folder
};

const std::vector<Point>& points();

}  // namespace takt::crash
