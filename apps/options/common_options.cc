#include "options/common_options.h"

#include <utility>

#include "fovea/model/hub.h"

namespace fovea::cli {

Option of_model(Option option) {
  option.model_in = [](const std::string& typed) { return typed; };
  option.set = [set = std::move(option.set)](const std::string& typed) {
    set(model::find_model(typed));
  };
  return option;
}

Option model_argument(std::string& model, std::string help) {
  return of_model(
      positional("MODEL", {"-m", "--model", "--model-name-or-path"}, std::move(help), model));
}

Option input_arguments(std::vector<std::string>& files) {
  return positionals("FILE", {"-i", "--input"}, "text file; - = standard input", files);
}

Option job_output(std::string& out) {
  return as("FILE",
            text("--out", {"-o", "--output"},
                 "output file; the same command resumes an interrupted run; unset: standard output",
                 out));
}

}  // namespace fovea::cli
