#include "search/passage_vectors.h"

#include <algorithm>
#include <cstring>

#include "parallel/gather_json.h"

namespace fovea::infer {
namespace {

// Returns one row of the vectors.
SparseVectors row_of(const SparseVectors& all, int64_t row) {
  const auto begin = all.starts[static_cast<size_t>(row)],
             end = all.starts[static_cast<size_t>(row) + 1];
  SparseVectors one;
  one.count = 1;
  one.width = all.width;
  one.starts.push_back(end - begin);
  one.indices.assign(all.indices.begin() + begin, all.indices.begin() + end);
  one.values.assign(all.values.begin() + begin, all.values.begin() + end);
  return one;
}

SparseVectors joined(const std::vector<SparseVectors>& rows, int64_t width) {
  SparseVectors all;
  all.count = std::ssize(rows);
  all.width = width;
  for (const SparseVectors& row : rows) {
    all.indices.insert(all.indices.end(), row.indices.begin(), row.indices.end());
    all.values.insert(all.values.end(), row.values.begin(), row.values.end());
    all.starts.push_back(std::ssize(all.indices));
  }
  return all;
}

template <class T>
void append(std::string& bytes, std::span<const T> numbers) {
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
}

BlockVectors compute(const PassageModel& model, const TextBlock& block) {
  EmbedOptions options;
  options.name_of_text = [&](size_t i) { return block.names[i]; };
  BlockVectors found;
  found.bytes.resize(block.texts.size());
  const auto each = [&](const auto& append_vector) {
    for (size_t i = 0; i < block.texts.size(); ++i)
      append_vector(static_cast<int64_t>(i), found.bytes[i]);
  };
  switch (model.kind()) {
    case VectorKind::sparse: {
      const SparseVectors rows = model.sparse_vectors(block.texts, TextRole::document, options);
      each([&](int64_t i, std::string& bytes) {
        const SparseVectors one = row_of(rows, i);
        append(bytes, std::span<const int32_t>(one.indices));
        append(bytes, std::span<const float>(one.values));
      });
      found.cut = rows.cut;
      break;
    }
    case VectorKind::multiple: {
      const MultiVectors rows = model.token_model().embed(block.texts, TextRole::document, options);
      each([&](int64_t i, std::string& bytes) { append(bytes, rows.rows(i).elements<float>()); });
      found.cut = rows.cut;
      break;
    }
    case VectorKind::dense: {
      const Embeddings rows = model.dense_vectors(block.texts, TextRole::document, options);
      each([&](int64_t i, std::string& bytes) { append(bytes, rows.view().row<float>(i)); });
      found.cut = rows.cut;
      break;
    }
  }
  return found;
}

}  // namespace

PassageVectors::PassageVectors(const IndexSettings& settings, int64_t rows)
    : kind_(settings.kind),
      width_(settings.width),
      dense_(kind_ == VectorKind::dense ? rows : 0, width_,
             kind_ == VectorKind::dense ? settings.precision : VectorPrecision::float32) {
  if (kind_ == VectorKind::sparse) sparse_.resize(static_cast<size_t>(rows));
  if (kind_ == VectorKind::multiple) tokens_.resize(static_cast<size_t>(rows));
}

void PassageVectors::set(int64_t row, const std::string& bytes) {
  const auto at = static_cast<size_t>(row);
  if (kind_ == VectorKind::dense) {
    std::vector<float> vector(bytes.size() / sizeof(float));
    std::memcpy(vector.data(), bytes.data(), bytes.size());
    dense_.set(row, vector.data());
  } else if (kind_ == VectorKind::sparse) {
    SparseVectors& one = sparse_[at];
    const size_t count = bytes.size() / (sizeof(int32_t) + sizeof(float));
    one.count = 1;
    one.width = width_;
    one.starts.push_back(static_cast<int64_t>(count));
    one.indices.resize(count);
    one.values.resize(count);
    std::memcpy(one.indices.data(), bytes.data(), count * sizeof(int32_t));
    std::memcpy(one.values.data(), bytes.data() + count * sizeof(int32_t), count * sizeof(float));
  } else {
    tokens_[at] = empty({static_cast<int64_t>(bytes.size() / sizeof(float)) / width_, width_});
    std::memcpy(tokens_[at].data(), bytes.data(), bytes.size());
  }
}

IndexedVectors PassageVectors::finish() const {
  switch (kind_) {
    case VectorKind::sparse: return PostingLists(joined(sparse_, width_));
    case VectorKind::multiple: return PassageTokenVectors(tokens_, width_);
    case VectorKind::dense: break;
  }
  return dense_;
}

StoredVectors::StoredVectors(const IndexContents& index) : index_(index) {
  if (index.settings().kind == VectorKind::sparse)
    for (int64_t p = 0; p < index.parts(); ++p) sparse_.push_back(index.part(p).sparse().rows());
}

void StoredVectors::copy(int64_t part, int64_t row, PassageVectors& to, int64_t to_row) const {
  const IndexPart& from = index_.part(part);
  switch (index_.settings().kind) {
    case VectorKind::dense: to.dense().copy(to_row, from.dense(), row); break;
    case VectorKind::sparse: to.set(to_row, row_of(sparse_[static_cast<size_t>(part)], row)); break;
    case VectorKind::multiple: to.set(to_row, from.tokens().rows(row)); break;
  }
}

std::vector<BlockVectors> compute_vectors(const PassageModel& model, Communicator* ranks,
                                          const std::vector<TextBlock>& blocks) {
  using nlohmann::json;
  if (ranks == nullptr) {
    std::vector<BlockVectors> results;
    for (const TextBlock& block : blocks) results.push_back(compute(model, block));
    return results;
  }
  json sent = json::array();
  for (const TextBlock& block : blocks) sent.push_back({block.texts, block.names});
  const json received = gather_json(*ranks, sent).front();
  const auto me = static_cast<size_t>(ranks->rank());
  BlockVectors own;
  if (me < received.size())
    own = compute(model, {received[me][0].get<std::vector<std::string>>(),
                          received[me][1].get<std::vector<std::string>>()});
  if (received.empty()) return {};
  std::vector<BlockVectors> results;
  for (const json& of_rank : gather_json(*ranks, {own.bytes, own.cut}))
    results.push_back(
        {of_rank[0].get<std::vector<std::string>>(), of_rank[1].get<std::vector<int64_t>>()});
  results.resize(received.size());
  return results;
}

}  // namespace fovea::infer
