"""Names and text within a statement of Snowflake; both may be anything and are only quoted."""

from __future__ import annotations

from collections.abc import Iterable


def identifier(name: str) -> str:
    """Return a name as it is, in any case and with any character, for use in a statement."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def qualified(*names: str) -> str:
    """Return the name of something within a schema or a table."""
    return ".".join(map(identifier, names))


def literal(text: str) -> str:
    """Return a string constant; a backslash escapes in those of Snowflake, so it is doubled."""
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def literals(texts: Iterable[str]) -> str:
    """Return string constants with commas between them."""
    return ", ".join(map(literal, texts))


def holds_one(columns: Iterable[str], words: Iterable[str]) -> str:
    """Return the condition that a column holds one of the words, in any case."""
    patterns = [literal(f"%{word}%") for word in words]
    return " OR ".join(f"{column} ILIKE {each}" for column in columns for each in patterns)


def shown_text(text: str | None, *, longest: int) -> str:
    """Return what a comment or the name of a tag may be; what cannot be shown becomes `?`."""
    if not text:
        return ""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else "?" for letter in text[:longest]
    )
