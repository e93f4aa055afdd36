"""Vectors and scores that llama.cpp computes with a .gguf file, by its server as a module of Python (package xllamacpp)."""
import contextlib
import os

import xllamacpp


@contextlib.contextmanager
def quiet_streams():
    """Sends the library's messages to nowhere."""
    saved = [os.dup(1), os.dup(2)]
    with open(os.devnull, "w") as nowhere:
        for stream in (1, 2):
            os.dup2(nowhere.fileno(), stream)
        try:
            yield
        finally:
            for stream, before in zip((1, 2), saved):
                os.dup2(before, stream)
                os.close(before)


def server(path, pooling=None):
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.embedding, parameters.warmup, parameters.n_parallel = True, False, 1
    parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = 512
    parameters.cpuparams.n_threads, parameters.verbosity = 1, 0
    if pooling is not None:
        parameters.pooling_type = pooling
    return xllamacpp.Server(parameters)


def answer(path, pooling, handle):
    """Returns what a method of the server returns; the server must end before an error is raised, or the process hangs."""
    with quiet_streams():
        found = handle(server(path, pooling))
    if "error" in found:
        raise ValueError(f"{path}: {found['error']}")
    return found


def vectors(path, texts, pooling=None):
    """Returns vectors of length 1; `pooling` takes the place of that of the file."""
    pooling = None if pooling is None else getattr(xllamacpp.llama_pooling_type, f"LLAMA_POOLING_TYPE_{pooling.upper()}")
    return [each["embedding"] for each in answer(path, pooling, lambda it: it.handle_embeddings({"input": texts}))["data"]]


def scores(path, texts):
    """Returns the scores of the texts for the first one, before a sigmoid."""
    rank = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_RANK
    found = answer(path, rank, lambda it: it.handle_rerank({"query": texts[0], "documents": texts}))
    ordered = sorted(found["results"], key=lambda each: each["index"])
    return [each["relevance_score"] for each in ordered]
