#include "families/registry.h"

#include "base/error.h"
#include "base/nearest.h"

namespace fovea {

const std::vector<const Family*>& families() {
  static const std::vector<const Family*> all = {&gpt2, &own};
  return all;
}

const Family& family_named(const std::string& model_type, const std::string& file) {
  std::vector<std::string> names;
  for (const Family* family : families()) {
    if (family->model_type == model_type) return *family;
    names.emplace_back(family->model_type);
  }
  fail(ErrorKind::Unsupported,
       "{}: model_type \"{}\" is not known, the nearest is \"{}\"; expected one of {}", file,
       model_type, nearest(model_type, names), fmt::join(names, ", "));
}

const Family& family_for(const Spec& spec) {
  for (const Family* family : families()) {
    Config writer;
    Spec copy = spec, back;
    family->config(writer, copy);
    const nlohmann::json json = writer.written();
    Config reader(json, family->model_type);
    try {
      family->config(reader, back);
      if (write_spec(validated(back)) == write_spec(spec)) return *family;
    } catch (const Error&) {  // a value that this family's files cannot hold
    }
  }
  fail(ErrorKind::Internal, "no family can express the Spec");
}

}  // namespace fovea
