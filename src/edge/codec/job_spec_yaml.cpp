#include "edge/codec/job_spec_yaml.h"

#include "edge/codec/job_fields.h"

namespace takt::codec {

Result<ParsedJob> parse_job_yaml(std::string_view text, const std::string& file,
                                 const YamlContext& context) {
  YamlFaults faults(file);
  YamlValue root;
  if (!parse_yaml(text, context.limits.spec_bytes_max, root, faults)) return faults.error();
  YamlFields fields(faults);
  JobSpec spec;
  if (root.kind == YamlValue::Kind::null) {
    faults.add(1, "", "the file is empty; expected at least run: COMMAND");
    return faults.error();
  }
  read_job_fields(root, RunField::expected, context, fields, spec);
  if (root.kind != YamlValue::Kind::map) return faults.error();
  return finish_job(std::move(spec), {}, fields, context);
}

}  // namespace takt::codec
