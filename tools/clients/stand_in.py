"""A server that speaks every protocol as its own documentation says and plays the script.

It shows whether a driver and its client work, so that a failure against fovea is fovea's. It checks
nothing of what it is sent. Use: StandIn().start(), then .port and .close(); or stand_in.py PORT."""
import itertools
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import script

# Ids must differ: LangGraph takes a message with a known id for a newer version of it.
NUMBER = itertools.count(1)


def tool_names(body):
    names = []
    for tool in body.get("tools") or []:
        names.append((tool.get("function") or tool).get("name"))
        names += [t.get("name") for t in tool.get("tools") or []]  # a namespace of tools in Responses
    return names


def has_result(body):
    for message in body.get("messages") or []:
        content = message.get("content")
        if message["role"] == "tool":
            return True
        if isinstance(content, list) and any(part.get("type") == "tool_result" for part in content):
            return True
    items = body.get("input")
    return isinstance(items, list) and any("call_output" in str(item.get("type")) for item in items)


def turn(body):
    """Returns the reasoning, the text and the call (name, arguments) of the answer."""
    if has_result(body):
        return "", script.FINAL, None
    for name, arguments in script.CALLS.items():
        if name in tool_names(body):
            return script.REASONING, "", (name, arguments)
    return "", script.PLAIN, None


def responses_events(body):
    reasoning, text, call = turn(body)
    n = next(NUMBER)
    response = {"id": f"resp_{n}", "object": "response", "created_at": int(time.time()), "status": "in_progress", "model": body.get("model"),
                "output": [], "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
                "temperature": 1, "top_p": 1, "tool_choice": "auto", "tools": body.get("tools") or [], "usage": None}
    yield "response.created", {"response": dict(response)}
    output = []
    if reasoning:
        item = {"type": "reasoning", "id": f"rs_{n}", "summary": []}
        yield "response.output_item.added", {"output_index": 0, "item": dict(item)}
        item["summary"] = [{"type": "summary_text", "text": reasoning}]
        yield "response.reasoning_summary_part.added", {"item_id": f"rs_{n}", "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}
        yield "response.reasoning_summary_text.delta", {"item_id": f"rs_{n}", "output_index": 0, "summary_index": 0, "delta": reasoning}
        yield "response.reasoning_summary_text.done", {"item_id": f"rs_{n}", "output_index": 0, "summary_index": 0, "text": reasoning}
        yield "response.reasoning_summary_part.done", {"item_id": f"rs_{n}", "output_index": 0, "summary_index": 0, "part": item["summary"][0]}
        yield "response.output_item.done", {"output_index": 0, "item": item}
        output.append(item)
    at = len(output)
    if call:
        words = json.dumps(call[1])
        item = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": call[0], "arguments": "", "status": "in_progress"}
        yield "response.output_item.added", {"output_index": at, "item": dict(item)}
        yield "response.function_call_arguments.delta", {"item_id": f"fc_{n}", "output_index": at, "delta": words}
        yield "response.function_call_arguments.done", {"item_id": f"fc_{n}", "output_index": at, "name": call[0], "arguments": words}
        item |= {"arguments": words, "status": "completed"}
    else:
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "in_progress", "content": []}
        where = {"item_id": f"msg_{n}", "output_index": at, "content_index": 0}
        yield "response.output_item.added", {"output_index": at, "item": dict(item)}
        yield "response.content_part.added", {**where, "part": {**part, "text": ""}}
        for word in text.split(" "):
            yield "response.output_text.delta", {**where, "delta": word + " " * (not text.endswith(word)), "logprobs": []}
        yield "response.output_text.done", {**where, "text": text, "logprobs": []}
        yield "response.content_part.done", {**where, "part": part}
        item |= {"status": "completed", "content": [part]}
    yield "response.output_item.done", {"output_index": at, "item": item}
    output.append(item)
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15}
    yield "response.completed", {"response": {**response, "status": "completed", "output": output, "usage": usage}}


def messages_events(body):
    reasoning, text, call = turn(body)
    n = next(NUMBER)
    message = {"id": f"msg_{n}", "type": "message", "role": "assistant", "model": body.get("model"), "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}}
    yield "message_start", {"message": message}
    blocks = []
    if reasoning and (body.get("thinking") or {}).get("type") in ("enabled", "adaptive"):
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""},
                       [{"type": "thinking_delta", "thinking": reasoning}, {"type": "signature_delta", "signature": "c2lnbmVk"}]))
    if text:
        blocks.append(({"type": "text", "text": ""}, [{"type": "text_delta", "text": text}]))
    if call:
        blocks.append(({"type": "tool_use", "id": f"toolu_{n}", "name": call[0], "input": {}},
                       [{"type": "input_json_delta", "partial_json": json.dumps(call[1])}]))
    for i, (start, deltas) in enumerate(blocks):
        yield "content_block_start", {"index": i, "content_block": start}
        for delta in deltas:
            yield "content_block_delta", {"index": i, "delta": delta}
        yield "content_block_stop", {"index": i}
    yield "message_delta", {"delta": {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}}
    yield "message_stop", {}


def whole_message(body):
    message = {}
    for kind, data in messages_events(body):
        if kind == "message_start":
            message = data["message"]
        if kind == "content_block_start":
            message["content"].append(data["content_block"])
        if kind == "content_block_delta":
            block, delta = message["content"][data["index"]], data["delta"]
            if "partial_json" in delta:
                block["input"] = json.loads(delta["partial_json"])
            else:
                key = delta["type"].removesuffix("_delta")
                block[key] = delta[key]
        if kind == "message_delta":
            message |= data["delta"]
    return message


def chat_chunks(body):
    reasoning, text, call = turn(body)
    n = next(NUMBER)
    head = {"id": f"chatcmpl-{n}", "object": "chat.completion.chunk", "created": int(time.time()), "model": body.get("model")}
    one = lambda delta, reason=None: {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}]}
    yield one({"role": "assistant", "content": ""})
    if reasoning:
        yield one({"reasoning_content": reasoning})
    if text:
        yield one({"content": text})
    if call:
        yield one({"tool_calls": [{"index": 0, "id": f"call_{n}", "type": "function", "function": {"name": call[0], "arguments": json.dumps(call[1])}}]})
    yield one({}, "tool_calls" if call else "stop")
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}


def whole_chat(body):
    reasoning, text, call = turn(body)
    n = next(NUMBER)
    message = {"role": "assistant", "content": text or None}
    if reasoning:
        message["reasoning_content"] = reasoning
    if call:
        message["tool_calls"] = [{"id": f"call_{n}", "type": "function", "function": {"name": call[0], "arguments": json.dumps(call[1])}}]
    return {"id": f"chatcmpl-{n}", "object": "chat.completion", "created": int(time.time()), "model": body.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if call else "stop", "logprobs": None}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}


def ollama_chat(body):
    reasoning, text, call = turn(body)
    message = {"role": "assistant", "content": text}
    if reasoning and body.get("think"):
        message["thinking"] = reasoning
    if call:
        message["tool_calls"] = [{"function": {"name": call[0], "arguments": call[1]}}]
    head = {"model": body.get("model"), "created_at": "2026-01-01T00:00:00Z"}
    yield {**head, "message": message, "done": False}
    yield {**head, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", "total_duration": 1, "load_duration": 1,
           "prompt_eval_count": 10, "prompt_eval_duration": 1, "eval_count": 5, "eval_duration": 1}


def completion(body):
    """Each id or character of a prompt is a token, and certain; a choice for each prompt."""
    prompts = body["prompt"] if isinstance(body["prompt"], list) and not isinstance(body["prompt"][0], int) else [body["prompt"]]
    choices = []
    for i, prompt in enumerate(prompts):
        tokens = [str(t) for t in prompt]
        text = tokens + ["!"] * bool(body.get("max_tokens", 1)) if body.get("echo") else ["!"]
        choices.append({"index": i, "text": "".join(text), "finish_reason": "length",
                        "logprobs": {"tokens": text, "token_logprobs": [None] + [0.0] * (len(text) - 1), "top_logprobs": [None] + [{t: 0.0} for t in text[1:]],
                                     "text_offset": list(range(len(text)))}})
    return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": body.get("model"), "choices": choices,
            "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}}


MODELS = {"object": "list", "data": [{"id": script.MODEL, "object": "model", "created": 1, "owned_by": "nobody"}]}
TAGS = {"models": [{"name": script.MODEL, "model": script.MODEL, "modified_at": "2026-01-01T00:00:00Z", "size": 1, "digest": "0" * 64,
                    "details": {"format": "gguf", "family": "llama", "families": ["llama"], "parameter_size": "1M", "quantization_level": "F32"}}]}
SHOW = {"modelfile": "", "parameters": "", "template": "", "details": TAGS["models"][0]["details"], "capabilities": ["completion", "tools", "thinking"],
        "model_info": {"general.architecture": "llama", "llama.context_length": 65536}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def send(self, data, kind="application/json", status=200):
        data = data.encode() if isinstance(data, str) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def events(self, pairs):
        number = 0
        text = ""
        for kind, data in pairs:
            text += f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **data})}\n\n"
            number += 1
        self.send(text, "text/event-stream")

    def do_HEAD(self):
        self.send("")

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/v1/models":
            self.send(MODELS)
        elif path.startswith("/v1/models/"):
            self.send(MODELS["data"][0])
        elif path == "/api/tags":
            self.send(TAGS)
        elif path == "/api/version":
            self.send({"version": "0.13.4"})
        elif path in ("/", "/health"):
            self.send("OK", "text/plain")
        else:
            self.send({"error": {"message": "no such route"}}, status=404)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path, stream = self.path.split("?")[0], body.get("stream")
        if body.get("model") == "unknown":
            words = "model 'unknown' not found"
            self.send({"error": words} if path.startswith("/api/") else {"type": "error", "error": {"type": "not_found_error", "message": words}} if "messages" in path
                      else {"error": {"message": words, "type": "invalid_request_error", "param": "model", "code": "model_not_found"}}, status=404)
        elif path == "/v1/responses":
            events = list(responses_events(body))
            self.events(events) if stream else self.send(events[-1][1]["response"])
        elif path == "/v1/messages/count_tokens":
            self.send({"input_tokens": 10})
        elif path == "/v1/messages":
            self.events(messages_events(body)) if stream else self.send(whole_message(body))
        elif path == "/v1/chat/completions":
            if stream:
                self.send("".join(f"data: {json.dumps(c)}\n\n" for c in chat_chunks(body)) + "data: [DONE]\n\n", "text/event-stream")
            else:
                self.send(whole_chat(body))
        elif path == "/v1/completions":
            self.send(completion(body))
        elif path == "/api/chat":
            parts = list(ollama_chat(body))
            if stream is False:
                self.send({**parts[1], "message": parts[0]["message"]})
            else:
                self.send("".join(json.dumps(p) + "\n" for p in parts), "application/x-ndjson")
        elif path == "/api/embed":
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            self.send({"model": body["model"], "embeddings": [[0.6, 0.8] for _ in texts], "prompt_eval_count": 1})
        elif path == "/v1/embeddings":
            texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
            self.send({"object": "list", "model": body["model"], "data": [{"object": "embedding", "index": i, "embedding": [0.6, 0.8]} for i in range(len(texts))],
                       "usage": {"prompt_tokens": 1, "total_tokens": 1}})
        elif path == "/api/show":
            self.send(SHOW)
        else:
            self.send({"error": {"message": "no such route"}}, status=404)


class StandIn:
    def __init__(self, port=0):
        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_port

    def start(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def close(self):
        self.server.shutdown()


if __name__ == "__main__":
    StandIn(int(sys.argv[1])).server.serve_forever()
