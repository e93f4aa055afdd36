#!/usr/bin/env python3
"""Sends the requests of transcripts to `fovea serve` again, one after another.

    replay.py FOVEA TRANSCRIPTS GOLDENS

writes a transcript with the responses of now into the folder GOLDENS for each one in TRANSCRIPTS, whose long texts are replaced by their
lengths: prompts of other programs are not kept. Goldens can be given as transcripts too, to be written again. tests/system/clients_test.py compares the goldens with the responses of the program."""
import http.client
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import scripted_model
import transcript

LONGEST = 160  # characters of a text in a golden
HEADERS = {"accept", "anthropic-version", "authorization", "content-type", "x-api-key"}  # what a server of these protocols reads
METADATA = {"client_metadata", "metadata"}  # what clients say about themselves

# Numbers that depend on the requests before, whose prefixes the server keeps, some time after it has answered.
CACHED = re.compile(r'("(?:cached_tokens|cache_read_input_tokens|input_tokens|prompt_eval_count|cache_n|prompt_n)": ?)\d+')


def length(text):
    """Returns what stands for a text in a golden; once replaced, it stays."""
    return text if re.fullmatch(r"\[\d+ characters\]", text) else f"[{len(text)} characters]"


def without_texts(value):
    """Replaces long texts and descriptions within a JSON value by their lengths."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST else length(value)
    if isinstance(value, list):
        return [without_texts(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: length(each) if key == "description" and isinstance(each, str) else without_texts(each) for key, each in value.items()}


def golden_request(exchange):
    """Returns the request without long texts and without what its client says about itself and its machine."""
    body = without_texts(exchange["body"])
    if isinstance(body, dict):
        body = {key: value for key, value in body.items() if key not in METADATA}
    return {**exchange, "headers": {name: value for name, value in exchange["headers"].items() if name.lower() in HEADERS}, "body": body}


def start(fovea, folder, log):
    """Starts a server with the scripted model. Returns the process and the port."""
    model = pathlib.Path(folder, "model")
    scripted_model.make(model)
    process = subprocess.Popen([fovea, "serve", model, "--alias", "scripted", "--port", "0", "--json"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=log, text=True)
    port = json.loads(process.stdout.readline())["port"]
    return process, port


def send(port, exchange):
    """Returns the exchange with the response of the server."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    body = "" if exchange["body"] == "" else json.dumps(exchange["body"])
    connection.request(exchange["method"], exchange["path"], body, exchange["headers"])
    response = connection.getresponse()
    answered = {"method": exchange["method"], "path": exchange["path"], "headers": exchange["headers"], "body": body, "status": response.status,
                "response_headers": dict(response.getheaders()), "response": response.read().decode()}
    connection.close()
    return answered


def replay(port, exchanges):
    """Returns the requests with the responses of now, cleaned."""
    cleaner = transcript.Cleaner()
    done = []
    for exchange in exchanges:
        answered = send(port, exchange)
        answered["response"] = CACHED.sub(r"\g<1>0", answered["response"])  # before long events become hashes
        one = transcript.cleaned(answered, cleaner)
        done.append({**exchange, "status": one["status"], "type": one["type"], "response": one["response"]})
    return done


def main():
    fovea, transcripts, goldens = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    goldens.mkdir(parents=True, exist_ok=True)
    for path in sorted(transcripts.glob("*.jsonl")):
        with tempfile.TemporaryDirectory() as folder:
            process, port = start(fovea, folder, subprocess.DEVNULL)
            exchanges = replay(port, [golden_request(one) for one in transcript.read(path)])
            process.terminate()
            process.wait()
        transcript.write_cleaned(goldens / path.name, exchanges)
        print(path.name, len(exchanges))


if __name__ == "__main__":
    main()
