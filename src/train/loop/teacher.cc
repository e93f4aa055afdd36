#include "loop/teacher.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/fields.h"
#include "base/hash.h"
#include "base/math.h"
#include "base/threads.h"
#include "data/packed_rows.h"
#include "fovea/model/model_path.h"
#include "fovea/train/plan.h"
#include "generate/sampler.h"
#include "kernels/isa.h"
#include "open/directory.h"
#include "spec/mixers.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"
#include "transformer/pack.h"

namespace fovea::train {
namespace {

bool by_token(const model::Spec& spec) {
  return spec.head.kind == model::HeadKind::language_model ||
         spec.head.kind == model::HeadKind::token;
}

// Rows of HeadInputs that depend on one part of the input, and the hash of this part.
struct Segment {
  int64_t begin, end;  // rows
  uint64_t key;
};

// Tokens [begin, end) of a row of a batch.
struct TokenRange {
  int64_t row, begin, end;
};

class InputHash {
 public:
  void number(int64_t value) { hasher_.add({reinterpret_cast<const char*>(&value), sizeof value}); }
  // Adds the ids, types and positions of some tokens.
  void tokens(const model::Sequence& sequence, const TokenRange& range) {
    for (const Tensor* part : {&sequence.ids, &sequence.types, &sequence.positions}) {
      number(*part ? range.end - range.begin : -1);
      if (!*part) continue;
      const HostValues<int32_t> all(*part);
      const auto bytes = std::as_bytes(all.row(range.row).subspan(
          static_cast<size_t>(range.begin), static_cast<size_t>(range.end - range.begin)));
      hasher_.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
  }
  uint64_t hash() const { return hasher_.hash(); }

 private:
  Hasher hasher_;
};

TokenRange valid_tokens(const model::Sequence& sequence, const std::vector<Interval>& valid,
                        int64_t row) {
  if (valid.empty()) return {row, 0, sequence.ids.dim(1)};
  const Interval& all = valid[static_cast<size_t>(row)];
  return {row, all.begin, all.end};
}

// One row of the batch, for a head with one output for each sequence.
uint64_t key_of_row(const Batch& batch, int64_t row) {
  InputHash hash;
  if (batch.source.ids)
    hash.tokens(batch.source, valid_tokens(batch.source, batch.source_valid, row));
  if (batch.target.ids)
    hash.tokens(batch.target, valid_tokens(batch.target, batch.target_valid, row));
  return hash.hash();
}

// Tokens of a row that attend to no others of the row, for a head with an output for each token. A
// decoder's outputs do not depend on the tokens after the last label.
uint64_t key_of_tokens(const Batch& batch, const TokenRange& tokens,
                       const std::vector<int64_t>& positions, const std::vector<int64_t>& starts) {
  InputHash hash;
  const bool decoder = static_cast<bool>(batch.target.ids),
             encoder = static_cast<bool>(batch.source.ids);
  TokenRange range = tokens;
  const TokenRange valid = decoder ? valid_tokens(batch.target, batch.target_valid, tokens.row)
                                   : valid_tokens(batch.source, batch.source_valid, tokens.row);
  range.begin = std::max(range.begin, valid.begin);
  range.end = std::min({range.end, valid.end, decoder ? positions.back() + 1 : tokens.end});
  if (decoder && encoder)
    hash.tokens(batch.source, valid_tokens(batch.source, batch.source_valid, tokens.row));
  hash.tokens(decoder ? batch.target : batch.source, range);
  for (const int64_t start : starts)
    if (start >= range.begin && start < range.end) hash.number(start - range.begin);
  hash.number(-1);
  for (const int64_t position : positions) hash.number(position - range.begin);
  return hash.hash();
}

// Divides a row where a document begins at a multiple of a tile: its results do not depend on its
// position in the row.
std::vector<TokenRange> parts_of_row(const std::vector<int64_t>& starts, int64_t row,
                                     int64_t length) {
  std::vector<TokenRange> parts = {{row, 0, length}};
  for (const int64_t start : starts) {
    if (start == 0 || start % PackedRows::kTile != 0) continue;
    parts.back().end = start;
    parts.push_back({row, start, length});
  }
  return parts;
}

std::vector<Segment> segments_of(const Batch& batch, bool each_token) {
  std::vector<Segment> segments;
  const int64_t rows = batch.labels.dim(0);
  if (!each_token) {
    for (int64_t row = 0; row < rows; ++row)
      segments.push_back({row, row + 1, key_of_row(batch, row)});
    return segments;
  }
  const HostValues<int32_t> labels(batch.labels);
  const int64_t length = batch.labels.dim(1);
  int64_t row_begin = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const std::vector<int64_t> starts =
        batch.documents ? (*batch.documents)[static_cast<size_t>(row)] : std::vector<int64_t>();
    for (const TokenRange& part : parts_of_row(starts, row, length)) {
      std::vector<int64_t> positions;
      for (int64_t t = part.begin; t < part.end; ++t)
        if (labels[row * length + t] >= 0) positions.push_back(t);
      if (positions.empty()) continue;
      const int64_t end = row_begin + std::ssize(positions);
      segments.push_back({row_begin, end, key_of_tokens(batch, part, positions, starts)});
      row_begin = end;
    }
  }
  return segments;
}

// The elements of `p` for some rows: the classes, then the logarithms.
std::string record_of(const TopProbabilities& p, const Segment& rows) {
  std::string bytes;
  for (const Tensor& part : {p.classes, p.log_p}) {
    const Tensor some = part.rows(rows.begin, rows.end);
    bytes.append(static_cast<const char*>(some.data()), some.bytes());
  }
  return bytes;
}

bool copy_bytes(std::string_view bytes, const TopProbabilities& p, const Segment& rows) {
  const Tensor classes = p.classes.rows(rows.begin, rows.end),
               log_p = p.log_p.rows(rows.begin, rows.end);
  if (bytes.size() != classes.bytes() + log_p.bytes()) return false;
  std::memcpy(classes.data(), bytes.data(), classes.bytes());
  std::memcpy(log_p.data(), bytes.data() + classes.bytes(), log_p.bytes());
  return true;
}

// Writes the k largest classes of a row, and the logarithms of their probabilities in
// softmax(scale * logits) and of that of all others.
void top_of_row(const float* logits, int64_t outputs, int64_t k, float scale, int32_t* classes,
                float* log_p) {
  std::vector<int32_t> top;
  for (const auto& [id, logit] : infer::largest_logits(logits, outputs, k)) top.push_back(id);
  std::sort(top.begin(), top.end());
  double rest = -std::numeric_limits<double>::infinity();
  if (k < outputs) {
    thread_local std::vector<float> others;
    others.assign(logits, logits + outputs);
    for (float& x : others) x *= scale;
    for (const int32_t id : top)
      others[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
    rest = infer::log_sum(others.data(), outputs);
  }
  double most = rest, sum = 0;
  for (const int32_t id : top) most = std::max<double>(most, logits[id] * scale);
  for (const int32_t id : top) sum += math::exp(double{logits[id] * scale} - most);
  sum += math::exp(rest - most);
  const double lse = most + math::log(sum);
  if (!std::isfinite(lse))
    fail(ErrorKind::Failed, "teacher: its logits are not finite; expected finite weights");
  for (size_t j = 0; j < top.size(); ++j) {
    classes[j] = top[j];
    log_p[j] = static_cast<float>(double{logits[top[j]] * scale} - lse);
  }
  log_p[k] = static_cast<float>(rest - lse);
}

void check_kind(const model::Spec& teacher, const model::Spec& student) {
  const auto kind = [](const model::Spec& spec) {
    return spec.encoder && spec.decoder ? "an encoder-decoder"
           : spec.encoder               ? "an encoder"
                                        : "a decoder";
  };
  check_field(std::string_view(kind(teacher)) == kind(student), "teacher",
              "is {}; expected {}, like the model that it teaches", kind(teacher), kind(student));
}

void check_fits(const model::Spec& teacher, const model::Spec& student, bool documents) {
  check_kind(teacher, student);
  check_field(teacher.head.kind == student.head.kind &&
                  (by_token(teacher) || teacher.head.labels == student.head.labels),
              "teacher", "has another head than the model that it teaches; expected the same kind");
  const bool tokens = teacher.input.kind == model::InputKind::tokens;
  check_field(tokens, "teacher", "does not read text; expected a model of text");
  for (int64_t layer = 0; documents && teacher.decoder && layer < teacher.decoder->layers; ++layer)
    check_field(!model::is_recurrent(*teacher.decoder, layer), "teacher",
                "has recurrent layers, whose state continues in the next text of a row; expected "
                "a model without them");
}

}  // namespace

void check_teacher(const std::string& path, const model::Spec& student) {
  if (!path.empty()) check_kind(model::read_model_spec(path), student);
}

Teacher::Teacher(TeacherOptions options, const model::Spec& student)
    : options_(std::move(options)) {
  model::ModelFiles files = model::open_model_files(options_.path, model::Weights::packed);
  model_ = std::move(files.model);
  labels_ = std::move(files.origin.labels);
  warnings_ = std::move(files.warnings);
  check_fits(model_.spec, student, options_.reads_documents);
  const model::HeadSpec& head = model_.spec.head;
  const int64_t outputs =
      head.kind == model::HeadKind::language_model ? model_.spec.vocabulary : head.labels;
  options_.outputs = options_.outputs > 0 ? std::min(options_.outputs, outputs) : outputs;
  options_.top = std::min(options_.top, options_.outputs);
  weight_bytes_ = fovea::model::weight_bytes(model_);
  hash_ = model::model_fingerprint(options_.path);
  const uint64_t identity =
      hash_bytes(fmt::format("{:016x} {} {} {} {}", hash_, options_.top, options_.temperature,
                             options_.outputs, numeric_class(options_.compute)));
  cache_ = std::make_unique<OutputCache>(
      fmt::format("{}/{}.bin", options_.cache, hash_text(identity)), identity);
}

void Teacher::compute(const Batch& batch, const TopProbabilities& p) const {
  const NoGradient off;
  model::Pass pass;
  pass.compute = options_.compute;
  const float scale = 1 / options_.temperature;
  const int64_t k = options_.top;
  each_block_of_logits(model_, head_inputs(model_, batch, pass),
                       [&](const Tensor& of_rows, int64_t begin, int64_t end) {
                         const HostValues<float> logits(of_rows);
                         parallel_for(end - begin, 1, [&](int64_t first, int64_t last) {
                           for (int64_t r = first; r < last; ++r)
                             top_of_row(logits.row(r).data(), options_.outputs, k, scale,
                                        p.classes.data_as<int32_t>() + (begin + r) * k,
                                        p.log_p.data_as<float>() + (begin + r) * (k + 1));
                         });
                       });
}

TopProbabilities Teacher::operator()(const Batch& batch) {
  const bool each_token = by_token(model_.spec), none = batch.predictions == 0;
  const int64_t rows = each_token && !none ? batch.predictions : batch.labels.size();
  const int64_t k = options_.top;
  const TopProbabilities p{full({rows, k}, -1, DType::i32), zeros({rows, k + 1})};
  if (none) return p;
  if (batch.as<WrittenAnswers>() != nullptr) {
    compute(batch, p);
    return p;
  }
  std::vector<Segment> unknown;
  for (const Segment& segment : segments_of(batch, each_token)) {
    const auto found = cache_->find(segment.key);
    if (!found || !copy_bytes(*found, p, segment)) unknown.push_back(segment);
  }
  if (!unknown.empty()) compute(batch, p);
  for (const Segment& segment : unknown) cache_->add(segment.key, record_of(p, segment));
  if (each_token) return p;
  const HostValues<int32_t> labels(batch.labels);
  for (int64_t row = 0; row < rows; ++row)
    if (labels[row] < 0) copy_elements(p.classes, row * k, full({k}, -1, DType::i32), 0, k);
  return p;
}

}  // namespace fovea::train
