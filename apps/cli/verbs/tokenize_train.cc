#include "cli/verbs/tokenize_train.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fovea/error.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr std::array kKinds = {TokenizerKind::bpe, TokenizerKind::wordpiece, TokenizerKind::unigram,
                               TokenizerKind::character};

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path)) {
    throw Error(ErrorKind::Failed, fmt::format("{}: cannot be created ({}); expected a directory",
                                               path, error ? error.message() : "it is a file"));
  }
}

}  // namespace

void TokenizerTrainRequest::declare(OptionTable& table) {
  constexpr int64_t kMostTokens = int64_t{1} << 24;  // limited by the memory of ids and texts
  table.section("Training a tokenizer");
  table.add(choice("--train", {}, "train a tokenizer of this kind on the files", kind_,
                   {"bpe", "wordpiece", "unigram", "char|character"}));
  table.add(
      as("DIR", text("--out", {"-o", "--output"}, "output directory of the tokenizer", out_)));
  table.add(integer("--vocab-size", {"--vocabulary"},
                    "maximum vocabulary size, special tokens included; char: 0 = all characters",
                    training_.vocabulary, 0, kMostTokens));
  table.add(flag("--characters", {}, "bpe: start from characters instead of bytes", characters_));
  table.add(flag("--lowercase", {"--do-lower-case"}, "wordpiece: ignore case and accents",
                 training_.lowercase));
  table.add(integer("--min-frequency", {}, "bpe, wordpiece: minimum frequency of a merged pair",
                    training_.min_frequency, 0, INT64_MAX));
  table.add(integer("--alphabet", {"--limit-alphabet"},
                    "bpe, wordpiece: keep the N most frequent characters; 0 = all",
                    training_.alphabet, 0, kMostTokens));
  table.add(list("--special-token", {"--special-tokens"},
                 "additional special token; may be repeated", training_.special_tokens));
  table.add(bytes("--memory", {}, "memory for the distinct words of the text", training_.memory));
}

int TokenizerTrainRequest::run(const std::vector<std::string>& files, bool json) {
  if (files.empty()) throw UsageError("FILE: not given; expected a text file");
  if (out_.empty()) throw UsageError("--out: not given; expected the output directory");
  training_.kind = kKinds[static_cast<size_t>(kind_)];
  training_.bytes = !characters_;
  make_folder(out_);
  catch_signals();
  ProgressLine line;
  const auto progress = [&](const TokenizerTrainingProgress& now) {
    const bool reading = now.stage == TokenizerTrainingProgress::Stage::reading;
    const char* stage = reading ? "reading" : "training";
    line.show(now.fraction, stage, fmt::format("{} {:.0f}%", stage, 100 * now.fraction));
    return !asked_to_stop();
  };
  const std::optional<TrainedTokenizer> trained =
      train_tokenizer({files.begin(), files.end()}, training_, progress);
  line.clear();
  if (!trained) return stop_code();
  trained->tokenizer.save(out_);
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
