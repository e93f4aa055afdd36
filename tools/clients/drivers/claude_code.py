"""Claude Code: claude -p, which speaks Messages."""
import json

from steps import CACHE, KEY, URL, agent, finish, same, script, step

VARIABLES = {"ANTHROPIC_BASE_URL": URL, "ANTHROPIC_AUTH_TOKEN": KEY, "ANTHROPIC_MODEL": script.MODEL, "ANTHROPIC_SMALL_FAST_MODEL": script.MODEL,
             "ANTHROPIC_DEFAULT_HAIKU_MODEL": script.MODEL, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
             "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_BUG_COMMAND": "1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4096",
             "CLAUDE_CODE_ENABLE_TELEMETRY": "0", "IS_SANDBOX": "1"}


@step
def tool_and_second_round():
    text, marker = agent([CACHE / "npm-claude/node_modules/.bin/claude", "-p", script.PROMPT, "--output-format", "json", "--allowedTools", "Bash"], variables=VARIABLES)
    same(marker, script.MARKER_TEXT)
    answer = json.loads(text)
    same((answer["result"], answer["is_error"], answer["num_turns"]), (script.FINAL, False, 2))


finish()
