#include "inspect/trace.h"

#include "base/error.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Padding stands at the ends of a row: what lies between is one interval.
std::vector<Interval> valid_keys(const Tensor& attention_mask) {
  std::vector<Interval> valid;
  const int64_t T = attention_mask.dim(1);
  for (int64_t b = 0; b < attention_mask.dim(0); ++b) {
    const int32_t* row = attention_mask.data_as<int32_t>() + b * T;
    Interval seen{0, T};
    while (seen.begin < T && row[seen.begin] == 0) ++seen.begin;
    while (seen.end > seen.begin && row[seen.end - 1] == 0) --seen.end;
    for (int64_t t = seen.begin; t < seen.end; ++t) {
      check(row[t] != 0,
            "attention_mask: row {} has a gap at {}; expected padding at the ends only", b, t);
    }
    valid.push_back(seen);
  }
  return valid;
}

// Positions count from a row's first token, as transformers counts them when it generates from a
// padded batch.
Tensor positions_of(const std::vector<Interval>& valid, int64_t T) {
  const Tensor positions = zeros({static_cast<int64_t>(valid.size()), T}, DType::i32);
  for (size_t b = 0; b < valid.size(); ++b)
    for (int64_t t = valid[b].begin; t < T; ++t)
      positions.data_as<int32_t>()[static_cast<int64_t>(b) * T + t] =
          static_cast<int32_t>(t - valid[b].begin);
  return positions;
}

// What the logits of token t should say: label t + 1, and nothing for the last.
Tensor shifted(const Tensor& labels) {
  const int64_t T = labels.dim(1);
  const Tensor targets = empty(labels.shape(), DType::i32);
  for (int64_t i = 0; i < labels.size(); ++i) {
    targets.data_as<int32_t>()[i] = i % T == T - 1 ? -100 : labels.data_as<int32_t>()[i + 1];
  }
  return targets;
}

// Named as the caller knows them; the operations behind would only name themselves. `other` is
// allowed beside the vocabulary.
void check_ids(const Tensor& ids, const char* name, int64_t vocabulary, int32_t other) {
  for (int64_t i = 0; i < ids.size(); ++i) {
    const int32_t id = ids.data_as<int32_t>()[i];
    check((id >= 0 && id < vocabulary) || id == other, "{}: {} at place {}; expected 0 to {}", name,
          id, i, vocabulary - 1);
  }
}

void add_gradients(Transformer& model, const Family& family, std::map<std::string, Tensor>& found) {
  std::map<std::string, Tensor> gradients;
  model.each([&](const std::string& name, Parameter& p) {
    const Tensor gradient = p.value.gradient();
    gradients[name] = gradient ? gradient : zeros(p.shape);
    p.value = p.value.detach();
  });
  for (const FileTensor& tensor : file_tensors(family.names, model)) {
    std::vector<Tensor> parts;
    for (const std::string& part : tensor.parts) parts.push_back(gradients.at(part));
    found["grad." + tensor.name] = to_file(tensor, parts);
  }
}

}  // namespace

std::map<std::string, Tensor> trace_model(Transformer& model, const Family& family,
                                          const TraceInput& input) {
  check(input.ids.rank() == 2 && input.ids.size() > 0, "input_ids: shape {}; expected [B, T]",
        describe(input.ids.shape()));
  check(!input.attention_mask || input.attention_mask.shape() == input.ids.shape(),
        "attention_mask: shape {}; expected {}", describe(input.attention_mask.shape()),
        describe(input.ids.shape()));
  check(!input.labels || input.labels.shape() == input.ids.shape(), "labels: shape {}; expected {}",
        describe(input.labels.shape()), describe(input.ids.shape()));
  check_ids(input.ids, "input_ids", model.spec.vocabulary, 0);
  if (input.labels) check_ids(input.labels, "labels", model.spec.vocabulary, -100);
  const int64_t T = input.ids.dim(1);
  check(T <= model.spec.context, "input: {} tokens; expected at most {}, the model's context", T,
        model.spec.context);

  std::map<std::string, Tensor> found;
  const Probe probe{
      [&](const std::string& name, const Tensor& value) { found[name] = value.detach(); },
      [](const std::string&) { return true; }};
  Pass pass;
  pass.mask.causal = true;
  pass.probe = &probe;
  Tensor positions;
  if (input.attention_mask) {
    pass.mask.valid = valid_keys(input.attention_mask);
    positions = positions_of(pass.mask.valid, T);
  }
  if (input.gradients)
    model.each([](const std::string&, Parameter& p) { p.value.want_gradient(); });

  const Tensor logits = model.logits(model.hidden(input.ids, pass, positions));  // [B, T, V]
  found["logits"] = logits.detach();
  if (input.labels) {
    const Tensor loss = cross_entropy(logits, shifted(input.labels));
    found["loss"] = loss.detach();
    if (input.gradients) backward(loss);
  }
  if (input.gradients) add_gradients(model, family, found);
  return found;
}

}  // namespace fovea
