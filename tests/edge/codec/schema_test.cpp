#include "schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/places.h"

namespace takt::codec {
namespace {

using nlohmann::json;

json openapi() {
  std::ifstream file(::takt::testing::source_folder() + "/docs/openapi.json");
  return json::parse(file);
}

class Checker {
 public:
  explicit Checker(json document) : openapi_(std::move(document)) {}
  std::vector<std::string> found;

  void check(const json& value, const json& schema, const std::string& at) {
    if (schema.contains("$ref")) return check(value, referred(schema["$ref"]), at);
    if (value.is_null() && schema.value("nullable", false)) return;
    if (schema.contains("allOf"))
      for (const json& part : schema["allOf"]) check(value, part, at);
    if (schema.contains("oneOf")) return one_of(value, schema["oneOf"], at);
    if (schema.contains("type")) type(value, schema["type"], at);
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      found.push_back(at + ": " + value.dump() + " is not in the enum");
    if (value.is_object()) object(value, schema, at);
    if (value.is_array() && schema.contains("items"))
      for (const json& item : value) check(item, schema["items"], at + "[]");
  }

  const json& referred(const std::string& path) const {
    return openapi_.at(json::json_pointer(path.substr(1)));
  }

 private:
  void type(const json& value, const std::string& name, const std::string& at) {
    const bool fits =
        (name == "object" && value.is_object()) || (name == "array" && value.is_array()) ||
        (name == "string" && value.is_string()) || (name == "boolean" && value.is_boolean()) ||
        (name == "integer" && value.is_number_integer()) || (name == "number" && value.is_number());
    if (!fits) found.push_back(at + ": " + value.dump() + " is not of type " + name);
  }
  void one_of(const json& value, const json& choices, const std::string& at) {
    int fitting = 0;
    for (const json& choice : choices) {
      Checker trial(openapi_);
      trial.check(value, choice, at);
      fitting += trial.found.empty() ? 1 : 0;
    }
    if (fitting != 1)
      found.push_back(at + ": fits " + std::to_string(fitting) + " of the alternatives");
  }
  void object(const json& value, const json& schema, const std::string& at) {
    for (const json& name : schema.value("required", json::array()))
      if (!value.contains(name)) found.push_back(at + ": " + name.dump() + " is missing");
    const json properties = schema.value("properties", json::object());
    for (const auto& [name, member] : value.items()) {
      if (properties.contains(name)) {
        check(member, properties[name], at + "." + name);
        continue;
      }
      const json more = schema.value("additionalProperties", json(true));
      if (more.is_object()) check(member, more, at + "." + name);
      if (more == false) found.push_back(at + ": " + name + " is not in the schema");
    }
  }

  json openapi_;
};

}  // namespace

std::vector<std::string> schema_violations(const std::string& document, const std::string& name) {
  Checker checker(openapi());
  checker.check(json::parse(document), checker.referred("#/components/schemas/" + name), name);
  return checker.found;
}

namespace {

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  const json document = openapi();
  const Checker checker(document);
  int references = 0;
  const std::function<void(const json&)> walk = [&](const json& node) {
    if (node.is_object() && node.contains("$ref")) {
      ++references;
      EXPECT_NO_THROW(checker.referred(node["$ref"])) << node["$ref"];
    }
    if (node.is_structured())
      for (const json& child : node) walk(child);
  };
  walk(document);
  EXPECT_GT(references, 40);
}

TEST(OpenApi, EveryAnswerFrom400OnIsTheErrorDocument) {
  const json document = openapi();  // named: a temporary would not outlive the loop's head
  for (const auto& [path, methods] : document["paths"].items())
    for (const auto& [method, operation] : methods.items())
      for (const auto& [status, response] : operation["responses"].items())
        if (status[0] >= '4') {
          EXPECT_EQ(response["content"]["application/json"]["schema"]["$ref"],
                    "#/components/schemas/Error")
              << path << " " << method << " " << status;
        }
}

TEST(OpenApi, EveryPathParameterIsDescribed) {
  const json document = openapi();  // named: a temporary would not outlive the loop's head
  for (const auto& [path, methods] : document["paths"].items())
    for (const auto& [method, operation] : methods.items())
      if (path.find("{id}") != std::string::npos) {
        EXPECT_EQ(operation["parameters"][0]["name"], "id") << path;
      }
}

TEST(OpenApi, TheCheckerFindsWhatIsWrong) {
  EXPECT_TRUE(schema_violations(R"({"error":"x"})", "Error").empty());
  EXPECT_EQ(schema_violations(R"({"error":1})", "Error").size(), 1u);
  EXPECT_EQ(schema_violations(R"({"more":"x"})", "Error").size(), 2u);
  EXPECT_EQ(schema_violations(R"(null)", "Error").size(), 1u);
  EXPECT_EQ(schema_violations(R"({"b64":1})", "Text").size(), 1u);
}

}  // namespace
}  // namespace takt::codec
