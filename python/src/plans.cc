// The cost of models and of their training.

#include "fovea/train/plan.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "call.h"
#include "keywords.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using train::BudgetPlan;
using train::InferenceMemory;
using train::MemoryPlan;
using train::Plan;
using train::PlanOptions;
using train::PlanPart;
using train::TrainingPlan;

nb::dict bytes_of(const train::Bytes& bytes) {
  nb::dict by_type;
  by_type["fp32"] = bytes.fp32;
  by_type["bf16"] = bytes.bf16;
  by_type["int8"] = bytes.int8;
  by_type["int4"] = bytes.int4;
  return by_type;
}

void add_parts(nb::module_& module) {
  nb::class_<PlanPart>(module, "PlanPart", "A component of a model, such as its attention.")
      .def_ro("name", &PlanPart::name)
      .def_ro("parameters", &PlanPart::parameters)
      .def_ro("active", &PlanPart::active)
      .def_ro("flops", &PlanPart::flops)
      .def("__repr__", [](const PlanPart& p) {
        return fmt::format("PlanPart({}, {} parameters)", p.name, p.parameters);
      });
  nb::class_<MemoryPlan>(module, "MemoryPlan", "Bytes, by the precision of the elements.")
      .def_prop_ro("weights", [](const MemoryPlan& m) { return bytes_of(m.weights); })
      .def_ro("gradients", &MemoryPlan::gradients)
      .def_ro("moments", &MemoryPlan::moments)
      .def_prop_ro("activations", [](const MemoryPlan& m) { return bytes_of(m.activations); })
      .def_prop_ro("cache_per_token",
                   [](const MemoryPlan& m) { return bytes_of(m.cache_per_token); })
      .def_prop_ro("cache", [](const MemoryPlan& m) { return bytes_of(m.cache); });
  nb::class_<TrainingPlan>(module, "TrainingPlan", "The cost of a training.")
      .def_ro("tokens", &TrainingPlan::tokens)
      .def_ro("flops", &TrainingPlan::flops)
      .def_ro("rule_flops", &TrainingPlan::rule_flops)
      .def_ro("seconds", &TrainingPlan::seconds)
      .def_ro("device_hours", &TrainingPlan::device_hours)
      .def_ro("cost", &TrainingPlan::cost)
      .def_ro("optimal_tokens", &TrainingPlan::optimal_tokens)
      .def_ro("loss", &TrainingPlan::loss);
}

void add_plan(nb::module_& module) {
  nb::class_<Plan>(module, "Plan", "The cost of a model: parameters, FLOPs and memory.")
      .def_ro("parameters", &Plan::parameters)
      .def_ro("active", &Plan::active, "Parameters used per token.")
      .def_ro("parts", &Plan::parts)
      .def_ro("batch", &Plan::batch)
      .def_ro("length", &Plan::length)
      .def_ro("source_length", &Plan::source_length)
      .def_ro("flops", &Plan::flops, "Of a forward pass over one sequence.")
      .def_ro("flops_per_token", &Plan::flops_per_token)
      .def_prop_ro(
          "attention",
          [](const Plan& p) {
            std::vector<std::pair<int64_t, double>> shares;
            for (const auto& [length, share] : p.attention) shares.emplace_back(length, share);
            return shares;
          },
          "Pairs (length, share of the FLOPs in attention).")
      .def_ro("memory", &Plan::memory)
      .def_ro("training", &Plan::training)
      .def("__repr__", [](const Plan& p) {
        return fmt::format("Plan({} parameters, {:.3g} FLOPs per token)", p.parameters,
                           p.flops_per_token);
      });
  module.def(
      "plan",
      [](const model::Spec& spec, const nb::kwargs& given) {
        return train::plan(spec, options_from<PlanOptions>(given));
      },
      nb::arg("spec"), nb::arg("options"));
  using train::HostsStep;
  nb::class_<HostsStep>(module, "HostsStep", "A step of a training that several hosts share.")
      .def_ro("hosts", &HostsStep::hosts)
      .def_ro("compute_seconds", &HostsStep::compute_seconds)
      .def_ro("exchange_seconds", &HostsStep::exchange_seconds)
      .def_ro("wait_seconds", &HostsStep::wait_seconds)
      .def_ro("bytes_sent", &HostsStep::bytes_sent)
      .def_prop_ro("seconds", &HostsStep::seconds);
  module.def(
      "plan_hosts",
      [](const Plan& plan, const nb::kwargs& given) {
        return call(
            [plan, o = options_from<PlanOptions>(given)] { return train::plan_hosts(plan, o); });
      },
      nb::arg("plan"), nb::arg("options"));
}

void add_memory(nb::module_& module) {
  nb::class_<InferenceMemory>(module, "InferenceMemory", "Bytes of a process that runs a model.")
      .def_ro("weights", &InferenceMemory::weights)
      .def_ro("cache", &InferenceMemory::cache)
      .def_ro("program", &InferenceMemory::program)
      .def_prop_ro("total", &InferenceMemory::total)
      .def("__repr__", [](const InferenceMemory& m) {
        return fmt::format("InferenceMemory({:.1f} MB)", m.total() / 1e6);
      });
  module.def(
      "inference_memory",
      [](const std::string& path, const std::string& precision, const nb::kwargs& given) {
        return call([path, p = precision_of(precision), o = options_from<PlanOptions>(given)] {
          return train::inference_memory(path, o, p);
        });
      },
      nb::arg("path"), nb::arg("precision") = "stored", nb::arg("options"),
      "Returns the memory for a model on disk; reads only its config and headers.");
}

void add_laws(nb::module_& module) {
  nb::class_<BudgetPlan>(module, "BudgetPlan", "What to train for a number of FLOPs.")
      .def_ro("flops", &BudgetPlan::flops)
      .def_ro("parameters", &BudgetPlan::parameters)
      .def_ro("tokens", &BudgetPlan::tokens)
      .def_ro("loss", &BudgetPlan::loss)
      .def_ro("fitted_parameters", &BudgetPlan::fitted_parameters)
      .def_ro("fitted_tokens", &BudgetPlan::fitted_tokens)
      .def_ro("fitted_loss", &BudgetPlan::fitted_loss)
      .def_ro("layers", &BudgetPlan::layers)
      .def_ro("width", &BudgetPlan::width);
  module.def("plan_budget", &train::plan_budget, nb::arg("flops"));
  module.def(
      "flops_of_hours",
      [](double hours, const nb::kwargs& given) {
        return call([hours, o = options_from<PlanOptions>(given)] {
          return train::flops_of_hours(hours, o);
        });
      },
      nb::arg("hours"), nb::arg("options"));
  module.def("rule_flops", &train::rule_flops, nb::arg("parameters"), nb::arg("tokens"), "6 N D.");
  module.def("kaplan_loss_of_size", &train::kaplan_loss_of_size, nb::arg("parameters"));
  module.def("kaplan_loss_of_data", &train::kaplan_loss_of_data, nb::arg("tokens"));
  module.def("kaplan_loss", &train::kaplan_loss, nb::arg("parameters"), nb::arg("tokens"));
  module.def("chinchilla_loss", &train::chinchilla_loss, nb::arg("parameters"), nb::arg("tokens"));
  module.def("optimal_tokens", &train::optimal_tokens, nb::arg("parameters"));
  module.def("optimal_parameters", &train::optimal_parameters, nb::arg("flops"));
  module.def("attention_pairs", &train::attention_pairs, nb::arg("length"), nb::arg("causal"),
             nb::arg("window") = 0, nb::arg("global_tokens") = 0);
}

}  // namespace

void add_plans(nb::module_& module) {
  add_parts(module);
  add_plan(module);
  add_memory(module);
  add_laws(module);
}

}  // namespace fovea::python
