"""A proxy that passes requests on to a server and keeps each request with its response.

Use: Recorder(port of the server).start(), then .url, .take() and .close(). A connection serves one
request after another; responses are passed on as they arrive, so streams stay streams."""
import http.client
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length"}


class Recorder:
    def __init__(self, target_port):
        recorder = self
        self.exchanges, self.lock = [], threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def body(self):
                if "chunked" in self.headers.get("Transfer-Encoding", ""):
                    data = b""
                    while size := int(self.rfile.readline().split(b";")[0], 16):
                        data += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                    return data
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))

            def serve(self):
                data = self.body()
                headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
                one = {"method": self.command, "path": self.path, "headers": dict(self.headers.items()),
                       "body": data.decode("utf-8", "backslashreplace"), "began": time.time()}
                with recorder.lock:
                    recorder.exchanges.append(one)
                there = http.client.HTTPConnection("127.0.0.1", target_port, timeout=600)
                received = b""
                try:
                    there.request(self.command, self.path, data, {**headers, "Content-Length": str(len(data))})
                    answer = there.getresponse()
                    one["status"], one["response_headers"] = answer.status, dict(answer.getheaders())
                    self.send_response(answer.status, answer.reason)
                    for k, v in answer.getheaders():
                        if k.lower() not in HOP_BY_HOP:
                            self.send_header(k, v)
                    whole = answer.getheader("Content-Length")
                    if whole is None:
                        self.send_header("Transfer-Encoding", "chunked")
                    else:
                        self.send_header("Content-Length", whole)
                    self.end_headers()
                    while self.command != "HEAD" and (piece := answer.read1(65536)):
                        received += piece
                        self.wfile.write(piece if whole else b"%x\r\n%s\r\n" % (len(piece), piece))
                        self.wfile.flush()
                    if whole is None:
                        self.wfile.write(b"0\r\n\r\n")
                except OSError as error:  # one of the two sides left
                    one["broken"] = type(error).__name__
                    self.close_connection = True
                finally:
                    one["response"] = received.decode("utf-8", "backslashreplace")
                    there.close()

            do_GET = do_POST = do_HEAD = do_DELETE = do_PUT = do_OPTIONS = do_PATCH = serve

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def start(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def take(self):
        with self.lock:
            taken, self.exchanges = self.exchanges, []
        return taken

    def close(self):
        self.server.shutdown()


if __name__ == "__main__":  # recorder.py PORT FILE: for use by hand; one exchange a line, written on Ctrl-C
    import sys
    proxy = Recorder(int(sys.argv[1])).start()
    print(proxy.url, flush=True)
    try:
        while True:
            time.sleep(1)
    except KeyboardInterrupt:
        with open(sys.argv[2], "w") as out:
            for one in proxy.take():
                out.write(json.dumps(one) + "\n")
