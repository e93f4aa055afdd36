#include "fovea/nn/transformer.h"

#include "base/error.h"
#include "layers/passes.h"
#include "open/model_parts.h"
#include "transformer/transformer.h"

namespace fovea::nn {

struct Transformer::Inside {
  fovea::model::Transformer model;
};

namespace {

std::vector<NamedParameter> shared_parameters(const std::shared_ptr<void>& owner,
                                              fovea::model::Transformer& model) {
  std::vector<NamedParameter> all;
  model.each([&](const std::string& name, fovea::model::Parameter& p) {
    if (p.value) all.push_back({name, std::shared_ptr<Parameter>(owner, &p)});
  });
  return all;
}

fovea::model::Transformer copy_of(const fovea::model::Transformer& model) {
  check(model.spec.input.kind == model::InputKind::tokens,
        "Transformer: the model reads images or audio; expected one of tokens");
  fovea::model::Transformer mine = model;
  mine.each([](const std::string&, fovea::model::Parameter& p) {
    if (p.value) p.value = copy(p.value.detach());
  });
  return mine;
}

fovea::model::Transformer new_model(const model::Spec& spec, uint64_t seed) {
  check(spec.input.kind == model::InputKind::tokens,
        "Transformer: the Spec reads images or audio; expected tokens");
  fovea::model::Transformer model(model::validated(spec));
  model::initialise(model, seed);
  return model;
}

void check_ids(const Tensor& ids) {
  check(ids.rank() == 2 && ids.dtype() == DType::i32, "ids: {} of {}; expected [B, T] of i32",
        describe(ids.shape()), name_of(ids.dtype()));
}

}  // namespace

Transformer::Transformer(const model::Spec& spec, uint64_t seed)
    : inside_(std::make_shared<Inside>(Inside{fovea::nn::new_model(spec, seed)})),
      parameters_(shared_parameters(inside_, inside_->model)) {}

Transformer::Transformer(const model::Model& model)
    : inside_(std::make_shared<Inside>(Inside{copy_of(model::parts_of(model).transformer)})),
      parameters_(shared_parameters(inside_, inside_->model)) {}

const model::Spec& Transformer::spec() const { return inside_->model.spec; }

Tensor Transformer::encode(const Tensor& ids, const Pass& pass) const {
  check_ids(ids);
  check(spec().encoder.has_value(), "encode: the model has no encoder; expected one");
  InnerPass inside(pass);
  return inside_->model.encode({ids, {}, {}, {}}, *inside);
}

Tensor Transformer::hidden(const Tensor& ids, const Pass& pass, const Tensor& memory) const {
  if (!spec().decoder) return encode(ids, pass);
  check_ids(ids);
  check(spec().encoder.has_value() == static_cast<bool>(memory),
        "memory: {}; expected the encoder's output if, and only if, there is an encoder",
        memory ? "given" : "not given");
  InnerPass inside(pass);
  (*inside).memory = memory;
  return inside_->model.decode({ids, {}, {}, {}}, *inside);
}

Tensor Transformer::logits(const Tensor& hidden) const { return inside_->model.logits(hidden); }

Tensor Transformer::loss(const Tensor& hidden, const Tensor& labels) const {
  return inside_->model.loss(hidden, {}, labels);
}

}  // namespace fovea::nn

namespace fovea {

model::Model model::Model::with_weights(const nn::Transformer& weights) const {
  check(model::write_spec(spec()) == model::write_spec(weights.spec()),
        "with_weights: the weights have another Spec; expected that of the model");
  auto parts = std::make_shared<model::ModelParts>(*parts_);
  parts->transformer = nn::copy_of(weights.inside_->model);
  return model::Model(std::move(parts));
}

}  // namespace fovea
