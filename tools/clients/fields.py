"""Lists which fields each client sends, from transcripts: fields.py FOLDER prints a page of Markdown."""
import json
import pathlib
import sys

import transcript


def kind(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)) or value is None:
        return json.dumps(value)
    if isinstance(value, str):
        return json.dumps(value) if len(value) < 40 and "\n" not in value else "text"
    return None


def walk(value, path, found):
    if isinstance(value, dict):
        if not value:
            found.setdefault(path, set()).add("{}")
        for key, inner in value.items():
            # Schemas, arguments and free-form members have no fixed names.
            if key in ("parameters", "input_schema", "properties", "schema") or path.endswith(("arguments", "metadata")) or path.endswith("tool_use.input"):
                found.setdefault(f"{path}.{key}" if not path.endswith(("arguments", "metadata")) else path, set()).add("object")
                continue
            walk(inner, f"{path}.{key}" if path else key, found)
    elif isinstance(value, list):
        if not value:
            found.setdefault(path, set()).add("[]")
        for inner in value:
            name = f"{inner['role']}" if isinstance(inner, dict) and isinstance(inner.get("role"), str) and "type" not in inner else inner.get("type", "") if isinstance(inner, dict) else ""
            if isinstance(inner, dict) and inner.get("type") == "message":
                name = f"message {inner.get('role')}"
            walk(inner, f"{path}[{name}]", found)
    else:
        found.setdefault(path, set()).add(kind(value))


def main():
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.jsonl")):
        print(f"\n## {file.stem}\n")
        requests = transcript.read(file)
        routes = {}
        for one in requests:
            routes.setdefault((one["method"], one["path"]), []).append(one)
        for (method, path), ones in routes.items():
            print(f"### {method} {path} ({len(ones)} requests)\n")
            headers, found = {}, {}
            for one in ones:
                for name, value in one["headers"].items():
                    headers.setdefault(name, value)
                if isinstance(one["body"], dict):
                    walk(one["body"], "", found)
            print("Headers: " + ", ".join(f"`{k}: {v[:80]}`" for k, v in headers.items()) + "\n")
            for name, values in found.items():
                shown = sorted(values)[:5] + ["..."] * (len(values) > 5)
                print(f"- `{name}`: {', '.join(shown)}")
            print()


main()
