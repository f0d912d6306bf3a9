"""The queries of the system catalog: few, set-based, each row of them one JSON document.

Rows are JSON so that everything of a table is one row: the server looks its columns, keys and
checks up by index while rows are on their way, and neither side holds a whole database. They
are made for versions 12 and later; what a later version added is read without naming it.
"""

from __future__ import annotations

from typing import Final

SCHEMAS: Final = "SELECT oid::int8, nspname::text FROM pg_namespace ORDER BY nspname"

LOCKED: Final = """
SELECT DISTINCT relation::int8
FROM pg_locks
WHERE locktype = 'relation' AND mode = 'AccessExclusiveLock' AND pid <> pg_backend_pid()
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""Tables that no other session can look at; those who wait for such a lock block others too."""

TYPES: Final = """
WITH used AS (SELECT DISTINCT atttypid AS oid FROM pg_attribute WHERE attnum > 0),
wanted AS (
  SELECT t.oid FROM pg_type t
  LEFT JOIN pg_type element ON element.oid = t.typelem AND t.typcategory = 'A'
  LEFT JOIN pg_class r ON r.oid = coalesce(nullif(t.typrelid, 0), nullif(element.typrelid, 0))
  WHERE r.oid IS NULL OR r.relkind = 'c'
  UNION SELECT oid FROM used
  UNION SELECT t.typelem FROM used JOIN pg_type t ON t.oid = used.oid
  UNION SELECT d.typbasetype FROM pg_type d WHERE d.typtype = 'd'
  UNION SELECT b.typelem FROM pg_type d JOIN pg_type b ON b.oid = d.typbasetype
    WHERE d.typtype = 'd'
)
SELECT json_build_object(
  'oid', t.oid::int8,
  'name', t.typname,
  'native', format_type(t.oid, NULL),
  'kind', t.typtype,
  'is_array', t.typcategory = 'A' AND t.typelem <> 0,
  'element', t.typelem::int8,
  'base', t.typbasetype::int8,
  'modifier', t.typtypmod,
  'not_null', t.typnotnull,
  'labels', (
    SELECT json_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = t.oid
  ),
  'attributes', (
    SELECT json_agg(json_build_object(
      'name', a.attname, 'type', a.atttypid::int8, 'modifier', a.atttypmod,
      'native', format_type(a.atttypid, a.atttypmod)
    ) ORDER BY a.attnum)
    FROM pg_attribute a
    WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
  ),
  'checks', (
    SELECT json_agg(json_build_array(k.conname, pg_get_expr(k.conbin, 0)) ORDER BY k.conname)
    FROM pg_constraint k
    WHERE k.contypid = t.oid AND k.contype = 'c'
  ),
  'bounds', CASE WHEN t.typtype IN ('r', 'm') THEN (
    SELECT r.rngsubtype::int8 FROM pg_range r
    WHERE t.oid IN (r.rngtypid, (to_jsonb(r) ->> 'rngmultitypid')::oid)
  ) END
)::text
FROM wanted
JOIN pg_type t ON t.oid = wanted.oid
WHERE t.typtype <> 'p'
"""
"""All types but the row types of tables that no column has."""

_COLUMNS: Final = """(
    SELECT json_agg(json_build_object(
      'number', a.attnum, 'name', a.attname, 'type', a.atttypid::int8, 'modifier', a.atttypmod,
      'native', format_type(a.atttypid, a.atttypmod), 'not_null', a.attnotnull,
      'identity', a.attidentity, 'generated', a.attgenerated,
      'expression', pg_get_expr(e.adbin, e.adrelid), 'comment', d.description
    ) ORDER BY a.attnum)
    FROM pg_attribute a
    LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
    LEFT JOIN pg_description d
      ON d.objoid = a.attrelid AND d.classoid = 'pg_class'::regclass AND d.objsubid = a.attnum
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  )"""

_UNIQUE_KEYS: Final = """(
    SELECT json_agg(json_build_object(
      'is_primary', i.indisprimary, 'columns', i.indkey::text, 'width', i.indnkeyatts
    ) ORDER BY i.indexrelid)
    FROM pg_index i
    WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid
      AND i.indpred IS NULL AND i.indexprs IS NULL
  )"""

_FOREIGN_KEYS: Final = """(
    SELECT json_agg(json_build_object(
      'columns', k.conkey, 'schema', tn.nspname, 'table', target.relname,
      'referenced', (
        SELECT json_agg(a.attname ORDER BY place.n)
        FROM unnest(k.confkey) WITH ORDINALITY AS place (number, n)
        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = place.number
      )
    ) ORDER BY k.conname)
    FROM pg_constraint k
    JOIN pg_class target ON target.oid = coalesce(pg_partition_root(k.confrelid), k.confrelid)
    JOIN pg_namespace tn ON tn.oid = target.relnamespace
    WHERE k.conrelid = c.oid AND k.contype = 'f' AND k.conparentid = 0
  )"""

_CHECKS: Final = """(
    SELECT json_agg(json_build_object(
      'name', k.conname, 'columns', k.conkey, 'expression', pg_get_expr(k.conbin, k.conrelid)
    ) ORDER BY k.conname)
    FROM pg_constraint k
    WHERE k.conrelid = c.oid AND k.contype = 'c'
  )"""

# `pg_partition_tree` would lock every partition until the transaction ends.
_PARTITIONS: Final = r"""CASE WHEN c.relkind = 'p' THEN (
    WITH RECURSIVE tree AS (
      SELECT inhrelid AS oid, 1 AS level FROM pg_inherits WHERE inhparent = c.oid
      UNION ALL
      SELECT i.inhrelid, tree.level + 1 FROM tree JOIN pg_inherits i ON i.inhparent = tree.oid
    )
    SELECT json_build_object(
      'key', pg_get_partkeydef(c.oid),
      'columns', (SELECT p.partattrs::text FROM pg_partitioned_table p WHERE p.partrelid = c.oid),
      'count', count(*) FILTER (WHERE l.relkind <> 'p'),
      'rows', sum(CASE WHEN l.relkind <> 'p' AND (l.reltuples > 0 OR l.relpages > 0)
                  THEN greatest(l.reltuples, 0)::float8 END)::int8,
      'bytes', sum(CASE WHEN l.relkind <> 'p' AND l.oid <> ALL (%(locked)s::oid[])
                   THEN pg_total_relation_size(l.oid) END)::int8,
      'newest', max(substring(
        CASE WHEN tree.level = 1 AND l.oid <> ALL (%(locked)s::oid[])
        THEN pg_get_expr(l.relpartbound, l.oid) END
        FROM $$FROM \('(\d{4}-\d\d-\d\d[^']*)'\) TO$$
      ))
    )
    FROM tree
    JOIN pg_class l ON l.oid = tree.oid
  ) END"""

_UPSTREAM: Final = """(
    SELECT json_agg(json_build_array(un.nspname, u.relname) ORDER BY un.nspname, u.relname)
    FROM (
      SELECT DISTINCT coalesce(pg_partition_root(d.refobjid)::oid, d.refobjid) AS oid
      FROM pg_rewrite r
      JOIN pg_depend d
        ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> c.oid
      WHERE r.ev_class = c.oid AND r.ev_type = '1'
    ) needed
    JOIN pg_class u ON u.oid = needed.oid AND u.relkind IN ('r', 'p', 'v', 'm', 'f')
    JOIN pg_namespace un ON un.oid = u.relnamespace
  )"""

_NEEDS_LOCKED: Final = """EXISTS (
    SELECT FROM pg_rewrite r
    JOIN pg_depend d
      ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
      AND d.refclassid = 'pg_class'::regclass
    WHERE r.ev_class = c.oid AND r.ev_type = '1' AND d.refobjid = ANY (%(locked)s::oid[])
  )"""

_COMMENT: Final = """(
    SELECT d.description FROM pg_description d
    WHERE d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0
  )"""

_SIZE: Final = "pg_total_relation_size(c.oid)"
_ROWS: Final = """CASE WHEN c.reltuples > 0 OR c.reltuples = 0
    AND (c.relpages > 0 OR current_setting('server_version_num')::int >= 140000)
    THEN c.reltuples::int8 END"""


def _relations(parts: dict[str, str], *, locked: str) -> str:
    listed = ",\n  ".join(f"'{name}', {expression}" for name, expression in parts.items())
    return f"""
SELECT c.oid::int8, CASE WHEN c.oid = ANY (%(locked)s::oid[]) OR {locked}
THEN json_build_object('schema', n.nspname, 'name', c.relname, 'is_locked', true)
ELSE json_build_object(
  'schema', n.nspname, 'name', c.relname, 'kind', c.relkind, 'persistence', c.relpersistence,
  'is_gone', has_table_privilege(c.oid, 'SELECT') IS NULL,
  'owner', pg_get_userbyid(c.relowner), 'comment', {_COMMENT}, 'columns', {_COLUMNS},
  {listed}
) END::text
FROM (
  SELECT * FROM pg_class
  WHERE relkind = ANY (%(kinds)s::"char"[]) AND NOT relispartition
    AND relnamespace = ANY (%(schemas)s::oid[]) AND oid > %(after)s::oid
  ORDER BY oid
  LIMIT %(most)s
) c
JOIN pg_namespace n ON n.oid = c.relnamespace
ORDER BY c.oid
"""  # noqa: S608 - every part is a constant of this file


NEXT: Final = """
SELECT c.oid::int8, json_build_object('schema', n.nspname, 'name', c.relname)::text
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = ANY (%(kinds)s::"char"[]) AND NOT c.relispartition
  AND c.relnamespace = ANY (%(schemas)s::oid[]) AND c.oid > %(after)s::oid
ORDER BY c.oid
LIMIT 1
"""
"""The name of the table or view that a query has failed at."""

TABLE_KINDS: Final = ("r", "p", "f")
TABLES: Final = _relations(
    {
        "keys": _UNIQUE_KEYS,
        "foreign_keys": _FOREIGN_KEYS,
        "checks": _CHECKS,
        "partitions": _PARTITIONS,
        "rows": f"CASE WHEN c.relkind <> 'p' THEN {_ROWS} END",
        "bytes": f"CASE WHEN c.relkind = 'r' THEN {_SIZE} END",
        "server": """(
    SELECT json_build_array(s.srvname, w.fdwname)
    FROM pg_foreign_table f
    JOIN pg_foreign_server s ON s.oid = f.ftserver
    JOIN pg_foreign_data_wrapper w ON w.oid = s.srvfdw
    WHERE f.ftrelid = c.oid
  )""",
    },
    locked="false",
)

VIEW_KINDS: Final = ("v", "m")
VIEWS_AT_ONCE: Final = 500
"""`pg_get_viewdef` locks the tables of a view until the transaction or savepoint ends: more of
them at once could fill the lock table of the server."""
VIEWS: Final = _relations(
    {
        "upstream": _UPSTREAM,
        "keys": f"CASE WHEN c.relkind = 'm' THEN {_UNIQUE_KEYS} END",
        "rows": f"CASE WHEN c.relkind = 'm' THEN {_ROWS} END",
        "bytes": f"CASE WHEN c.relkind = 'm' THEN {_SIZE} END",
        # Asking for the text of a view that was dropped meanwhile would fail.
        "definition": "CASE WHEN has_table_privilege(c.oid, 'SELECT') IS NOT NULL "
        "THEN pg_get_viewdef(c.oid, true) END",
    },
    locked=_NEEDS_LOCKED,
)
