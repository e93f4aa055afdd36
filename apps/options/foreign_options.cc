#include "options/foreign_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace fovea::cli {
namespace {

struct Foreign {
  const char* options;  // separated by spaces
  const char* sentence;
};

// Options of llama.cpp, nanoGPT, transformers, sentence-transformers and vLLM. An option of the
// verb itself takes precedence.
constexpr Foreign kForeign[] = {
    {"--resume --resume-from-checkpoint --resume-from --init-from",
     "a training run resumes by itself if --out holds a snapshot of it"},
    {"--wandb --wandb-log --wandb-project --report-to --tensorboard --logging-steps --logging-dir "
     "--log-interval --log-every",
     "a training run writes every step to log.jsonl in --out, and train --inspect shows the "
     "curves"},
    {"-ngl --n-gpu-layers --gpu-layers -mg --main-gpu -sm --split-mode -ts --tensor-split -dev "
     "--device --device-map --gpu --gpus --cuda --cpu --no-cuda --use-cpu -tp "
     "--tensor-parallel-size --gpu-memory-utilization",
     "fovea runs on the CPU; --threads sets the number of threads"},
    {"-tb --threads-batch --n-threads --num-threads --num-workers --dataloader-num-workers",
     "--threads sets the number of threads of all work"},
    {"-c --ctx-size --n-ctx --context --block-size --max-model-len --max-seq-len --max-seq-length",
     "the context is the model's; serve --cache limits the memory of its keys and values"},
    {"-np", "serve --parallel sets the number of simultaneous sequences"},
    {"--jinja --no-jinja", "chat templates are always rendered"},
    {"--fp16 --half", "the 16-bit precision for computing is --dtype bf16"},
    {"--bf16", "the precision is set by --dtype bf16"},
    {"--fp32 --tf32", "the precision is set by --dtype fp32"},
    {"--load-in-8bit", "the precision of weights is set by --dtype int8"},
    {"--load-in-4bit --quantization", "the precision of weights is set by --dtype int4"},
    {"-ctk -ctv --cache-type-k --cache-type-v",
     "the precision of keys and values is set by --cache-dtype"},
    {"--mmap --no-mmap --mlock", "weights are mapped into memory and read once"},
    {"-fa --flash-attn --flash-attention --attn-implementation",
     "attention is always computed in tiles, without a matrix of scores"},
    {"--compile --torch-compile --enforce-eager",
     "kernels are compiled in advance and selected for the CPU at startup"},
    {"-hf -hfr -hff --hf-repo --hf-file -mu --model-url",
     "fovea downloads nothing; MODEL is a directory or a .gguf file"},
    {"--trust-remote-code", "the code of a model's directory is never run"},
    {"-cnv --conversation -no-cnv --no-conversation --interactive",
     "fovea chat holds conversations, and fovea generate continues texts"},
    {"--do-sample", "sampling is the default; --greedy turns it off"},
    {"--epochs --num-epochs --num-train-epochs",
     "train --steps or --epochs sets the length of a run"},
    {"--eval-only --do-eval", "fovea eval evaluates a model"},
};

}  // namespace

std::string foreign_option(const std::string& typed) {
  std::string name = typed;
  std::replace(name.begin(), name.end(), '_', '-');
  for (const Foreign& foreign : kForeign)
    if (fmt::format(" {} ", foreign.options).find(fmt::format(" {} ", name)) != std::string::npos)
      return foreign.sentence;
  return {};
}

}  // namespace fovea::cli
