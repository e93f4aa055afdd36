"""fovea trains, fine-tunes, runs, serves and inspects Transformers on CPUs.

    import fovea

    model = fovea.load("path/of/a/model")  # or a name of the Hugging Face Hub
    print(model.generate("Once upon a time", max_tokens=50))
"""

from ._fovea import (
    BadFile,
    Classifier,
    Encoding,
    Error,
    Explanation,
    Failed,
    FoundPassage,
    Generation,
    ImageIndex,
    ImageModel,
    Inspection,
    Internal,
    InvalidArgument,
    MultiVectorEncoder,
    OutOfMemory,
    Random,
    Reranker,
    RunLog,
    SearchIndex,
    SparseEncoder,
    Spec,
    StreamedToken,
    Tensor,
    Tokenizer,
    Transcript,
    Translation,
    Unsupported,
    __version__,
    clear_tape,
    doctor,
    empty,
    empty_like,
    excerpt,
    find_runs,
    full,
    instruction_set,
    kaplan_loss,
    kaplan_loss_of_data,
    kaplan_loss_of_size,
    attention_pairs,
    chinchilla_loss,
    model_use,
    no_gradient,
    normal,
    optimal_parameters,
    optimal_tokens,
    overlaid,
    perplexity,
    plan_budget,
    preset_names,
    probabilities,
    quantise_vectors,
    read_audio,
    read_image,
    read_run,
    read_safetensors,
    recompute,
    recording,
    reset_peak_memory,
    rule_flops,
    score_translations,
    set_threads,
    snapshots,
    task_names,
    tensor_memory,
    thread_count,
    write_safetensors,
    zeros,
)
from . import nn, ops
from .encoder import Encoder
from .evaluating import evaluate, evaluate_images, evaluate_tasks, compare, linear_probe
from .model import Model, convert, load, open_snapshot
from .planning import flops_of_hours, inference_memory, plan, plan_hosts
from .serving import Server, serve
from .training import (
    finetune,
    plan_training,
    train,
    train_embedder,
    train_tokenizer,
    training_example,
)

__all__ = [name for name in dir() if not name.startswith("_")] + ["__version__"]
