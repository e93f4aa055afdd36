#include "inspect/trace.h"

#include <algorithm>

#include "base/error.h"
#include "base/fields.h"
#include "inspect/point_names.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

// Returns the interval of tokens of each row. Throws InvalidArgument if there is padding elsewhere
// than at the ends of a row.
std::vector<Interval> valid_keys(const Tensor& attention_mask) {
  std::vector<Interval> valid;
  const int64_t T = attention_mask.dim(1);
  const HostValues<int32_t> mask(attention_mask);
  for (int64_t b = 0; b < attention_mask.dim(0); ++b) {
    const int32_t* const row = mask.row(b).data();
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

// Returns positions that count from the first token of each row that is not padding, as
// transformers does when it generates from a padded batch.
Tensor positions_of(const std::vector<Interval>& valid, int64_t T) {
  return tensor_from<int32_t>({std::ssize(valid), T}, [&](int64_t i) {
    return std::max<int64_t>(0, i % T - valid[static_cast<size_t>(i / T)].begin);
  });
}

// Returns the targets: label t + 1 for token t, and none for the last token.
Tensor shifted(const Tensor& labels) {
  const int64_t T = labels.dim(1);
  const HostValues<int32_t> label(labels);
  return tensor_from<int32_t>(labels.shape(),
                              [&](int64_t i) { return i % T == T - 1 ? -100 : label[i + 1]; });
}

// Returns the decoder's input for these labels: the start token and all labels but the last.
Tensor read_before(const Tensor& labels, const TraceInput& input) {
  const int64_t T = labels.dim(1);
  const HostValues<int32_t> label(labels);
  const auto is_padding = [&](int32_t id) { return id == -100 || id == input.padding; };
  const auto first = [&](int64_t begin) {
    int64_t last = begin + T - 1;
    while (last > begin && is_padding(label[last])) --last;
    return input.starts_with_last_label ? label[last] : input.start;
  };
  return tensor_from<int32_t>(labels.shape(), [&](int64_t i) {
    const int32_t before = i % T == 0 ? first(i) : label[i - 1];
    return before == -100 ? input.padding : before;
  });
}

// Checks ids here so that the error has `name`; errors of the ops have only the names of the ops.
// `other` is allowed in addition to the ids of the vocabulary.
void check_ids(const Tensor& ids, const char* name, int64_t vocabulary, int32_t other) {
  const HostValues<int32_t> all(ids);
  for (int64_t i = 0; i < all.size(); ++i) {
    const int32_t id = all[i];
    check((id >= 0 && id < vocabulary) || id == other, "{}: {} at position {}; expected 0 to {}",
          name, id, i, vocabulary - 1);
  }
}

void add_gradients(model::Transformer& model, const model::Family& family, TraceTensors& found) {
  std::map<std::string, Tensor> gradients;
  model.each([&](const std::string& name, model::Parameter& p) {
    const Tensor gradient = p.value.gradient();
    gradients[name] = gradient ? gradient.view(p.shape) : zeros(p.shape);
    p.value = p.value.detach();
  });
  for (const bool in_memory : {false, true}) {
    for (const model::FileTensor& tensor : model::file_tensors(family, model, in_memory)) {
      std::vector<Tensor> parts;
      for (const std::string& part : tensor.parts) parts.push_back(gradients.at(part));
      found["grad." + tensor.name] = model::to_file(tensor, parts);
    }
  }
}

void check_input(const model::Spec& spec, const TraceInput& input) {
  const bool text = spec.input.kind == model::InputKind::tokens || !spec.encoder;
  if (text) {
    check(input.ids && input.ids.rank() == 2 && input.ids.size() > 0,
          "input_ids: shape {}; expected [B, T]", describe(input.ids.shape()));
    const int64_t known =
        spec.encoder && spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary;
    check_ids(input.ids, "input_ids", known, 0);
    check(input.ids.dim(1) <= spec.context,
          "input: {} tokens; expected at most {}, the model's context", input.ids.dim(1),
          spec.context);
  } else {
    const bool image = spec.input.kind == model::InputKind::image;
    check_field(input.signal && input.signal.rank() >= 3 && input.signal.size() > 0, "input",
                "the model reads {}, not text; expected a file with {}", image ? "images" : "audio",
                image ? "pixel_values" : "input_features or waveform");
  }
  for (const auto& [name, tensor] : {std::pair("attention_mask", &input.attention_mask),
                                     {"token_type_ids", &input.token_types}}) {
    check(!*tensor || tensor->shape() == input.ids.shape(), "{}: shape {}; expected {}", name,
          describe(tensor->shape()), describe(input.ids.shape()));
  }
  if (!input.labels) return;
  const bool words = spec.head.kind == model::HeadKind::language_model;
  check_ids(input.labels, "labels", words ? spec.vocabulary : spec.head.labels, -100);
  const bool same_shape = !text || (spec.encoder && spec.decoder) ||
                          spec.head.kind == model::HeadKind::sequence ||
                          input.labels.shape() == input.ids.shape();
  check(same_shape, "labels: shape {}; expected {}", describe(input.labels.shape()),
        describe(input.ids.shape()));
}

// The model's outputs, the targets of its loss, and the input of an encoder-decoder's decoder.
struct Outcome {
  Tensor logits, targets, decoder_ids;
};

Outcome run(const model::Transformer& model, const TraceInput& input, model::Pass pass) {
  const model::Spec& spec = model.spec;
  model::Sequence sequence{input.ids,        {}, input.token_types, input.signal, input.vectors,
                           input.vector_rows};
  if (input.attention_mask) pass.mask.valid = valid_keys(input.attention_mask);
  const auto valid = pass.mask.valid;
  if (!spec.decoder) return {model.logits(model.encode(sequence, pass), valid), input.labels, {}};
  if (!spec.encoder) {
    if (input.attention_mask) sequence.positions = positions_of(valid, input.ids.dim(1));
    const bool words = spec.head.kind == model::HeadKind::language_model;
    const Tensor targets = input.labels && words ? shifted(input.labels) : input.labels;
    const std::vector<Interval> read = model.read_by_head(input.ids, valid);
    return {model.logits(model.decode(sequence, pass), read), targets, {}};
  }
  pass.memory = model.encode(sequence, pass);
  pass.memory_valid = valid;
  if (input.ids && spec.head.kind != model::HeadKind::language_model) {
    // The decoder reads the text too, and labels are those of the text or of its tokens.
    const Tensor ids = model::moved_by_one(input.ids, input.start);
    return {model.logits(model.decode({ids, {}, {}, {}}, pass), valid), input.labels, ids};
  }
  pass.mask.valid.clear();
  Tensor ids = full({pass.memory.dim(0), 1}, input.start, DType::i32);
  if (input.labels) ids = read_before(input.labels, input);
  return {model.logits(model.decode({ids, {}, {}, {}}, pass)), input.labels, ids};
}

// Receives the values of one pass: keeps those that are selected, and replaces those for which
// there is a patch.
class Recorder {
 public:
  Recorder(const model::Transformer& model, const model::Family& family, const TraceInput& input,
           TraceTensors& found)
      : model_(model),
        family_(family),
        input_(input),
        selection_(input.what, input.layers),
        found_(found) {}

  // Returns whether a value that is expensive to compute is selected or patched.
  bool wants(const model::ProbePoint& point) {
    bool wanted = false;
    for (const PointName& name : names(point)) {
      selection_.found(name);
      wanted = wanted || selection_.has(name) || input_.patches.contains(name.name);
    }
    return wanted;
  }

  void see(const model::ProbePoint& point, Tensor& value) {
    const std::vector<PointName> names = this->names(point);
    for (const PointName& name : names) patch(name.name, value, names.front().name);
    for (const PointName& name : names) {
      selection_.found(name);
      if (!selection_.has(name)) continue;
      if (input_.hook) call_hook(name.name, value);
      found_[name.name] = value.detach();
    }
  }

  // Throws if a pattern or a patch has named no value.
  void check_used() const {
    selection_.check_found();
    for (const auto& [name, value] : input_.patches)
      if (!patched_.contains(name))
        fail(ErrorKind::BadFile,
             "{}: {} names no value of this model; expected a name such as hidden.0 or query.0",
             input_.patch_file, name);
  }

 private:
  std::vector<PointName> names(const model::ProbePoint& point) const {
    const bool encoder = point.stack == model::ProbePoint::Stack::encoder || !model_.spec.decoder;
    const model::Stack& stack = encoder ? model_.encoder : model_.decoder;
    const model::StackSpec& spec = encoder ? *model_.spec.encoder : *model_.spec.decoder;
    return names_of(
        point, {.layers = stack.layers,
                .reports_unnormed = family_.reports_unnormed,
                .rotary = spec.position.kind == model::PositionKind::rotary,
                .query_norm = spec.attention.norm != model::QueryKeyNorm::none,
                .layer_norm = spec.norm.kind == model::NormKind::layer && spec.placement.input});
  }

  void patch(const std::string& name, Tensor& value, const std::string& point) {
    const auto found = input_.patches.find(name);
    if (found == input_.patches.end()) return;
    if (found->second.shape() != value.shape())
      fail(ErrorKind::BadFile, "{}: {} is {}; expected {}", input_.patch_file, name,
           found->second.shape(), value.shape());
    for (const auto& [other, its_point] : patched_)
      if (its_point == point)
        fail(ErrorKind::BadFile, "{}: {} and {} name the same value; expected one of them",
             input_.patch_file, other, name);
    patched_[name] = point;
    value = convert(found->second, value.dtype());
  }

  void call_hook(const std::string& name, Tensor& value) const {
    Tensor hooked = value;
    input_.hook(name, hooked);
    check(hooked && hooked.shape() == value.shape() && hooked.dtype() == value.dtype(),
          "{}: the hook returned {} {}; expected {} {}", name, name_of(hooked.dtype()),
          describe(hooked.shape()), name_of(value.dtype()), describe(value.shape()));
    value = hooked;
  }

  const model::Transformer& model_;
  const model::Family& family_;
  const TraceInput& input_;
  NameSelection selection_;
  TraceTensors& found_;
  std::map<std::string, std::string> patched_;  // the patches in use, and the names of their points
};

}  // namespace

TraceTensors trace_model(model::Transformer& model, const model::Family& family,
                         const TraceInput& input) {
  check_input(model.spec, input);
  TraceTensors found;
  Recorder recorder(model, family, input, found);
  const model::Probe probe{
      .see = [&](const model::ProbePoint& point, Tensor& value) { recorder.see(point, value); },
      .wants_weights = [&](const model::ProbePoint& point) { return recorder.wants(point); }};
  model::Pass pass;
  pass.probe = &probe;
  if (input.gradients)
    model.each([](const std::string&, model::Parameter& p) { p.value.want_gradient(); });

  const Outcome outcome = run(model, input, pass);
  const Tensor logits = model::probed(pass, model::ProbePoint::What::logits, 0, outcome.logits);
  recorder.check_used();
  if (input.ids) found["input_ids"] = input.ids;
  if (outcome.decoder_ids) found["decoder_input_ids"] = outcome.decoder_ids;
  if (outcome.targets) {
    const Tensor loss = cross_entropy(logits, outcome.targets);
    found["loss"] = convert(loss, DType::f32);
    if (input.gradients) backward(loss);
  }
  if (input.gradients) add_gradients(model, family, found);
  return found;
}

}  // namespace fovea::study
