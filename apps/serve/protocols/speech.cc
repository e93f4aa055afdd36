#include "serve/protocols/speech.h"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "base/stop.h"
#include "fovea/infer/transcribe.h"
#include "http/multipart.h"
#include "serve/request/api_error.h"
#include "serve/routes/handlers.h"
#include "serve/routes/response_json.h"

namespace fovea::serve {
namespace {

enum class SpeechFormat { json, text, srt, vtt, verbose };

// The fields of a request.
struct SpeechRequest {
  std::string model, file_name;
  std::shared_ptr<const std::string> audio;
  infer::TranscribeOptions options;
  SpeechFormat format = SpeechFormat::json;
  bool words = false, segments = true;  // granularities of verbose_json
  bool stream = false;
};

double number_of(const std::string& name, std::string_view text, double least, double most) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || !(value >= least && value <= most))
    refuse_value(name, fmt::format("a number from {} to {}", least, most));
  return value;
}

bool boolean_of(const std::string& name, std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text != "false" && text != "0" && !text.empty()) refuse_value(name, "true or false");
  return false;
}

SpeechFormat format_of(std::string_view text) {
  constexpr std::string_view kNames[] = {"json", "text", "srt", "vtt", "verbose_json"};
  for (size_t i = 0; i < std::size(kNames); ++i)
    if (text == kNames[i]) return static_cast<SpeechFormat>(i);
  refuse_value("response_format", "json, text, srt, vtt or verbose_json");
}

// The fields of both APIs. Those that only describe the audio to other servers are refused by name.
class FieldReader {
 public:
  explicit FieldReader(SpeechRequest& request) : request_(request) {}

  void read(const http::FormPart& part) {
    std::string name = part.name;
    if (name.ends_with("[]")) name.resize(name.size() - 2);
    const bool list = name == "timestamp_granularities";
    if (!list && !seen_.insert(name).second)
      throw ApiError{400, name + ": occurs twice", name, "invalid_value"};
    set(name, part);
  }

  // Returns the audio.
  std::string_view finish() {
    if (!audio_) throw ApiError{400, "file: is missing", "file", "missing"};
    infer::TranscribeOptions& options = request_.options;
    if (granular_) request_.segments = segments_;
    if (granular_ && request_.format != SpeechFormat::verbose)
      refuse_value("timestamp_granularities", "response_format verbose_json");
    options.word_times = request_.words;
    if (request_.stream && request_.format != SpeechFormat::json &&
        request_.format != SpeechFormat::text)
      refuse_value("stream", "response_format json or text");
    // A temperature of 0 means: as low as the text allows.
    if (first_ > 0) {
      options.temperatures = {static_cast<float>(first_)};
    } else if (increment_ <= 0) {
      options.temperatures = {0};
    }
    return *audio_;
  }

 private:
  void set(const std::string& name, const http::FormPart& part) {
    const std::string text(part.content.substr(0, kMostText));
    if (name != "file" && part.content.size() > kMostText)
      refuse_value(name, fmt::format("at most {} bytes", kMostText));
    infer::TranscribeOptions& options = request_.options;
    if (name == "file") {
      audio_ = part.content;
      request_.file_name = part.filename.value_or("file");
    } else if (name == "model") {
      request_.model = text;
    } else if (name == "language") {
      options.language = text == "auto" ? "" : text;
    } else if (name == "prompt") {
      options.prompt = text;
    } else if (name == "response_format") {
      request_.format = format_of(text);
    } else if (name == "temperature") {
      first_ = number_of(name, text, 0, 2);
    } else if (name == "timestamp_granularities") {
      set_granularity(text);
    } else if (name == "stream") {
      request_.stream = boolean_of(name, text);
    } else {
      set_of_inference(name, text);
    }
  }

  // Further fields of /inference.
  void set_of_inference(const std::string& name, const std::string& text) {
    infer::TranscribeOptions& options = request_.options;
    if (name == "temperature_inc") {
      increment_ = number_of(name, text, 0, 2);
    } else if (name == "translate") {
      options.translate = boolean_of(name, text);
    } else if (name == "beam_size") {
      options.beams = static_cast<int64_t>(number_of(name, text, 1, 64));
    } else if (name == "best_of") {
      options.samples = static_cast<int64_t>(number_of(name, text, 1, 64));
    } else if (name == "no_timestamps") {
      options.timestamps = !boolean_of(name, text);
    } else {
      throw ApiError{400, fmt::format("{}: is not supported", name), name, "unknown_field"};
    }
  }

  void set_granularity(const std::string& text) {
    if (text != "word" && text != "segment")
      refuse_value("timestamp_granularities", "word or segment");
    granular_ = true;
    (text == "word" ? request_.words : segments_) = true;
  }

  static constexpr size_t kMostText = 16 << 10;  // far more than a model's context
  SpeechRequest& request_;
  std::set<std::string> seen_;
  double first_ = 0, increment_ = 0.2;
  std::optional<std::string_view> audio_;  // a part of the body
  bool granular_ = false, segments_ = false;
};

// Returns the fields of the request, and its audio, which is a part of the body.
std::pair<SpeechRequest, std::string_view> read_request(const http::Request& request,
                                                        bool translate) {
  SpeechRequest read;
  read.options.translate = translate;
  FieldReader reader(read);
  for (const http::FormPart& part : http::form_parts(request.header("content-type"), request.body))
    reader.read(part);
  const std::string_view audio = reader.finish();
  return {std::move(read), audio};
}

// Takes a part from a body, without a copy.
std::shared_ptr<const std::string> taken(std::string_view part, std::string& body) {
  const auto begin = static_cast<size_t>(part.data() - body.data());
  body.resize(begin + part.size());
  body.erase(0, begin);
  return std::make_shared<const std::string>(std::move(body));
}

std::shared_ptr<ServedModel> speech_model(const Api& api, const std::string& name) {
  auto model = api.model({{"model", name}}, is<ServedSpeech>);
  if (model->find<ServedSpeech>()) return model;
  throw ApiError{400, "model: " + model->facts.name + ": reads no audio; expected a speech model",
                 "model", "wrong_model"};
}

Json verbose_json(const SpeechRequest& request, const infer::Transcript& transcript) {
  std::string language = transcript.language;
  for (const model::SpeechLanguage& known : model::speech_languages())
    if (language == known.code) language = known.name;
  Json json = {{"task", transcript.translated ? "translate" : "transcribe"},
               {"language", language},
               {"duration", transcript.seconds},
               {"text", transcript.text}};
  if (request.words) json["words"] = Json::array();
  if (request.segments) json["segments"] = Json::array();
  for (const infer::TranscribedSegment& segment : transcript.segments) {
    if (request.segments)
      json["segments"].push_back(
          Json::parse(infer::segment_json(segment, std::ssize(json["segments"]))));
    for (const infer::TranscribedWord& word : segment.words)
      json["words"].push_back({{"word", word.word}, {"start", word.start}, {"end", word.end}});
  }
  return json;
}

Json usage_of(const infer::Transcript& transcript) {
  return {{"type", "duration"}, {"seconds", static_cast<int64_t>(transcript.seconds + 0.999)}};
}

http::Response response_of(const SpeechRequest& request, const infer::Transcript& transcript) {
  const auto plain = [&](infer::TranscriptFormat format, const char* type) {
    return http::Response{200, type, {}, infer::formatted(transcript, format)};
  };
  switch (request.format) {
    case SpeechFormat::text:
      return plain(infer::TranscriptFormat::text, "text/plain; charset=utf-8");
    case SpeechFormat::srt: return plain(infer::TranscriptFormat::srt, "application/x-subrip");
    case SpeechFormat::vtt: return plain(infer::TranscriptFormat::vtt, "text/vtt; charset=utf-8");
    case SpeechFormat::verbose: return json_response(verbose_json(request, transcript));
    case SpeechFormat::json: break;
  }
  return json_response({{"text", transcript.text}, {"usage", usage_of(transcript)}});
}

// A damaged upload is the client's error.
ApiError speech_error(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::BadFile || error.kind() == ErrorKind::Unsupported)
      return {400, error.what(), "file", "invalid_file"};
  } catch (...) {
    return api_error(thrown);
  }
  return api_error(thrown);
}

// Returns the audio, which has at most kMostHours; a file of a few bytes may contain days of
// silence.
media::AudioSource limited_audio(const SpeechRequest& request) {
  static constexpr int64_t kMostHours = 6, kMostSamples = kMostHours * 3600 * 16'000;
  return [audio = media::open_audio(request.audio, request.file_name), name = request.file_name,
          read = int64_t{0}](float* samples, int64_t most) mutable {
    stop_if_requested();
    const int64_t count = audio(samples, most);
    read += count;
    if (read > kMostSamples)
      throw Error(ErrorKind::BadFile,
                  fmt::format("{}: is longer than {} hours; expected a shorter recording", name,
                              kMostHours));
    return count;
  };
}

// Transcribes one request and sends its response; with `stream`, each segment as soon as it is
// known.
void serve_speech(const SpeechRequest& request, const model::Model& model,
                  http::Exchange& exchange) {
  bool begun = false;
  try {
    infer::TranscribeEvents events;
    events.segment = [&](const infer::TranscribedSegment& segment) {
      if (request.stream && !begun) exchange.begin({200, "text/event-stream", {}, ""});
      begun = request.stream;
      if (begun)
        exchange.write(
            sse_event(json_line(Json{{"type", "transcript.text.delta"}, {"delta", segment.text}})));
      return true;
    };
    const infer::Transcript transcript =
        infer::transcribe(model, limited_audio(request), request.options, events);
    if (!request.stream) return exchange.send(response_of(request, transcript));
    if (!begun) exchange.begin({200, "text/event-stream", {}, ""});
    exchange.write(sse_event(json_line(Json{{"type", "transcript.text.done"},
                                            {"text", transcript.text},
                                            {"usage", usage_of(transcript)}})) +
                   sse_event("[DONE]"));
    exchange.finish();
  } catch (...) {
    const ApiError error = speech_error(std::current_exception());
    if (!begun) return exchange.send(error_response(ErrorShape::openai, error));
    exchange.write(sse_event(openai_error(error)));
    exchange.finish();
  }
}

// A request that waits for the model. Its audio is dropped when its client disconnects.
struct WaitingSpeech {
  SpeechRequest request;
  std::shared_ptr<http::Exchange> exchange;
};

void queue_speech(SpeechRequest request, const std::shared_ptr<ServedModel>& model,
                  const std::shared_ptr<http::Exchange>& exchange) {
  if (!exchange->hold(std::ssize(*request.audio))) throw too_busy();
  const auto slot = std::make_shared<std::atomic<std::shared_ptr<WaitingSpeech>>>(
      std::make_shared<WaitingSpeech>(WaitingSpeech{std::move(request), exchange}));
  const auto work = [slot, speech = model->find<ServedSpeech>()->model,
                     pool = model->worker.get()] {
    const std::shared_ptr<WaitingSpeech> waiting = slot->exchange(nullptr);
    if (waiting == nullptr) return;
    http::Exchange& client = *waiting->exchange;
    const StopScope scope([&] { return client.gone() || pool->stopping(); });
    serve_speech(waiting->request, speech, client);
  };
  if (!model->worker->run(work)) throw too_busy();
  exchange->on_gone([slot] { slot->store(nullptr); });
}

}  // namespace

void add_speech_routes(http::Router& router, Api& api, size_t most_upload) {
  const auto add = [&](const char* path, bool translate) {
    http::Route route = guarded_route(
        "POST", path,
        [&api, translate](http::Request& request, const std::shared_ptr<http::Exchange>& exchange) {
          auto [read, audio] = read_request(request, translate);
          const auto model = speech_model(api, read.model);
          read.audio = taken(audio, request.body);
          queue_speech(std::move(read), model, exchange);
        });
    route.most_body = most_upload;
    router.add(std::move(route));
  };
  add("/v1/audio/transcriptions", false);
  add("/v1/audio/translations", true);
  add("/inference", false);
}

}  // namespace fovea::serve
