"""Keeps secrets out of every text that leaves Lumos.

Two nets lie over each other. `redact` knows what secrets look like: passwords in URLs, tokens in
query strings, `password=...` pairs, authorization headers, well-known token shapes. A
`SecretRegistry` knows the very values that the settings hold and masks them anywhere, also where
they were encoded on the way.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import pairwise
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from typing_extensions import override

MASK = "***"
SHORTEST_EXACT_SECRET = 6
_SHORTEST_SECRET_LINE = 12

# A development password is often the product's own name. Masking it wherever it occurs would
# blank every URN of that source, so such values are masked by their position alone.
_PUBLIC_WORDS = frozenset(
    {
        "amundsen",
        "bigquery",
        "clickhouse",
        "databricks",
        "datahub",
        "embedded",
        "iceberg",
        "localhost",
        "lumos",
        "mariadb",
        "mongodb",
        "openmetadata",
        "oracle",
        "postgres",
        "postgresql",
        "public",
        "redshift",
        "snowflake",
        "sqlserver",
    }
)
_SECRET_PARTS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "credential",
    "privatekey",
    "accesskey",
    "connectionstring",
    "webhook",
)
_SECRET_WORDS = frozenset({"authorization", "bearer", "cookie", "pwd", "sas", "token", "tokens"})
_KEY_KINDS = frozenset(
    {
        "access",
        "account",
        "api",
        "auth",
        "client",
        "encryption",
        "license",
        "master",
        "private",
        "sas",
        "secret",
        "service",
        "shared",
        "signing",
        "ssh",
        "storage",
    }
)
_HARMLESS_ENDINGS = frozenset(
    {
        "arn",
        "column",
        "count",
        "dir",
        "directory",
        "endpoint",
        "env",
        "expiry",
        "field",
        "file",
        "folder",
        "json",
        "length",
        "name",
        "path",
        "pattern",
        "policy",
        "ttl",
        "type",
        "uri",
        "url",
        "yaml",
        "yml",
    }
)
_COUNTING_WORDS = frozenset({"max", "min", "num", "total"})
_SECRET_QUERY_NAMES = frozenset({"auth", "code", "key", "sig", "signature"})
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_NOT_A_SECRET = frozenset({MASK, "true", "false", "null", "none", "~"})
_COUNT = re.compile(r"\d+(?:,\d{3})*")
_COUNTED_NOUN = re.compile(
    r"[ \t]+(?:alerts?|columns?|datasets?|fields?|files?|items?|rows?|tables?|values?)\b"
)
_COUNTED_NAMES = frozenset(
    {"cookies", "credentials", "keys", "passphrases", "passwords", "secrets", "tokens", "webhooks"}
)
_PROSE = re.compile(
    r"(?:are|did|expected|extra|field|has|input|is|missing|must|needs|not|should|string|unknown|value)"
    r"[ \t]+[A-Za-z]",
    re.IGNORECASE,
)
"""How the message begins that follows the name of a setting and a colon."""
_TYPE_NAMES = re.compile(
    r"(?:ARRAY|BINARY|BOOLEAN|DATE|DECIMAL|DOUBLE|DURATION|ENUM|FLOAT|GEOMETRY|JSON|MAP|STRING|STRUCT"
    r"|TIME|TIMESTAMP|TIMESTAMP_NTZ|UINT(?:8|16|32|64)|INT(?:8|16|32|64)|UNION|UNKNOWN|UUID)\Z"
)


@lru_cache(maxsize=4096)
def looks_secret(name: str) -> bool:
    """Return whether a value stored under this key or variable name is to be kept secret."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words:
        return False
    squashed = "".join(words)
    if "webhook" in squashed:
        return True
    if words[-1] in _HARMLESS_ENDINGS:
        return False
    if any(word in _SECRET_WORDS for word in words):
        return words[0] not in _COUNTING_WORDS
    return (
        any(part in squashed for part in _SECRET_PARTS)
        or any(a in _KEY_KINDS and b in {"key", "keys"} for a, b in pairwise(words))
        or (len(words) > 1 and words[-1] == "pass")
    )


def _is_secret_query_name(name: str) -> bool:
    lowered = unquote(name).lower()
    if lowered.startswith(("x-amz-", "x-goog-", "x-ms-")):
        return True
    return lowered in _SECRET_QUERY_NAMES or looks_secret(name)


_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<secret>.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
_TOKEN_WITH_URL = re.compile(r"[^\s'\"<>]+")
_PORT_AND_PATH = re.compile(r"\d{1,5}[/?#]")
_AUTHORIZATION = re.compile(
    r"(?i:authorization)\\?[\"']?[ \t]{0,4}(?::|=>?)[ \t]{0,4}\\?[\"']?"
    r"(?P<secret>(?:(?i:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)[ \t]+)?"
    r"[^\s\"',;&\\]+)"
)
_BEARER = re.compile(r"\b(?i:bearer)[ \t]+(?P<secret>(?=[^\s]*[\d._\-])[A-Za-z0-9._~+/=\-]{6,})")
_QUERY_NAME = re.compile(r"[?&;](?P<name>[A-Za-z][\w.\-%]*)=")
_QUERY_VALUE = re.compile(r"(?P<secret>[^&;\s#'\"<>]+)")
_PAIR_NAME = re.compile(
    r"(?<![\w.\-])(?P<name>[A-Za-z_][\w.\-]*)\\?[\"']?[ \t]{0,4}(?::(?!//)|=>?)[ \t]{0,4}"
)
_PAIR_VALUE = re.compile(
    r'"(?P<double>(?:[^"\\\n]|\\.)*)"'
    r"|'(?P<single>(?:[^'\\\n]|\\.|'')*)'"
    r'|\\"(?P<escaped>[^"\n]*?)\\"'
    r"|(?P<number>\d+(?:\.\d+)?)(?=[}\]]+(?:[\s,]|\Z))"  # the end of a JSON object or list
    r"|(?P<secret>(?:\d{1,3}(?:,\d{3})+(?!\d))|[^\s,;&'\"]+)"
)
_SLACK_HOOK = re.compile(r"hooks\.slack\.com/(?:services|workflows)/(?P<secret>[^\s'\"<>]+)")
_TOKEN_SHAPE = re.compile(
    r"(?<![\w\-])(?P<secret>gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w\-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9\-]{10,}|(?:AKIA|ASIA)[0-9A-Z]{16}|dapi[0-9a-f]{32}"
    r"|eyJ[\w\-]{8,}\.[\w\-]{8,}\.[\w\-]*)"
)


def redact(text: str) -> str:
    """Mask everything in the text that has the form of a secret."""
    return _sweep(text, None)


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the secrets that `redact` would mask, as written and URL-decoded."""
    found: list[str] = []
    _sweep(text, found)
    return tuple(dict.fromkeys(form for value in found for form in _decoded(value)))


def _decoded(value: str) -> tuple[str, ...]:
    return value, unquote(value), unquote_plus(value)


def _sweep(text: str, found: list[str] | None) -> str:
    """Mask secrets in time linear in the text, adding them to `found` where it is given."""

    def mask(secret: str) -> str:
        if not secret or secret.lower() in _NOT_A_SECRET:
            return secret
        if found is not None:
            found.append(secret)
        return MASK

    text = _PRIVATE_KEY.sub(partial(_masked_match, mask=mask), text)
    if "://" in text and "@" in text:
        text = _TOKEN_WITH_URL.sub(lambda match: _masked_urls(match.group(), mask), text)
    text = _SLACK_HOOK.sub(partial(_masked_match, mask=mask), text)
    query = (_QUERY_NAME, _QUERY_VALUE)
    text = _masked_pairs(text, query, accepts=_is_secret_query_name, mask=mask)
    for pattern in (_AUTHORIZATION, _BEARER):
        text = pattern.sub(partial(_masked_match, mask=mask), text)
    text = _masked_pairs(text, (_PAIR_NAME, _PAIR_VALUE), accepts=looks_secret, mask=mask)
    return _TOKEN_SHAPE.sub(partial(_masked_match, mask=mask), text)


def _masked_match(match: re.Match[str], *, mask: Callable[[str], str]) -> str:
    group = match.lastgroup or "secret"
    start, end = (position - match.start() for position in match.span(group))
    whole = match.group()
    return whole[:start] + mask(match.group(group)) + whole[end:]


def _masked_urls(token: str, mask: Callable[[str], str]) -> str:
    first, *rest = token.split("://")
    masked = [first]
    scheme = first
    for address in rest:
        masked.append(_masked_address(address, scheme, mask=mask))
        scheme = address
    return "://".join(masked)


def _masked_address(address: str, scheme: str, *, mask: Callable[[str], str]) -> str:
    before, at, host = address.rpartition("@")
    user, colon, password = before.partition(":")
    if not at or any(character in user for character in "/?#"):
        return address
    if not colon:
        is_token = scheme.lower().endswith(("http", "https"))
        return f"{mask(user)}@{host}" if is_token else address
    # A password may hold `@` and even `/`, but `host:8080/a@b` is a port and a path.
    return address if _PORT_AND_PATH.match(password) else f"{user}:{mask(password)}@{host}"


def _masked_pairs(
    text: str,
    patterns: tuple[re.Pattern[str], re.Pattern[str]],
    *,
    accepts: Callable[[str], bool],
    mask: Callable[[str], str],
) -> str:
    name_pattern, value_pattern = patterns
    parts: list[str] = []
    position = copied = 0
    while name := name_pattern.search(text, position):
        position = name.end("name")
        if not accepts(name.group("name")):
            continue
        value = value_pattern.match(text, name.end())
        if value and not _is_ordinary(name.group("name"), text, value):
            parts += (text[copied : value.start()], _masked_match(value, mask=mask))
            position = copied = value.end()
    return "".join((*parts, text[copied:]))


def _is_ordinary(name: str, text: str, value: re.Match[str]) -> bool:
    """Return whether what follows a name is a count, a sentence or a type and no secret."""
    if value.lastgroup not in {"number", "secret"}:
        return False
    bare = value.group()
    if _COUNT.fullmatch(bare):
        last_word = _WORDS.findall(name)[-1].lower()
        return last_word in _COUNTED_NAMES or _COUNTED_NOUN.match(text, value.end()) is not None
    return bool(_PROSE.match(text, value.start()) or _TYPE_NAMES.match(bare))


class SecretRegistry:
    """The secret values known to this process; masks them in any text. Safe to share by threads.

    Values shorter than six characters would blank ordinary words and are masked by `redact`'s
    patterns alone.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.add(*values)

    def add(self, *values: str) -> None:
        """Register values, each to be masked as it is and in its encoded forms."""
        forms = {form for value in values for form in _forms(value)}
        if not forms:
            return
        with self._lock:
            if forms <= self._forms:
                return
            self._forms |= forms
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def redact(self, text: str) -> str:
        """Mask registered values wherever they occur and whatever else looks like a secret."""
        pattern = self._pattern
        return redact(pattern.sub(MASK, text) if pattern else text)

    @override
    def __repr__(self) -> str:
        return f"SecretRegistry({len(self._forms)} forms)"


PROCESS_SECRETS = SecretRegistry()
"""The registry into which settings are loaded unless another one is given."""


def _forms(value: str) -> Iterator[str]:
    for exact in (value, *_long_lines(value)):
        if len(exact) < SHORTEST_EXACT_SECRET or exact.lower() in _PUBLIC_WORDS:
            continue
        yield exact
        raw = exact.encode("utf-8", "surrogatepass")
        yield from (quote(raw, safe=""), quote(raw, safe="/"), quote_plus(raw))
        yield from (json.dumps(exact)[1:-1], json.dumps(exact, ensure_ascii=False)[1:-1])
        yield repr(exact)[1:-1]
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(raw).decode("ascii").rstrip("=")


def _long_lines(value: str) -> tuple[str, ...]:
    if "\n" not in value:
        return ()
    lines = (line.strip() for line in value.splitlines())
    return tuple(
        line for line in lines if len(line) >= _SHORTEST_SECRET_LINE and not line.startswith("---")
    )


class RedactingFilter(logging.Filter):
    """Redacts log records; add it to handlers, where records of every logger pass."""

    _STANDARD = frozenset(vars(logging.makeLogRecord({})))

    def __init__(self, secrets: SecretRegistry = PROCESS_SECRETS) -> None:
        super().__init__()
        self._secrets = secrets

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = self._secrets.redact(record.getMessage())
        record.args = None
        if record.exc_info:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:
            record.exc_text = self._secrets.redact(record.exc_text)
        if record.stack_info:
            record.stack_info = self._secrets.redact(record.stack_info)
        for name, value in vars(record).items():
            if name not in self._STANDARD and isinstance(value, str):
                secret = looks_secret(name)
                setattr(record, name, MASK if secret else self._secrets.redact(value))
        return True
