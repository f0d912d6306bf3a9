"""Write what is generated from the code: JSON Schemas and reference pages.

`python tools/generate.py` writes them, `--check` fails when a committed one is out of date.
"""

from __future__ import annotations

import argparse
import ast
import json
import logging
import pkgutil
import re
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic_core import PydanticUndefined

import lumos
from lumos.core import errors
from lumos.core.changes import PROFILES, RULES, Rule
from lumos.core.changes.profiles import BASES, CONFLUENT_ALIASES
from lumos.core.controllers.results import JSON_OUTPUTS
from lumos.core.event_kinds import EVENT_KINDS
from lumos.core.logs import FOREIGN
from lumos.core.models import ChangeScope, Snapshot
from lumos.core.models.facets import FACETS
from lumos.core.platform.factory import EMBEDDED, PlatformFactory
from lumos.core.platform.fidelity import CONCEPTS, Fidelity, fidelity_of
from lumos.core.platform.interface import Capability
from lumos.core.requests.registry import AREAS, request_class
from lumos.core.runtime.settings import LumosSettings
from lumos.core.settings import SourceEntry, settings_json_schema
from lumos.core.settings.loader import ENVIRONMENT_KEYS
from lumos.core.settings.raw import RawSettings
from lumos.core.store.database import engine_for
from lumos.core.store.schema_version import HEAD, SQLITE_SCRIPT, upgrade
from lumos.feature.ingestion.handlers.factory import BUILT_IN, HandlerFactory
from lumos.feature.ingestion.source_types import PLANNED

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from lumos.core.platform.interface import MetadataPlatformInterface

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "src" / "lumos" / "schemas"
REFERENCE = ROOT / "docs" / "reference"
GOLDEN_RULES = ROOT / "tests" / "golden" / "rules"
NOT_IMPORTED = ("lumos.__main__", "lumos.testing", "lumos.core.store.migrations")
CATALOGS = {"datahub": "DataHub", "openmetadata": "OpenMetadata"}
PROVEN_IN = {"service": "server", "contract": "double"}
EXIT_CODES = {
    0: "done; items that could not be read are named in the report",
    1: "a gate failed, or `--strict`, `--fail-on` or a check asked for failure",
    2: "usage or configuration",
    3: "input, state or catalog cannot be read or written",
    4: "internal error",
    130: "interrupted",
}


def generated() -> dict[Path, str]:
    """Return every generated file with its content."""
    schemas: dict[str, object] = {
        "snapshot": Snapshot.model_json_schema(mode="serialization"),
        "settings": settings_json_schema(LumosSettings),
        "log-event": log_event_schema(),
        "request": request_schema(),
    }
    schemas |= {
        name: model.model_json_schema(mode="serialization") for name, model in JSON_OUTPUTS.items()
    }
    files = {
        SCHEMAS / f"{name}.schema.json": json.dumps(schema, indent=2, sort_keys=True) + "\n"
        for name, schema in schemas.items()
    }
    return {
        **files,
        REFERENCE / "errors.md": errors_page(),
        REFERENCE / "rules.md": rules_page(),
        **{
            REFERENCE / "rules" / f"{scope.lower()}.md": rules_of_scope_page(scope)
            for scope in ChangeScope
        },
        REFERENCE / "settings.md": settings_page(),
        REFERENCE / "catalogs.md": catalogs_page(),
        REFERENCE / "facets.md": facets_page(),
        REFERENCE / "log-events.md": log_events_page(),
        REFERENCE / "requests.md": requests_page(),
        SQLITE_SCRIPT: schema_script(),
    }


def schema_script() -> str:
    """Return the statements that make what all migrations make in an empty SQLite."""
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lumos.db"
        upgrade(engine_for(path))
        with closing(sqlite3.connect(path)) as connection:
            made = connection.execute(query).fetchall()
    indexes = [name for name, sql in made if sql.startswith("CREATE VIRTUAL TABLE")]
    # A full-text index makes further tables by itself.
    statements = [
        sql for name, sql in made if not name.startswith(tuple(f"{each}_" for each in indexes))
    ]
    statements.append(f"INSERT INTO alembic_version VALUES ('{HEAD}')")  # noqa: S608
    script = "".join(f"{statement};\n" for statement in statements)
    return re.sub(r"[ \t]+$", "", script, flags=re.MULTILINE)


def request_schema() -> dict[str, object]:
    """Return the JSON Schema of requests: one for each operation."""
    kinds: dict[str, object] = {}
    definitions: dict[str, object] = {}
    for operation in AREAS:
        schema = request_class(operation).model_json_schema()
        definitions |= schema.pop("$defs", {})
        schema["properties"] = {
            "operation": {"const": operation},
            **schema.get("properties", {}),
        }
        schema["required"] = ["operation", *schema.get("required", ())]
        kinds[operation] = schema
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Request",
        "description": "What an operation is asked to do; command line, SDK and chains send it.",
        "oneOf": [{"$ref": f"#/$defs/{operation}"} for operation in kinds],
        "$defs": {**definitions, **kinds},
    }


def requests_page() -> str:
    """Return the page that lists operations, with their requests and results."""
    lines = [
        "# Requests",
        "",
        "Every command, every method of the SDK and every step of a chain sends one request, and "
        "gets one result. A request is a JSON object with the name of its `operation`, checked by "
        "[request](../../src/lumos/schemas/request.schema.json). In Python it is a class of "
        "`lumos.core.requests`, which `Lumos.dispatch` takes:",
        "",
        "```python",
        "from lumos import Lumos",
        "from lumos.core.requests.registry import request_from_json",
        "",
        'request = request_from_json({"operation": "search", "text": "orders", "limit": 5})',
        "page = Lumos().dispatch(request)",
        "```",
        "",
        "Relative paths begin at the current folder. An interim answer comes before the result: "
        "a plan, a refresh, or the report of a step.",
        "",
    ]
    for operation in AREAS:
        kind = request_class(operation)
        link = "[{0}](../../src/lumos/schemas/{0}.schema.json)"
        interim = f" Interim: {link.format(kind.interim)}." if kind.interim else ""
        lines += [
            f"## {operation}",
            "",
            f"{_one_line(kind.__doc__)} Class: `{kind.__name__}`. "
            f"Result: {link.format(kind.result)}.{interim}",
            "",
        ]
        if kind.model_fields:
            lines += ["| field | default | meaning |", "|---|---|---|"]
            lines += [
                f"| `{name}` | {_request_default(field)} | {field.description} |"
                for name, field in kind.model_fields.items()
            ]
            lines += [""]
    return "\n".join(lines)


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _request_default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", exclude_none=True)
    shown = json.dumps(value, default=str)
    return "" if shown in ("null", "{}", '""') else f"`{shown}`"


def log_event_schema() -> dict[str, object]:
    """Return the JSON Schema of one line of a JSON log."""
    common = {
        "time": {"type": "string", "format": "date-time"},
        "level": {"enum": ["error", "warning", "info", "debug", "critical"]},
        "pid": {"type": "integer"},
        "message": {"type": "string"},
    }
    within = {"run": {"type": "string"}, "operation": {"type": "string"}}
    kinds: list[dict[str, object]] = []
    logged = {name: kind for name, kind in EVENT_KINDS.items() if kind.level}
    for name, kind in {FOREIGN: None, **logged}.items():
        fields = kind.fields if kind else {}
        always = fields.keys() - (kind.optional if kind else set())
        own = {
            field: {"type": ["string", "number", "boolean"], "description": meaning}
            for field, meaning in fields.items()
        }
        kinds.append(
            {
                "properties": {"event": {"const": name}, **common, **within, **own},
                "required": sorted({"event", *common, *always}),
                "additionalProperties": False,
            }
        )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "LogEvent",
        "description": "One line of a log written with --log-format json.",
        "type": "object",
        "oneOf": kinds,
    }


def log_events_page() -> str:
    """Return the page that lists the events of the log."""
    lines = [
        "# Log events",
        "",
        "What a log holds, and how to get one: "
        "[Find out what a run did](../how-to/find-out-what-a-run-did.md).",
        "",
        "With `--log-format json` each line is a JSON object with these keys, checked by "
        "[log-event](../../src/lumos/schemas/log-event.schema.json):",
        "",
        "| key | meaning |",
        "|---|---|",
        "| `time` | when, in UTC |",
        "| `level` | `error`, `warning`, `info` or `debug` |",
        "| `event` | one of those below, or `message` for what a plug-in logs |",
        "| `pid` | the process, where several write to one file |",
        "| `run`, `operation` | within an operation: its id, which operations that it calls share, "
        "and its name |",
        "| `message` | the event for people |",
        "",
        "All other keys are fields of the event. A field in brackets is left out where it is not "
        "known. Logger: `lumos.` and the part of the event before its dot.",
        "",
        "| event | level | meaning | fields |",
        "|---|---|---|---|",
    ]
    for name, kind in EVENT_KINDS.items():
        if kind.level:
            level = logging.getLevelName(kind.level).lower()
            fields = "; ".join(
                f"{f'[`{field}`]' if field in kind.optional else f'`{field}`'}: "
                f"{meaning[0].lower()}{meaning[1:].rstrip('.')}"
                for field, meaning in kind.fields.items()
            )
            lines.append(f"| `{name}` | {level} | {kind.meaning} | {fields} |")
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """Return the page that lists exit codes and error codes."""
    lines = ["# Exit codes and errors", "", "| exit code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    lines += [
        "",
        "Every error is one line that says what failed, where, and what to do.",
        '`--json` prints it as `{"error": {"code", "message", "hint", "retryable"}}` as well;',
        "where the settings are wrong, `problems` has all that is;",
        "where a sync ended early, `notes` says how far it came.",
        "",
        "| code | exit | retry may help | meaning |",
        "|---|---|---|---|",
    ]
    for module in pkgutil.walk_packages(lumos.__path__, "lumos."):
        if not module.name.startswith(NOT_IMPORTED):
            import_module(module.name)  # errors may be defined in any module
    for kind in sorted(_family(errors.LumosError), key=lambda kind: (kind.code, kind.__name__)):
        meaning = (kind.__doc__ or "").strip().splitlines()[0]
        retry = "yes" if kind.retryable else "no"
        lines.append(f"| {kind.code} | {kind.exit_code} | {retry} | {meaning} |")
    return "\n".join(lines) + "\n"


def facets_page() -> str:
    """Return the page that lists the parts of a dataset and how each is treated."""
    lines = [
        "# Facets: the parts of a dataset",
        "",
        "Every part of a dataset, and how Lumos treats it. Hashing, imports, syncs, fidelity "
        "reports, migrations and partial exports all read this table "
        "(`lumos.core.models.facets`). A facet below `schema.fields` belongs to every column, at "
        "any depth.",
        "",
        "- Class: `CONTRACT` is part of `contract_hash`, so that a change is a new version. "
        "`DECLARED` is carried along and never compared. `OBSERVED` is recorded and reported, and "
        "never a reason for a version.",
        "- Merge: how two statements become one. `REPLACE` and `TEXT`: one of them holds. `SET`: "
        "the members of both, less those that were removed. `MAP`: member by member.",
        "- Edited by people: the setting below `sync.truth` that decides whose edits count. Where "
        "there is none, the facet is technical and Lumos decides.",
        "- Concept: the row of the facet in [Catalogs](catalogs.md) and in fidelity reports.",
        "",
        "| facet | class | merge | edited by people | concept |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{facet.path}` | {facet.kind} | {facet.merge} | "
        f"{f'`{facet.truth}`' if facet.truth else ''} | {facet.concept.replace('_', ' ')} |"
        for facet in FACETS
    ]
    lines += [
        "",
        "`lineage` is not a facet: a dataset's neighbours follow from the lineage edges.",
    ]
    return "\n".join(lines) + "\n"


def catalogs_page() -> str:
    """Return the page that says how well catalogs keep each concept, and how that was proven."""
    handlers = {name: PlatformFactory.handler(name) for name in PlatformFactory.names()}
    del handlers[EMBEDDED]
    proofs = proofs_of({handler.__name__: name for name, handler in handlers.items()})
    titles = [_catalog_title(name) for name in handlers]
    lines = [
        "# Catalogs: how well each keeps each concept, and how that was proven",
        "",
        "`native`: the catalog has the same concept. `transformed`: it is shown in another form "
        "and read back the same. `stashed`: it is not shown, travels in the stash and is read "
        "back the same. `dropped`: it is not written.",
        "The words are those that each adapter declares, and that a report before a write "
        "counts by.",
        "",
        "In brackets: on what a test puts the concept into the catalog and reads it back equal. "
        "`server`: the real one, started by `make test-services`. `emulator`: one that others "
        "wrote. `double`: one that this project wrote from the catalog's documentation and "
        "sources. The page of each catalog says more, also of what was tried in vain.",
        "That a catalog shows what is called native or transformed by itself, without the stash, "
        "and nothing of what is called stashed, is tested on the doubles, the emulator and the "
        "real database of Amundsen.",
        "",
        f"| concept | {' | '.join(titles)} |",
        f"|---{'|---' * len(handlers)}|",
    ]
    for concept in CONCEPTS:
        cells = []
        for name, handler in handlers.items():
            fate = fidelity_of(handler, concept)
            proven = ", ".join(proofs.get(name, ())) if fate is not Fidelity.DROPPED else ""
            cells.append(f"{fate} ({proven})" if proven else str(fate))
        lines.append(f"| {concept.replace('_', ' ')} | {' | '.join(cells)} |")
    lines += ["", *_search_lines(handlers, proofs)]
    return "\n".join(lines) + "\n"


def _search_lines(
    handlers: Mapping[str, type[MetadataPlatformInterface]], proofs: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return the table that says which catalogs a search can ask."""
    can = [Capability.SEARCH in handler.capabilities for handler in handlers.values()]
    told = [
        f"yes ({', '.join(proofs.get(name, ()))})" if yes else "no"
        for name, yes in zip(handlers, can, strict=True)
    ]
    return [
        "Which of them [`lumos search`](../how-to/search-catalogs.md) can ask, and on what the "
        "search part of the contract runs:",
        "",
        f"| | {' | '.join(map(_catalog_title, handlers))} |",
        f"|---{'|---' * len(handlers)}|",
        f"| search | {' | '.join(told)} |",
    ]


def proofs_of(handlers: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return on what the contract of platforms, its test of every concept included, runs.

    It is read from the test classes: the catalog from the handler that the fixture `platform`
    gives, and the kind of server from `proven_on`, or else from the folder of the test.
    """
    found: dict[str, set[str]] = {}
    for folder, kind in PROVEN_IN.items():
        for path in sorted((ROOT / "tests" / folder).glob("test_*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and "Contract" in _bases(node):
                    names = {*_words(_fixture_annotation(node))} & {*handlers}
                    for name in names:
                        found.setdefault(handlers[name], set()).add(_proven_on(node) or kind)
    order = [*PROVEN_IN.values(), "emulator"]
    return {name: tuple(kind for kind in order if kind in kinds) for name, kinds in found.items()}


def _catalog_title(name: str) -> str:
    title = CATALOGS.get(name, name.title())
    page = f"../how-to/{name}.md"
    return f"[{title}]({page})" if (REFERENCE / page).exists() else title


def _bases(node: ast.ClassDef) -> str:
    return " ".join(ast.unparse(base) for base in node.bases)


def _fixture_annotation(node: ast.ClassDef) -> str:
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "platform" and item.returns:
            return ast.unparse(item.returns)
    return ""


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _proven_on(node: ast.ClassDef) -> str | None:
    for item in node.body:
        if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "proven_on":
            return str(ast.literal_eval(item.value))
    return None


def rules_page() -> str:
    """Return the page that lists every rule by which changes are judged."""
    lines = [
        "# Change rules",
        "",
        f"Each difference between two states of a dataset is judged by one of {len(RULES)} rules.",
        "The worst change of a run decides the next version: `MAJOR`, `MINOR` or `PATCH`.",
        "`lumos rules` lists them, `lumos rules RULE` explains one.",
        "",
        "| mark | level | meaning |",
        "|---|---|---|",
        "| B | `BREAKING` | someone who reads or writes the dataset may fail |",
        "| N | `NON_BREAKING` | everyone can go on as before |",
        "| N! | `NON_BREAKING`, *caution* | allowed, but worth a second look; "
        "`lumos diff --fail-on caution` stops at it |",
        "| I | `INFORMATIONAL` | worth a line in the report and no more |",
        "",
        "A star marks a level that depends on more than the rule, such as on the pair of types.",
        "*widening* marks a type that still holds every old value: a change is breaking under",
        "`lumos` all the same, and says under which profiles it would pass.",
        "What is only observed or declared never raises a version.",
        "",
        "## Profiles",
        "",
        "| profile | protects | known to Confluent as |",
        "|---|---|---|",
    ]
    aliases = {profile: alias.upper() for alias, profile in CONFLUENT_ALIASES.items()}
    lines += [
        f"| `{name}` | {protects} | {f'`{aliases[name]}`' if name in aliases else ''} |"
        for name, protects in PROFILES.items()
    ]
    lines += [
        "",
        "`readers_transitive`, `FULL_TRANSITIVE` and so on judge against every version that is",
        "kept, not only against the last one.",
    ]
    for scope in ChangeScope:
        lines += ["", f"## {scope.capitalize()}", "", *_rule_table(scope)]
    lines += ["", "```{toctree}", ":hidden:", ""]
    lines += [f"rules/{scope.lower()}" for scope in ChangeScope]
    return "\n".join([*lines, "```"]) + "\n"


def _rule_table(scope: ChangeScope) -> list[str]:
    names = [name for name in PROFILES if name not in BASES]
    lines = [
        f"| rule | {' | '.join(names)} | version | change |",
        f"|---|{'---|' * len(names)}---|---|",
    ]
    for rule in _rules_of(scope):
        marks = " | ".join(_mark(rule, name) for name in names)
        widening = " *widening*" if rule.widening else ""
        link = f"[`{rule.id}`](rules/{scope.lower()}.md#{_anchor(rule)})"
        lines.append(f"| {link} | {marks} | `{rule.bump}` | {rule.title}{widening} |")
    return lines


def rules_of_scope_page(scope: ChangeScope) -> str:
    """Return the page that explains every rule of a scope, each with its golden case."""
    lines = [
        f"# Change rules: {scope.lower()}",
        "",
        "Each case below is a file of `tests/golden/rules`: a dataset before and after, of which",
        "only what matters is written down, and what is found, with its level under each profile.",
    ]
    for rule in _rules_of(scope):
        case = (GOLDEN_RULES / f"{rule.id}.yaml").read_text("utf-8")
        back = ", ".join(f"`{mirror}`" for mirror in rule.mirrors) or f"none: {rule.unmirrored}"
        lines += [
            "",
            f"({_anchor(rule)})=",
            f"## `{rule.id}`",
            "",
            f"**{rule.title}.** {_as_text(rule.rationale)}",
            "",
            f"- Example: {_as_text(rule.example)}",
            f"- Direction: `{rule.direction}`; on the way back: {back}",
            f"- In a version history: `{rule.change_type}`",
        ]
        if rule.by_case:
            named = ", ".join(f"`{name}`" for name in rule.by_case)
            lines.append(f"- Depends on the case under {named}")
        lines += ["", "```yaml", case.rstrip(), "```"]
    return "\n".join(lines) + "\n"


def _rules_of(scope: ChangeScope) -> list[Rule]:
    return [rule for rule in RULES if rule.scope is scope]


def _anchor(rule: Rule) -> str:
    return f"rule-{rule.id.replace('.', '-').replace('_', '-')}"


def _mark(rule: Rule, profile: str) -> str:
    verdict = rule.verdict_in(profile)
    return (
        verdict.level[0]
        + ("!" if verdict.caution else "")
        + ("\\*" if profile in rule.by_case else "")
    )


def settings_page() -> str:
    """Return the page that lists every key of `lumos.yaml`."""
    variables = [
        f"| `{name}` | `{'.'.join(map(str, path))}` |" for name, path in ENVIRONMENT_KEYS.items()
    ]
    lines = [
        "# Settings",
        "",
        "Lumos reads `lumos.yaml` in the current folder, or the file given with `--config`.",
        "Every key is optional. A key that is not known is an error that names the nearest one.",
        "The settings of a catalog that comes with Lumos may stand at the top, too:",
        "`snowflake:` is short for `platform_config.snowflake:`.",
        "",
        "`${NAME}` and `${NAME:-default}` are filled from the environment or from a `.env` file",
        "beside the settings file; the environment wins. `$${` is a plain `${`.",
        "A variable of a source or of a catalog is needed only by commands that use it, and so are",
        f"those of {_listed(tuple(sorted(LumosSettings.read_when_used)))};",
        "`lumos doctor` names all that are not set.",
        "",
        "Some keys can be set by a variable alone, which wins over the file:",
        "",
        "| variable | key |",
        "|---|---|",
        *variables,
        "",
        f"Without effect in this version: {_listed(LumosSettings.not_read_yet)}.",
        "They are read and checked, for parts of Lumos that are still to come; a command says so",
        "in one line where they are set, and so it does of sources of the types "
        f"{_listed(tuple(sorted(PLANNED)))}.",
        "",
        "Any other unknown type of a source is an error, and so is a malformed URL, in every",
        "command that reads the settings. `lumos doctor` connects to each source and catalog.",
        "",
        "Editors can check the file by its",
        "[JSON Schema](../../src/lumos/schemas/settings.schema.json).",
    ]
    for heading, model in _settings_models(LumosSettings, "Top level"):
        lines += ["", f"## {heading}", "", *_keys_of(model)]
    lines += ["", "## Keys of each source type"]
    for kind in BUILT_IN:
        lines += ["", f"### `type: {kind}`", "", *_keys_of(_settings_of_source(kind))]
    return "\n".join(lines) + "\n"


def _settings_models(
    model: type[BaseModel], heading: str, path: str = ""
) -> Iterator[tuple[str, type[BaseModel]]]:
    yield heading, model
    for name, field in model.model_fields.items():
        for place, inner in _models_in(field.annotation, path + name):
            kind = inner.model_fields.get("type")
            choices = get_args(kind.annotation) if kind else ()
            heading = f"`{place}`" + (f" of type `{choices[0]}`" if choices else "")
            yield from _settings_models(inner, heading, f"{place}.")


def _settings_of_source(kind: str) -> type[BaseModel]:
    return HandlerFactory.settings_model(kind)


def _keys_of(model: type[BaseModel]) -> list[str]:
    lines = ["| key | default | meaning |", "|---|---|---|"]
    if model is SourceEntry:
        return [
            *lines,
            "| `type` | required | The kind of source; `source_type` means the same. |",
            "| `name` | from type and place | How runs and reports call this source. |",
            "| others | | Those of the type, here or below `config`. |",
        ]
    for name, field in model.model_fields.items():
        choices = ", ".join(f"`{choice}`" for choice in _choices_of(field.annotation))
        told = " ".join(filter(None, [field.description, f"One of {choices}." if choices else ""]))
        lines.append(f"| `{name}` | {_default_of(field)} | {told} |")
    return lines


def _models_in(annotation: object, place: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the models within a type; a list adds `[]` to the place, a mapping `.NAME`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield place, annotation
        return
    origin = get_origin(annotation)
    if origin is tuple:
        place += "[]"
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        place += ".NAME"
    for argument in get_args(annotation):
        yield from _models_in(argument, place)


def _default_of(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True, validated_data={})
    if default is PydanticUndefined or default is None or isinstance(default, BaseModel):
        return ""
    if isinstance(default, SecretStr | RawSettings) or default in ((), {}, ""):
        return ""
    if isinstance(default, tuple):
        return ", ".join(f"`{item}`" for item in default)
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _choices_of(annotation: object) -> tuple[str, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _as_text(text: str) -> str:
    """Return text that Markdown shows as it stands."""
    return "".join(f"\\{char}" if char in "\\`*_{}[]<>#|" else char for char in text)


def _listed(names: tuple[str, ...]) -> str:
    *most, last = (f"`{name}`" for name in names)
    return f"{', '.join(most)} and {last}"


def _family(kind: type[errors.LumosError]) -> set[type[errors.LumosError]]:
    return {kind}.union(*(_family(child) for child in kind.__subclasses__()))


def main() -> int:
    """Write the generated files, or say which are out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    stale = [
        path
        for path, content in generated().items()
        if not path.exists() or path.read_text("utf-8") != content
    ]
    for path in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generated()[path], "utf-8")
        print(f"{'out of date' if check else 'written'}: {path.relative_to(ROOT)}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
