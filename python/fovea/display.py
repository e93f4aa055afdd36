"""How notebooks show models, runs and attention: HTML without scripts from elsewhere."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from . import _fovea

if TYPE_CHECKING:
    from .model import Model
    from .training import Run


def model_html(model: Model) -> str:
    """A table of facts."""
    spec = model.spec
    rows = {
        "path": model.path,
        "parameters": f"{model.parameters:,}",
        "weights": ", ".join(f"{name}: {size:,} bytes" for name, size in model.weight_formats),
        "layers": spec.layers,
        "heads": spec.heads,
        "width": spec.width,
        "context": spec.context,
        "vocabulary": spec.vocabulary,
    }
    return _table(rows)


def run_html(run: Run) -> str:
    """The curves of a run, and its result."""
    log = run.log
    curves = [(name, log.curves[name]) for name in ("loss", "eval_loss") if name in log.curves]
    rows = {"out": run.out, "step": run.result.step, "best loss": f"{run.result.best_loss:.4f}"}
    return _table(rows) + (_fovea.overlaid(curves, "loss") if curves else "")


class AttentionMap:
    """The attention weights of a head, as a table of colours in a notebook."""

    def __init__(self, weights: Any, queries: list[str], keys: list[str], title: str = "") -> None:
        self.weights, self.queries, self.keys, self.title = weights, queries, keys, title

    def _repr_html_(self) -> str:
        style = "padding:2px 4px;font:11px monospace;white-space:pre"
        head = "".join(f'<th style="{style}">{html.escape(key)}</th>' for key in self.keys)
        rows = [f"<tr><th></th>{head}</tr>"]
        for query, row in zip(self.queries, self.weights, strict=True):
            cells = "".join(
                f'<td title="{weight:.4f}" style="{style};background:'
                f'rgba(200,80,0,{float(weight):.3f})">&nbsp;</td>'
                for weight in row
            )
            rows.append(
                f'<tr><th style="{style};text-align:right">{html.escape(query)}</th>{cells}</tr>'
            )
        title = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        return f'<table style="border-collapse:collapse">{title}{"".join(rows)}</table>'


def attention_map(
    inspection: _fovea.Inspection, layer: int, head: int, kind: str = "self"
) -> AttentionMap:
    """Shows the attention weights of a head: fovea.display.attention_map(model.inspect(text), 0, 1)."""
    weights = inspection.map(layer, [head], kind)[0]
    own = [str(token) for token in inspection.tokens]
    source = [str(token) for token in inspection.source]
    queries = source if kind == "encoder" else own
    keys = own if kind == "self" else source
    return AttentionMap(weights, queries, keys, f"{kind} attention, layer {layer}, head {head}")


class ExplanationView:
    """The tokens of a text, coloured by what they contribute to the output."""

    def __init__(self, explanation: _fovea.Explanation, method: int = 0) -> None:
        self.explanation = explanation
        self.attribution = explanation.attributions[method]

    def _repr_html_(self) -> str:
        scores = self.attribution.scores
        most = max((abs(float(score)) for score in scores), default=0.0) or 1.0
        parts = [f"<b>{html.escape(self.explanation.target)}</b>: "]
        for token, score in zip(self.explanation.tokens, scores, strict=True):
            colour = "0,140,60" if score > 0 else "200,40,40"
            parts.append(
                f'<span title="{float(score):+.4f}" style="background:'
                f'rgba({colour},{abs(float(score)) / most:.3f})">{html.escape(token.text)}</span>'
            )
        return f'<div style="font:13px monospace">{" ".join(parts)}</div>'


def _table(rows: dict[str, Any]) -> str:
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td>{html.escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{cells}</table>"
