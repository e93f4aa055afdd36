#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fovea/c.h"
#include "fovea/train/train.h"
#include "support/runs.h"

namespace fovea {

// A small trained decoder with a chat template, shared by the tests of a suite.
class SmallModel {
 public:
  SmallModel() {
    train::train(small_spec(), runs_.options("model"));
    write_file_atomically(runs_ / "model/chat_template.jinja",
                          "{% for m in messages %}{{ m.role }} {{ m.content }}{{ m.name }}\n"
                          "{% endfor %}{% if add_generation_prompt %}the {% endif %}");
  }
  std::string path() const { return runs_ / "model"; }
  std::string operator/(const std::string& name) const { return runs_ / name; }

 private:
  Runs runs_;
};

inline const SmallModel& small_model() {
  static const SmallModel made;
  return made;
}

inline fovea_model* open_small() {
  fovea_model* model = nullptr;
  EXPECT_EQ(fovea_model_open(small_model().path().c_str(), nullptr, &model), FOVEA_OK)
      << fovea_error();
  return model;
}

inline fovea_generate_options generate_options(fovea_model* model = nullptr) {
  fovea_generate_options options;
  EXPECT_EQ(fovea_generate_options_init(&options, sizeof options, model), FOVEA_OK);
  options.max_tokens = 30;
  return options;
}

inline fovea_generation empty_generation() {
  fovea_generation result = {};
  result.size = sizeof result;
  return result;
}

inline void expect_message(const char* message, const std::string& part) {
  EXPECT_NE(std::string(message).find(part), std::string::npos) << message;
  EXPECT_EQ(std::string(message).find('\n'), std::string::npos) << message;
}

}  // namespace fovea
