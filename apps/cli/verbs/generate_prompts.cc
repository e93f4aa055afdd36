#include "cli/verbs/generate_prompts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/hash.h"
#include "fovea/core/read_file.h"
#include "jobs/line_job.h"
#include "jobs/ranks.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "serve/jobs/batch_run.h"
#include "serve/models/open_served.h"
#include "serve/router.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Blocks of lines in progress, of which each waits for its longest answer.
constexpr size_t kBlocks = 16;

std::string counted(int64_t count, const std::string& one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

// Shows how far the file is, and how long the rest takes.
class PromptsProgress {
 public:
  explicit PromptsProgress(const std::string& file) {
    struct stat status = {};
    if (file != "-" && stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      bytes_ = static_cast<double>(status.st_size);
  }

  void show(const jobs::JobProgress& progress, uint64_t bytes) {
    const auto now = static_cast<double>(bytes);
    if (!began_) {  // what an earlier run has finished
      began_ = Clock::now();
      tokens_before_ = progress.tokens, bytes_before_ = now;
      return;
    }
    const double fraction = bytes_ > 0 ? std::min(now / bytes_, 1.0) : 0;
    std::string text =
        fmt::format("{}, {} tokens/s", counted(progress.lines, "line"), amount(rate(progress)));
    if (progress.errors > 0) text += ", " + counted(progress.errors, "error");
    if (bytes_ > 0 && now > bytes_before_)
      text += fmt::format(
          ", {} left", duration(seconds() * std::max(bytes_ - now, 0.0) / (now - bytes_before_)));
    line_.show(fraction, text, text);
  }

  double seconds() const {
    return began_ ? std::chrono::duration<double>(Clock::now() - *began_).count() : 0;
  }
  double rate(const jobs::JobProgress& progress) const {
    const double time = seconds();
    return time > 0 ? static_cast<double>(progress.tokens - tokens_before_) / time : 0;
  }

 private:
  ProgressLine line_;
  double bytes_ = 0, bytes_before_ = 0;
  int64_t tokens_before_ = 0;
  std::optional<Clock::time_point> began_;
};

serve::Api::Models served(const PromptsFile::Model& model, const std::string& chat_template,
                          infer::EngineOptions engine) {
  serve::ServedOptions options;
  options.name = serve::served_name(model.path);
  options.template_file = chat_template;
  options.opened = model.opened;
  options.engine = std::move(engine);
  options.engine.draft = model.draft;
  options.set_requests = [&](infer::GenerateOptions& requests) {
    const int64_t tokens = requests.max_tokens;
    requests = model.defaults;
    if (!model.tokens_given) requests.max_tokens = tokens;
  };
  const auto ignore = [](const std::string&) {};  // warnings were printed when the model was opened
  const auto models = serve::open_served(model.path, options, ignore);
  if (models.front()->find<serve::TextGenerator>() == nullptr)
    throw Error(ErrorKind::InvalidArgument, model.path + ": " + serve::TextGenerator::kExpected);
  return models;
}

}  // namespace

void PromptsFile::declare(OptionTable& table) {
  table.section("Many prompts");
  table.add(as("FILE.jsonl",
               text("--prompts", {"--input-file"},
                    "answer the requests in a file, one per line; see docs/batches.md", file_)));
  table.add(job_output(out_));
  table.add(as("FILE", text("--chat-template", {"--chat-template-file"},
                            "--prompts: chat template to use instead of the model's", template_)));
  table.add(bytes("--cache", {"--cache-bytes"},
                  "--prompts: memory of the key-value cache; 0 = a quarter of the free memory",
                  engine_.cache_bytes));
  table.add(integer("--parallel", {"--max-num-seqs"},
                    "--prompts: maximum number of sequences generated at the same time",
                    engine_.most_sequences, 1, 4096));
}

void PromptsFile::check(const OptionTable& table) const {
  require(table, given(), {"--out", "--chat-template", "--cache", "--parallel"}, "--prompts");
  require(table, !given(),
          {"TEXT",
           "--prompt",
           "--file",
           "--ids",
           "--parse-special",
           "--image",
           "--frames",
           "--echo",
           "--prompt-cache",
           "--alternatives",
           "--at",
           "--logprobs",
           "--generations",
           "--beams",
           "--beam-groups",
           "--diversity-penalty",
           "--length-penalty",
           "--must",
           "--json-schema",
           "--json-schema-file",
           "--grammar",
           "--grammar-file",
           "--regex",
           "--choice"},
          "no --prompts, whose lines have the fields of requests");
}

int PromptsFile::run(const Model& model, const nlohmann::ordered_json& key) {
  infer::EngineOptions engine = engine_;
  engine.most_waiting = 100'000;  // the number of lines in progress is limited here
  serve::Api api(served(model, template_, engine));
  api.options().any_model = true;
  api.options().stable = true;
  api.set_warn([](const std::string& warning) { warn({warning}); });
  const http::Router router = serve::all_routes(api);
  jobs::LineJob job;
  job.files = {file_};
  job.out = out_;
  job.key = key;
  if (!template_.empty()) job.key["--chat-template"] = hash_text(hash_bytes(read_file(template_)));
  job.at_once = kBlocks;
  // Twice as many lines as sequences, so that sequences that end are replaced at once.
  job.block_lines = static_cast<size_t>(std::max<int64_t>(1, 2 * engine_.most_sequences / 16));
  std::optional<PromptsProgress> progress(file_);
  job.report = [&](const jobs::JobProgress& so_far, uint64_t bytes) {
    progress->show(so_far, bytes);
  };
  const serve::BatchRun run{router, fmt::format("seed {}", model.seed), true, "", stop_requested};
  const auto done =
      jobs::run_lines(job, [&](const jobs::LineBlock& block) { return run.answer(block); });
  for (const auto& each : api.models()) each->end_work();
  if (!done) return stop_requested() ? stop_code() : 0;
  const double seconds = progress->seconds(), rate = progress->rate(*done);
  progress.reset();
  if (done->errors > 0)
    note(fmt::format("warning: {} with errors, the first: {}\n", counted(done->errors, "line"),
                     printable(done->first_error)));
  note(dim(fmt::format("{}, {}, {}, {:.1f} s, {} tokens/s\n", counted(done->lines, "line"),
                       counted(done->errors, "error"), counted(done->tokens, "token"), seconds,
                       amount(rate))));
  return 0;
}

}  // namespace fovea::cli
