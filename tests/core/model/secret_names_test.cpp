#include "core/model/secret_names.h"

#include <gtest/gtest.h>

namespace takt {
namespace {

TEST(SecretNames, AreRecognisedWhateverTheirCase) {
  for (const char* name :
       {"HF_TOKEN", "hf_token", "TOKENIZERS", "WANDB_API_KEY", "AWS_SECRET_ACCESS", "db_password",
        "MYSQL_PASSWD", "GOOGLE_CREDENTIALS", "BASIC_AUTH", "Authorization", "ssh_key", "_KEY"})
    EXPECT_TRUE(is_secret_name(name)) << name;
}

TEST(SecretNames, OrdinaryNamesAreNotSecret) {
  for (const char* name : {"", "PATH", "HOME", "KEYBOARD", "KEY", "MONKEY", "CUDA_VISIBLE_DEVICES",
                           "KEY_PATH_", "SEED", "PASS"})
    EXPECT_FALSE(is_secret_name(name)) << name;
}

TEST(ShownVariableName, StopsWhereAValueMayBegin) {
  EXPECT_EQ(shown_variable_name("HF_TOKEN"), "HF_TOKEN");
  EXPECT_EQ(shown_variable_name("HF_TOKEN=hunter2"), "HF_TOKEN...");
  EXPECT_EQ(shown_variable_name("export A"), "export...");
  EXPECT_EQ(shown_variable_name(""), "");
  EXPECT_EQ(shown_variable_name(std::string(1000, 'A')), std::string(60, 'A') + "...");
}

}  // namespace
}  // namespace takt
