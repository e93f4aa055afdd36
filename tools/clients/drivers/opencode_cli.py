"""opencode: opencode run, which speaks chat completions through the AI SDK."""
import json

from steps import CACHE, KEY, URL, agent, finish, same, script, step

CONFIG = {"$schema": "https://opencode.ai/config.json", "share": "disabled", "autoupdate": False, "model": f"local/{script.MODEL}", "small_model": f"local/{script.MODEL}",
          "permission": "allow", "lsp": False, "formatter": False,
          "provider": {"local": {"npm": "@ai-sdk/openai-compatible", "name": "local", "options": {"baseURL": URL + "/v1", "apiKey": KEY},
                                 "models": {script.MODEL: {"name": script.MODEL, "tool_call": True, "reasoning": True, "limit": {"context": 65536, "output": 4096}}}}}}
VARIABLES = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
             "OPENCODE_DISABLE_SHARE": "1",
             "npm_config_registry": "http://127.0.0.1:1"}  # else it installs its plugin package


@step
def tool_and_second_round():
    text, marker = agent([CACHE / "npm-opencode/node_modules/.bin/opencode", "run", "--pure", "--format", "json", script.PROMPT],
                         {"home/.config/opencode/opencode.json": json.dumps(CONFIG)}, VARIABLES)
    same(marker, script.MARKER_TEXT)
    events = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    same([e["part"]["text"] for e in events if e["type"] == "text"], [script.FINAL])


finish()
