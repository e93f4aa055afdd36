#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "fovea/transcribe.h"
#include "http/router.h"
#include "serve/served_model.h"

namespace fovea::serve {

// Transcribes the requests of one speech model one after another, on its own thread.
class SpeechQueue {
 public:
  SpeechQueue(const Model& model, int64_t most_waiting);
  ~SpeechQueue();  // the request in progress ends after its window; those that wait are dropped
  SpeechQueue(const SpeechQueue&) = delete;
  SpeechQueue& operator=(const SpeechQueue&) = delete;

  // `work` receives the model and a function that returns whether the server stops. Returns false
  // if too many requests wait.
  using Work = std::function<void(const Model& model, const std::function<bool()>& stopping)>;
  bool add(Work work);

 private:
  void run();

  const Model model_;
  const size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> waiting_;
  bool stopping_ = false;
  std::thread thread_;  // declared last, since it uses the other members
};

// Adds OpenAI's routes /v1/audio/transcriptions and /v1/audio/translations, and whisper.cpp's
// /inference. `models` returns the served models; an upload has at most `most_upload` bytes.
using ServedModels = std::vector<std::shared_ptr<ServedModel>>;
void add_speech_routes(http::Router& router, const std::function<ServedModels()>& models,
                       size_t most_upload);

}  // namespace fovea::serve
