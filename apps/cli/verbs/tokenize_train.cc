#include "cli/verbs/tokenize_train.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "options/field_options.h"
#include "options/refusals.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
void TokenizerTrainRequest::declare(OptionTable& table) {
  table.section("Training a tokenizer");
  add_fields(table, training_,
             {{.field = "kind", .name = "--train", .values = {"char|character"}},
              {"vocabulary", {"--vocabulary"}, "--vocab-size"},
              {.field = "bytes", .omitted = true},  // --characters is its opposite
              {"lowercase", {"--do-lower-case"}},
              {"alphabet", {"--limit-alphabet"}},
              {.field = "end_of_text", .omitted = true},
              {"special_tokens", {"--special-tokens"}, "--special-token"},
              {.field = "context", .omitted = true}});
  table.add(
      as("DIR", text("--out", {"-o", "--output"}, "output directory of the tokenizer", out_)));
  table.add(flag("--characters", {}, "bpe: start from characters instead of bytes", characters_));
}

int TokenizerTrainRequest::run(const std::vector<std::string>& files, const OptionTable& table,
                               bool json) {
  if (files.empty()) throw UsageError("FILE: not given; expected a text file");
  if (out_.empty()) throw UsageError("--out: not given; expected the output directory");
  const bool pieces = training_.kind == text::TokenizerKind::wordpiece,
             pairs = training_.kind == text::TokenizerKind::bpe;
  require(table, pairs, {"--characters"}, "--train bpe");
  require(table, pieces, {"--lowercase"}, "--train wordpiece");
  require(table, pairs || pieces, {"--min-frequency", "--alphabet"}, "--train bpe or wordpiece");
  training_.bytes = !characters_;
  if (is_file(out_))
    throw UsageError(fmt::format("--out: {} is a file; expected a directory", out_));
  StagedFolder folder(out_);  // a run that is refused or stopped leaves none
  catch_signals();
  ProgressLine line;
  const auto progress = [&](const train::TokenizerTrainingProgress& now) {
    const bool reading = now.stage == train::TokenizerTrainingProgress::Stage::reading;
    const char* stage = reading ? "reading" : "training";
    line.show(now.fraction, stage, fmt::format("{} {:.0f}%", stage, 100 * now.fraction));
    return !stop_requested();
  };
  const std::optional<train::TrainedTokenizer> trained =
      train::train_tokenizer({files.begin(), files.end()}, training_, progress);
  line.clear();
  if (!trained) return stop_code();
  trained->tokenizer.save(folder.path());
  folder.commit("tokenizer.json");
  if (trained->forgotten > 0) {
    note(
        fmt::format("The distinct words did not fit into --memory: some that occurred at most {} "
                    "times were dropped\n",
                    trained->forgotten));
  }
  if (!trained->special_names.empty()) {
    note(
        fmt::format("The text contains names of special tokens, which were read as plain "
                    "characters: {} (docs/tokenizers.md, Training)\n",
                    printable(trained->special_names)));
  }
  if (json) {
    print(nlohmann::ordered_json{{"out", out_},
                                 {"tokens", trained->tokenizer.size()},
                                 {"bytes", trained->bytes},
                                 {"words", trained->words},
                                 {"forgotten", trained->forgotten}}
              .dump() +
          "\n");
  } else {
    note(fmt::format("{} tokens from {} bytes of text\n", trained->tokenizer.size(),
                     amount(static_cast<double>(trained->bytes))));
  }
  return 0;
}

}  // namespace fovea::cli
