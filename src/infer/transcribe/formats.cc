#include <fmt/format.h>

#include <cmath>

#include "base/ordered_json.h"
#include "fovea/infer/transcribe.h"

namespace fovea::infer {
namespace {

std::string trimmed_text(const std::string& text) {
  const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

int64_t milliseconds(double seconds) { return std::llround(seconds * 1000); }

// "01:02:03,450"; WebVTT leaves out hours of 0.
std::string clock(double seconds, bool hours, char point) {
  const int64_t ms = milliseconds(seconds);
  std::string text;
  if (hours || ms >= 3'600'000) text = fmt::format("{:02}:", ms / 3'600'000);
  return text +
         fmt::format("{:02}:{:02}{}{:03}", ms / 60'000 % 60, ms / 1000 % 60, point, ms % 1000);
}

// An arrow would end the line of times of a subtitle.
std::string subtitle(const std::string& text) {
  std::string line = trimmed_text(text);
  for (size_t at = 0; (at = line.find("-->", at)) != std::string::npos;) line.replace(at, 3, "->");
  return line;
}

std::string subtitles(const Transcript& transcript, bool vtt) {
  std::string out = vtt ? "WEBVTT\n\n" : "";
  int64_t number = 0;
  for (const TranscribedSegment& segment : transcript.segments) {
    if (!vtt) out += fmt::format("{}\n", ++number);
    const char point = vtt ? '.' : ',';
    out += fmt::format("{} --> {}\n{}\n\n", clock(segment.start, !vtt, point),
                       clock(segment.end, !vtt, point), subtitle(segment.text));
  }
  return out;
}

std::string table(const Transcript& transcript) {
  std::string out = "start\tend\ttext\n";
  for (const TranscribedSegment& segment : transcript.segments) {
    std::string text = trimmed_text(segment.text);
    for (char& c : text)
      if (c == '\t' || c == '\n') c = ' ';
    out +=
        fmt::format("{}\t{}\t{}\n", milliseconds(segment.start), milliseconds(segment.end), text);
  }
  return out;
}

nlohmann::ordered_json segment_object(const TranscribedSegment& segment, int64_t id) {
  return {{"id", id},
          {"seek", segment.seek},
          {"start", segment.start},
          {"end", segment.end},
          {"text", segment.text},
          {"tokens", segment.tokens},
          {"temperature", segment.temperature},
          {"avg_logprob", segment.logprob},
          {"compression_ratio", segment.compression_ratio},
          {"no_speech_prob", segment.no_speech}};
}

std::string json_text(const Transcript& transcript) {
  nlohmann::ordered_json json = {{"text", transcript.text},
                                 {"segments", nlohmann::ordered_json::array()},
                                 {"language", transcript.language}};
  for (const TranscribedSegment& segment : transcript.segments) {
    nlohmann::ordered_json object = segment_object(segment, std::ssize(json["segments"]));
    for (const TranscribedWord& word : segment.words)
      object["words"].push_back({{"word", word.word},
                                 {"start", word.start},
                                 {"end", word.end},
                                 {"probability", word.probability}});
    json["segments"].push_back(std::move(object));
  }
  return json_line(json) + "\n";
}

}  // namespace

std::string segment_json(const TranscribedSegment& segment, int64_t id) {
  return json_line(segment_object(segment, id));
}

const std::vector<std::string>& transcript_formats() {
  static const std::vector<std::string> names = {"text", "srt", "vtt", "tsv", "json"};
  return names;
}

std::string formatted(const Transcript& transcript, TranscriptFormat format) {
  switch (format) {
    case TranscriptFormat::text: {
      std::string text;
      for (const TranscribedSegment& segment : transcript.segments)
        text += trimmed_text(segment.text) + "\n";
      return text;
    }
    case TranscriptFormat::srt: return subtitles(transcript, false);
    case TranscriptFormat::vtt: return subtitles(transcript, true);
    case TranscriptFormat::tsv: return table(transcript);
    case TranscriptFormat::json: return json_text(transcript);
  }
  return "";
}

}  // namespace fovea::infer
