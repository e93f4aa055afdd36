"""What the scripted model says: shared by the model's template, the stand-in server and the drivers."""

MODEL = "scripted"
REASONING = "The user wants the tool, so I call it."
PLAIN = "Hello from the scripted model."
FINAL = "Finished: the tool ran and I have read its result."
RESULT = "21 degrees and sunny"  # what the drivers' own tool returns

MARKER, MARKER_TEXT = "ran.txt", "scripted"
COMMAND = f"echo {MARKER_TEXT} > {MARKER}"  # what the coding agents are told to run

# The first tool of this list that a request offers is called, with these arguments.
CALLS = {
    "get_weather": {"city": "Paris"},
    "exec_command": {"cmd": COMMAND},
    "shell_command": {"command": COMMAND},
    "shell": {"command": ["bash", "-lc", COMMAND]},
    "Bash": {"command": COMMAND, "description": "Write the marker file"},
    "bash": {"command": COMMAND, "description": "Write the marker file"},
}

PROMPT = "Use the tool once, then say that you have finished."
