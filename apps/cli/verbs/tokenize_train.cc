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

// Without --train these mean nothing.
constexpr std::array kTokenizerTraining = {"--out",           "--vocab-size", "--characters",
                                           "--lowercase",     "--memory",     "--min-frequency",
                                           "--special-token", "--alphabet"};

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path)) {
    throw Error(ErrorKind::Failed,
                fmt::format("{}: cannot be made ({}); expected a folder to write to", path,
                            error ? error.message() : "it is a file"));
  }
}

}  // namespace

void TokenizerTrainRequest::declare(OptionTable& table) {
  constexpr int64_t kMostTokens = int64_t{1} << 24;  // ids and their texts fit into memory
  table.section("Training a tokenizer");
  table.add(choice("--train", {}, "make a tokenizer of this kind out of the files", kind_,
                   {"bpe", "wordpiece", "unigram", "char|character"}));
  table.add(text("--out", {"-o", "--output"}, "folder for the tokenizer", out_));
  table.add(integer("--vocab-size", {"--vocabulary"},
                    "tokens at most, special ones included; 0 = all (char)", training_.vocabulary,
                    0, kMostTokens));
  table.add(flag("--characters", {}, "bpe begins with characters instead of bytes", characters_));
  table.add(flag("--lowercase", {"--do-lower-case"}, "wordpiece ignores case and accents",
                 training_.lowercase));
  table.add(integer("--min-frequency", {}, "bpe, wordpiece: of a pair that is merged",
                    training_.min_frequency, 0, INT64_MAX));
  table.add(integer("--alphabet", {"--limit-alphabet"},
                    "bpe, wordpiece: keep so many characters; 0 = all", training_.alphabet, 0,
                    kMostTokens));
  table.add(list("--special-token", {"--special-tokens"}, "one more special token",
                 training_.special_tokens));
  table.add(bytes("--memory", {}, "for the distinct words of the text", training_.memory));
}

void TokenizerTrainRequest::refuse_without_train(const OptionTable& table) {
  table.refuse_training(kTokenizerTraining);
}

int TokenizerTrainRequest::run(const std::vector<std::string>& files, bool json) {
  if (files.empty()) throw UsageError("FILE: not given; expected text to train on");
  if (out_.empty()) throw UsageError("--out: not given; expected a folder for the tokenizer");
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
        fmt::format("The words did not fit into --memory: some of those seen at most {} times "
                    "were left out\n",
                    trained->forgotten));
  }
  if (!trained->special_names.empty()) {
    note(
        fmt::format("The text holds names of special tokens, read as plain characters: {} "
                    "(docs/tokenizers.md, Training)\n",
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
