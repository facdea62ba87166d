// The command line: every command, its options and its examples. CLI11 is included here only.
#include "app/cli/options.h"

#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <sstream>

#include "app/cli/commands.h"
#include "app/cli/output.h"
#include "app/cli/session.h"

namespace takt::cli {
namespace {

constexpr const char* kDescription =
    "takt orchestrates GPU jobs and measures them, so that each gets what it needs and no more.\n\n"
    "First steps:\n"
    "  takt gpus                         which GPUs are here and who is on them\n"
    "  takt run -g 1 -- python train.py  run something on one GPU, attached\n"
    "  takt submit job.yaml              queue something\n"
    "  takt ps, takt why ID              what runs, what waits, and why\n\n"
    "Exit codes: 0 fine; 1 the job or check failed; 2 usage; 3 cannot reach the server.";

void add_job_flags(CLI::App* app, JobFlags& job) {
  app->add_option("-g,--gpus", job.gpus, "whole GPUs");
  app->add_option("--memory", job.memory,
                  "memory on one device, e.g. 12GiB: a share or MIG instance");
  app->add_option("--compute", job.compute,
                  "with --memory: part of the device's compute, e.g. 30%");
  app->add_option("--type", job.types, "GPU type, e.g. a100; may be repeated: any of them");
  app->add_option("--tier", job.tier, "serving, training, batch or experimental");
  app->add_option("--name", job.name, "workload; default: the program's name");
  app->add_option("--isolation", job.isolation, "strict (MIG or whole GPU) or watched (shared)");
  app->add_option("--cpus", job.cpus, "CPUs");
  app->add_option("--host-memory", job.host_memory, "memory of the host, e.g. 32GiB");
  app->add_option("--time", job.time, "estimate, e.g. 2h; exceeding it never stops the job");
  app->add_option("--kill-after", job.kill_after, "hard stop, e.g. 12h");
  app->add_option("--env", job.env, "NAME=VALUE, on top of the present environment");
  app->add_flag("--wait-for-capacity", job.wait_for_capacity,
                "accept it though no machine here can meet it today");
}

void add_reconnect(CLI::App* app, std::string& time) {
  app->add_option("--reconnect", time, "waits so long for a server that is away; default 5m");
}

// Everything the parser fills, and which command was chosen.
struct Choice {
  ServeFlags serve;
  AgentFlags agent;
  RunFlags run;
  SubmitFlags submit;
  PsFlags ps;
  TopFlags top;
  std::string id;
  std::string file;
  std::vector<std::string> ids;
  bool all = false;
  bool json = false;
  LogsFlags logs;
  SimulateFlags simulate;
  bool serves = false;  // the command is no client
  std::function<int()> command;
};

void add_serve(CLI::App& app, Choice& c) {
  CLI::App* serve = app.add_subcommand("serve", "start the server: controller, engine, API");
  serve->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  serve->add_flag("--user", c.serve.user, "a server of your own, without root");
  serve->add_option("--state,--state-dir", c.serve.state_dir, "folder for the journal and logs");
  serve->add_option("--runtime-dir", c.serve.runtime_dir, "folder for the socket and shim records");
  serve->add_option("--socket", c.serve.socket_path, "where to listen");
  serve->add_option("--policy", c.serve.policy_file, "policy file (docs/policy.md)");
  serve->add_option("--sample", c.serve.sample, "how often devices are read");
  serve->add_flag("--accept-loss", c.serve.accept_loss,
                  "start though acknowledged records are missing at the journal's end");
  serve->footer("Examples:\n  sudo takt serve\n  takt serve --user");
  serve->callback([&c] {
    c.serves = true;
    c.command = [&c] { return cli::serve(c.serve); };
  });

  CLI::App* agent = app.add_subcommand("agent", "")->group("");
  agent->add_option("--fd", c.agent.fd)->required();
  agent->add_option("--records", c.agent.records_dir)->required();
  agent->add_option("--logs", c.agent.logs_dir)->required();
  agent->add_option("--sample", c.agent.sample);
  agent->callback([&c] {
    c.serves = true;
    c.command = [&c] { return cli::agent(c.agent); };
  });
}

void add_submitting(CLI::App& app, Choice& c) {
  CLI::App* run = app.add_subcommand("run", "run a program attached; its exit code is passed on");
  add_job_flags(run, c.run.job);
  run->add_flag("-d,--detach", c.run.detach, "print the job's number and return");
  add_reconnect(run, c.run.reconnect);
  run->add_option("command", c.run.command, "-- program and arguments")->required();
  run->positionals_at_end();
  run->footer(
      "Examples:\n  takt run -g 1 -- python train.py --lr 1e-4\n"
      "  takt run --memory 12GiB -- jupyter lab\n  takt run -g 2 --type a100 --tier training -- "
      "torchrun --nproc-per-node=2 train.py\nCtrl-C asks: detach or cancel.");
  run->callback([&c] { c.command = [&c] { return cli::run(c.run); }; });

  CLI::App* submit = app.add_subcommand("submit", "queue a job file or a script");
  add_job_flags(submit, c.submit.job);
  submit->add_option("file", c.submit.file, "job.yaml, or a script with #TAKT or #SBATCH lines")
      ->required();
  submit->add_option("arguments", c.submit.arguments, "of the script");
  submit->add_flag("--dry-run", c.submit.dry_run, "say what would happen, queue nothing");
  submit->add_flag("--json", c.submit.json);
  submit->footer(
      "Examples:\n  takt submit job.yaml\n  takt submit --dry-run job.yaml\n  takt submit train.sh "
      "--epochs 3\nThe file's fields are in docs/job-spec.md.");
  submit->callback([&c] { c.command = [&c] { return cli::submit(c.submit); }; });
}

void add_looking(CLI::App& app, Choice& c) {
  CLI::App* ps = app.add_subcommand("ps", "jobs: where they run, or why they wait");
  ps->add_flag("-a,--all", c.ps.all, "finished ones too");
  ps->add_option("--user", c.ps.user, "of this user");
  ps->add_option("--state", c.ps.state,
                 "waiting, starting, running, stopping, done, failed or cancelled");
  ps->add_option("--limit", c.ps.limit,
                 "at most so many lines, the newest of those that are over; 0: all");
  ps->add_flag("--json", c.ps.json);
  ps->footer("Examples:\n  takt ps\n  takt ps --all --user bob\n  takt ps --json | jq .jobs");
  ps->callback([&c] { c.command = [&c] { return cli::ps(c.ps); }; });

  CLI::App* why = app.add_subcommand("why", "why a job waits, and what would help");
  why->add_option("id", c.id, "job number")->required();
  why->add_flag("--json", c.json);
  why->footer("Example:\n  takt why 17");
  why->callback([&c] { c.command = [&c] { return cli::why(c.id, c.json); }; });

  CLI::App* logs = app.add_subcommand("logs", "what a job printed");
  logs->add_option("id", c.logs.id, "job number")->required();
  logs->add_flag("-f,--follow", c.logs.follow, "until the job has ended");
  logs->add_option("--stream", c.logs.stream, "stdout, stderr or both")
      ->check(CLI::IsMember({"stdout", "stderr", "both"}));
  add_reconnect(logs, c.logs.reconnect);
  logs->footer("Examples:\n  takt logs 17\n  takt logs -f --stream stderr 17");
  logs->callback([&c] { c.command = [&c] { return cli::logs(c.logs); }; });

  CLI::App* gpus = app.add_subcommand("gpus", "GPUs, MIG instances and who is on them");
  gpus->add_flag("--json", c.json);
  gpus->footer("Works without a server too: then the devices are read directly.");
  gpus->callback([&c] { c.command = [&c] { return cli::gpus(c.json); }; });

  CLI::App* top = app.add_subcommand("top", "live view of GPUs and the queue");
  top->add_flag("--until-idle", c.top.until_idle, "end when nothing but services is unfinished");
  top->add_flag("--once", c.top.once, "one picture");
  top->add_option("--interval", c.top.interval, "between two pictures");
  add_reconnect(top, c.top.reconnect);
  top->callback([&c] { c.command = [&c] { return cli::top(c.top); }; });

  CLI::App* workloads = app.add_subcommand("workloads", "what was measured, by workload");
  workloads->add_flag("--json", c.json);
  workloads->callback([&c] { c.command = [&c] { return cli::workloads(c.json); }; });

  app.add_subcommand("summary",
                     "what ran, who waited why, what was measured, what could be smaller")
      ->callback([&c] { c.command = [] { return cli::summary(); }; });
}

void add_acting(CLI::App& app, Choice& c) {
  CLI::App* hold = app.add_subcommand("hold", "keep jobs from starting; what runs goes on");
  hold->add_option("ids", c.ids, "job numbers")->required();
  hold->add_flag("--json", c.json);
  hold->footer("Examples:\n  takt hold 17 18");
  hold->callback([&c] { c.command = [&c] { return cli::hold(c.ids, c.json); }; });
  CLI::App* release = app.add_subcommand("release", "let held jobs start again");
  release->add_option("ids", c.ids, "job numbers")->required();
  release->add_flag("--json", c.json);
  release->footer("Examples:\n  takt release 17 18");
  release->callback([&c] { c.command = [&c] { return cli::release(c.ids, c.json); }; });
  CLI::App* cancel = app.add_subcommand("cancel", "end jobs, waiting or running");
  cancel->add_option("ids", c.ids, "job numbers");
  cancel->add_flag("--all", c.all, "all of your own");
  cancel->add_flag("--json", c.json);
  cancel->footer("Examples:\n  takt cancel 17 18\n  takt cancel --all");
  cancel->callback([&c] { c.command = [&c] { return cli::cancel(c.ids, c.all, c.json); }; });

  CLI::App* backup = app.add_subcommand("backup", "copy the journal while the server goes on");
  backup->add_option("file", c.file, "where to; replaced when the copy is complete")->required();
  backup->footer(
      "Example:\n  sudo takt backup /backup/takt-journal.db\ndocs/backup.md says how "
      "it is put back.");
  backup->callback([&c] { c.command = [&c] { return cli::backup(c.file); }; });

  CLI::App* simulate = app.add_subcommand(
      "simulate", "plays the server's own code under faults and says whether anything was lost");
  simulate->add_option("--seed", c.simulate.seed, "the first; default 1");
  simulate->add_option("--seeds", c.simulate.seeds, "how many, one after the other; default 1");
  simulate->add_option("--steps", c.simulate.steps, "of each; default 1000");
  simulate->add_option("--scenario", c.simulate.scenario,
                       "plays this file, as printed when something failed");
  simulate->add_flag("--trace", c.simulate.trace,
                     "with --scenario: prints every fact with its time");
  simulate->add_flag("--list", c.simulate.list, "names all workloads and faults");
  simulate->footer(
      "Examples:\n  takt simulate --seeds 100\n  takt simulate --seed 17 --steps 5000\n"
      "Exit code 1: something was violated. docs/simulate.md says what is played.");
  simulate->callback([&c] { c.command = [&c] { return cli::simulate(c.simulate); }; });

  CLI::App* doctor = app.add_subcommand("doctor", "checks driver, server, folders and rights");
  doctor->add_flag("--json", c.json);
  doctor->callback([&c] { c.command = [&c] { return cli::doctor(c.json); }; });
}

}  // namespace

int parse_and_run(int argc, char** argv, const std::string& version) {
  CLI::App app(kDescription, "takt");
  app.set_version_flag("--version", "takt " + version);
  app.require_subcommand(1);
  Choice choice;
  add_serve(app, choice);
  add_submitting(app, choice);
  add_looking(app, choice);
  add_acting(app, choice);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream help;
      (void)app.exit(error, help, help);
      return put(help.str());
    }
    std::fprintf(stderr, "takt: %s\n", error.what());
    const auto chosen = app.get_subcommands();
    std::fprintf(stderr, "See `takt %s--help`.\n",
                 chosen.empty() ? "" : (chosen.front()->get_name() + " ").c_str());
    return kExitUsage;
  }
  // What an agent starts would inherit that SIGPIPE is ignored.
  if (choice.serves) ::signal(SIGPIPE, SIG_DFL);
  return choice.command();
}

}  // namespace takt::cli
