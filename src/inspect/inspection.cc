#include "inspect/inspection.h"

#include <algorithm>
#include <charconv>

#include "base/fields.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Limit of the residual streams, in bytes: enough for 4,096 tokens in 24 layers of width 2,048.
constexpr int64_t kStreamBytes = int64_t{1} << 30;
// Limit of the cached inputs and outputs of attention, in bytes; a cache above the limit is cleared
// before more is added.
constexpr size_t kKeptBytes = size_t{256} << 20;

Tensor row_of(const std::vector<int32_t>& ids) {
  Tensor row = empty({1, static_cast<int64_t>(ids.size())}, DType::i32);
  std::copy(ids.begin(), ids.end(), row.data_as<int32_t>());
  return row;
}

void check_ids(const std::vector<int32_t>& ids, int64_t vocabulary, int64_t context) {
  check(!ids.empty(), "text: no tokens; expected at least one");
  check(std::ssize(ids) <= context, "text: {} tokens; expected at most {}, the model's context",
        ids.size(), context);
  for (const int32_t id : ids)
    check(id >= 0 && id < vocabulary, "ids: {}; expected 0 to {}", id, vocabulary - 1);
}

// Returns the attention that a point belongs to.
Look look_of(const ProbePoint& point) {
  if (point.what == ProbePoint::What::cross_attention) return Look::cross;
  return point.stack == ProbePoint::Stack::encoder ? Look::encoder : Look::self;
}

size_t bytes_of(const AttentionMap& a) {
  return a.q.bytes() + a.k.bytes() + a.v.bytes() + a.heads.bytes();
}

}  // namespace

Inspection::Inspection(const Transformer& model, std::vector<int32_t> source,
                       std::vector<int32_t> ids, std::vector<HeadPlace> muted)
    : model_(model), muted_(std::move(muted)) {
  const NoGradient off;
  const Spec& spec = model.spec;
  const bool both = spec.encoder && spec.decoder;
  if (spec.input.kind != InputKind::tokens)
    fail(ErrorKind::Unsupported, "model: it reads images or sound; expected a text model");
  if (spec.encoder) {
    const int64_t known = spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary;
    check_ids(source, known, spec.context);
    StackRun& run = both ? source_ : main_;
    run.stack = &model.encoder;
    run.ids = std::move(source);
  }
  if (spec.decoder) {
    check_ids(ids, spec.vocabulary, spec.context);
    main_.stack = &model.decoder;
    main_.ids = std::move(ids);
  }
  for (const HeadPlace& head : muted_) {
    check_layer(head.look, head.layer);
    check_head(head.head, stack_spec(head.look).attention.heads);
  }
  Pass pass;
  if (both) {
    read(source_, {row_of(source_.ids), {}, {}, {}}, pass);
    pass.memory = source_.output;
  }
  read(main_, {row_of(main_.ids), {}, {}, {}}, pass);
}

void Inspection::read(StackRun& run, const Sequence& sequence, const Pass& given) {
  const auto layers = std::ssize(run.stack->blocks);
  const int64_t row = model_.spec.width * (layers + 1) * 4;
  check(run.tokens() <= kStreamBytes / row, "text: {} tokens; expected at most {} for this model",
        run.tokens(), kStreamBytes / row);
  run.stream.resize(static_cast<size_t>(layers) + 1);
  const Probe probe{.see =
                        [&](const ProbePoint& point, const Tensor& value) {
                          if (point.what == ProbePoint::What::unnormed)
                            run.stream.back() = value.detach();
                          else if (point.layer == layers)
                            run.output = value.detach();
                          else
                            run.stream[static_cast<size_t>(point.layer)] = value.detach();
                        },
                    .attend = [&](const ProbePoint& point,
                                  const AttentionInputs& here) { attend(point, here, nullptr); }};
  Pass pass = given;
  pass.probe = &probe;
  if (run.stack == &model_.decoder)
    model_.decode(sequence, pass);
  else
    model_.encode(sequence, pass);
  run.pass = given;
  run.pass.stack = run.stack == &model_.encoder && model_.spec.decoder ? ProbePoint::Stack::encoder
                                                                       : ProbePoint::Stack::only;
  run.pass.mask.causal = run.stack->decodes;
  run.stack->positions.prepare(run.pass, run.tokens(), {});
}

// Sets the outputs of muted heads to zero, also in the cached copies.
void Inspection::attend(const ProbePoint& point, const AttentionInputs& here,
                        std::map<std::pair<Look, int64_t>, AttentionMap>* kept) const {
  const Look look = look_of(point);
  const int64_t T = here.heads.dim(1), H = here.heads.dim(2), D = here.heads.dim(3);
  for (const HeadPlace& head : muted_) {
    if (head.look != look || head.layer != point.layer) continue;
    for (int64_t t = 0; t < T; ++t)
      std::fill_n(here.heads.data_as<float>() + (t * H + head.head) * D, D, 0.0f);
  }
  if (kept == nullptr) return;
  (*kept)[{look, point.layer}] = {here.q.detach(), here.k.detach(), here.v.detach(),
                                  here.heads.detach(), here.options};
}

const StackRun& Inspection::run(Look look) const {
  check_field(look == Look::self || source_.stack != nullptr, "look",
              "encoder and cross need a model with an encoder and a decoder; expected self");
  return look == Look::encoder ? source_ : main_;
}

const StackSpec& Inspection::stack_spec(Look look) const {
  return run(look).stack == &model_.decoder ? *model_.spec.decoder : *model_.spec.encoder;
}

int64_t Inspection::keys(Look look) const {
  return look == Look::cross ? source_.tokens() : run(look).tokens();
}

void Inspection::check_layer(Look look, int64_t layer) const {
  const auto layers = std::ssize(run(look).stack->blocks);
  check_field(layer >= 0 && layer < layers, "layer", "{}; expected 0 to {}", layer, layers - 1);
}

void Inspection::check_head(int64_t head, int64_t heads) {
  check_field(head >= 0 && head < heads, "head", "{}; expected 0 to {}", head, heads - 1);
}

const AttentionMap& Inspection::attended(Look look, int64_t layer) const {
  check_layer(look, layer);
  if (const auto found = kept_.find({look, layer}); found != kept_.end()) return found->second;
  const NoGradient off;
  size_t bytes = 0;
  for (const auto& [place, attended] : kept_) bytes += bytes_of(attended);
  if (bytes > kKeptBytes) kept_.clear();
  const StackRun& run = this->run(look);
  const Probe probe{.attend = [&](const ProbePoint& point, const AttentionInputs& here) {
    attend(point, here, &kept_);
  }};
  Pass pass = run.pass;
  pass.probe = &probe;
  const Block& block = run.stack->blocks[static_cast<size_t>(layer)];
  check_field(look == Look::cross || !block.recurrence.present(), "layer",
              "{} is recurrent and has no attention weights; expected an attention layer", layer);
  const Tensor& x = run.stream[static_cast<size_t>(layer)];
  if (look == Look::cross)
    block(x, pass);
  else
    block.mix(block.attention_norm.input(x, pass.compute), pass);
  return kept_.at({look, layer});
}

}  // namespace fovea
