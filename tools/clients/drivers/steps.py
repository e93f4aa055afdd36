"""What all drivers share. A driver gets the server's address in SERVER_URL and the cache in CLIENT_CACHE.

Each step prints one line; finish() sets the exit code."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import script  # noqa: E402

URL = os.environ["SERVER_URL"]
CACHE = pathlib.Path(os.environ.get("CLIENT_CACHE", "."))
KEY = "not-a-key"
ran = []  # the arguments of each call of get_weather
_failed = []


def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: The name of the city.
    """
    ran.append(city)
    return script.RESULT


PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "description": "The name of the city"}}, "required": ["city"],
              "additionalProperties": False}


def step(run):
    """Decorator: runs a function at once as a step that passes unless it throws."""
    ran.clear()
    try:
        run()
        print(f"pass {run.__name__}", flush=True)
    except Exception as error:  # any error of the client is a failed step
        _failed.append(run.__name__)
        where = traceback.extract_tb(error.__traceback__)
        mine = [f.lineno for f in where if f.filename == sys.argv[0]]
        words = " ".join(str(error).split())[:300]
        print(f"FAIL {run.__name__} (line {mine[-1] if mine else '?'}): {type(error).__name__}: {words}", flush=True)
    return run


def same(found, expected):
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r}")


def finish():
    sys.exit(1 if _failed else 0)


def agent(words, files=None, variables=None, limit=180):
    """Runs a coding agent in an empty project and home; returns its output and the marker's text."""
    base = pathlib.Path(tempfile.mkdtemp(prefix="agent-"))
    try:
        home, project = base / "home", base / "project"
        home.mkdir()
        project.mkdir()
        subprocess.run(["git", "init", "-q", str(project)], check=False)
        for name, text in (files or {}).items():
            path = base / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "CI": "true",
               "XDG_CONFIG_HOME": str(home / ".config"), "XDG_DATA_HOME": str(home / ".local/share"), "XDG_CACHE_HOME": str(home / ".cache"),
               "XDG_STATE_HOME": str(home / ".local/state"), **(variables or {})}
        with open(base / "out", "wb") as out, open(base / "err", "wb") as err:
            process = subprocess.Popen([str(w) for w in words], cwd=project, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            try:
                process.wait(limit)
                code = process.returncode
            except subprocess.TimeoutExpired:
                code = f"none after {limit} s"
            finally:
                try:
                    os.killpg(process.pid, 9)  # the agent and what it left running
                except ProcessLookupError:
                    pass
        text = (base / "out").read_text(errors="replace")
        errors = (base / "err").read_text(errors="replace")
        if os.environ.get("CLIENT_VERBOSE"):
            print(text, errors, sep="\n--- standard error\n", file=sys.stderr)
        marker = project / script.MARKER
        if code != 0:
            raise AssertionError(f"exit code {code}: {(errors or text).strip()[-260:]}")
        return text, marker.read_text().strip() if marker.exists() else None
    finally:
        shutil.rmtree(base, ignore_errors=True)
