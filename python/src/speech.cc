// Text from speech.

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "fovea/core/error.h"
#include "fovea/infer/transcribe.h"
#include "keywords.h"
#include "queue.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using infer::TranscribedSegment;
using infer::TranscribedWord;
using infer::Transcript;

using Samples = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Audio is a path, the bytes of a file, or samples float32 at 16 kHz.
std::function<media::AudioSource()> audio_of(const nb::object& given) {
  if (nb::isinstance<nb::bytes>(given)) {
    const auto bytes = nb::borrow<nb::bytes>(given);
    const auto kept = std::make_shared<const std::string>(bytes.c_str(), bytes.size());
    return [kept] { return media::open_audio(kept, "audio"); };
  }
  Samples samples;
  if (nb::try_cast<Samples>(given, samples)) {
    const auto kept =
        std::make_shared<std::vector<float>>(samples.data(), samples.data() + samples.size());
    return [kept]() -> media::AudioSource {
      return [kept, at = size_t{0}](float* to, int64_t most) mutable {
        const size_t count = std::min(static_cast<size_t>(most), kept->size() - at);
        std::copy_n(kept->begin() + static_cast<std::ptrdiff_t>(at), count, to);
        at += count;
        return static_cast<int64_t>(count);
      };
    };
  }
  std::string path;
  if (!nb::try_cast(given, path)) {
    if (!nb::hasattr(given, "__fspath__"))
      throw Error(ErrorKind::InvalidArgument,
                  "audio: expected a path, the bytes of a file, or samples float32 at 16 kHz");
    path = nb::cast<std::string>(given.attr("__fspath__")());
  }
  return [path] { return media::open_audio(path); };
}

// A transcription that runs on its own thread; Python reads its segments one by one.
class Transcription {
 public:
  Transcription(const model::Model& model, const std::function<media::AudioSource()>& audio,
                const infer::TranscribeOptions& options) {
    run_apart([=, queue = queue_, result = result_] {
      queue->run([&] {
        infer::TranscribeEvents events;
        events.segment = [&](const TranscribedSegment& s) { return queue->put(s); };
        *result = infer::transcribe(model, audio(), options, events);
      });
    });
  }
  ~Transcription() { queue_->close(); }
  Transcription(const Transcription&) = delete;
  Transcription& operator=(const Transcription&) = delete;

  // Returns the next segment, or nothing at the end.
  std::optional<TranscribedSegment> next() {
    return call([queue = queue_] { return queue->take(); },
                {.interrupt = [queue = queue_] { queue->close(); }});
  }
  // Of the whole audio; complete after the last segment.
  const Transcript& result() const { return *result_; }

 private:
  std::shared_ptr<Queue<TranscribedSegment>> queue_ = Queue<TranscribedSegment>::made();
  std::shared_ptr<Transcript> result_ = std::make_shared<Transcript>();
};

void add_transcripts(nb::module_& module) {
  nb::class_<TranscribedWord>(module, "TranscribedWord")
      .def_ro("word", &TranscribedWord::word)
      .def_ro("start", &TranscribedWord::start, "In seconds.")
      .def_ro("end", &TranscribedWord::end, "In seconds.")
      .def_ro("probability", &TranscribedWord::probability)
      .def("__repr__", [](const TranscribedWord& w) {
        return fmt::format("TranscribedWord({:.2f}..{:.2f} {})", w.start, w.end, w.word);
      });
  nb::class_<TranscribedSegment>(module, "TranscribedSegment", "A part of a transcript.")
      .def_ro("start", &TranscribedSegment::start, "In seconds.")
      .def_ro("end", &TranscribedSegment::end, "In seconds.")
      .def_ro("text", &TranscribedSegment::text)
      .def_ro("tokens", &TranscribedSegment::tokens)
      .def_ro("temperature", &TranscribedSegment::temperature)
      .def_ro("logprob", &TranscribedSegment::logprob)
      .def_ro("compression_ratio", &TranscribedSegment::compression_ratio)
      .def_ro("no_speech", &TranscribedSegment::no_speech)
      .def_ro("words", &TranscribedSegment::words)
      .def("__str__", [](const TranscribedSegment& s) { return s.text; })
      .def("__repr__", [](const TranscribedSegment& s) {
        return fmt::format("TranscribedSegment({:.2f}..{:.2f}{})", s.start, s.end, s.text);
      });
  nb::class_<Transcript>(module, "Transcript")
      .def_ro("text", &Transcript::text)
      .def_ro("language", &Transcript::language, "A code, such as \"de\".")
      .def_ro("seconds", &Transcript::seconds, "The duration of the audio.")
      .def_ro("translated", &Transcript::translated)
      .def_ro("segments", &Transcript::segments)
      .def(
          "formatted",
          [](const Transcript& t, const std::string& format) {
            using enum infer::TranscriptFormat;
            return infer::formatted(
                t, one_of<infer::TranscriptFormat>(
                       "format", format,
                       {{"text", text}, {"srt", srt}, {"vtt", vtt}, {"tsv", tsv}, {"json", json}}));
          },
          nb::arg("format"), "Returns the transcript as text, srt, vtt, tsv or json.")
      .def("__str__", [](const Transcript& t) { return t.text; });
}

void add_words_in_audio(nb::module_& module) {
  module.def(
      "speech_languages",
      [] {
        std::vector<std::pair<std::string, std::string>> languages;
        for (const auto& [code, name] : model::speech_languages())
          languages.emplace_back(code, name);
        return languages;
      },
      "Returns the languages that speech models know, as pairs (code, name).");
  module.def(
      "words_in_audio",
      [](const model::Model& model, const nb::object& audio, const std::string& language) {
        infer::WordsInAudio found = call([model, source = audio_of(audio), language] {
          return infer::words_in_audio(model, source(), language);
        });
        const auto of = [](int64_t rows, int64_t columns) {
          return std::vector<size_t>{static_cast<size_t>(rows), static_cast<size_t>(columns)};
        };
        nb::dict parts;
        parts["text"] = found.text;
        parts["language"] = found.language;
        parts["seconds"] = found.seconds;
        parts["spectrogram"] = array_of(std::move(found.spectrogram), of(found.bins, found.frames));
        parts["similarity"] =
            array_of(std::move(found.similarity), of(std::ssize(found.words), found.positions));
        parts["words"] = found.words;
        return parts;
      },
      nb::arg("model"), nb::arg("audio"), nb::arg("language") = "");
}

}  // namespace

void add_speech(nb::module_& module) {
  add_transcripts(module);
  nb::class_<Transcription>(module, "Transcription",
                            "An iterator over the segments of a recording.")
      .def(
          "__iter__", [](nb::handle self) { return self; },
          nb::sig("def __iter__(self) -> Transcription"))
      .def("__next__",
           [](Transcription& t) {
             std::optional<TranscribedSegment> segment = t.next();
             if (!segment) throw nb::stop_iteration();
             return *segment;
           })
      .def_prop_ro("result", &Transcription::result,
                   "The whole transcript, complete after the last segment.");
  module.def(
      "transcribe",
      [](const model::Model& model, const nb::object& audio, const nb::kwargs& given) {
        const auto options = options_from<infer::TranscribeOptions>(given);
        return std::make_unique<Transcription>(model, audio_of(audio), options);
      },
      nb::arg("model"), nb::arg("audio"), nb::arg("options"));
  add_words_in_audio(module);
  module.def(
      "read_audio",
      [](const nb::object& audio) {
        return array_of(call([source = audio_of(audio)] {
          const media::AudioSource read = source();
          std::vector<float> samples;
          constexpr int64_t kBlock = 1 << 16;
          for (int64_t got = 1; got > 0;) {
            const size_t before = samples.size();
            samples.resize(before + kBlock);
            got = read(samples.data() + before, kBlock);
            samples.resize(before + static_cast<size_t>(got));
          }
          return samples;
        }));
      },
      nb::arg("audio"), "Decodes audio -> float32 [samples], mono at 16 kHz.");
}

}  // namespace fovea::python
