#include "formats/gguf/model.h"

#include <gtest/gtest.h>

#include <limits>

#include "checkpoint/gguf_tensors.h"
#include "support/expect_error.h"
#include "support/gguf_contents.h"
#include "support/small_spec.h"

namespace fovea {
namespace {

// convert ENCODER x.gguf ended with SIGFPE: the encoder was read as a decoder with 0 heads, and
// widths were divided by 0. Models that no GGUF architecture can express are now refused.
TEST(GgufConversion, RefusesModelsThatNoArchitectureCanExpress) {
  for (const auto& [spec, what] : {std::pair(test::small_encoder(), "its Spec"),
                                   {test::small_encoder_decoder(), "an encoder and a decoder"}}) {
    model::Transformer model(model::validated(spec));
    model::initialise(model, 1);
    for (const model::Family* family : {static_cast<const model::Family*>(nullptr), &model::llama,
                                        &model::bert, &model::modernbert}) {
      expect_error(ErrorKind::Unsupported, {what, "no supported GGUF architecture"},
                   [&] { model::GgufModel(model, family, model::FileDType::fp32); });
    }
  }
  model::Spec labels = test::small_decoder();
  labels.head = {.kind = model::HeadKind::token, .labels = 3};
  model::Transformer tagger(model::validated(labels));
  expect_error(ErrorKind::Unsupported, {"its head is not a language model"},
               [&] { model::GgufModel(tagger, nullptr, model::FileDType::fp32); });
}

// Converting to Q8_0 or Q4_0 turned NaN into 0 and infinity into a finite number, so a broken model
// looked valid. Numbers that a block cannot represent are now refused.
TEST(GgufConversion, RefusesNumbersThatBlocksCannotHold) {
  model::Transformer model(
      model::validated(test::small_decoder({.context = 6, .width = 64, .heads = 4})));
  model::initialise(model, 1);
  float* weights = nullptr;
  model.each([&](const std::string& name, model::Parameter& p) {
    if (name == "decoder.1.ffn.up.weight") weights = p.value.data_as<float>() + 40;
  });
  ASSERT_NE(weights, nullptr);
  weights[0] = std::numeric_limits<float>::quiet_NaN();
  weights[1] = -std::numeric_limits<float>::infinity();
  for (const model::FileDType type :
       {model::FileDType::q8_0, model::FileDType::q4_0, model::FileDType::q4_k_m}) {
    expect_error(ErrorKind::BadFile, {"2 of 16384 elements of blk.1.ffn_up.weight", "finite"},
                 [&] { test::gguf_contents(model, nullptr, type); });
  }
  test::gguf_contents(model, nullptr, model::FileDType::fp32);
  weights[0] = 1e6f;
  expect_error(ErrorKind::InvalidArgument, {"blk.1.ffn_up.weight", "65504"},
               [&] { test::gguf_contents(model, nullptr, model::FileDType::fp16); });
}

}  // namespace
}  // namespace fovea
