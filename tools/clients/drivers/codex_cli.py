"""Codex CLI: codex exec, which speaks Responses only: as a provider of its configuration, and by --oss."""
from steps import CACHE, KEY, URL, agent, finish, same, script, step

CODEX = [CACHE / "npm-codex/node_modules/.bin/codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
QUIET = """
check_for_update_on_startup = false
[analytics]
enabled = false
[otel]
exporter = "none"
[history]
persistence = "none"
[features]
plugins = false  # else it asks github.com and chatgpt.com
apps = false
"""
PROVIDER = f"""
model = "{script.MODEL}"
model_provider = "local"
model_context_window = 65536
{QUIET}
[model_providers.local]
name = "local"
base_url = "{URL}/v1"
wire_api = "responses"
env_key = "LOCAL_KEY"
request_max_retries = 0
stream_max_retries = 0
"""


def check(words, configuration, variables):
    text, marker = agent([*CODEX, *words, script.PROMPT], {"home/.codex/config.toml": configuration}, variables)
    same(marker, script.MARKER_TEXT)
    same(text.strip(), script.FINAL)


@step
def provider():
    check([], PROVIDER, {"LOCAL_KEY": KEY})


def oss(kind):
    check(["--oss", "--local-provider", kind, "--model", script.MODEL], QUIET, {"CODEX_OSS_BASE_URL": URL + "/v1"})


@step
def oss_ollama():
    """Needs /api/version of 0.13.4 or newer, and the model in /api/tags, else it pulls it."""
    oss("ollama")


@step
def oss_lmstudio():
    """Loads the model by a first request of one token to /v1/responses."""
    oss("lmstudio")


finish()
