#include "inspect/inspection.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/fields.h"
#include "safetensors/safetensors.h"
#include "tensor/tape.h"

namespace fovea::study {
namespace {

// Limit of the residual streams, in bytes: enough for 4,096 tokens in 24 layers of width 2,048.
constexpr int64_t kStreamBytes = int64_t{1} << 30;
// Limit of the cached inputs and outputs of attention, in bytes; a cache above the limit is cleared
// before more is added.
constexpr size_t kKeptBytes = size_t{256} << 20;

void check_ids(const std::vector<int32_t>& ids, int64_t vocabulary, int64_t context) {
  check(!ids.empty(), "text: no tokens; expected at least one");
  check(std::ssize(ids) <= context, "text: {} tokens; expected at most {}, the model's context",
        ids.size(), context);
  for (const int32_t id : ids)
    check(id >= 0 && id < vocabulary, "ids: {}; expected 0 to {}", id, vocabulary - 1);
}

// Returns the attention that a point belongs to.
model::AttentionKind kind_of(const model::ProbePoint& point) {
  if (point.stack == model::ProbePoint::Stack::cross) return model::AttentionKind::cross;
  return point.stack == model::ProbePoint::Stack::encoder ? model::AttentionKind::encoder
                                                          : model::AttentionKind::self;
}

void keep_first_values(StackRun& run, int64_t layer, const Tensor& values) {
  const auto block = run.stack->block(layer);
  const auto* attention = block->mixer_as<model::Attention>();
  if (attention == nullptr || attention->spec.value_residual == 0 || run.first_values) return;
  run.first_values = values.detach();
  run.first_attention = layer;
}

size_t bytes_of(const AttentionMap& a) {
  return a.q.bytes() + a.k.bytes() + a.v.bytes() + a.heads.bytes();
}

// Whether the values of a layer have this point. Those of attention are in AttentionMap.
bool is_kept(model::ProbePoint::What what) {
  switch (what) {
    using enum model::ProbePoint::What;
    case query:
    case key:
    case value:
    case scores:
    case attention:
    case mlp_pre: return false;
    default: return true;
  }
}

}  // namespace

Tensor LayerValues::row(What what, int64_t token, bool cross) const {
  const auto found = points.find({what, cross});
  return found == points.end() ? Tensor() : row_of(found->second, token);
}

Inspection::State::State(const model::Transformer& given, std::vector<int32_t> source_ids,
                         std::vector<int32_t> ids, std::vector<model::HeadIndex> muted,
                         std::vector<NeuronIndex> muted_neurons, const model::TokenVectors& vectors)
    : model(given),
      has_images(!vectors.rows.empty()),
      muted_(std::move(muted)),
      muted_neurons_(std::move(muted_neurons)) {
  const NoGradient off;
  const model::Spec& spec = model.spec;
  const bool both = spec.encoder && spec.decoder;
  if (spec.input.kind != model::InputKind::tokens)
    fail(ErrorKind::Unsupported,
         "model: it reads images or audio; expected a text model, or an image instead of a text");
  if (spec.encoder) {
    const int64_t known = spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary;
    check_ids(source_ids, known, spec.context);
    StackRun& run = both ? source : main;
    run.stack = &model.encoder;
    run.ids = std::move(source_ids);
  }
  if (spec.decoder) {
    check_ids(ids, spec.vocabulary, spec.context);
    main.stack = &model.decoder;
    main.ids = std::move(ids);
  }
  for (const model::HeadIndex& head : muted_) {
    check_layer(head.kind, head.layer);
    check_head(head.head, stack_spec(head.kind).attention.heads);
  }
  for (const NeuronIndex& neuron : muted_neurons_) {
    check_layer(neuron.kind, neuron.layer);
    const auto block = run(neuron.kind).stack->block(neuron.layer);
    const std::optional<model::FeedForward>& ffn = block->ffn;
    const int64_t width = ffn && ffn->up.weight.present() ? ffn->up.weight.shape[0] : 0;
    check_field(neuron.neuron >= 0 && neuron.neuron < width, "muted_neurons",
                "neuron {} of layer {}; expected a neuron of a layer with {} neurons",
                neuron.neuron, neuron.layer, width);
  }
  model::Pass pass;
  if (both) {
    read(source, {tensor_of(source.ids, {1, std::ssize(source.ids)}), {}, {}, {}}, pass);
    pass.memory = source.output;
  }
  model::Sequence sequence{tensor_of(main.ids, {1, std::ssize(main.ids)}), {}, {}, {}};
  if (has_images) {
    const int64_t N = std::ssize(vectors.rows);
    sequence.vectors = tensor_of(vectors.values, {N, std::ssize(vectors.values) / N});
    sequence.vector_rows = tensor_of(vectors.rows, {N});
  }
  read(main, sequence, pass);
}

Inspection::State::State(const model::Transformer& given, const Tensor& pixels)
    : model(given), has_images(true) {
  const NoGradient off;
  main.stack = &model.encoder;
  main.ids.resize(static_cast<size_t>(model.input.length()));
  std::iota(main.ids.begin(), main.ids.end(), 0);
  read(main, {{}, {}, {}, pixels}, model::Pass());
}

void Inspection::State::read(StackRun& run, const model::Sequence& sequence,
                             const model::Pass& given) {
  const int64_t layers = run.stack->layers;
  const int64_t row = model.spec.width * (layers + 1) * 4;
  check(run.tokens() <= kStreamBytes / row, "text: {} tokens; expected at most {} for this model",
        run.tokens(), kStreamBytes / row);
  run.stream.resize(static_cast<size_t>(layers) + 1);
  const model::Probe probe = this->probe([&](const model::ProbePoint& point, const Tensor& value) {
    if (point.what == model::ProbePoint::What::unnormed) run.stream.back() = value.detach();
    if (point.what == model::ProbePoint::What::value &&
        kind_of(point) != model::AttentionKind::cross)
      keep_first_values(run, point.layer, value);
    if (point.what != model::ProbePoint::What::hidden) return;
    if (point.layer == layers)
      run.output = value.detach();
    else
      run.stream[static_cast<size_t>(point.layer)] = value.detach();
  });
  model::Pass pass = given;
  pass.probe = &probe;
  if (run.stack == &model.decoder)
    model.decode(sequence, pass);
  else
    model.encode(sequence, pass);
  run.pass = model::LayerPass(given);
  run.pass.stack = run.stack == &model.encoder && model.spec.decoder
                       ? model::ProbePoint::Stack::encoder
                       : model::ProbePoint::Stack::only;
  run.pass.mask.causal = run.stack->causal;
  run.stack->positions.prepare(run.pass, run.tokens(), {});
}

model::Probe Inspection::State::probe(
    std::function<void(const model::ProbePoint&, Tensor&)> see) const {
  return {.see =
              [this, see = std::move(see)](const model::ProbePoint& point, Tensor& value) {
                if (point.what == model::ProbePoint::What::mlp_hidden) {
                  const int64_t F = value.dim(-1);
                  for (const NeuronIndex& each : muted_neurons_)
                    if (each.kind == kind_of(point) && each.layer == point.layer)
                      for (int64_t r = 0; r < value.size() / F; ++r)
                        copy_elements(value, r * F + each.neuron, zeros({1}), 0, 1);
                }
                if (see) see(point, value);
              },
          .attend = [this](const model::ProbePoint& point,
                           const model::AttentionInputs& here) { attend(point, here, nullptr); }};
}

// Sets the outputs of muted heads to zero, also in the cached copies.
void Inspection::State::attend(
    const model::ProbePoint& point, const model::AttentionInputs& here,
    std::map<std::pair<model::AttentionKind, int64_t>, AttentionMap>* kept) const {
  const model::AttentionKind kind = kind_of(point);
  const int64_t H = here.heads.dim(2), D = here.heads.dim(3), rows = here.heads.size() / (H * D);
  for (const model::HeadIndex& head : muted_) {
    if (head.kind != kind || head.layer != point.layer) continue;
    for (int64_t r = 0; r < rows; ++r)
      copy_elements(here.heads, (r * H + head.head) * D, zeros({D}), 0, D);
  }
  if (kept == nullptr) return;
  (*kept)[{kind, point.layer}] = {here.q.detach(), here.k.detach(), here.v.detach(),
                                  here.heads.detach(), here.options};
}

const StackRun& Inspection::State::run(model::AttentionKind kind) const {
  check_field(kind == model::AttentionKind::self || source.stack != nullptr, "look",
              "encoder and cross need a model with an encoder and a decoder; expected self");
  return kind == model::AttentionKind::encoder ? source : main;
}

const model::StackSpec& Inspection::State::stack_spec(model::AttentionKind kind) const {
  return run(kind).stack == &model.decoder ? *model.spec.decoder : *model.spec.encoder;
}

int64_t Inspection::State::keys(model::AttentionKind kind) const {
  return kind == model::AttentionKind::cross ? source.tokens() : run(kind).tokens();
}

void Inspection::State::check_layer(model::AttentionKind kind, int64_t layer) const {
  const int64_t layers = run(kind).stack->layers;
  check_field(layer >= 0 && layer < layers, "layer", "{}; expected 0 to {}", layer, layers - 1);
}

void Inspection::State::check_text(const char* what) const {
  check(!has_images, "{}: the input has images; expected a text", what);
}

void Inspection::State::check_head(int64_t head, int64_t heads) {
  check_field(head >= 0 && head < heads, "head", "{}; expected 0 to {}", head, heads - 1);
}

const AttentionMap& Inspection::State::attended(model::AttentionKind kind, int64_t layer) const {
  check_layer(kind, layer);
  if (const auto found = kept_.find({kind, layer}); found != kept_.end()) return found->second;
  const NoGradient off;
  size_t bytes = 0;
  for (const auto& [key, attended] : kept_) bytes += bytes_of(attended);
  if (bytes > kKeptBytes) kept_.clear();
  const StackRun& run = this->run(kind);
  const model::Probe probe{
      .attend = [&](const model::ProbePoint& point, const model::AttentionInputs& here) {
        attend(point, here, &kept_);
      }};
  model::LayerPass pass = run.pass;
  pass.probe = &probe;
  pass.first_values = run.first_values_of(layer);
  const auto held = run.stack->block(layer);
  const model::Block& block = *held;
  check_field(kind == model::AttentionKind::cross || block.attends(), "layer",
              "{} is recurrent and has no attention weights; expected an attention layer", layer);
  const Tensor& x = run.stream[static_cast<size_t>(layer)];
  if (kind == model::AttentionKind::cross)
    block(x, pass);
  else
    block.mix(block.attention_norm.input(x, pass.compute), pass);
  return kept_.at({kind, layer});
}

const LayerValues& Inspection::State::values(model::AttentionKind kind, int64_t layer) const {
  check_layer(kind, layer);
  const StackRun& run = this->run(kind);
  if (const auto found = values_.find({run.stack, layer}); found != values_.end())
    return found->second;
  const NoGradient off;
  size_t bytes = 0;
  for (const auto& [key, values] : values_)
    for (const auto& [point, value] : values.points) bytes += value.bytes();
  if (bytes > kKeptBytes) values_.clear();
  LayerValues& values = values_[{run.stack, layer}];
  const model::Probe probe = this->probe([&](const model::ProbePoint& point, const Tensor& value) {
    if (is_kept(point.what))
      values.points[{point.what, point.stack == model::ProbePoint::Stack::cross}] = value.detach();
  });
  model::LayerPass pass = run.pass;
  pass.probe = &probe;
  pass.first_values = run.first_values_of(layer);
  (*run.stack->block(layer))(run.stream[static_cast<size_t>(layer)], pass);
  return values;
}

Inspection::Inspection(std::unique_ptr<State> state) : state_(std::move(state)) {}
Inspection::~Inspection() = default;
Inspection::Inspection(Inspection&&) noexcept = default;

const std::vector<InspectedToken>& Inspection::tokens() const { return state_->text; }
const std::vector<InspectedToken>& Inspection::source() const { return state_->source_text; }

void Inspection::save(const std::string& path, model::AttentionKind kind, int64_t layer) const {
  const InspectionCall state(*state_);
  const StackRun& run = state->run(kind);
  const model::Spec& spec = state->model.spec;
  const bool cross = kind == model::AttentionKind::cross;
  const model::ProbePoint::Stack stack =
      !spec.encoder || !spec.decoder          ? model::ProbePoint::Stack::only
      : kind == model::AttentionKind::encoder ? model::ProbePoint::Stack::encoder
                                              : model::ProbePoint::Stack::decoder;
  std::map<std::string, Tensor> found{{"input_ids", tensor_of(run.ids, {1, std::ssize(run.ids)})}};
  const int64_t layers = std::ssize(run.stream) - 1;
  for (int64_t i = 0; i <= layers; ++i)
    found[model::name_of({model::ProbePoint::What::hidden, i, stack})] =
        i < layers ? run.stream[static_cast<size_t>(i)] : run.output;
  const int64_t H = state->stack_spec(kind).attention.heads, T = run.tokens(),
                S = state->keys(kind);
  const Tensor weights = empty({1, H, T, S});
  for (int64_t h = 0; h < H; ++h)
    copy_elements(weights, h * T * S, state->weights(kind, layer, h, {0, T}), 0, T * S);
  found[model::name_of({model::ProbePoint::What::attention, layer,
                        cross ? model::ProbePoint::Stack::cross : stack})] = weights;
  write_safetensors(path, found);
}

}  // namespace fovea::study
