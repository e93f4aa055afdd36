#include "fovea/infer/embed.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "cli/reports/classify_input.h"
#include "cli/reports/explained.h"
#include "cli/reports/images.h"
#include "cli/reports/similarity.h"
#include "cli/reports/vectors.h"
#include "cli/verbs/embed_mine.h"
#include "cli/verbs/embed_retrieval.h"
#include "cli/verbs/embed_train.h"
#include "cli/verbs/images.h"
#include "fovea/open.h"
#include "inspector/explanation_json.h"
#include "jobs/line_job.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

class EmbedCommand : public Command {
 public:
  EmbedCommand()
      : Command("embed MODEL [FILE...] [--out FILE] [OPTIONS]",
                "Computes a vector for each line of files or of standard input; lines of similar "
                "meaning have vectors of similar direction. MODEL is a sentence-transformers "
                "directory, or the directory of any encoder; sparse encoders (SPLADE) and late "
                "interaction models (ColBERT) are recognised. Files may be of any size. A model of "
                "images computes a vector for each image: FILE is an image, a folder of "
                "images, or - for standard input. A model of images and texts computes vectors "
                "of the lines of other files and of standard input too. With "
                "--evaluate: measures how well similarities of vectors agree with human scores. "
                "With --explain: prints what the similarity of each line to another text rests on. "
                "With --train: trains an embedder and writes it to --out. "
                "With --mine: finds hard negatives of pairs.") {}

  void declare(OptionTable& table) override {
    table.add(model_argument(model_));
    table.add(input_arguments(files_));
    table.add(job_output(out_));
    table.add(
        choice("--format", {},
               "automatic = by the extension of --out (.npy, .jsonl, .csv, .safetensors), else "
               "text",
               format_, {"automatic|auto", "npy", "jsonl|json", "text|txt", "safetensors", "csv"}));
    table.add(choice("--precision", {}, "type of vector elements; binary, ubinary = one bit each",
                     precision_, {"float32|fp32|f32", "int8", "uint8", "binary", "ubinary"}));
    add_fields(table, options_,
               {{"prompt_name", {}, "", "NAME"},
                {"dimensions", {"--truncate-dim"}},
                {"normalise", {"--normalise"}, "--normalize"},
                {.field = "truncate", .omitted = true}});
    table.add(flag("--no-truncate", {},
                   "refuse lines with too many tokens instead of truncating them", whole_));
    table.add(choice("--dtype", {}, "precision of the weights; automatic = as stored", weights_,
                     kWeightPrecisions));
    table.add(adapter_option(adapters_));
    table.add(choice("--task", {},
                     "what the lines are in a search, by which a model may choose a prompt or a "
                     "treatment; automatic = no prompt, or documents",
                     role_, {"automatic|auto", "document|passage", "query"}));
    Option kind =
        choice("--kind", {},
               "what the model computes: a dense or a sparse vector of a text, vectors of "
               "its tokens, or, with --train, scores of pairs of texts (a "
               "cross-encoder); automatic = by its files",
               kind_, {"automatic|auto", "dense", "sparse", "tokens", "scores"});
    kind.field = "kind";
    table.add(kind);
    table.add(flag("--sparse", {},
                   "sparse vectors by a masked language model: the maxima of log(1 + relu(logits))",
                   sparse_));
    table.add(integer("--top", {"--max-active-dims"},
                      "sparse vectors: keep the N largest elements of each; 0 = the model's number",
                      top_, 0, 1 << 20));
    table.add(
        as("FILE", text("--evaluate", {},
                        "file of sentence pairs with scores (CSV, TSV or JSON lines)", pairs_)));
    table.add(choice("--pooling", {},
                     "with --evaluate: the model's own pooling, or a comparison of all", poolings_,
                     {"own", "all"}));
    add_fields(table, explain_, explain_spellings({.field = "method"}, {"target", "seed"}));
    table.add(as("TEXT", text("--explain", {},
                              "explain the similarity of each line to this text: the contributions "
                              "of the line's tokens",
                              other_)));
    training_.declare(table);
    mining_.declare(table);
    table.show_only({"MODEL", "FILE", "--out", "--format", "--precision", "--prompt-name",
                     "--dimensions", "--normalize", "--dtype", "--sparse", "--evaluate",
                     "--explain", "--train", "--validation", "--epochs", "--batch",
                     "--learning-rate", "--loss", "--dry-run"});
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    if (table.given("--train")) {
      allow_only(table, "--train", {"MODEL", "--out", "--sparse", "--kind"});
      choose_kind(table);
      if (strict) show_warnings();
      return training_.run(model_, out_, kind(), json, arguments);
    }
    if (table.given("--mine")) {
      allow_only(table, "--mine",
                 {"MODEL", "FILE", "--out", "--dtype", "--adapter", "--margin", "--relative-margin",
                  "--seed"});
      if (const ModelUse use = model_use(model_);
          use == ModelUse::images || use == ModelUse::sparse || use == ModelUse::multi_vector)
        throw UsageError("--mine: expected a model of one dense vector per text");
      return mining_.run(open(), files_, out_, training_.mining(), json);
    }
    table.refuse_without("--mine");
    table.refuse_without("--train");
    choose_kind(table);
    if (kind() == train::TrainedKind::scores)
      throw UsageError("--kind: scores requires --train; see fovea rerank");
    if (table.given("--pooling") && !table.given("--evaluate"))
      throw UsageError("--pooling: requires --evaluate");
    if (table.given("--prompt") && table.given("--prompt-name"))
      throw UsageError("--prompt: cannot be combined with --prompt-name");
    options_.truncate = !whole_;
    require(table, !table.given("--evaluate"), {"--out", "--format", "--precision"},
            "no --evaluate");
    if (table.given("--evaluate") && !files_.empty())
      throw UsageError("--evaluate: cannot be combined with FILE arguments");
    check_explain_options(table);
    explaining_ = table.given("--explain");
    for (const char* option : {"--evaluate", "--precision", "--sparse", "--kind"})
      if (explaining_ && table.given(option))
        throw UsageError(fmt::format("{}: cannot be combined with --explain", option));
    if (explaining_ && format() == VectorFormat::npy)
      throw UsageError("--format: npy cannot hold explanations; expected text or jsonl");
    const ModelUse use = chosen_use();
    if (use == ModelUse::images) return run_on_images(table);
    if (sparse_ || use == ModelUse::sparse || use == ModelUse::multi_vector)
      return embed_for_retrieval(table, use);
    if (table.given("--top")) throw UsageError("--top: is for sparse vectors; see --sparse");
    if (format_ == 4) throw UsageError("--format: safetensors; expected npy, jsonl or text");
    refuse_other_formats();
    const infer::Embedder embedder = open();
    if (role_ > 0 && !table.given("--prompt") && !table.given("--prompt-name"))
      options_.prompt_name = infer::prompt_name_for(embedder.prompts(), role());
    if (!table.given("--evaluate")) return embed(embedder, table);
    print(poolings_ == 1 ? poolings_report(embedder, pairs_, options_, json)
                         : similarity_report(embedder, pairs_, options_, json));
    return 0;
  }

  bool runs_on_ranks(const OptionTable& table) const override {
    return table.given("--train") ||
           (!table.given("--evaluate") && !table.given("--mine") && !arrays());
  }

 private:
  // Lines that are sorted by length together, so that batches have almost uniform lengths. If a run
  // is killed, at most this many lines are lost; with several ranks, at most 4 times as many per
  // rank. An explanation takes as long as hundreds of vectors.
  static constexpr size_t kLinesAtOnce = 512, kExplainedAtOnce = 8;

  train::TrainedKind kind() const { return static_cast<train::TrainedKind>(kind_); }
  // --sparse is --kind sparse.
  void choose_kind(const OptionTable& table) {
    if (sparse_ && table.given("--kind"))
      throw UsageError("--sparse: cannot be combined with --kind");
    if (sparse_) kind_ = static_cast<int>(train::TrainedKind::sparse);
    sparse_ = kind() == train::TrainedKind::sparse;
  }
  // Returns what the model computes: what its files say, or what --kind chooses.
  ModelUse chosen_use() const {
    const ModelUse use = model_use(model_);
    if (use == ModelUse::images) return use;
    if (kind() == train::TrainedKind::tokens) return ModelUse::multi_vector;
    return kind() == train::TrainedKind::dense ? ModelUse::vectors : use;
  }

  infer::Embedder open() const {
    return open_embedder(model_, weight_precision(weights_), adapters_of(adapters_));
  }

  // Opens the model for its warnings, which --strict makes errors.
  void show_warnings() const {
    switch (model_use(model_)) {
      case ModelUse::sparse: return warn(infer::SparseEmbedder::open(model_).warnings());
      case ModelUse::multi_vector: return warn(infer::MultiVectorEmbedder::open(model_).warnings());
      case ModelUse::scores: return warn(infer::Reranker::open(model_).warnings());
      default: open();
    }
  }

  int run_on_images(const OptionTable& table) {
    for (const char* option : {"--evaluate", "--explain", "--sparse", "--kind", "--top", "--task",
                               "--prompt", "--prompt-name", "--dimensions", "--no-truncate"})
      if (table.given(option))
        throw UsageError(
            fmt::format("{}: {} is a model of images; expected a model of texts", option, model_));
    const infer::ImageModel model =
        open_image_model(model_, weight_precision(weights_), adapters_of(adapters_));
    infer::ImageOptions options;
    options.normalise = options_.normalise.value_or(false);
    const VectorLayout layout(format(), static_cast<infer::VectorPrecision>(precision_));
    const bool texts =
        model.reads_texts() && std::none_of(files_.begin(), files_.end(), holds_images);
    return texts ? embed_lines(model, files_, options, layout, out_)
                 : embed_images(model, files_, options, layout, out_);
  }

  // Whether the output is a file of arrays, which is written as a whole.
  bool arrays() const { return format_ == 4 || (format_ == 0 && out_.ends_with(".safetensors")); }

  infer::TextRole role() const {
    return role_ == 2 ? infer::TextRole::query : infer::TextRole::document;
  }

  int embed_for_retrieval(const OptionTable& table, ModelUse use) const {
    const bool sparse = sparse_ || use == ModelUse::sparse;
    if (sparse && use == ModelUse::multi_vector)
      throw UsageError("--sparse: the model computes vectors of tokens; expected another model");
    for (const char* option :
         {"--evaluate", "--explain", "--precision", "--dimensions", "--normalize"})
      if (table.given(option))
        throw UsageError(std::string(option) + ": expected a model of one dense vector per text");
    if (!sparse && table.given("--top")) throw UsageError("--top: is for sparse vectors");
    using Format = RetrievalRequest::Format;
    RetrievalRequest request{
        model_, weight_precision(weights_), adapters_of(adapters_), files_, out_, role(), options_,
        top_};
    if (format_ == 1 || (format_ == 0 && out_.ends_with(".npy")))
      throw UsageError("--format: npy has no form for these vectors; expected safetensors");
    if (format() == VectorFormat::csv)
      throw UsageError("--format: csv has no form for these vectors; expected text or jsonl");
    if (arrays() && out_.empty()) throw UsageError("--format: safetensors requires --out");
    request.format = arrays()                               ? Format::safetensors
                     : format() == VectorFormat::json_lines ? Format::json_lines
                                                            : Format::text;
    request.key = job_key(table);
    return sparse ? embed_sparse(request) : embed_multi_vectors(request);
  }

  static nlohmann::ordered_json job_key(const OptionTable& table) {
    return decisive_options(table, {"--out", "--batch-tokens", "--threads", "--json", "--strict"});
  }

  // A file must not have the name of a format that it does not have.
  void refuse_other_formats() const {
    for (const char* ending : {".npz", ".safetensors", ".parquet", ".arrow", ".h5", ".pt", ".pkl"})
      if (format_ == 0 && out_.ends_with(ending))
        throw UsageError(fmt::format(
            "--out: {}: vectors are not written as {}; expected a name that ends in .npy, .csv, "
            ".jsonl or .txt, or --format",
            out_, ending));
  }

  VectorFormat format() const {
    if (json || format_ == 2) return VectorFormat::json_lines;
    if (format_ == 1 || (format_ == 0 && out_.ends_with(".npy"))) return VectorFormat::npy;
    if (format_ == 5 || (format_ == 0 && out_.ends_with(".csv"))) return VectorFormat::csv;
    const bool lines = out_.ends_with(".jsonl") || out_.ends_with(".json");
    return format_ == 0 && lines ? VectorFormat::json_lines : VectorFormat::text;
  }

  int embed(const infer::Embedder& embedder, const OptionTable& table) {
    const VectorLayout layout(format(), static_cast<infer::VectorPrecision>(precision_));
    const int64_t width = options_.dimensions > 0 ? options_.dimensions : embedder.width();
    jobs::LineJob job;
    job.files = files_;
    job.out = out_;
    job.key = job_key(table);
    job.key["--format"] = static_cast<int>(format());
    job.key["model"] = embedder.fingerprint();
    if (!adapters_.empty()) job.key["adapters"] = identity_of(adapters_of(adapters_));
    job.block_lines = explaining_ ? kExplainedAtOnce : kLinesAtOnce;
    if (layout.has_header() && !explaining_) {
      job.beginning = [&](int64_t lines) { return layout.header(lines, width); };
      job.opening = job.beginning(0);
    }
    const auto done = jobs::run_lines(
        job, [&](const jobs::LineBlock& block) { return embed_block(embedder, layout, block); });
    if (!done) return stop_requested() ? stop_code() : 0;
    warn_cut(done->cut, done->first_cut, embedder.max_tokens());
    return 0;
  }

  jobs::BlockResult embed_block(const infer::Embedder& embedder, const VectorLayout& layout,
                                const jobs::LineBlock& block) const {
    infer::EmbedOptions options = options_;
    options.name_of_text = [&](size_t i) { return block.name_of(i); };
    const infer::Embeddings embeddings = embedder.embed(texts_of(block), options);
    jobs::BlockResult result{explaining_
                                 ? explanations(embedder, block, options)
                                 : layout.bytes(embeddings, static_cast<int64_t>(block.first)),
                             0, 0, ""};
    for (size_t i = 0; i < embeddings.cut.size(); ++i) {
      result.tokens += embeddings.tokens[i];
      if (embeddings.cut[i] == 0) continue;
      if (result.cut++ == 0) result.first_cut = block.name_of(i);
    }
    return result;
  }

  std::string explanations(const infer::Embedder& embedder, const jobs::LineBlock& block,
                           const infer::EmbedOptions& options) const {
    std::string out;
    size_t index = block.first;
    for (const study::Explanation& one :
         study::explain(embedder, texts_of(block), other_, explain_, options)) {
      if (format() == VectorFormat::json_lines)
        out +=
            json_line({{"index", index}, {"explanation", inspector::explanation_json(one)}}) + "\n";
      else
        out += (index > 0 ? "\n" : "") + explanation_text(one, explain_, bar_style(!out_.empty()));
      ++index;
    }
    return out;
  }

  std::string model_, out_, pairs_, other_;
  std::vector<std::string> adapters_;
  std::vector<std::string> files_;
  infer::EmbedOptions options_;
  EmbedderTrainRequest training_;
  MiningRequest mining_;
  study::ExplainOptions explain_;
  int format_ = 0, precision_ = 0, weights_ = 0, role_ = 0, kind_ = 0, poolings_ = 0;
  int64_t top_ = 0;
  bool whole_ = false, sparse_ = false, explaining_ = false;
};

}  // namespace

std::unique_ptr<Command> make_embed() { return std::make_unique<EmbedCommand>(); }

}  // namespace fovea::cli
