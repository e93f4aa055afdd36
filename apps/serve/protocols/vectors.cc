#include "serve/protocols/vectors.h"
#include "base/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>
#include <span>

#include "serve/routes/queue_response.h"
#include "serve/routes/response_json.h"
#include "serve/routes/response_limits.h"

namespace fovea::serve {
namespace {

// Returns the inputs as texts; token ids are decoded, since the model adds its own special tokens.
std::vector<std::string> input_texts(const std::vector<Prompt>& inputs, const char* param,
                                     const text::Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  for (const Prompt& input : inputs) {
    const auto* text = std::get_if<std::string>(&input);
    texts.push_back(text ? *text : tokenizer.decode(std::get<std::vector<int32_t>>(input), true));
    if (texts.back().empty()) {
      throw ApiError{400, std::string(param) + ": expected at least one character in each text",
                     param, "empty"};
    }
  }
  return texts;
}

void check_prompt_name(const std::string& name, const std::map<std::string, std::string>& prompts) {
  if (!name.empty() && !prompts.contains(name)) {
    throw ApiError{400, "prompt_name: the model has no prompt of this name", "prompt_name",
                   "invalid_value"};
  }
}

// A text with the prompt of queries is a query.
infer::TextRole role_of(const infer::EmbedOptions& options) {
  return options.prompt_name == "query" ? infer::TextRole::query : infer::TextRole::document;
}

infer::EmbedOptions options_of(const VectorRequest& request, bool base64,
                               const infer::Embedder& embedder, const char* param,
                               const std::shared_ptr<http::Exchange>& exchange) {
  infer::EmbedOptions options = request.options;
  if (options.dimensions > embedder.width()) {
    throw ApiError{400, fmt::format("dimensions: expected at most {}", embedder.width()),
                   "dimensions", "out_of_range"};
  }
  check_prompt_name(options.prompt_name, embedder.prompts());
  check_vectors(std::ssize(request.inputs),
                options.dimensions > 0 ? options.dimensions : embedder.width(), base64, param);
  options.stop = [exchange] { return exchange->gone(); };
  return options;
}

std::string openai_body(const infer::Embeddings& embeddings, bool as_base64,
                        const std::string& model) {
  const ArrayView vectors = embeddings.view();
  std::string body = "{\"object\":\"list\",\"data\":[";
  for (int64_t i = 0; i < embeddings.count; ++i) {
    body += fmt::format(
        "{}{{\"object\":\"embedding\",\"index\":{},\"embedding\":", i > 0 ? "," : "", i);
    add_vector(body, vectors.row<float>(i), as_base64);
    body += '}';
  }
  const int64_t tokens =
      std::accumulate(embeddings.tokens.begin(), embeddings.tokens.end(), int64_t{0});
  return body +
         fmt::format("],\"model\":{},\"usage\":{{\"prompt_tokens\":{},\"total_tokens\":{}}}}}",
                     json_line(model), tokens, tokens);
}

std::string sparse_body(const infer::SparseVectors& vectors) {
  std::string body = "[";
  for (size_t row = 0; row + 1 < vectors.starts.size(); ++row) {
    body += row > 0 ? ",[" : "[";
    for (auto i = static_cast<size_t>(vectors.starts[row]);
         i < static_cast<size_t>(vectors.starts[row + 1]); ++i) {
      body += fmt::format("{}{{\"index\":{},\"value\":{}}}",
                          i > static_cast<size_t>(vectors.starts[row]) ? "," : "",
                          vectors.indices[i], vectors.values[i]);
    }
    body += ']';
  }
  return body + ']';
}

std::string all_tokens_body(const infer::MultiVectors& vectors) {
  std::string body = "[";
  for (int64_t text = 0; text < vectors.count; ++text) {
    body += text > 0 ? ",[" : "[";
    const ArrayView rows = vectors.rows(text);
    for (int64_t row = 0; row < rows.shape[0]; ++row) {
      if (row > 0) body += ',';
      add_vector(body, rows.row<float>(row), false);
    }
    body += ']';
  }
  return body + ']';
}

std::string rerank_body(const std::vector<float>& scores, const std::vector<std::string>& texts) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  Json ranks = Json::array();
  for (const size_t i : order) {
    Json rank = {{"index", i}, {"score", scores[i]}};
    if (!texts.empty()) rank["text"] = texts[i];
    ranks.push_back(std::move(rank));
  }
  return json_line(ranks);
}

// Scores by a late interaction model.
void rank_by_tokens(const RerankRequest& request,
                    const std::shared_ptr<infer::MultiVectorQueue>& queue,
                    const std::shared_ptr<http::Exchange>& exchange) {
  infer::EmbedOptions options;
  options.truncate = request.options.truncate;
  respond_from<infer::RerankScores>(
      queue, exchange, ErrorShape::embeddings,
      [&](const auto& done) {
        return queue->submit_scores(request.query, request.texts, options, done);
      },
      [texts = request.return_text ? request.texts : std::vector<std::string>()](
          const infer::RerankScores& scores) { return rerank_body(scores.values, texts); });
}

}  // namespace

void add_vector(std::string& out, std::span<const float> values, bool as_base64) {
  if (as_base64) {
    std::string bytes(values.size_bytes(), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());  // x86-64 is little-endian
    out += '"' + base64(bytes) + '"';
    return;
  }
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    fmt::format_to(std::back_inserter(out), "{}", values[i]);
  }
  out += ']';
}

std::string vectors_json(const infer::Embeddings& embeddings) {
  const ArrayView vectors = embeddings.view();
  std::string body;
  for (int64_t i = 0; i < embeddings.count; ++i) {
    body += i > 0 ? ',' : '[';
    add_vector(body, vectors.row<float>(i), false);
  }
  return body + ']';
}

std::string base64(const std::string& bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) {
      three = three << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      const bool padding = i + j > bytes.size();
      out += padding ? '=' : kLetters[three >> (18 - 6 * j) & 63];
    }
  }
  return out;
}

void serve_vectors(const VectorRequest& request, bool as_base64, const char* param,
                   ErrorShape shape, const std::shared_ptr<ServedModel>& model,
                   const std::shared_ptr<http::Exchange>& exchange, const WriteVectors& write) {
  const ServedEmbedder& served = model->needs<ServedEmbedder>();
  const auto& embedder = served.model;
  const infer::EmbedOptions options = options_of(request, as_base64, embedder, param, exchange);
  const auto texts = input_texts(request.inputs, param, embedder.tokenizer());
  respond_from<infer::Embeddings>(
      served.queue, exchange, shape,
      [&](const auto& done) { return served.queue->submit(texts, options, done); }, write);
}

void serve_openai_embeddings(const OpenAIEmbedRequest& request,
                             const std::shared_ptr<ServedModel>& model,
                             const std::shared_ptr<http::Exchange>& exchange) {
  serve_vectors(
      request, request.base64, "input", ErrorShape::openai, model, exchange,
      [as_base64 = request.base64, name = model->facts.name](const infer::Embeddings& embeddings) {
        return openai_body(embeddings, as_base64, name);
      });
}

void serve_embed(const EmbedRequest& request, const std::shared_ptr<ServedModel>& model,
                 const std::shared_ptr<http::Exchange>& exchange) {
  serve_vectors(request, false, "inputs", ErrorShape::embeddings, model, exchange, vectors_json);
}

void serve_embed_sparse(const SparseEmbedRequest& request,
                        const std::shared_ptr<ServedModel>& model,
                        const std::shared_ptr<http::Exchange>& exchange) {
  const ServedSparseEmbedder& served = model->needs<ServedSparseEmbedder>();
  const auto& embedder = served.model;
  check_prompt_name(request.options.prompt_name, embedder.prompts());
  const auto texts = input_texts(request.inputs, "inputs", embedder.tokenizer());
  check_vectors(std::ssize(texts), embedder.width(), false, "inputs");
  respond_from<infer::SparseVectors>(
      served.queue, exchange, ErrorShape::embeddings,
      [&](const auto& done) {
        return served.queue->submit(texts, role_of(request.options), request.options, done);
      },
      sparse_body);
}

void serve_embed_all(const TokenEmbedRequest& request, const std::shared_ptr<ServedModel>& model,
                     const std::shared_ptr<http::Exchange>& exchange) {
  const ServedMultiVectorEmbedder& served = model->needs<ServedMultiVectorEmbedder>();
  const auto& embedder = served.model;
  check_prompt_name(request.options.prompt_name, embedder.prompts());
  const infer::TextRole role = role_of(request.options);
  const auto texts = input_texts(request.inputs, "inputs", embedder.tokenizer());
  int64_t rows = 0;  // at most one token per byte of a text, and some special tokens
  constexpr int64_t kSpecial = 64;
  for (const std::string& text : texts)
    rows += std::min(embedder.max_tokens(role), std::ssize(text) + kSpecial);
  check_vectors(rows, embedder.width(), false, "inputs");
  respond_from<infer::MultiVectors>(
      served.queue, exchange, ErrorShape::embeddings,
      [&](const auto& done) { return served.queue->submit(texts, role, request.options, done); },
      all_tokens_body);
}

void serve_rerank(const RerankRequest& request, const std::shared_ptr<ServedModel>& model,
                  const std::shared_ptr<http::Exchange>& exchange) {
  if (const auto* late = model->find<ServedMultiVectorEmbedder>())
    return rank_by_tokens(request, late->queue, exchange);
  const auto& queue = model->needs<ServedReranker>().queue;
  infer::RerankOptions options = request.options;
  options.stop = [exchange] { return exchange->gone(); };
  respond_from<infer::RerankScores>(
      queue, exchange, ErrorShape::embeddings,
      [&](const auto& done) { return queue->submit(request.query, request.texts, options, done); },
      [texts = request.return_text ? request.texts : std::vector<std::string>()](
          const infer::RerankScores& scores) { return rerank_body(scores.values, texts); });
}

}  // namespace fovea::serve
