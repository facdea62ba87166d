#pragma once
// Checks JSON documents against the schemas of docs/openapi.json, as far as that file uses JSON
// Schema: type, nullable, enum, properties, required, additionalProperties, items, oneOf, allOf,
// $ref.
#include <string>
#include <vector>

namespace takt::codec {

// What in `document` is not as the schema `name` says; empty when all is.
std::vector<std::string> schema_violations(const std::string& document, const std::string& name);

}  // namespace takt::codec
