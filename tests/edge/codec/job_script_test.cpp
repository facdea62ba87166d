#include "edge/codec/job_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "edge/codec/sbatch_options.h"

namespace takt::codec {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const YamlContext context = {"/home/bob", {}};

ParsedJob accepted(std::string_view text) {
  auto job = parse_job_script(text, "train.sh", {}, context);
  EXPECT_TRUE(job.has_value()) << text << "\n" << job.error().message;
  return job ? *job : ParsedJob{};
}

std::string refusal(std::string_view text) {
  const auto job = parse_job_script(text, "train.sh", {}, context);
  return job ? "it was accepted" : job.error().message;
}

TEST(JobScript, TheUsualHeadersBecomeASpec) {
  const std::string text = R"(#!/bin/bash
#SBATCH --job-name=llama
#SBATCH --gres=gpu:A100:2   # two of them
#SBATCH --mem=32G --cpus-per-task 8
#SBATCH -t 1-02:30:00

#SBATCH --array=0-4
python train.py
)";
  const ParsedJob job = accepted(text);
  EXPECT_EQ(job.spec.name, "llama");
  EXPECT_THAT(job.spec.argv,
              ElementsAre("/bin/sh", "-c", HasSubstr("$TAKT_PARAM_SLURM_ARRAY_TASK_ID"),
                          "/bin/bash", "-c", text, "train.sh"));
  EXPECT_EQ(job.spec.command_text, "train.sh");
  EXPECT_EQ(job.spec.gpus.count, 2);
  EXPECT_THAT(job.spec.gpus.types, ElementsAre("a100"));
  EXPECT_EQ(job.spec.memory, gibibytes(32));
  EXPECT_EQ(job.spec.cpus, 8);
  EXPECT_EQ(job.spec.time, minutes(26 * 60 + 30));
  EXPECT_EQ(job.spec.array.at("SLURM_ARRAY_TASK_ID").size(), 5u);
  EXPECT_EQ(job.spec.workdir, "/home/bob");
  EXPECT_THAT(job.warnings, ElementsAre("line 5: #SBATCH --time=1-02:30:00: is used as an estimate "
                                        "and ends nothing; for a hard stop add #TAKT kill_after"));
}

TEST(JobScript, TaktHeadersAreAJobFileAndWin) {
  const ParsedJob job = accepted(R"(#!/bin/sh
#SBATCH --gpus=4
#SBATCH --job-name=old
#TAKT name: new
#TAKT tier: training
#TAKT gpus:
#TAKT   memory: 12GiB
#TAKT env: {HF_TOKEN: abc}
./train
#TAKT tier: batch
)");
  EXPECT_EQ(job.spec.name, "new");
  EXPECT_EQ(job.spec.tier, Tier::training);
  EXPECT_EQ(job.spec.gpus.count, std::nullopt);
  EXPECT_EQ(job.spec.gpus.memory, gibibytes(12));
  EXPECT_TRUE(job.spec.env.at(0).secret);
  EXPECT_THAT(job.warnings,
              ElementsAre("line 10: #TAKT stands behind the first command and has no effect"));
}

TEST(JobScript, MistakesInTaktHeadersNameTheirLine) {
  EXPECT_EQ(refusal("#!/bin/sh\n\n#TAKT tier: bach\n#TAKT run: x\n#SBATCH --mem=lots\necho\n"),
            "train.sh: line 3: tier: 'bach' is not a tier; expected serving, training, batch or "
            "experimental (did you mean 'batch'?)\n"
            "train.sh: line 4: run: the script itself is what runs; remove the field\n"
            "train.sh: line 5: #SBATCH --mem: 'lots' is not a size; expected a number of MiB, or "
            "with K, M, G or T, e.g. 32G");
}

TEST(JobScript, OptionsThatTaktDoesNotKnowAreNamedAndNotDropped) {
  const ParsedJob job = accepted(
      "#!/bin/sh\n#SBATCH --partition=gpu --mail-type=END\n#SBATCH -o out-%j.txt "
      "--exclusive\ntrue\n");
  EXPECT_THAT(
      job.warnings,
      ElementsAre("line 2: #SBATCH --partition=gpu: is not known to takt and has no effect",
                  "line 2: #SBATCH --mail-type=END: is not known to takt and has no effect",
                  "line 3: #SBATCH --output=out-%j.txt: is not followed: takt keeps the output "
                  "itself; see takt logs",
                  "line 3: #SBATCH --exclusive: is not known to takt and has no effect"));
}

TEST(JobScript, OptionsThatChangeWhatIsComputedAreRefused) {
  for (const char* option : {"--nodes=2", "-N 2", "--ntasks=4", "-n4", "--ntasks-per-node=8",
                             "--dependency=afterok:1", "-d afterok:1", "--begin=now+1hour",
                             "--hold", "-H", "--mem-per-cpu=4G", "--mem-per-gpu=4G", "--nodes=1-4"})
    EXPECT_THAT(refusal("#!/bin/sh\n#SBATCH " + std::string(option) + "\ntrue\n"),
                HasSubstr("train.sh: line 2: #SBATCH --"))
        << option;
  EXPECT_EQ(refusal("#!/bin/sh\n#SBATCH --dependency=afterok:1\ntrue\n"),
            "train.sh: line 2: #SBATCH --dependency: this version of takt cannot wait for another "
            "job yet; remove the line or do it another way");
  EXPECT_EQ(
      refusal("#!/bin/sh\n#SBATCH -N 2\ntrue\n"),
      "train.sh: line 2: #SBATCH --nodes: '2': this version of takt runs a script once, on one "
      "node; expected 1. Start the processes in the script (torchrun, mpirun)");
}

TEST(JobScript, OneNodeAndOneTaskAreFine) {
  EXPECT_THAT(accepted("#!/bin/sh\n#SBATCH -N 1 -n 1 --ntasks-per-node=1\ntrue\n").warnings,
              IsEmpty());
}

TEST(JobScript, GpusAreReadInAllTheirForms) {
  const auto gpus = [](const std::string& option) {
    return accepted("#!/bin/sh\n#SBATCH " + option + "\ntrue\n").spec.gpus;
  };
  EXPECT_EQ(gpus("--gres=gpu").count, 1);
  EXPECT_EQ(gpus("--gres=gpu:3").count, 3);
  EXPECT_THAT(gpus("--gres=gpu:h100").types, ElementsAre("h100"));
  EXPECT_EQ(gpus("--gres gpu:h100:2").count, 2);
  EXPECT_EQ(gpus("-G 2").count, 2);
  EXPECT_THAT(gpus("--gpus-per-node=v100:8").types, ElementsAre("v100"));
  EXPECT_EQ(gpus("--gpus=4 --gpus=2").count, 2);
  EXPECT_THAT(refusal("#!/bin/sh\n#SBATCH --gres=tpu:1\n"), HasSubstr("is not a resource"));
  EXPECT_THAT(refusal("#!/bin/sh\n#SBATCH --gpus=two\n"), HasSubstr("is not a number of GPUs"));
}

TEST(JobScript, ArraysAreReadInAllTheirForms) {
  const auto tasks = [](const std::string& option) {
    return accepted("#!/bin/sh\n#SBATCH --array=" + option + "\ntrue\n")
        .spec.array.at("SLURM_ARRAY_TASK_ID");
  };
  EXPECT_THAT(tasks("1,3,5-7"), ElementsAre("1", "3", "5", "6", "7"));
  EXPECT_THAT(tasks("0-10:5"), ElementsAre("0", "5", "10"));
  EXPECT_THAT(tasks("0-1%4"), ElementsAre("0", "1"));
  EXPECT_THAT(accepted("#!/bin/sh\n#SBATCH -a 0-1%4\ntrue\n").warnings,
              Contains(HasSubstr("not limited by takt")));
  for (const char* bad : {"4-0", "x", "0-99999999", ",", "1,,2"})
    EXPECT_THAT(refusal("#!/bin/sh\n#SBATCH --array=" + std::string(bad) + "\n"),
                HasSubstr("#SBATCH --array"))
        << bad;
}

TEST(JobScript, VariablesThatOnlySlurmSetsAreNamed) {
  EXPECT_THAT(accepted("#!/bin/sh\necho $SLURM_JOB_ID $SLURM_ARRAY_TASK_ID ${SLURM_JOB_ID}\n"
                       "cd $SLURM_SUBMIT_DIR\n")
                  .warnings,
              ElementsAre("the script uses SLURM_JOB_ID, SLURM_SUBMIT_DIR, which takt does not set "
                          "(it sets TAKT_JOB_ID, TAKT_GPUS and others)"));
  EXPECT_THAT(accepted("#!/bin/sh\necho $SLURM_ARRAY_TASK_ID\n").warnings, IsEmpty());
}

// The wrapper around an array's task, run for real.
TEST(JobScript, ATaskFindsItsNumberWhereSlurmPutsIt) {
  const ParsedJob job =
      accepted("#!/bin/sh\n#SBATCH --array=7\ntest \"$SLURM_ARRAY_TASK_ID\" = 7 && exit 42\n");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("TAKT_PARAM_SLURM_ARRAY_TASK_ID", "7", 1);
    std::vector<char*> argv;
    for (const std::string& word : job.spec.argv) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(JobScript, TheInterpreterIsTheScripts) {
  EXPECT_THAT(accepted("true\n").spec.argv, ElementsAre("/bin/sh", "-c", "true\n", "train.sh"));
  EXPECT_THAT(accepted("#!/usr/bin/env bash\n").spec.argv,
              ElementsAre("/usr/bin/env", "bash", "-c", "#!/usr/bin/env bash\n", "train.sh"));
  EXPECT_THAT(accepted("#!/bin/bash -l\n").spec.argv,
              ElementsAre("/bin/bash", "-l", "-c", "#!/bin/bash -l\n", "train.sh"));
  const auto python = parse_job_script("#!/usr/bin/python3\n", "a.py", {"x", "y"}, context);
  EXPECT_THAT(python->spec.argv,
              ElementsAre("/usr/bin/python3", "-c", "#!/usr/bin/python3\n", "x", "y"));
  EXPECT_EQ(python->spec.name, "a");
  EXPECT_EQ(python->spec.command_text, "a.py x y");
  EXPECT_EQ(refusal("#!/usr/bin/perl\n"),
            "train.sh: line 1: '#!/usr/bin/perl' is not an interpreter that takt can give a script "
            "to; expected a shell or Python. For others write a job file with run: ./train.sh");
}

TEST(JobScript, FilesThatAreNoScriptsAreRefused) {
  EXPECT_THAT(refusal(std::string("\x7f"
                                  "ELF\0\0",
                                  6)),
              HasSubstr("a NUL byte is in the text"));
  EXPECT_THAT(refusal("#!/bin/sh\r\ntrue\r\n"), HasSubstr("the lines end as in DOS"));
  EXPECT_THAT(refusal("#!/bin/sh\n#SBATCH job-name=x\n"),
              HasSubstr("line 2: #SBATCH: 'job-name=x' is not an option"));
  EXPECT_THAT(refusal("#!/bin/sh\n#SBATCH --mem\n"), HasSubstr("#SBATCH --mem: has no value"));
  EXPECT_THAT(refusal("#!/bin/sh\n" + std::string(140'000, '#') + "\n"),
              HasSubstr("one argument has 140011 bytes"));
}

TEST(JobScript, LooksLikeAScriptWhenItHasAMark) {
  EXPECT_TRUE(looks_like_script("#!/bin/sh\n"));
  EXPECT_TRUE(looks_like_script("\xEF\xBB\xBF#!/bin/sh\n"));
  EXPECT_TRUE(looks_like_script("echo\n#SBATCH -n 1\n"));
  EXPECT_TRUE(looks_like_script("#TAKT tier: batch"));
  EXPECT_FALSE(looks_like_script("run: x\n# a comment\n"));
  EXPECT_FALSE(looks_like_script("#SBATCHES\n"));
  EXPECT_FALSE(looks_like_script(""));
}

TEST(SlurmTime, HasSixForms) {
  const std::vector<std::pair<std::string, Duration>> cases = {
      {"30", minutes(30)}, {"30:15", seconds(30 * 60 + 15)},  {"2:30:15", seconds(9015)},
      {"1-6", hours(30)},  {"1-6:30", minutes(30 * 60 + 30)}, {"1-0:0:1", seconds(86'401)}};
  for (const auto& [text, span] : cases) EXPECT_EQ(parse_slurm_time(text)->us, span.us) << text;
  for (const char* bad : {"", "x", "1:2:3:4", "-1", "1-", "1d", "99999999999999999999"})
    EXPECT_FALSE(parse_slurm_time(bad).has_value()) << bad;
  EXPECT_EQ(accepted("#SBATCH --time=0\ntrue\n").spec.time, std::nullopt);
}

TEST(SlurmMemory, CountsInMebibytesWithoutAUnit) {
  EXPECT_EQ(parse_slurm_memory("512")->value, mebibytes(512).value);
  EXPECT_EQ(parse_slurm_memory("2K")->value, 2048);
  EXPECT_EQ(parse_slurm_memory("3g")->value, gibibytes(3).value);
  EXPECT_EQ(parse_slurm_memory("1T")->value, gibibytes(1024).value);
  EXPECT_EQ(parse_slurm_memory("4GB")->value, gibibytes(4).value);
  for (const char* bad : {"", "G", "4GiB", "-1", "99999999999T", "1.5G"})
    EXPECT_FALSE(parse_slurm_memory(bad).has_value()) << bad;
}

RC_GTEST_PROP(JobScript, ArbitraryHeadersNeverCrash, (const std::string& noise)) {
  const auto job = parse_job_script("#!/bin/sh\n#SBATCH " + noise + "\n#TAKT " + noise + "\ntrue\n",
                                    "a.sh", {}, context);
  RC_ASSERT(job.has_value() || !job.error().message.empty());
}

}  // namespace
}  // namespace takt::codec
