"""A local server with the routes of the Hugging Face Hub that fovea and huggingface_hub use, and with its faults: listings, resolve with
redirects to another host, ETags, ranges, statuses of refusal, connections that are cut, wrong contents.

Run as a program, it serves folders: hub_server.py [--rate BYTES_PER_SECOND] USER/NAME=FOLDER..."""
import collections
import hashlib
import http.server
import json
import os
import pathlib
import re
import ssl
import sys
import threading
import time
import urllib.parse

PIECE = 1 << 18


def git_hash(content):
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Repository:
    """Files by their names: bytes, or the path of a file. Those of at least `large` bytes are stored as the Hub stores large files."""

    def __init__(self, files, licence="apache-2.0", large=1000):
        self.files = {name: content if isinstance(content, bytes) else pathlib.Path(content) for name, content in files.items()}
        self.licence, self.large = licence, large
        self.token = None  # the token that may read it
        self.gated = False
        self.renamed = None  # the new name
        self.revisions = {"main"}
        self.entries = {name: self.entry(name) for name in self.files}
        self.commit = hashlib.sha1(json.dumps(self.entries, sort_keys=True).encode()).hexdigest()

    def entry(self, name):
        content = self.files[name]
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        if size < self.large:
            data = content if isinstance(content, bytes) else content.read_bytes()
            return {"rfilename": name, "size": size, "blobId": git_hash(data)}
        digest = hashlib.sha256()
        if isinstance(content, bytes):
            digest.update(content)
        else:
            with open(content, "rb") as file:
                while piece := file.read(1 << 22):
                    digest.update(piece)
        return {"rfilename": name, "size": size, "blobId": "0" * 40,
                "lfs": {"sha256": digest.hexdigest(), "size": size, "pointerSize": 134}}

    def etag(self, name):
        entry = self.entries[name]
        return entry["lfs"]["sha256"] if "lfs" in entry else entry["blobId"]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def log_message(self, *_):
        pass

    def refuse(self, status, code=None, **headers):
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        hub = self.server.hub
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        kind = "data" if self.server.is_data else "hub"
        with hub.lock:
            hub.requests.append((self.command, kind, self.path, self.headers.get("Authorization"), self.headers.get("Range")))
            fault = hub.next_fault(kind)
        if fault and fault[0] == "status":
            return self.refuse(fault[1], **fault[2])
        if self.server.is_data:
            return self.data(path, fault)
        if match := re.fullmatch(r"/api/(models|datasets)/(.+?)/(revision|tree)/(.+)", path):
            return self.listing(match[1], match[2], match[3], match[4])
        if match := re.fullmatch(r"/(datasets/)?(.+?)/resolve/([^/]+)/(.+)", path):
            return self.resolve(("datasets/" if match[1] else "") + match[2], match[3], match[4], fault)
        return self.refuse(404)

    def repository(self, name):
        """Returns a repository that the token may read; None after a refusal."""
        found = self.server.hub.repositories.get(name)
        if found is None:
            self.refuse(401, "RepoNotFound")
        elif found.token and self.headers.get("Authorization") != "Bearer " + found.token:
            self.refuse(401 if not found.gated else 403, "GatedRepo" if found.gated else "RepoNotFound")
        elif found.renamed:
            self.refuse(307, Location=self.path.replace(name.removeprefix("datasets/"), found.renamed))
        else:
            return found
        return None

    def listing(self, kind, name, view, revision):
        repository = self.repository(("datasets/" if kind == "datasets" else "") + name)
        if repository is None:
            return None
        if revision not in repository.revisions | {repository.commit}:
            return self.refuse(404, "RevisionNotFound")
        if view == "tree":
            return self.send_json([{"type": "file", "path": each["rfilename"], "size": each["size"], "oid": each["blobId"],
                                    **({"lfs": {"oid": each["lfs"]["sha256"], "size": each["size"], "pointerSize": 134}} if "lfs" in each else {})}
                                   for each in repository.entries.values()])
        return self.send_json({"id": name, "modelId": name, "sha": repository.commit, "private": False, "gated": False, "disabled": False,
                               "downloads": 1, "likes": 1, "tags": [], "cardData": {"license": repository.licence},
                               "siblings": list(repository.entries.values())})

    def send_json(self, value):
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def resolve(self, name, revision, file, fault):
        repository = self.repository(name)
        if repository is None:
            return None
        if revision not in repository.revisions | {repository.commit}:
            return self.refuse(404, "RevisionNotFound")
        if file not in repository.files:
            return self.refuse(404, "EntryNotFound")
        entry, etag = repository.entries[file], repository.etag(file)
        headers = {"X_Repo_Commit": repository.commit, "ETag": f'"{etag}"'}
        if "lfs" not in entry:
            return self.send_content(repository.files[file], headers, fault)
        where = f"{self.server.hub.data_address}/{name}/{urllib.parse.quote(file)}"
        return self.refuse(302, Location=where, X_Linked_Etag=f'"{etag}"', X_Linked_Size=str(entry["size"]), **headers)

    def data(self, path, fault):
        hub = self.server.hub
        for name, repository in hub.repositories.items():
            if path.startswith(f"/{name}/"):
                return self.send_content(repository.files[path[len(name) + 2:]], {}, fault)
        return self.refuse(404)

    def send_content(self, content, headers, fault):
        hub = self.server.hub
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        begin = int(match[1]) if match and hub.ranges else 0
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{size - 1}/{size}")
        self.send_header("Content-Length", str(size - begin))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "HEAD":
            return
        end = size
        if fault and fault[0] == "cut":
            end = min(size, begin + fault[1])
        if fault and fault[0] == "change":
            content = bytes(byte ^ 1 for byte in (content if isinstance(content, bytes) else content.read_bytes()))
        try:
            self.send_bytes(content, begin, end)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        if end < size:
            self.close_connection = True
            self.connection.close()

    def send_bytes(self, content, begin, end):
        rate, started = self.server.hub.rate, time.monotonic()
        if isinstance(content, bytes):
            for i in range(begin, end, PIECE):
                self.connection.sendall(content[i:min(end, i + PIECE)])
                self.wait(rate, started, min(end, i + PIECE) - begin)
            return
        with open(content, "rb") as file:
            at = begin
            while at < end:
                sent = os.sendfile(self.connection.fileno(), file.fileno(), at, min(PIECE if rate else 1 << 24, end - at))
                if sent == 0:
                    break
                at += sent
                self.wait(rate, started, at - begin)

    @staticmethod
    def wait(rate, started, sent):
        if rate and (early := sent / rate - (time.monotonic() - started)) > 0:
            time.sleep(early)


class Hub:
    """Serves repositories until closed. faults: what happens to the next requests to the hub or the data host: ("status", 429, headers),
    ("cut", bytes), ("change",) or None."""

    def __init__(self, repositories, rate=0, port=0, certificate=None):
        self.repositories = repositories
        self.rate, self.ranges = rate, True
        self.requests = []
        self.faults = {"hub": collections.deque(), "data": collections.deque()}
        self.lock = threading.Lock()
        self.servers = []
        for is_data in (False, True):
            # Another port of this machine is another host, to which no token may go.
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0 if is_data else port), Handler)
            server.daemon_threads = True
            if certificate:  # a file with the certificate and its key
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(certificate)
                server.socket = context.wrap_socket(server.socket, server_side=True)
            server.hub, server.is_data = self, is_data
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self.servers.append(server)
        self.address, self.data_address = (
            f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_address[1]}" for server in self.servers)

    def next_fault(self, kind):
        return self.faults[kind].popleft() if self.faults[kind] else None

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()


def main():
    rate, arguments = 0, sys.argv[1:]
    if arguments[:1] == ["--rate"]:
        rate, arguments = float(arguments[1]), arguments[2:]
    repositories = {}
    for argument in arguments:
        name, folder = argument.split("=", 1)
        root = pathlib.Path(folder)
        repositories[name] = Repository({str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()})
    hub = Hub(repositories, rate)
    print(hub.address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
