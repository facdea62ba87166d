#include "edge/codec/job_spec_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "core/model/job_spec_rules.h"
#include "edge/codec/yaml_value.h"

namespace takt::codec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const YamlContext context = {"/home/bob", {}};

// The message without "job.yaml: " in front of each line.
std::string refusal(std::string_view yaml) {
  const auto job = parse_job_yaml(yaml, "job.yaml", context);
  if (job) return "it was accepted";
  EXPECT_EQ(job.error().kind, ErrorKind::invalid);
  std::string message = job.error().message;
  const std::string mark = "job.yaml: ";
  for (std::size_t at = message.find(mark); at != std::string::npos; at = message.find(mark, at))
    message.erase(at, mark.size());
  return message;
}

JobSpec accepted(std::string_view yaml) {
  auto job = parse_job_yaml(yaml, "job.yaml", context);
  EXPECT_TRUE(job.has_value()) << yaml << "\n" << job.error().message;
  return job ? job->spec : JobSpec{};
}

TEST(JobYaml, EveryMistakeIsNamedWithLineFieldValueAndWhatWasExpected) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"gpus: {memory: 12 gibibyte}\nrun: x\n",
       "line 1: gpus.memory: '12 gibibyte' is not a size; expected a number with KiB, MiB, GiB, "
       "TiB (or KB, MB, GB), e.g. 12GiB"},
      {"run: python x.py\ngpu: 2\n", "line 2: gpu: is not a field; did you mean 'gpus'?"},
      {"run: python x.py\ntiers: batch\n", "line 2: tiers: is not a field; did you mean 'tier'?"},
      {"run: python x.py\ncolour: red\n",
       "line 2: colour: is not a field; expected name, run, tier, gpus, slo, min_speed, deadline, "
       "isolation, nodes, cpus, memory, time, kill_after, window, checkpoint, retry, image, env, "
       "secrets, mounts, array, after, replicas or workdir"},
      {"run: a\nrun: b\n", "line 2: run: is given twice, first in line 1"},
      {"gpus: 1\n", "line 1: run: nothing to run; expected a command, e.g. run: python3 train.py"},
      {"run:\n", "line 4: run: has no value; write one or remove the field"},
      {"run: \"\"\n",
       "line 1: run: nothing to run; expected a command, e.g. run: python3 train.py"},
      {"run: [python, null]\n", "line 1: run: has no value; write one or remove the field"},
      {"run: {a: b}\n", "line 1: run: a mapping is not a single value"},
      {"run: x\nname: my job\n",
       "line 2: name: 'my job' is not a workload name; expected letters, digits and - _ . + : @ "
       "only"},
      {"run: x\nname: [a, b]\n", "line 2: name: a list is not a single value"},
      {"run: x\ntier: traning\n",
       "line 2: tier: 'traning' is not a tier; expected serving, training, batch or experimental "
       "(did you mean 'training'?)"},
      {"run: x\ntier: 3\n",
       "line 2: tier: '3' is not a tier; expected serving, training, batch or experimental"},
      {"run: x\ngpus: -1\n",
       "line 2: gpus: '-1' is not a number of GPUs; expected a whole number from 0 to 65536"},
      {"run: x\ngpus: 1.5\n",
       "line 2: gpus: '1.5' is not a number of GPUs; expected a whole number from 0 to 65536"},
      {"run: x\ngpus: two\n",
       "line 2: gpus: 'two' is not a number of GPUs; expected a whole number from 0 to 65536"},
      {"run: x\ngpus: 12GiB\n",
       "line 2: gpus: '12GiB' is a size, not a number of GPUs; for a device with that much memory "
       "write gpus: {memory: 12GiB}"},
      {"run: x\ngpus: [1, 2]\n",
       "line 2: gpus: a list is not a request for GPUs; expected a number, auto, or a mapping such "
       "as {memory: 12GiB}"},
      {"run: x\ngpus: {}\n", "line 2: gpus: is empty; expected count, or memory, or both"},
      {"run: x\ngpus: {count: 1, compute: 30%}\n",
       "line 2: gpus.compute: contradicts gpus.count: a count asks for whole GPUs, compute for a "
       "part of one; keep one of them"},
      {"run: x\ngpus: {compute: 30%}\n",
       "line 2: gpus.compute: needs gpus.memory beside it: a share of a GPU is made by its memory"},
      {"run: x\ngpus: {memory: 12GiB, compute: 30}\n",
       "line 2: gpus.compute: '30' is not a percentage; expected a whole number with %, e.g. 30%"},
      {"run: x\ngpus: {memory: 12GiB, compute: 130%}\n",
       "line 2: gpus.compute: '130%' is not between 1% and 100%"},
      {"run: x\ngpus: {memory: 12G}\n",
       "line 2: gpus.memory: '12G' is not a size; expected a number with KiB, MiB, GiB, TiB (or "
       "KB, MB, GB), e.g. 12GiB"},
      {"run: x\ngpus: {memory: 0GiB}\n",
       "line 2: gpus.memory: '0 B' is not a size to ask for; expected more than 0 bytes"},
      {"run: x\ngpus: {type: h100}\n",
       "line 2: gpus.type: says which kind of GPU but not how much; add count or memory"},
      {"run: x\ngpus: {count: 1, link: nvlink}\n",
       "line 2: gpus.link: nvlink connects GPUs; it needs a count of 2 or more, or distributed: "
       "true"},
      {"run: x\ngpus: {count: 2, link: infiniband}\n",
       "line 2: gpus.link: 'infiniband' is not a link; expected any or nvlink"},
      {"run: x\ngpus: {count: 2, memry: 10GiB}\n",
       "line 2: gpus.memry: is not a field; did you mean 'memory'?"},
      {"run: x\ngpus: {distributed: yes, memory: 120GiB}\n",
       "line 2: gpus.distributed: 'yes' is neither true nor false"},
      {"run: x\ngpus: {count: 2, distributed: true, memory: 120GiB}\n",
       "line 2: gpus.distributed: contradicts gpus.count: with distributed takt picks the number "
       "of devices; keep one"},
      {"run: x\nnodes: 2\n",
       "line 2: nodes: this version of takt cannot run a job on more than one node yet; remove the "
       "field or use nodes: 1"},
      {"run: x\nnodes: 0\n",
       "line 2: nodes: '0' is not a number of nodes; expected a whole number from 1 to 65536"},
      {"run: x\nisolation: limited\ngpus: {memory: 8GiB}\n",
       "line 2: isolation: this version of takt cannot keep the level 'limited' (MPS with limits "
       "in force) yet; remove the field or use strict or watched"},
      {"run: x\nisolation: watched\ntier: serving\ngpus: {memory: 8GiB}\n",
       "line 2: isolation: 'watched' shares a GPU without hardware limits and tier serving is "
       "promised guaranteed memory; use strict, or another tier"},
      {"run: x\nisolation: srtict\n",
       "line 2: isolation: 'srtict' is not an isolation level; expected strict, limited or watched "
       "(did you mean 'strict'?)"},
      {"run: x\nimage: docker://x\n",
       "line 2: image: this version of takt cannot run a container image yet; remove the field or "
       "start the container in `run`"},
      {"run: x\nmounts: [/data]\n",
       "line 2: mounts: this version of takt cannot mount folders into a job yet; remove the field "
       "or use the host's own paths"},
      {"run: x\nwindow: off-peak\n",
       "line 2: window: this version of takt cannot shift a job into a window yet; remove the "
       "field or submit it when it may start"},
      {"run: x\nafter: ok(prepare)\n",
       "line 2: after: this version of takt cannot wait for another job yet; remove the field or "
       "submit this job when the other is done"},
      {"run: x\nreplicas: 2\n",
       "line 2: replicas: a service has replicas; they need tier: serving"},
      {"run: x\ntier: serving\nreplicas: {min: 1, max: 4}\n",
       "line 3: replicas: this version of takt cannot scale a service by itself yet; remove the "
       "field or give a fixed number: replicas: 2"},
      {"run: x\ntier: serving\nreplicas: {min: 2, max: 2, scale_on: [queue>8]}\n",
       "line 3: replicas.scale_on: this version of takt cannot scale a service by itself yet; "
       "remove the field or give a fixed number: replicas: 2"},
      {"run: x\ntier: serving\nreplicas: 65\n",
       "line 3: replicas: '65' is not a number of replicas; expected 1 to 64 (policy "
       "limits.replicas_max)"},
      {"run: x\ncpus: -2\n",
       "line 2: cpus: '-2' is not a number of CPUs; expected a whole number from 1 to 65536"},
      {"run: x\ncpus: many\n",
       "line 2: cpus: 'many' is not a number of CPUs; expected a whole number from 1 to 65536"},
      {"run: x\nmemory: 32\n",
       "line 2: memory: '32' is not a size; expected a number with KiB, MiB, GiB, TiB (or KB, MB, "
       "GB), e.g. 12GiB"},
      {"run: x\ntime: 8\n",
       "line 2: time: '8' is not a time span; expected numbers with d, h, m, s or ms, e.g. 8h, "
       "1h30m, 120s"},
      {"run: x\ntime: 8h\nkill_after: 1h\n",
       "line 3: kill_after: '1h' is shorter than the estimate time: 8h; the job would be stopped "
       "before it can be done"},
      {"run: x\nkill_after: 0s\n",
       "line 2: kill_after: '0s' is not a time to give; expected more than 0"},
      {"run: x\ndeadline: 7am\n",
       "line 2: deadline: '7am' is not a time; expected a time of day such as \"07:00\" or an ISO "
       "8601 time such as 2026-01-31T07:00:00Z"},
      {"run: x\nslo: {ttft: 300ms}\n",
       "line 2: slo.ttft: is not a field; expected ttft_p95, tpot_p95 or latency_p95"},
      {"run: x\nslo: {}\n", "line 2: slo: is empty; expected ttft_p95, tpot_p95 or latency_p95"},
      {"run: x\nmin_speed: fast\n",
       "line 2: min_speed: 'fast' is not a number; expected for instance 0.8: the speed as a "
       "multiple of the reference type's"},
      {"run: x\nmin_speed: -0.5\n",
       "line 2: min_speed: '-0.5' is out of range; expected a number above 0, at most 100: the "
       "speed as a multiple of the reference type's"},
      {"run: x\ncheckpoint: {signal: SIGKILL}\n",
       "line 2: checkpoint.signal: 'KILL' is not a signal for checkpoints; expected USR1, USR2, "
       "TERM, INT, HUP, QUIT, ALRM, CONT or WINCH"},
      {"run: x\ncheckpoint: true\n",
       "line 2: checkpoint: 'true' is not a mapping; expected e.g. {signal: USR1, grace: 120s}"},
      {"run: x\nretry: {on: [oom], max: 2, oom: grow-memory}\n",
       "line 2: retry.oom: this version of takt cannot give a retry more memory yet; remove the "
       "field or ask for more memory at once"},
      {"run: x\nretry: {on: [nodelost], max: 2}\n",
       "line 2: retry.on: 'nodelost' is not a cause; expected node-lost, preempted, oom or failed "
       "(did you mean 'node-lost'?)"},
      {"run: x\nretry: {max: 2}\n",
       "line 2: retry.on: is missing: retry.max without it would never retry; expected a list of "
       "node-lost, preempted, oom, failed"},
      {"run: x\nenv: [A=1]\n", "line 2: env: is not a mapping; expected {NAME: value, ...}"},
      {"run: x\nenv: {HF_TOKEN=hunter2}\n",
       "line 2: env.HF_TOKEN...: has no value; write \"\" for an empty one"},
      {"run: x\nenv: {A: null}\n", "line 2: env.A: has no value; write \"\" for an empty one"},
      {"run: x\nenv: {A: [hunter2]}\n", "line 2: env.A: is not a single value"},
      {"run: x\nenv: {1A: hunter2}\n",
       "line 2: env: '1A' is not a variable name; expected letters, digits and _, no digit first"},
      {"run: x\nenv: {A: x}\nsecrets: [hunter2]\n",
       "line 3: secrets: names a variable that env does not set; expected names of env, not "
       "values"},
      {"run: x\narray: {seed: 4-0}\n",
       "line 2: array.seed: '4-0' runs backwards; expected the smaller number first"},
      {"run: x\narray: {seed: 0-20000}\n",
       "line 2: array.seed: '0-20000' has more than 10000 values"},
      {"run: x\narray: {seed: []}\n", "line 2: array.seed: has no values; expected at least one"},
      {"run: x\narray: [1, 2]\n",
       "line 2: array: a list is not a mapping of parameters; expected e.g. {seed: 0-4}"},
      {"run: x\narray: {a: 0-999, b: 0-99}\n",
       "line 2: array: has 100000 tasks; at most 10000 are accepted in one submission (policy "
       "limits.array_tasks_max)"},
      {"run: &a x\nname: *a\n", "line 1: an anchor (&name); takt reads none, write the value out"},
      {"run: !!str x\n", "line 1: a tag (tag:yaml.org,2002:str); takt reads none, remove it"},
      {"run: x\n? [a]\n: b\n", "line 2: a key that is a list or a mapping; expected a word"},
      {"- run\n", "line 1: a list is not a job; expected fields such as run: python3 train.py"},
      {"just words\n",
       "line 1: 'just words' is not a job; expected fields such as run: python3 train.py"},
      {"run: [a\n", "line 1: not YAML: end of sequence flow not found"},
      {"run: \"a\n", "line 1: a quotation mark opens here and is never closed"},
      {"run: x\n\tname: y\n", "line 2: not YAML: illegal tab when looking for indentation"},
      {"run: x\nworkdir: \"\"\n", "line 2: workdir: is empty; expected a path"},
      {"run: x\ngpus: {count: 1}\nnodes: 3\ntier: bach\nmemory: lots\nunknown: 1\n",
       "line 3: nodes: this version of takt cannot run a job on more than one node yet; remove the "
       "field or use nodes: 1\nline 4: tier: 'bach' is not a tier; expected serving, training, "
       "batch or experimental (did you mean 'batch'?)\nline 5: memory: 'lots' is not a size; "
       "expected a number with KiB, MiB, GiB, TiB (or KB, MB, GB), e.g. 12GiB\nline 6: unknown: is "
       "not a field; expected name, run, tier, gpus, slo, min_speed, deadline, isolation, nodes, "
       "cpus, memory, time, kill_after, window, checkpoint, retry, image, env, secrets, mounts, "
       "array, after, replicas or workdir"},
      {"run: {{{{{{{{{{{{{{{{{{{{{a\n",
       "line 1: a key that is a list or a mapping; expected a word"},
      {"run: x\na: [[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]\n",
       "line 2: nested deeper than 16 levels"},
      {"run: 'a\nname: b\n", "line 1: a quotation mark opens here and is never closed"},
      {"run: x\ngpus: auto\nnodes: 70000\n",
       "line 3: nodes: '70000' is not a number of nodes; expected a whole number from 1 to 65536"},
      {"run: x\nmemory: 0GiB\n",
       "line 2: memory: '0 B' is not a size to ask for; expected more than 0 bytes"},
      {"run: x\nenv: {A: \"hunter2\n", "line 2: a quotation mark opens here and is never closed"}};
  for (const auto& [yaml, message] : cases) EXPECT_EQ(refusal(yaml), message) << yaml;
}

TEST(JobYaml, TheFileIsNamedInEachLine) {
  const auto job = parse_job_yaml("run: x\nnodes: 0\ncpus: 0\n", "some/dir/a.yaml", context);
  ASSERT_FALSE(job.has_value());
  EXPECT_EQ(job.error().message,
            "some/dir/a.yaml: line 2: nodes: '0' is not a number of nodes; expected a whole number "
            "from 1 to 65536\n"
            "some/dir/a.yaml: line 3: cpus: '0' is not a number of CPUs; expected a whole number "
            "from 1 to 65536");
}

TEST(JobYaml, OnlyRunIsRequired) {
  const JobSpec spec = accepted("run: torchrun --nproc-per-node=$TAKT_GPUS train.py\n");
  EXPECT_EQ(spec.name, "torchrun");
  EXPECT_THAT(spec.argv,
              ElementsAre("/bin/sh", "-c", "torchrun --nproc-per-node=$TAKT_GPUS train.py"));
  EXPECT_EQ(spec.command_text, "torchrun --nproc-per-node=$TAKT_GPUS train.py");
  EXPECT_EQ(spec.workdir, "/home/bob");
  EXPECT_EQ(spec.tier, std::nullopt);
  EXPECT_EQ(spec.gpus, GpuRequest{});
  EXPECT_EQ(spec.replicas, 1);
}

TEST(JobYaml, EveryFieldIsRead) {
  const auto job = parse_job_yaml(R"(
name: llama-sft
run: torchrun train.py
tier: training
gpus: {count: 2, type: [H100, a100], memory: 60GiB, link: nvlink}
slo: {ttft_p95: 300ms, tpot_p95: 20ms, latency_p95: 2s}
min_speed: 0.8
deadline: "07:00"
isolation: strict
nodes: 1
cpus: 8
memory: 32GiB
time: 8h
kill_after: 12h
checkpoint: {signal: SIGUSR2, grace: 90s}
retry: {on: [node-lost, preempted], max: 2}
env: {LR: 1e-4, HF_TOKEN: hunter2, MINE: "x"}
secrets: [MINE]
mounts: []
array: {lr: [1e-4, 3e-4], seed: 0-4}
workdir: runs/1
)",
                                  "job.yaml", context);
  ASSERT_TRUE(job.has_value()) << job.error().message;
  const JobSpec& s = job->spec;
  EXPECT_EQ(s.name, "llama-sft");
  EXPECT_EQ(s.tier, Tier::training);
  EXPECT_EQ(s.gpus.count, 2);
  EXPECT_THAT(s.gpus.types, ElementsAre("h100", "a100"));
  EXPECT_EQ(s.gpus.memory, gibibytes(60));
  EXPECT_EQ(s.gpus.link, LinkNeed::nvlink);
  EXPECT_EQ(s.slo, (ServiceLevel{milliseconds(300), milliseconds(20), seconds(2)}));
  EXPECT_EQ(s.min_speed, 0.8);
  EXPECT_EQ(s.deadline, "07:00");
  EXPECT_EQ(s.isolation, Isolation::strict);
  EXPECT_EQ(s.cpus, 8);
  EXPECT_EQ(s.memory, gibibytes(32));
  EXPECT_EQ(s.time, hours(8));
  EXPECT_EQ(s.kill_after, hours(12));
  EXPECT_EQ(s.checkpoint, (CheckpointSpec{"USR2", seconds(90)}));
  EXPECT_EQ(s.retry, (RetrySpec{{RetryCause::node_lost, RetryCause::preempted}, 2}));
  EXPECT_EQ(s.env, (std::vector<EnvironmentVariable>{
                       {"LR", "1e-4", false}, {"HF_TOKEN", "hunter2", true}, {"MINE", "x", true}}));
  EXPECT_THAT(s.array.at("lr"), ElementsAre("1e-4", "3e-4"));
  EXPECT_THAT(s.array.at("seed"), ElementsAre("0", "1", "2", "3", "4"));
  EXPECT_EQ(s.workdir, "/home/bob/runs/1");
  EXPECT_THAT(job->warnings, ElementsAre(HasSubstr("slo: recorded"), HasSubstr("min_speed: "),
                                         HasSubstr("deadline: "), HasSubstr("checkpoint: ")));
  for (const std::string& warning : job->warnings) EXPECT_THAT(warning, Not(HasSubstr("hunter2")));
}

TEST(JobYaml, GpusHaveSeveralForms) {
  EXPECT_EQ(accepted("run: x\ngpus: 2").gpus.count, 2);
  EXPECT_EQ(accepted("run: x\ngpus: 0").gpus.count, 0);
  EXPECT_TRUE(accepted("run: x\ngpus: auto").gpus.from_profile);
  const GpuRequest share = accepted("run: x\ngpus: {memory: 12GiB, compute: 30%}").gpus;
  EXPECT_TRUE(share.wants_share());
  EXPECT_EQ(share.compute_percent, 30);
  EXPECT_TRUE(accepted("run: x\ngpus: {memory: 120GiB, distributed: true}").gpus.distributed);
  EXPECT_THAT(accepted("run: x\ngpus: {count: 1, type: A100}").gpus.types, ElementsAre("a100"));
}

TEST(JobYaml, ReplicasMayBeANumberOrAFixedRange) {
  EXPECT_EQ(accepted("run: x\ntier: serving\nreplicas: 2").replicas, 2);
  EXPECT_EQ(accepted("run: x\ntier: serving\nreplicas: {min: 3, max: 3}").replicas, 3);
}

TEST(JobYaml, RunMayBeAListAndIsThenExecutedAsItIs) {
  const JobSpec spec = accepted("run: [/usr/bin/python3, -c, \"print('a b')\", 7]");
  EXPECT_THAT(spec.argv, ElementsAre("/usr/bin/python3", "-c", "print('a b')", "7"));
  EXPECT_EQ(spec.command_text, "/usr/bin/python3 -c 'print('\\''a b'\\'')' 7");
  EXPECT_EQ(spec.name, "python3");
}

TEST(JobYaml, ABlockOfCommandsIsOneShellText) {
  const JobSpec spec = accepted("run: |\n  set -e\n  python a.py  # not a YAML comment\n");
  EXPECT_EQ(spec.argv[2], "set -e\npython a.py  # not a YAML comment\n");
  EXPECT_EQ(spec.command_text, "set -e\npython a.py  # not a YAML comment");
}

TEST(JobYaml, QuotedArrayValuesAreNoRanges) {
  const JobSpec spec = accepted("run: x\narray: {a: [\"0-2\", 5-6], b: '1-2'}");
  EXPECT_THAT(spec.array.at("a"), ElementsAre("0-2", "5", "6"));
  EXPECT_THAT(spec.array.at("b"), ElementsAre("1-2"));
}

TEST(JobYaml, AMarkAtTheBeginningAndDosLineEndsAreFine) {
  const JobSpec spec = accepted("\xEF\xBB\xBFrun: |\r\n  a\r\n  b\r\ncpus: 2\r\n");
  EXPECT_EQ(spec.argv[2], "a\nb\n");
  EXPECT_EQ(spec.cpus, 2);
  EXPECT_EQ(refusal("run: x\r\n\r\ncpus: 0\r\n"),
            "line 3: cpus: '0' is not a number of CPUs; expected a whole number from 1 to 65536");
}

TEST(JobYaml, WhatIsNoTextFileIsRefused) {
  EXPECT_EQ(refusal(""), "line 1: the file is empty; expected at least run: COMMAND");
  EXPECT_EQ(refusal("# nothing\n"), "line 1: the file is empty; expected at least run: COMMAND");
  EXPECT_EQ(refusal(std::string("run: x\nname: a\0b\n", 16)),
            "line 2: a NUL byte is in the text; this is not a text file");
  EXPECT_EQ(refusal("run: \x1b[1m"),
            "line 1: the control character \\x1b is in the text; this is not a text file");
  EXPECT_EQ(refusal("run: x\n# caf\xE9\n"),
            "line 2: the text is not UTF-8; save the file as UTF-8");
  EXPECT_EQ(refusal("run: x\n---\nrun: y\n"),
            "line 2: a second document begins here; expected one per file");
}

TEST(JobYaml, TextsBeyondTheLimitAreRefusedUnread) {
  YamlContext small = context;
  small.limits.spec_bytes_max = 10;
  const auto job = parse_job_yaml("run: 01234567", "job.yaml", small);
  ASSERT_FALSE(job.has_value());
  EXPECT_EQ(job.error().message, "job.yaml: line 1: the file has 13 bytes; at most 10 are read");
}

TEST(JobYaml, AFloodOfMistakesIsCutOff) {
  std::string yaml = "run: x\n";
  for (int i = 0; i < 50; ++i) yaml += "unknown-field-" + std::to_string(i) + ": 1\n";
  const std::string message = refusal(yaml);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
  EXPECT_THAT(message, HasSubstr("\nand 30 more"));
}

TEST(JobYaml, SecretsAreInNoMessageWhateverIsWrong) {
  for (const char* yaml :
       {"run: x\nenv: {HF_TOKEN: [hunter2]}", "run: x\nenv: [HF_TOKEN=hunter2]",
        "run: x\nenv: HF_TOKEN=hunter2", "run: x\nenv: {HF_TOKEN=hunter2}",
        "run: x\nenv: {HF_TOKEN=hunter2: 1}", "run: x\nenv:\n  HF_TOKEN: \"hunter2",
        "run: x\nenv: {A: hunter2, A: hunter2}", "run: x\nenv: {A: b}\nsecrets: [hunter2]",
        "run: x\nenv: {A: {hunter2: hunter2}}", "run: x\nenv: {A: &hunter2 hunter2}"}) {
    const std::string message = refusal(yaml);
    EXPECT_THAT(message, Not(HasSubstr("hunter2"))) << yaml;
    EXPECT_NE(message, "it was accepted") << yaml;
  }
}

TEST(Nearest, FindsSlipsOfTheFingerOnly) {
  const std::vector<std::string> words = {"name", "run", "gpus", "memory", "checkpoint"};
  EXPECT_EQ(nearest("nmae", words), "name");
  EXPECT_EQ(nearest("memmory", words), "memory");
  EXPECT_EQ(nearest("gpu", words), "gpus");
  EXPECT_EQ(nearest("checkpiont", words), "checkpoint");
  EXPECT_EQ(nearest("colour", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest(std::string(10'000, 'a'), words), "");
}

const char* const sound = R"(name: llama-sft
run: |
  torchrun train.py
tier: training
gpus: {count: 2, type: [h100, a100], link: nvlink}
isolation: strict
checkpoint: {signal: USR1, grace: 120s}
retry: {on: [node-lost], max: 2}
env: {A: "1", HF_TOKEN: 'abc'}
array: {lr: [1e-4, 3e-4], seed: 0-4}
)";

RC_GTEST_PROP(JobYaml, MutatedFilesNeverCrashAndAlwaysGiveAnAnswer, ()) {
  std::string yaml = sound;
  const std::string pieces = "{}[]:,-&*!|>'\"%@`#?\t\n \r~0aZ\x80\xFF";
  const int mutations = *rc::gen::inRange(1, 12);
  for (int i = 0; i < mutations && !yaml.empty(); ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, yaml.size());
    const char piece = pieces[*rc::gen::inRange<std::size_t>(0, pieces.size())];
    switch (*rc::gen::inRange(0, 5)) {
      case 0: yaml[at] = piece; break;
      case 1: yaml.insert(at, 1, piece); break;
      case 2: yaml.erase(at, *rc::gen::inRange<std::size_t>(1, 9)); break;
      case 3: yaml.resize(at); break;
      default: yaml.insert(at, yaml.substr(at / 2, 20)); break;
    }
  }
  const auto job = parse_job_yaml(yaml, "job.yaml", context);
  if (job)
    RC_ASSERT(validate(job->spec, context.limits).has_value());
  else
    RC_ASSERT(job.error().message.rfind("job.yaml: line ", 0) == 0);
}

RC_GTEST_PROP(JobYaml, ArbitraryBytesNeverCrash, (const std::string& text)) {
  const auto job = parse_job_yaml(text, "job.yaml", context);
  RC_ASSERT(job.has_value() || !job.error().message.empty());
}

}  // namespace
}  // namespace takt::codec
