#include "cli/verbs/embed_retrieval.h"

#include <fmt/format.h>

#include "cli/reports/classify_input.h"
#include "cli/reports/retrieval_vectors.h"
#include "cli/reports/vectors.h"
#include "jobs/line_job.h"
#include "options/open_model.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Format = RetrievalRequest::Format;

// Lines that are sorted by length together.
constexpr size_t kLinesOfBlock = 256;

// Computes the vectors of some texts.
template <class Vectors>
using Compute = std::function<Vectors(const std::vector<std::string>&, const infer::EmbedOptions&)>;
template <class Vectors>
using Write = std::function<std::string(const Vectors&, int64_t first)>;

template <class Vectors>
void note_cut(const Vectors& vectors, const jobs::LineBlock& block, jobs::BlockResult& result) {
  for (size_t i = 0; i < vectors.cut.size(); ++i) {
    result.tokens += vectors.tokens[i];
    if (vectors.cut[i] > 0 && result.cut++ == 0) result.first_cut = block.name_of(i);
  }
}

template <class Vectors>
Vectors compute_block(const RetrievalRequest& request, const jobs::LineBlock& block,
                      const Compute<Vectors>& compute) {
  infer::EmbedOptions options = request.options;
  options.name_of_text = [&](size_t i) { return block.name_of(i); };
  return compute(texts_of(block), options);
}

// The arrays of a safetensors file precede one another, so all of them are kept in memory.
template <class Vectors>
jobs::BlockResult write_arrays(const RetrievalRequest& request, const Compute<Vectors>& compute) {
  Vectors all = compute({}, {});
  jobs::BlockResult result;
  jobs::BlockReader reader(request.files.empty() ? std::vector<std::string>{"-"} : request.files);
  while (const auto block = reader.next(kLinesOfBlock)) {
    const Vectors vectors = compute_block<Vectors>(request, *block, compute);
    note_cut(vectors, *block, result);
    append(all, vectors);
    if (stop_requested()) return result;
  }
  infer::write_vectors(all, request.out);
  return result;
}

template <class Vectors>
int run_request(const RetrievalRequest& request, uint64_t fingerprint, int64_t limit,
                const Compute<Vectors>& compute, const Write<Vectors>& write) {
  if (request.format == Format::safetensors) {
    catch_signals();
    const jobs::BlockResult done = write_arrays(request, compute);
    if (stop_requested()) return stop_code();
    warn_cut(done.cut, done.first_cut, limit);
    return 0;
  }
  jobs::LineJob job;
  job.files = request.files;
  job.out = request.out;
  job.key = request.key;
  job.key["--format"] = static_cast<int>(request.format);
  job.key["model"] = fingerprint;
  if (!request.adapters.empty()) job.key["adapters"] = identity_of(request.adapters);
  job.block_lines = kLinesOfBlock;
  const auto done = jobs::run_lines(job, [&](const jobs::LineBlock& block) {
    const Vectors vectors = compute_block<Vectors>(request, block, compute);
    jobs::BlockResult result{write(vectors, static_cast<int64_t>(block.first)), 0, 0, ""};
    note_cut(vectors, block, result);
    return result;
  });
  if (!done) return stop_requested() ? stop_code() : 0;
  warn_cut(done->cut, done->first_cut, limit);
  return 0;
}

}  // namespace

int embed_sparse(const RetrievalRequest& request) {
  const auto model =
      infer::SparseEmbedder::open(request.model, request.precision, request.adapters);
  warn(model.warnings());
  return run_request<infer::SparseVectors>(
      request, model.fingerprint(), model.max_tokens(),
      [&](const std::vector<std::string>& texts, const infer::EmbedOptions& options) {
        return model.embed(texts, request.role, options, request.top);
      },
      [&](const infer::SparseVectors& vectors, int64_t first) {
        return request.format == Format::json_lines ? sparse_json(vectors, model.tokenizer(), first)
                                                    : sparse_text(vectors);
      });
}

int embed_multi_vectors(const RetrievalRequest& request) {
  const auto model =
      infer::MultiVectorEmbedder::open(request.model, request.precision, request.adapters);
  warn(model.warnings());
  return run_request<infer::MultiVectors>(
      request, model.fingerprint(), model.max_tokens(request.role),
      [&](const std::vector<std::string>& texts, const infer::EmbedOptions& options) {
        return model.embed(texts, request.role, options);
      },
      [&](const infer::MultiVectors& vectors, int64_t first) {
        return request.format == Format::json_lines ? multi_vector_json(vectors, first)
                                                    : multi_vector_text(vectors);
      });
}

}  // namespace fovea::cli
