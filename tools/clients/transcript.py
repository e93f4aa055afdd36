"""Turns recorded exchanges into transcripts that may be kept: one line of JSON for each exchange, without
secrets, dates, ids, ports, paths or names of this machine. Equal ids stay equal, numbered as they appear."""
import collections
import hashlib
import json
import os
import platform
import re
import socket

DROPPED = {"host", "content-length", "connection", "accept-encoding", "date", "x-stainless-os", "x-stainless-arch", "x-stainless-runtime-version"}
SECRET = {"authorization": "Bearer KEY", "x-api-key": "KEY", "api-key": "KEY", "cookie": "COOKIE"}
LONGEST_BODY = 60_000

ID = re.compile(
    r"(?P<uuid>(?<![0-9a-f])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![0-9a-f]))"
    r"|(?P<hash>\b(?=[0-9a-f]*[0-9])[0-9a-f]{32,64}\b)"
    r"|(?P<start>\b(?:chatcmpl|cmpl|resp|msg|rs|fco|fc|call|toolu|ses|prt|req|embd|fp|run|reasoning|item|lc)[-_]+)(?P<rest>(?=[A-Za-z0-9_-]*[A-Z0-9])[A-Za-z0-9_-]{6,})")
# Ids of calls without a prefix, as some models want them: nine letters and digits, and so is what stands for them.
NINE = re.compile(r'(?P<key>"(?:call_id|tool_call_id|tool_use_id|id)": ?")(?P<word>(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{9})"')
VARYING = [
    (re.compile(r'"signature": ?"[^"]+"'), '"signature":"c2lnbmVk"'),
    (re.compile(r"\b20[2-9]\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?"), "2026-01-01T00:00:00Z"),
    (re.compile(r"\b20[2-9]\d-\d\d-\d\d\b"), "2026-01-01"),
    (re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:[A-Z][a-z]{2} \d{1,2}|\d{1,2} [A-Z][a-z]{2}) 20\d\d(?: \d\d:\d\d:\d\d(?: [A-Z]{3})?)?"), "Thu Jan 01 2026"),
    (re.compile(r'"timings": ?\{[^{}]*\}'), '"timings":{}'),
    (re.compile(r'"((?:total|load|prompt_eval|eval)_duration)": ?\d+'), r'"\1":1'),
    (re.compile(r"Chunk ID: [0-9a-f]+"), "Chunk ID: 0"),
    (re.compile(r"Wall time: [0-9.]+"), "Wall time: 0.0"),
    (re.compile(r"\b1[789]\d{11}\b"), "1767225600000"),
    (re.compile(r"\b1[789]\d{8}\b"), "1767225600"),
]
# Dates that are names of a protocol's version, which a server may read.
VERSIONS = re.compile(r"(?i)^(anthropic-version|anthropic-beta|openai-beta)$")


class Cleaner:
    """`replaced`: further texts and what stands for each; the longest are replaced first."""

    def __init__(self, replaced=None):
        self.seen = {}
        names = {socket.gethostname(): "host", platform.release(): "6.1.0", os.path.expanduser("~"): "/home/user", **(replaced or {})}
        self.names = [(re.compile(r"(?<![A-Za-z0-9])" + re.escape(name) + r"(?![A-Za-z0-9])"), new)
                      for name, new in sorted(names.items(), key=lambda x: -len(x[0])) if len(name) > 1]

    def number(self, match):
        first = match.group("start") or ("ID-" if match.group("uuid") else "HASH-")
        word = match.group(0)
        if word not in self.seen:
            self.seen[word] = sum(1 for v in self.seen.values() if v.startswith(first)) + 1
            self.seen[word] = f"{first}{self.seen[word]:03d}"
        return self.seen[word]

    def nine(self, match):
        word = match.group("word")
        if word not in self.seen:
            self.seen[word] = f"CALL{sum(1 for v in self.seen.values() if v.startswith('CALL')) + 1:05d}"
        return match.group("key") + self.seen[word] + '"'

    def text(self, text):
        # Names of beta features end in dates; they stay.
        kept = []
        text = re.sub(r"\b[a-z][a-z0-9]*(?:-[a-z0-9]+)*-20\d\d-\d\d-\d\d\b", lambda m: kept.append(m.group(0)) or f"\0{len(kept) - 1}\0", text)
        text = re.sub(r"/tmp/(?:clients-\w+/)?agent-\w{8}(?!\w)", "/work", text)  # the folder of an agent's run
        text = re.sub(r"-tmp-(?:clients-\w+-)?agent-[\w-]{8}-(?=home|project)", "-work-", text)
        text = re.sub(r"(127\.0\.0\.1|localhost):\d+", r"\1:8080", text)
        for name, new in self.names:
            text = name.sub(new, text)
        text = NINE.sub(self.nine, ID.sub(self.number, text))
        for date, new in VARYING:
            text = date.sub(new, text)
        return re.sub(r"\0(\d+)\0", lambda m: kept[int(m.group(1))], text)


def shorten(value, longest=400):
    """Replaces long texts within a JSON value by their beginning, length and hash."""
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:200]}... [{len(value)} characters, sha256 {hashlib.sha256(value.encode()).hexdigest()[:16]}]"
    if isinstance(value, list):
        return [shorten(v, longest) for v in value]
    if isinstance(value, dict):
        return {k: shorten(v, longest) for k, v in value.items()}
    return value


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def cleaned(exchange, cleaner, short=False):
    """`short`: shorten long texts even if the body is small, as for a client whose prompts may not be copied."""
    headers = {}
    for name, value in exchange["headers"].items():
        name = name.lower()
        if name not in DROPPED:
            headers[name] = SECRET.get(name) or (value if VERSIONS.match(name) else cleaner.text(value))
    body = parsed(cleaner.text(exchange["body"]))
    if short or len(exchange["body"]) > LONGEST_BODY:
        body = shorten(body)
    response = cleaner.text(exchange.get("response", ""))
    kind = {k.lower(): v for k, v in exchange.get("response_headers", {}).items()}.get("content-type", "")
    value = parsed(response) if "json" in kind and "ndjson" not in kind else response.split("\n")
    # Responses echo tools and instructions in their first and last events.
    value = [shorten(line, 3000) for line in value] if isinstance(value, list) else shorten(value, 3000)
    return {"method": exchange["method"], "path": exchange["path"], "headers": headers, "body": body,
            "status": exchange.get("status"), "type": kind, "response": value}


def write(path, exchanges, replaced=None, short=False):
    """Writes recorded exchanges as a transcript."""
    cleaner = Cleaner(replaced)
    write_cleaned(path, [cleaned(exchange, cleaner, short) for exchange in exchanges])


def write_cleaned(path, lines):
    """What occurs more than once in the requests' bodies is in the first line; there stands {"shared": NUMBER}."""
    counts = collections.Counter()

    def count(value):
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
        if len(text) < 200:
            return
        counts[text] += 1
        if counts[text] == 1:  # the parts of a repeated value are not repeated for that
            for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
                count(inner)

    numbers, shared = {}, []

    def share(value):
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
        inner = {k: share(v) for k, v in value.items()} if isinstance(value, dict) else [share(v) for v in value] if isinstance(value, list) else value
        if counts[text] < 2:
            return inner
        if text not in numbers:
            numbers[text] = len(shared)
            shared.append(inner)
        return {"shared": numbers[text]}

    for line in lines:
        count(line["body"])
    for line in lines:
        line["body"] = share(line["body"])
    with open(path, "w", encoding="utf-8") as out:
        out.write(json.dumps({"shared": shared}, ensure_ascii=False, sort_keys=True) + "\n")
        for line in lines:
            out.write(json.dumps(line, ensure_ascii=False, sort_keys=True) + "\n")


def read(path):
    """Returns the exchanges of a transcript, its requests' bodies whole."""
    def whole(value):
        if isinstance(value, dict):
            return whole(shared[value["shared"]]) if list(value) == ["shared"] else {k: whole(v) for k, v in value.items()}
        return [whole(v) for v in value] if isinstance(value, list) else value

    with open(path, encoding="utf-8") as lines:
        shared = json.loads(next(lines))["shared"]
        exchanges = [json.loads(line) for line in lines]
    for one in exchanges:
        one["body"] = whole(one["body"])
    return exchanges
