#include "fovea/infer/transcribe.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/files.h"
#include "cli/command.h"
#include "fovea/model/model_path.h"
#include "jobs/rank_tasks.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "terminal/live_input.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;
using Json = jobs::Ranks::Json;
using Clock = std::chrono::steady_clock;

bool is_audio(const fs::path& path) {
  static const std::set<std::string> known = {
      ".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au",
      ".caf", ".w64",  ".m4a", ".mp4", ".mov",  ".mka", ".mkv", ".webm", ".aac"};
  return known.contains(path.extension().string());
}

// Replaces folders by the audio files in them, in the order of their names.
std::vector<std::string> files_in(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::set<std::string> inside;
    for (const auto& entry : fs::directory_iterator(path, error))
      if (is_audio(entry.path())) inside.insert(entry.path().string());
    if (inside.empty())
      throw Error(ErrorKind::InvalidArgument,
                  path + ": has no audio files; expected wav, flac, ogg, opus or mp3");
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

class TranscribeCommand : public Command {
 public:
  TranscribeCommand()
      : Command("transcribe MODEL [FILE...] [--out PATH] [OPTIONS]",
                "Converts the speech in audio files to text. FILE is WAV, FLAC, Ogg, Opus, MP3 or, "
                "with FFmpeg's libraries, M4A or WebM of any rate, a folder of such files, or - "
                "for standard input: such a file, or raw samples; WAV and raw samples are "
                "transcribed while they arrive. Only transcripts are written to standard "
                "output.") {}

  void declare(OptionTable& table) override {
    table.add(model_argument(model_));
    table.add(
        positionals("FILE", {"-i", "--input"}, "audio file or folder; - = standard input", files_));
    table.add(as("PATH", text("--out", {"-o", "--output", "--output-dir"},
                              "output file, or folder if there are several files; unset: standard "
                              "output",
                              out_)));
    table.add(choice("--format", {"-f", "--output-format"}, "format of the transcripts", format_,
                     {"text|txt", "srt", "vtt", "tsv", "json"}));
    add_fields(table, options_,
               {{"language", {"--lang"}},
                {"word_times", {}, "--word-timestamps"},
                {"beams", {"-b", "--beam-size", "--num-beams"}},
                {"samples", {"--best-of"}},
                {"compression_ratio", {}, "--compression-ratio-threshold"},
                {"logprob", {}, "--logprob-threshold"},
                {"no_speech", {}, "--no-speech-threshold"},
                {.field = "timestamps", .omitted = true},
                {.field = "previous_text", .omitted = true},
                {"prompt", {"--initial-prompt"}},
                {"suppress", {}, "--suppress-tokens"},
                {"voice_only", {"--vad-filter"}, "--vad"},
                {"windows", {"--batch-size"}}});
    table.add(flag("--no-timestamps", {}, "predict no times of segments", no_times_));
    table.add(flag("--no-previous-text", {}, "do not continue the text of earlier windows",
                   no_previous_));
    Option temperature =
        as("X,X,...", text("--temperature", {},
                           "temperatures that are tried in order while a text repeats itself or is "
                           "improbable; unset: 0,0.2,0.4,0.6,0.8,1",
                           temperatures_));
    temperature.field = "temperatures";
    table.add(temperature);
    table.add(choice("--sample-type", {}, "type of raw samples on standard input", sample_type_,
                     {"s16", "s32", "f32", "u8"}));
    table.add(number("--rate", {"-r"}, "rate of raw samples on standard input, per second",
                     raw_.rate, 1000, 768'000));
    table.add(integer("--channels", {}, "channels of raw samples on standard input", raw_.channels,
                      1, 64));
    table.add(choice("--dtype", {"--precision", "--compute-type"},
                     "precision of the weights; automatic = as stored", precision_,
                     kWeightPrecisions));
    table.add(adapter_option(adapters_));
    table.show_only({"MODEL", "FILE", "--out", "--format", "--language", "--translate",
                     "--word-timestamps", "--beams", "--prompt", "--vad", "--batch-size",
                     "--dtype"});
  }

  bool runs_on_ranks(const OptionTable&) const override { return true; }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    read_temperatures();
    options_.timestamps = !no_times_;
    options_.previous_text = !no_previous_;
    if (json) format_ = static_cast<int>(infer::TranscriptFormat::json);
    raw_.type = static_cast<media::SampleType>(sample_type_);
    if (files_.empty()) files_.emplace_back("-");
    const std::vector<std::string> files = files_in(files_);
    refuse_unused(table, files);
    std::error_code error;
    into_folder_ = !out_.empty() && (files.size() > 1 || fs::is_directory(out_, error));
    if (into_folder_ && !jobs::Ranks::only_helps()) fs::create_directories(out_, error);
    if (error && into_folder_)
      throw Error(ErrorKind::Failed, fmt::format("{}: {}", out_, error.message()));
    name_outputs(files);
    const model::Model model =
        open_model(model_, weight_precision(precision_), {}, adapters_of(adapters_));
    if (const jobs::Ranks* ranks = jobs::Ranks::current())
      return transcribe_on(*ranks, model, files, key_of(table));
    catch_signals("stopping after this window (press again to stop immediately)");
    for (const std::string& file : files) {
      transcribe_file(model, file);
      if (stop_requested() && file != "-") return stop_code();
    }
    return 0;
  }

 private:
  // Describes what must be the same on all ranks.
  std::string key_of(const OptionTable& table) const {
    Json key = decisive_options(table, {"--out", "--threads", "--strict"});
    key["model"] = model::model_fingerprint(model_);
    if (!adapters_.empty()) key["adapters"] = identity_of(adapters_of(adapters_));
    return key.dump();
  }

  // The ranks transcribe whole files, which each of them reads; rank 0 writes the transcripts.
  int transcribe_on(const jobs::Ranks& ranks, const model::Model& model,
                    const std::vector<std::string>& files, const std::string& key) const {
    const jobs::Task transcribe = [&](const Json& file) -> Json {
      const infer::Transcript transcript =
          infer::transcribe(model, media::open_audio(file.get<std::string>()), options_, {});
      return infer::formatted(transcript, format());
    };
    if (std::ranges::find(files, "-") != files.end())
      throw UsageError(
          fmt::format("FILE: standard input on {} ranks; expected audio files", ranks.size()));
    if (ranks.rank() > 0) {
      jobs::help_with_tasks(ranks, key, transcribe);
      return 0;
    }
    jobs::RankTasks tasks(ranks, key);
    std::map<size_t, std::string> finished;  // that are not yet written
    size_t written = 0;
    tasks.run({files.begin(), files.end()}, transcribe, [&](size_t file, const Json& text) {
      finished[file] = text;
      for (; finished.contains(written); finished.erase(written++))
        write(files[written], finished[written]);
    });
    tasks.end();
    return 0;
  }

  void refuse_unused(const OptionTable& table, const std::vector<std::string>& files) const {
    const std::vector<float>& temperatures = options_.temperatures;
    const bool samples = std::any_of(temperatures.begin(), temperatures.end(),
                                     [](float temperature) { return temperature > 0; });
    require(table, !table.given("--temperature"), {"--temperatures"}, "no --temperature");
    require(table, options_.beams > 1, {"--length-penalty"}, "--beams above 1");
    require(table, samples, {"--samples"}, "--temperature above 0");
    require(table, temperatures.size() > 1, {"--compression-ratio-threshold"},
            "several temperatures");
    require(table, format() == infer::TranscriptFormat::json, {"--word-timestamps"},
            "--format json");
    require(table, std::find(files.begin(), files.end(), "-") != files.end(),
            {"--sample-type", "--rate", "--channels"}, "samples on standard input");
  }

  // Names the transcripts before the work begins: after the audio without its extension, or, if
  // that is the name of another one too, with it.
  void name_outputs(const std::vector<std::string>& files) {
    if (out_.empty()) return;
    if (!into_folder_) {
      const std::string folder = parent_of(out_);
      if (!fs::is_directory(folder))
        throw Error(ErrorKind::Failed,
                    fmt::format("{}: the folder {} does not exist; expected one", out_, folder));
      return;
    }
    const std::string extension = format() == infer::TranscriptFormat::text
                                      ? "txt"
                                      : infer::transcript_formats()[static_cast<size_t>(format_)];
    std::map<std::string, int> stems;
    for (const std::string& file : files) ++stems[fs::path(file).stem().string()];
    std::map<std::string, std::string> recordings;  // by output
    for (const std::string& file : files) {
      const fs::path path = file == "-" ? "standard_input" : file;
      const bool alone = stems[fs::path(file).stem().string()] == 1;
      const std::string name = (alone ? path.stem() : path.filename()).string();
      const std::string output = (fs::path(out_) / (name + "." + extension)).string();
      const auto [other, fresh] = recordings.emplace(output, file);
      if (!fresh)
        throw Error(
            ErrorKind::InvalidArgument,
            fmt::format("{}: is the output of {} and of {}; expected recordings with different "
                        "names",
                        output, other->second, file));
      outputs_[file] = output;
    }
  }

  void read_temperatures() {
    if (temperatures_.empty()) return;
    options_.temperatures.clear();
    for (const char *next = temperatures_.data(), *last = next + temperatures_.size();; ++next) {
      float value = 0;
      const auto [end, error] = std::from_chars(next, last, value);
      if (error != std::errc() || (end != last && *end != ','))
        throw UsageError(fmt::format("--temperature: \"{}\"; expected numbers such as 0,0.4,0.8",
                                     temperatures_));
      options_.temperatures.push_back(value);
      if (end == last) return;
      next = end;
    }
  }

  void transcribe_file(const model::Model& model, const std::string& file) {
    const bool live = file == "-";
    std::optional<LiveInput> input;
    if (live) input.emplace();
    const media::ByteReader read = [&](char* bytes, int64_t most) {
      return input->read(bytes, most);
    };
    const media::AudioSource audio =
        live ? media::open_audio_stream("standard input", raw_, read) : media::open_audio(file);
    const Clock::time_point start = Clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(Clock::now() - start).count();
    };
    ProgressLine line;
    infer::TranscribeEvents events;
    // Text appears at once, unless louder audio may still change it.
    const bool at_once = out_.empty() && !live && format() == infer::TranscriptFormat::text;
    events.segment = [&](const infer::TranscribedSegment& segment) {
      if (at_once) {
        line.clear();
        print(infer::formatted({.segments = {segment}}, infer::TranscriptFormat::text));
      } else if (live) {
        line.above(printable(segment.text) + "\n");
      }
      return live || !stop_requested();
    };
    if (live) {
      events.partial = [&](const std::string& text) {
        line.show(0, printable(text), "..." + printable(text) + "\n", true);
      };
      events.restart = [&] {
        line.above("later audio changes earlier text: transcribing again\n");
      };
    } else {
      events.progress = [&](double done, double all) {
        const std::string details =
            fmt::format("{} of {}, {:.1f} times real time", duration(done), duration(all),
                        seconds() > 0 ? done / seconds() : 0);
        line.show(all > 0 ? done / all : 1, details, fmt::format("{}: {}\n", file, details));
      };
    }
    const infer::Transcript transcript = infer::transcribe(model, audio, options_, events);
    line.clear();
    if (!at_once) write(file, infer::formatted(transcript, format()));
    const std::string language =
        transcript.language.empty() ? "" : "language " + transcript.language + ", ";
    note(dim(fmt::format("{}: {} of audio, {}{:.1f} s, {:.1f} times real time\n", file,
                         duration(transcript.seconds), language, seconds(),
                         seconds() > 0 ? transcript.seconds / seconds() : 0)));
  }

  infer::TranscriptFormat format() const { return static_cast<infer::TranscriptFormat>(format_); }

  void write(const std::string& file, const std::string& text) const {
    if (out_.empty()) return print(text);
    write_file_atomically(into_folder_ ? outputs_.at(file) : out_, text);
  }

  std::string model_, out_, temperatures_;
  std::vector<std::string> files_, adapters_;
  std::map<std::string, std::string> outputs_;  // of files, in a folder
  infer::TranscribeOptions options_;
  media::RawAudio raw_;
  int format_ = 0, precision_ = 0, sample_type_ = 0;
  bool into_folder_ = false, no_times_ = false, no_previous_ = false;
};

}  // namespace

std::unique_ptr<Command> make_transcribe() { return std::make_unique<TranscribeCommand>(); }

}  // namespace fovea::cli
