"""The report of a migration as one page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple, Self

from lumos.core.page_policy import page_policy

_MOST_SHOWN = 100
_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 50rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { border-bottom: 1px solid #8884; padding: .3rem .6rem; text-align: left }
td.number { text-align: right; font-variant-numeric: tabular-nums }
.ok { color: #18794e } .warn { color: #ad5700 } .fail { color: #c62a2f }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee }
.ok { color: #4cc38a } .warn { color: #ffb224 } .fail { color: #ff6369 } }
"""
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{ policy | safe }}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{{ title }}</title><link rel="icon" href="data:,">
<style>{{ style | safe }}</style></head><body>
<h1>{{ title }}</h1>{% if when %}<p>{{ when }}</p>{% endif %}<p><strong>{{ verdict }}</strong></p>
{% for heading, lines in checks.items() %}<h2>{{ heading }}</h2><ul>
{% for line in lines %}<li class="{{ line.status }}">[{{ line.status }}] {{ line.text }}
{% if line.examples %}<br><small>such as {{ line.examples | join(", ") }}</small>{% endif %}</li>
{% endfor %}</ul>{% endfor %}
<h2>How each concept arrived</h2>
<table><tr><th>concept</th><th>count</th><th>kept</th></tr>
{% for concept, count, fidelity in concepts %}<tr><td>{{ concept | replace("_", " ") }}</td>
<td class="number">{{ "{:,}".format(count) }}</td><td>{{ fidelity }}</td></tr>
{% endfor %}</table>
{% for heading, found in lists.items() %}<h2>{{ heading }}</h2><ul>
{% for item in found.items %}<li>{{ item }}</li>
{% endfor %}{% if found.more %}<li>and {{ "{:,}".format(found.more) }} more: see report.json</li>
{% endif %}</ul>{% endfor %}
</body></html>
"""


class Line(NamedTuple):
    """One check, how it ended and some of the things that it is about."""

    status: str
    text: str
    examples: tuple[str, ...] = ()


class Listed(NamedTuple):
    """The first items of a list, and how many it has besides."""

    items: tuple[str, ...]
    more: int

    @classmethod
    def of(cls, items: Iterable[str], *, of: int) -> Self:
        """Take as many items as a page shows, out of so many."""
        shown = tuple(islice(items, _MOST_SHOWN))
        return cls(shown, of - len(shown))


def migration_page(
    title: str,
    verdict: str,
    *,
    when: str,
    checks: Mapping[str, Sequence[Line]],
    concepts: Sequence[tuple[str, int, str]],
    lists: Mapping[str, Listed],
) -> str:
    """Return the page; everything in it is text."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined)
    return environment.from_string(_PAGE).render(
        style=_STYLE,
        policy=page_policy(_STYLE),
        title=title,
        verdict=verdict,
        when=when,
        checks=checks,
        concepts=concepts,
        lists=lists,
    )
