// Training runs.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <tuple>

#include "bindings.h"
#include "call.h"
#include "fovea/core/error.h"
#include "fovea/train/runs.h"
#include "fovea/train/train.h"
#include "fovea/train/train_embedder.h"
#include "keywords.h"
#include "tensors.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using train::TrainOptions;
using train::TrainPlan;
using train::TrainProgress;
using train::TrainResult;

// What a run tells Python, and how Python ends it.
struct Callbacks {
  Shared planned, progress, reading;
  std::shared_ptr<std::atomic<bool>> stopped = std::make_shared<std::atomic<bool>>(false);
  // Whether an evaluation has begun since the last step.
  std::shared_ptr<std::atomic<bool>> evaluated = std::make_shared<std::atomic<bool>>(false);
};

Shared maybe(const nb::object& function) { return function.is_none() ? nullptr : shared(function); }

Callbacks callbacks_of(const nb::object& planned, const nb::object& progress,
                       const nb::object& reading) {
  return {maybe(planned), maybe(progress), maybe(reading)};
}

// Returns whether a run goes on: a callback ends it by returning False.
template <class... Given>
bool goes_on(const Callbacks& callbacks, const Shared& function, const Given&... given) {
  if (function && !*callbacks.stopped) {
    const nb::gil_scoped_acquire locked;
    const nb::object answer = (*function)(given...);
    if (answer.is(nb::handle(Py_False))) *callbacks.stopped = true;
  }
  return !*callbacks.stopped;
}

// Calls `run(planned, progress, pausing, reading)`. Ctrl-C lets it save a snapshot.
template <class Run>
TrainResult run(const Callbacks& c, Run start) {
  return call(
      [c, start] {
        const auto planned = [&](const TrainPlan& plan) { return goes_on(c, c.planned, plan); };
        const auto progress = [&](const TrainProgress& now) {
          return goes_on(c, c.progress, now, c.evaluated->exchange(false));
        };
        const auto pausing = [&](train::Pause kind, double) {
          if (kind == train::Pause::evaluation) *c.evaluated = true;
        };
        const auto reading = [&](double fraction) { return goes_on(c, c.reading, fraction); };
        return start(planned, progress, pausing, reading);
      },
      {.interrupt = [stopped = c.stopped] { *stopped = true; }, .patience = -1});
}

struct Request {
  model::Spec spec;
  TrainOptions options;
};

void set_dropout(Request& request, const nb::object& value) {
  nb::dict each;
  for (const char* name : {"embedding_dropout", "attention_dropout", "residual_dropout"})
    each[name] = value;
  Keywords(each).into(request.spec);
  for (const std::string& name : Keywords(each).names()) request.options.given->push_back(name);
}

// Returns the presets' options, changed by the arguments, as the command line does it.
Request request_of(const nb::dict& given) {
  const auto named = [&](const char* name) {
    return given.contains(name) && !nb::object(given[name]).is_none();
  };
  std::string preset = named("pairs") ? "translate" : "nano";
  if (named("preset")) preset = nb::cast<std::string>(given["preset"]);
  const bool from = named("from");
  Request request = {model::preset(preset),
                     from ? train::fine_tuning_options(preset) : train::preset_training(preset)};
  request.spec.vocabulary = 0;  // of the text, not of the published model
  nb::dict fields;
  fields.update(given);
  for (const char* name : {"preset", "dropout"})
    if (fields.contains(name)) nb::del(fields[name]);
  Keywords keywords(fields);
  request.options.given = keywords.names();
  keywords.into(request.options);
  const Keywords of_options = keywords;
  keywords.into(request.spec);
  keywords.refuse_others();
  if (from)
    for (const std::string& name : *request.options.given)
      if (!of_options.knows(name) && name.find("dropout") == name.npos)
        throw FieldError(ErrorKind::InvalidArgument, name,
                         "cannot be combined with `from`, which determines the model; expected "
                         "only one of them");
  if (named("dropout")) set_dropout(request, given["dropout"]);
  return request;
}

std::function<Tensor(const Tensor&, const Tensor&)> loss_of(const nb::object& function) {
  if (function.is_none()) return {};
  return [kept = shared(function)](const Tensor& logits, const Tensor& labels) {
    const nb::gil_scoped_acquire locked;
    return nb::cast<Tensor>((*kept)(logits, labels));
  };
}

std::function<std::vector<double>(const std::vector<train::RewardedAnswer>&)> reward_of(
    const nb::object& function) {
  if (function.is_none()) return {};
  return [kept = shared(function)](const std::vector<train::RewardedAnswer>& answers) {
    const nb::gil_scoped_acquire locked;
    nb::list given;
    for (const train::RewardedAnswer& answer : answers) {
      nb::dict one;
      one["record"] = parsed(answer.record);
      one["completion"] = answer.text;
      one["tokens"] = answer.tokens;
      given.append(one);
    }
    return nb::cast<std::vector<double>>((*kept)(given));
  };
}

// The function returns tuples (reward, done, messages, answer); see python/fovea/environment.py.
std::function<std::vector<train::EnvironmentReply>(const std::vector<train::Episode>&)>
environment_of(const nb::object& function) {
  if (function.is_none()) return {};
  return [kept = shared(function)](const std::vector<train::Episode>& episodes) {
    const nb::gil_scoped_acquire locked;
    nb::list given;
    for (const train::Episode& episode : episodes) {
      nb::dict one;
      one["number"] = episode.number;
      one["evaluation"] = episode.evaluation;
      one["turn"] = episode.turn;
      one["record"] = parsed(episode.record);
      one["messages"] = parsed(episode.messages);
      given.append(one);
    }
    std::vector<train::EnvironmentReply> replies;
    using Reply = std::tuple<double, bool, std::string, std::string>;
    for (auto& [reward, done, messages, answer] : nb::cast<std::vector<Reply>>((*kept)(given)))
      replies.push_back({reward, done, std::move(messages), std::move(answer)});
    return replies;
  };
}

TrainResult trained_model(const nb::dict& given, const nb::object& planned,
                          const nb::object& progress, const nb::object& reading,
                          const nb::object& loss, const nb::object& reward,
                          const nb::object& environment) {
  Request request = request_of(given);
  const Callbacks callbacks = callbacks_of(planned, progress, reading);
  request.options.loss = loss_of(loss);
  request.options.reinforcement.reward = reward_of(reward);
  request.options.reinforcement.environment = environment_of(environment);
  request.options.reinforcement.stop = [stopped = callbacks.stopped] { return stopped->load(); };
  return run(callbacks,
             [request](const auto& plan, const auto& step, const auto& pause, const auto& read) {
               return train::train(request.spec, request.options, plan, step, read, pause);
             });
}

train::EmbedderTraining embedder_training(const nb::dict& given) {
  train::EmbedderTraining training;
  Keywords keywords(given);
  keywords.into(training);
  keywords.refuse_others();
  return training;
}

TrainResult trained_embedder(const nb::dict& given, const nb::object& planned,
                             const nb::object& progress) {
  return run(callbacks_of(planned, progress, nb::none()),
             [training = embedder_training(given)](const auto& plan, const auto& step,
                                                   const auto& pause, const auto&) {
               return train::train_embedder(training, plan, step, pause);
             });
}

std::string objective_of(const TrainPlan& plan) { return name_of(plan.objective); }

void add_train_plan(nb::module_& module) {
  nb::class_<TrainPlan>(module, "TrainPlan", "Describes a run before it starts.")
      .def_ro("spec", &TrainPlan::spec)
      .def_prop_ro("objective", &objective_of)
      .def_ro("start", &TrainPlan::from, "Where the initial weights come from.")
      .def_ro("first_step", &TrainPlan::first_step)
      .def_ro("steps", &TrainPlan::steps)
      .def_ro("parameters", &TrainPlan::parameters)
      .def_ro("trained_parameters", &TrainPlan::trained_parameters)
      .def_ro("training_tokens", &TrainPlan::training_tokens)
      .def_ro("validation_tokens", &TrainPlan::validation_tokens)
      .def_ro("training_sequences", &TrainPlan::training_sequences)
      .def_ro("validation_sequences", &TrainPlan::validation_sequences)
      .def_ro("vocabulary", &TrainPlan::vocabulary)
      .def_ro("tokens_per_step", &TrainPlan::tokens_per_step)
      .def_ro("epochs", &TrainPlan::epochs)
      .def_ro("learning_rate", &TrainPlan::learning_rate)
      .def_ro("warmup", &TrainPlan::warmup)
      .def_ro("schedule", &TrainPlan::schedule)
      .def_ro("total_bytes", &TrainPlan::total_bytes)
      .def_ro("available_bytes", &TrainPlan::available_bytes)
      .def_ro("flops_per_step", &TrainPlan::flops_per_step)
      .def_ro("seconds", &TrainPlan::seconds)
      .def_ro("tokens_per_second", &TrainPlan::tokens_per_second)
      .def_ro("precision", &TrainPlan::precision)
      .def_ro("threads", &TrainPlan::threads)
      .def_ro("notes", &TrainPlan::notes)
      .def("__repr__", [](const TrainPlan& p) {
        return fmt::format("TrainPlan({}, steps {} to {}, {} parameters, about {:.0f} s)",
                           name_of(p.objective), p.first_step, p.steps, p.parameters, p.seconds);
      });
}

void add_progress(nb::module_& module) {
  nb::class_<TrainProgress>(module, "TrainProgress", "A run after a step.")
      .def_ro("step", &TrainProgress::step)
      .def_ro("steps", &TrainProgress::steps)
      .def_ro("epoch", &TrainProgress::epoch)
      .def_ro("loss", &TrainProgress::loss, "Of the step.")
      .def_ro("validation_loss", &TrainProgress::validation_loss,
              "Of the last evaluation, or None.")
      .def_ro("best_loss", &TrainProgress::best_loss)
      .def_ro("bits_per_byte", &TrainProgress::bits_per_byte)
      .def_prop_ro(
          "metrics", [](const TrainProgress& p) { return dict_of(p.metrics); },
          "Other metrics of the last evaluation.")
      .def_prop_ro("best_metrics", [](const TrainProgress& p) { return dict_of(p.best_metrics); })
      .def_prop_ro(
          "step_metrics", [](const TrainProgress& p) { return dict_of(p.step_metrics); },
          "Other measurements of the step, such as \"reward\" or \"margin\".")
      .def_ro("learning_rate", &TrainProgress::learning_rate)
      .def_ro("gradient_norm", &TrainProgress::gradient_norm)
      .def_ro("tokens_per_second", &TrainProgress::tokens_per_second)
      .def_ro("seconds_left", &TrainProgress::seconds_left)
      .def_ro("seconds", &TrainProgress::seconds)
      .def_ro("tokens", &TrainProgress::tokens)
      .def_ro("peak_bytes", &TrainProgress::peak_bytes)
      .def_ro("sample", &TrainProgress::sample, "A generated text, at the steps that have one.")
      .def_ro("saved", &TrainProgress::saved, "The snapshot that was just written.")
      .def_ro("warning", &TrainProgress::warning)
      .def("__repr__", [](const TrainProgress& p) {
        return fmt::format("TrainProgress(step {} of {}, loss {:.4f})", p.step, p.steps, p.loss);
      });
}

void add_result(nb::module_& module) {
  nb::class_<TrainResult>(module, "TrainResult", "The result of a run.")
      .def_ro("step", &TrainResult::step)
      .def_ro("loss", &TrainResult::loss)
      .def_ro("best_loss", &TrainResult::best_loss,
              "The held-out loss of the weights that were written; 0 = not evaluated.")
      .def_prop_ro("metrics", [](const TrainResult& r) { return dict_of(r.metrics); })
      .def_prop_ro("start_metrics", [](const TrainResult& r) { return dict_of(r.start_metrics); })
      .def_ro("bits_per_byte", &TrainResult::bits_per_byte)
      .def_ro("seconds", &TrainResult::seconds)
      .def_ro("tokens_per_second", &TrainResult::tokens_per_second)
      .def_ro("peak_bytes", &TrainResult::peak_bytes)
      .def_ro("interrupted", &TrainResult::interrupted)
      .def_ro("stopped_early", &TrainResult::stopped_early)
      .def_ro("kept_start", &TrainResult::kept_start)
      .def("__repr__", [](const TrainResult& r) {
        return fmt::format("TrainResult(step {}, loss {:.4f}, best {:.4f}, {:.1f} s)", r.step,
                           r.loss, r.best_loss, r.seconds);
      });
}

void add_runs(nb::module_& module) {
  using train::RunLog;
  nb::class_<RunLog>(module, "RunLog", "The log of a training run.")
      .def_ro("folder", &RunLog::folder)
      .def_ro("command", &RunLog::command)
      .def_ro("version", &RunLog::version)
      .def_ro("time", &RunLog::time)
      .def_ro("seconds", &RunLog::seconds)
      .def_prop_ro(
          "curves",
          [](const RunLog& log) {
            nb::dict curves;
            for (const auto& [name, curve] : log.curves) curves[name.c_str()] = nb::cast(curve);
            return curves;
          },
          "Lists of pairs (step, value) by their names: loss, eval_loss, tokens_per_sec, ...")
      .def_prop_ro("settings", [](const RunLog& log) {
        nb::dict settings;
        for (const auto& [name, value] : log.settings) settings[name.c_str()] = value;
        return settings;
      });
  module.def("find_runs", &train::find_runs, nb::arg("folder"),
             "Returns the directories of training runs in a folder.");
  module.def("read_run", &train::read_run, nb::arg("folder"), "Reads the log of a run.");
  module.def("overlaid", &train::overlaid, nb::arg("curves"), nb::arg("title"),
             "Draws named curves over steps as SVG.");
  module.def("snapshots", &train::snapshots, nb::arg("folder"),
             "Returns the steps of the snapshots of a run, ascending.");
  module.def(
      "open_snapshot",
      [](const std::string& folder, int64_t step) {
        return call([=] { return train::open_snapshot(folder, step); });
      },
      nb::arg("folder"), nb::arg("step"));
}

}  // namespace

void add_training(nb::module_& module) {
  add_train_plan(module);
  add_progress(module);
  add_result(module);
  add_runs(module);
  module.def("train", &trained_model, nb::arg("options"), nb::arg("planned").none(),
             nb::arg("progress").none(), nb::arg("reading").none(), nb::arg("loss").none(),
             nb::arg("reward").none(), nb::arg("environment").none());
  module.def(
      "plan_training",
      [](const nb::dict& given) {
        return call([r = request_of(given)] { return train::plan_training(r.spec, r.options); });
      },
      nb::arg("options"));
  module.def(
      "training_example",
      [](const nb::dict& given) {
        std::vector<std::pair<std::string, bool>> parts;
        for (const train::ExamplePart& part :
             call([r = request_of(given)] { return train::training_example(r.options); }))
          parts.emplace_back(part.text, part.trained);
        return parts;
      },
      nb::arg("options"));
  module.def("train_embedder", &trained_embedder, nb::arg("options"), nb::arg("planned").none(),
             nb::arg("progress").none());
  module.def(
      "plan_embedder_training",
      [](const nb::dict& given) {
        return call([t = embedder_training(given)] { return train::plan_embedder_training(t); });
      },
      nb::arg("options"));
}

}  // namespace fovea::python
