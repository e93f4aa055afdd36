#include "generate/translation.h"

#include <algorithm>
#include <numeric>

#include "base/fields.h"
#include "fovea/text/text_lines.h"
#include "generate/alignment.h"
#include "generate/markup.h"
#include "generate/scheduler.h"
#include "generate/terms.h"
#include "generate/translation_languages.h"

namespace fovea::infer {
namespace {

// Number of lines that are read at a time and sorted, so that lines of similar length share a
// batch.
constexpr size_t kWindow = 1024;

void check_options(const TranslateOptions& o, const Generator& generator) {
  const model::Spec& spec = checked_writer(generator.model.spec);
  check(spec.encoder.has_value(),
        "translate: the model is decoder-only; expected an encoder-decoder (use generate for this "
        "model)");
  check(generator.rules.start.has_value(),
        "translate: the checkpoint names no decoder_start_token_id; expected one");
  check_fields(o);
  check_field(o.best <= o.beams, "best", "{}; expected at most {}, the number of beams", o.best,
              o.beams);
  check_field(o.terms.empty() || o.beams > 1, "terms",
              "given with 1 beam; expected at least 2 `beams`");
  check_field(!o.tree || o.beams > 1, "tree", "set with 1 beam; expected at least 2 `beams`");
  check_field(!o.markup || o.beams > 1, "markup", "given with 1 beam; expected at least 2 `beams`");
  check_field(o.sequences >= o.beams, "sequences", "{}; expected at least {}, the number of beams",
              o.sequences, o.beams);
}

// Puts the token of a language in the place of the one that the tokenizer has added, or before the
// text if it has added none.
void set_language(int32_t language, const text::Tokenizer& tokenizer, text::Encoding& encoding) {
  std::vector<int32_t>& ids = encoding.ids;
  bool placed = false;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (encoding.special_mask[i] == 0 || !is_language(tokenizer, ids[i])) continue;
    ids[i] = language;
    placed = true;
  }
  if (placed) return;
  ids.insert(ids.begin(), language);
  encoding.special_mask.insert(encoding.special_mask.begin(), 1);
}

// Returns the tokens of a line for the encoder, truncated to the context.
std::vector<int32_t> source_of(const Generator& generator, const TranslateOptions& options,
                               const std::string& line, size_t number, bool& cut) {
  text::EncodingOptions whole;
  whole.truncate_and_pad = false;
  text::Encoding encoding = generator.source->encoding(options.source_prefix + line, whole);
  if (generator.source_language)
    set_language(*generator.source_language, *generator.source, encoding);
  std::vector<int32_t> ids = std::move(encoding.ids);
  const auto context = static_cast<size_t>(generator.model.spec.context);
  cut = ids.size() > context;
  if (!cut) return ids;
  check(!options.refuse_long, "{}: has {} tokens; expected at most {}, the model's context",
        options.name_of_line ? options.name_of_line(number) : fmt::format("line {}", number + 1),
        ids.size(), context);
  // The tokens that the tokenizer adds at the end stay: the end token, and that of a language.
  const auto& added = encoding.special_mask;
  const auto last =
      static_cast<size_t>(std::find(added.rbegin(), added.rend(), 0) - added.rbegin());
  const size_t kept = std::min(last, context);
  ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(context - kept),
            ids.end() - static_cast<std::ptrdiff_t>(kept));
  return ids;
}

// Returns the tokens with which every translation begins: that of its language, and the prefix.
std::vector<int32_t> forced_by(const Generator& generator, const TranslateOptions& options) {
  std::vector<int32_t> ids = generator.tokenizer->encode(options.prefix);
  const std::optional<int32_t> first = generator.rules.forced_first;
  if (first && is_language(*generator.tokenizer, *first)) ids.insert(ids.begin(), *first);
  return ids;
}

class Translator {
 public:
  Translator(const Generator& generator, const TranslateOptions& options, uint64_t cache_bytes)
      : generator_(generator),
        options_(options),
        scheduler_(make(generator, options, cache_bytes)) {
    if (!options.terms.empty()) terms_ = Terms(options.terms, *generator.tokenizer);
  }

  // Translates `lines`; `before` is the number of lines translated earlier.
  std::vector<Translation> operator()(const std::vector<std::string>& lines, size_t before) {
    std::vector<Translation> translations(lines.size());
    std::vector<TranslationRequest> requests;
    std::vector<MarkedLine> marked;
    for (size_t i = 0; i < lines.size(); ++i) {
      marked.push_back(plain(lines[i]));
      const std::string& line = marked[i].plain;
      requests.push_back(translation_request(generator_, options_, line, before + i));
      requests[i].options.required = terms_.targets_in(line);
      for (const std::string& text : marked[i].fixed) requests[i].options.required.push_back(text);
      translations[i].cut = requests[i].cut;
    }
    std::vector<size_t> order(lines.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return requests[a].source.size() > requests[b].source.size();
    });
    for (const size_t i : order)
      if (!text::is_blank(marked[i].plain)) ask(i, requests[i], translations[i]);
    while (scheduler_.step()) {
    }
    if (error_) throw *error_;
    for (size_t i = 0; i < lines.size(); ++i) {
      Translation& made = translations[i];
      made.best.resize(static_cast<size_t>(options_.best));
      if (options_.alignment && !made.best[0].ids.empty())
        made.alignment = alignment(requests[i], marked[i].plain, made.best[0].ids);
      for (Generation& one : made.best) insert_tags(requests[i], marked[i], one);
    }
    return translations;
  }

 private:
  MarkedLine plain(const std::string& line) const {
    if (!options_.markup) return {line, {}, {}};
    return without_markup(
        line, [&](const std::string& text) { return generator_.tokenizer->unknown(text).empty(); });
  }

  std::vector<std::pair<int64_t, int64_t>> alignment(const TranslationRequest& request,
                                                     const std::string& line,
                                                     const std::vector<int32_t>& ids) const {
    const auto seen = most_seen(generator_.model, request.source, *generator_.rules.start, ids);
    return aligned_words({*generator_.source, *generator_.tokenizer}, options_.source_prefix + line,
                         ids, seen);
  }

  void insert_tags(const TranslationRequest& request, const MarkedLine& line,
                   Generation& translation) const {
    if (line.tags.empty()) return;
    std::vector<std::pair<int64_t, int64_t>> pairs;
    if (!translation.ids.empty()) pairs = alignment(request, line.plain, translation.ids);
    int64_t words = 0;  // of the prefix, which is not a part of the line
    bool space = true;
    for (const char c : options_.source_prefix) {
      words += space && c != ' ';
      space = c == ' ';
    }
    for (auto& [source, target] : pairs) source -= words;
    translation.text = with_markup(line, translation.text, pairs);
  }

  static Scheduler make(const Generator& generator, const TranslateOptions& options,
                        uint64_t cache_bytes) {
    SchedulerOptions all{
        .compute = generator.compute,
        .cache = generator.cache,
        .pages = (options.sequences + 1) * model::pages_for(generator.model.spec.context),
        .most_sequences = options.sequences,
        .step_tokens = 1024};
    all.pages = std::max<int64_t>(1, pages_within(cache_bytes, generator.model, all));
    return {generator.model, generator.rules, generator.tokenizer, all};
  }

  void ask(size_t line, const TranslationRequest& request, Translation& translation) {
    translation.best.resize(static_cast<size_t>(options_.best));
    const auto sink = [this, &translation](const Event& event) {
      if (event.error != nullptr) error_ = *event.error;
      if (event.finished != nullptr)
        translation.best[static_cast<size_t>(event.generation)] = *event.finished;
      return true;
    };
    Task task{line + 1, request.source, request.options, sink};
    task.whole_words = true;
    scheduler_.add(scheduler_.request(std::move(task)));
  }

  const Generator& generator_;
  const TranslateOptions& options_;
  Scheduler scheduler_;
  std::optional<Error> error_;
  Terms terms_;
};

}  // namespace

TranslationRequest translation_request(const Generator& generator, const TranslateOptions& options,
                                       const std::string& line, size_t number) {
  check_options(options, generator);
  TranslationRequest request;
  request.source = source_of(generator, options, line, number, request.cut);
  GenerateOptions& generation = request.options;
  generation.beams = options.beams;
  generation.beam_tree = options.tree;
  generation.generations = options.best;
  generation.min_tokens = options.min_tokens;
  generation.length_penalty = options.length_penalty.value_or(generator.rules.length_penalty);
  generation.early_stopping = generator.rules.early_stopping;
  generation.sampling.temperature = 0;
  generation.forced = forced_by(generator, options);
  constexpr int64_t kMore = 10;  // additional tokens, for translations of short sources
  const double by_source = options.length_factor * static_cast<double>(request.source.size());
  generation.max_tokens = options.max_tokens > 0 ? options.max_tokens
                                                 : static_cast<int64_t>(by_source) + kMore +
                                                       std::ssize(generation.forced);
  return request;
}

void translate(const Generator& generator, const TranslateOptions& options, uint64_t cache_bytes,
               const std::function<std::optional<std::string>()>& next,
               const std::function<bool(const Translation&)>& put) {
  check_options(options, generator);
  Translator translator(generator, options, cache_bytes);
  size_t before = 0;
  for (bool more = true; more;) {
    std::vector<std::string> lines;
    while (lines.size() < kWindow && more) {
      if (std::optional<std::string> line = next()) {
        lines.push_back(std::move(*line));
      } else {
        more = false;
      }
    }
    for (const Translation& translation : translator(lines, before))
      if (!put(translation)) return;
    before += lines.size();
  }
}

}  // namespace fovea::infer
