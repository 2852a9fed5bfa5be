"""Queries of databases, checked on their text: a row of the result is a row of one table, with some of its columns.

Such a query maps each row of the table to one row, or to none, by its own values. So neighbouring tables stay
neighbours after it. With LIMIT, DISTINCT, an aggregate, a window or another table, one person may change the rows of
others, and no sensitivity would bound that. So DuckDB parses the text, and what is not known here is refused.

PostgreSQL and SQLite have parsers of their own, and a text that DuckDB reads as harmless may be an aggregate to them:
in PostgreSQL, `visits.count` calls the function count on all rows of visits if there is no such column. So the database
never gets the text. **It gets SQL that is written anew from the tree**, of forms that all of them read alike: names in
quotation marks and without a qualifier that could be a function, texts in apostrophes, and each operation in brackets.
That is what protects people; for users, a text that their database would read in another way is refused, too:
comments (which nest in PostgreSQL, but not in SQLite), backslashes, dollars, and prefixed texts such as E'...'.

PostgreSQL turns names that are not quoted into lower case, so this is done before the text is parsed. In SQLite, a
quoted name that is no column is a text; the qualifier prevents that. Columns of the system are refused: rowid <= 100
is a LIMIT. A view may still hide an aggregate, as a table may be one: docs/tables.md says so.
"""

import json
import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from dpselect.errors import InvalidValue
from dpselect.tables.duckdb.source import connect
from dpselect.tables.duckdb.values import identifier
from dpselect.tables.files import System

MOST_CHARACTERS = 10_000
_MOST_DEPTH = 60
_TABLE = "dpselect_query"
_WAY_OUT = (
    "Filter with where= and compute columns with derive=, which are checked row by row, or say trusted_query=True if"
    " each row of the query depends on the rows of one person only"
)

_Node = Mapping[str, Any]


class _Refused(Exception):
    """What the query has that is not allowed."""


# The text.


_LOWERED = str.maketrans({chr(code): chr(code).lower() for code in range(ord("A"), ord("Z") + 1)})
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<text>'(?:[^']|'')*')
    |(?P<word>[^\W\d]\w*)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<sign><=|>=|<>|!=|[<>=(),.*+-])""",
    re.VERBOSE,
)
_SOLID = ("quoted", "text", "word", "number")  # one of these directly after another is not read alike everywhere
_ODD = {
    "--": "a comment",
    "/*": "a comment",
    "\\": "a backslash",
    "$": "a dollar sign",
    ";": "a semicolon",
    "`": "a backquote",
}


def _folded(text: str, system: System) -> str:
    """The text with its names as the database reads them, if all databases read its characters in the same way."""
    if len(text) > MOST_CHARACTERS:
        raise _Refused(f"more than {MOST_CHARACTERS:,} characters")
    parts, position, before, last = list[str](), 0, "space", "space"
    while position < len(text):
        odd = next((what for mark, what in _ODD.items() if text.startswith(mark, position)), None)
        token = _TOKEN.match(text, position)
        if odd is not None or token is None:
            raise _Refused(odd or f"the character {text[position]!r}")
        kind, written = str(token.lastgroup), token[0]
        if "\\" in written:
            raise _Refused("a backslash")
        if kind in _SOLID and before in _SOLID:
            raise _Refused("a prefixed text, or words that no space separates")
        if kind == last == "text":  # one text in PostgreSQL, if a line ends between them
            raise _Refused("two texts side by side")
        folds = kind == "word" and system is System.POSTGRESQL
        parts.append(written.translate(_LOWERED) if folds else written)
        position, before, last = token.end(), kind, last if kind == "space" else kind
    return "".join(parts)


def _parsed(text: str) -> _Node:
    with closing(connect()) as connection:
        texts = {"text": text, "plain": "SELECT x FROM t"}
        [trees] = connection.execute("SELECT json_serialize_sql($text), json_serialize_sql($plain)", texts).fetchall()
    tree, plain = map(json.loads, trees)
    if tree["error"]:
        raise InvalidValue(f"query cannot be checked: {tree['error_message'][:200]}. {_WAY_OUT}")
    if len(tree["statements"]) != 1:
        raise _Refused("several statements")
    node: dict[str, Any] = tree["statements"][0]["node"]
    for is_there, what in _clauses(node):
        if is_there:
            raise _Refused(what)
    _check_alike(node, plain["statements"][0]["node"], ("select_list", "from_table", "where_clause"))
    _check_alike(node["from_table"], plain["statements"][0]["node"]["from_table"], _OF_TABLES)
    return node


_OF_TABLES = ("alias", "schema_name", "table_name", "catalog_name", "qualified_name")


def _check_alike(node: _Node, plain: _Node, own: tuple[str, ...]) -> None:
    # Whatever a newer DuckDB adds to the tree is refused as well.
    skipped = {*own, "query_location", "query_location_length"}
    for name in (node.keys() | plain.keys()) - skipped:
        if node.get(name) != plain.get(name):
            raise _Refused(f"a {name.replace('_', ' ')}")


_MODIFIERS = {"DISTINCT_MODIFIER": "DISTINCT", "ORDER_MODIFIER": "ORDER BY"}
_FROM = {
    "JOIN": "a second table",
    "SUBQUERY": "a subquery",
    "TABLE_FUNCTION": "a table function",
    "EMPTY": "no table",
    "EXPRESSION_LIST": "no table",
}


def _clauses(node: _Node) -> list[tuple[Any, str]]:
    # In the order in which they are reported.
    if node["type"] != "SELECT_NODE":
        is_set = node["type"] == "SET_OPERATION_NODE"
        return [(True, "a set operation such as UNION" if is_set else "a clause that is no plain SELECT")]
    from_, modifiers = node["from_table"], [each["type"] for each in node["modifiers"]]
    return [
        (node["cte_map"]["map"], "WITH"),
        (from_["type"] != "BASE_TABLE", _FROM.get(from_["type"], "something that is no table after FROM")),
        (from_.get("sample") or node["sample"], "a sample"),
        (from_.get("column_name_alias"), "names of columns after the table"),
        (node["group_expressions"] or node["aggregate_handling"] != "STANDARD_HANDLING", "GROUP BY"),
        (node["having"], "HAVING"),
        (node["qualify"], "QUALIFY"),
        *((True, _MODIFIERS.get(each, "LIMIT or OFFSET")) for each in modifiers),
    ]


# The tree.


_SYSTEM_COLUMNS = frozenset(
    ("rowid", "_rowid_", "oid", "ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "filename", "file_row_number")
)
_SYSTEM_TABLES = re.compile(r"pg_|sqlite_|duckdb_|pragma_|dbstat$", re.IGNORECASE)
_SYSTEM_SCHEMAS = ("information_schema", "pg_catalog", "pg_toast")
_COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
}
_LIKES = {"~~": "LIKE", "!~~": "NOT LIKE"}
_PLAIN = re.compile(r"true|false|NULL|-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# The types of casts: what DuckDB calls them, and a name that PostgreSQL knows, too.
_ZONED = "TIMESTAMP WITH TIME ZONE"
_NAMES = {
    **dict.fromkeys(("SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "BOOLEAN", "DATE", "TIMESTAMP", "UUID", _ZONED)),
    **{"INT": "INTEGER", "INT4": "INTEGER", "INT8": "BIGINT", "NUMERIC": "DECIMAL", "BOOL": "BOOLEAN"},
    **dict.fromkeys(("DOUBLE", "FLOAT8"), "DOUBLE PRECISION"),
    **dict.fromkeys(("VARCHAR", "TEXT"), "TEXT"),
    "TIMESTAMPTZ": _ZONED,
}
# SQLite would make the number 2024 of the date 2024-01-31.
_OF_SQLITE = ("SMALLINT", "INTEGER", "BIGINT", "DOUBLE PRECISION", "TEXT")
_COMPUTED = {
    "WINDOW": "a window function",
    "SUBQUERY": "a subquery",
    "STAR": "an expression of all columns",
    "CASE": "CASE",
    "PARAMETER": "a parameter",
    "COLLATE": "COLLATE",
}


class _Written:
    """A query that is written anew, for one system."""

    def __init__(self, node: _Node, system: System) -> None:
        self._system = system
        from_ = node["from_table"]
        path: list[str] = from_["qualified_name"]["path"]
        self._called = {(from_["alias"] or path[-1]).lower()}
        if _SYSTEM_TABLES.match(path[-1]) or {name.lower() for name in path} & {*_SYSTEM_SCHEMAS}:
            raise _Refused("a table of the system")
        if "." in path[-1]:  # in DuckDB, the name of a file that it would read
            raise _Refused("a table whose name has a point")
        self.table = ".".join(map(identifier, path))
        if system is System.SQLITE:  # without hidden columns, such as the rank of a row in a full-text search
            self.table = f"(SELECT * FROM {self.table})"
        self.selected = ", ".join(map(self._selected, node["select_list"]))
        self.condition = "" if node["where_clause"] is None else self._condition(node["where_clause"])

    def statement(self) -> str:
        """Return the statement."""
        where = f" WHERE {self.condition}" if self.condition else ""
        if self.condition and self._system is System.DUCKDB:
            where = f" WHERE TRY({self.condition})"  # a large number may not fit into the other one's decimal type
        return f"SELECT {self.selected} FROM {self.table} AS {_TABLE}{where}"

    def trial(self) -> str:
        """Return a statement that fails if a constant is not of the type of its column. It reads no row."""
        nothing = f"SELECT * FROM {self.table} AS {_TABLE} WHERE false"
        return f"SELECT {self.condition or 1} FROM ({nothing}) AS {_TABLE} RIGHT JOIN (SELECT 1) AS one ON true"

    def _selected(self, node: _Node) -> str:
        if node["class"] == "STAR":
            is_plain = not any(value for name, value in node.items() if name not in _OF_STARS)
            if is_plain and node["relation_name"].lower() in {"", *self._called}:
                return "*"
            raise _Refused("* with further words")
        if node["class"] != "COLUMN_REF":
            raise _Refused(self._computed(node))
        return f"{self._column(node)} AS {identifier(node['alias'] or node['column_names'][-1])}"

    def _column(self, node: _Node) -> str:
        *qualifiers, name = node["column_names"]
        if len(qualifiers) > 1 or any(each.lower() not in self._called for each in qualifiers):
            raise _Refused("a name with points that is no column of the table")
        if name.lower() in _SYSTEM_COLUMNS:
            raise _Refused(f"a column of the system, {name!r}")
        return f"{_TABLE}.{identifier(name)}" if self._system is System.SQLITE else identifier(name)

    def _condition(self, node: _Node, depth: int = 0) -> str:
        if depth > _MOST_DEPTH:
            raise _Refused("a condition that is nested too deeply")
        kind = node["type"]
        if kind not in ("CONJUNCTION_AND", "CONJUNCTION_OR", "OPERATOR_NOT"):
            return self._comparison(node)
        parts = [self._condition(each, depth + 1) for each in node["children"]]
        return f"(NOT {parts[0]})" if kind == "OPERATOR_NOT" else f"({f' {kind[12:]} '.join(parts)})"

    def _comparison(self, node: _Node) -> str:
        kind = node["type"]
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            written = f"{self._operand(node['children'][0])} {kind[9:].replace('_', ' ')}"
        elif kind == "COMPARE_IN":
            first, *listed = node["children"]
            written = f"{self._operand(first)} IN ({', '.join(map(self._constant, listed))})"
        elif kind == "COMPARE_BETWEEN":
            value, lower, upper = (self._operand(node[name]) for name in ("input", "lower", "upper"))
            written = f"{value} BETWEEN {lower} AND {upper}"
        elif kind in _COMPARISONS:
            written = f"{self._operand(node['left'])} {_COMPARISONS[kind]} {self._operand(node['right'])}"
        elif kind == "FUNCTION" and node["function_name"] in _LIKES and node["is_operator"]:
            value, pattern = (each["expression"] for each in node["arguments"])
            written = f"{self._operand(value)} {_LIKES[node['function_name']]} {self._constant(pattern)}"
        else:
            return self._operand(node)
        return f"({written})"

    def _operand(self, node: _Node) -> str:
        return self._column(node) if node["class"] == "COLUMN_REF" else self._constant(node)

    def _constant(self, node: _Node) -> str:
        if node["class"] == "CAST":
            return self._cast(node)
        if node["class"] != "CONSTANT":
            raise _Refused(self._computed(node))
        kind, text = node["literal"]["kind"], str(node["literal"].get("text", "NULL"))
        if kind == "STRING":
            return "'" + text.replace("'", "''") + "'"
        if kind in ("INTEGER", "NUMERIC", "BOOLEAN", "NULL_LITERAL") and _PLAIN.fullmatch(text):
            return text
        raise _Refused("a constant that is not a number, a text, true, false or NULL")

    def _cast(self, node: _Node) -> str:
        type_ = node["type_expr"]
        name = type_["type_name"].upper()
        written = _NAMES.get(name) or name
        digits = [each.get("literal", {}).get("text", "") for each in type_["children"]]
        is_known = name in _NAMES and len(type_["qualified_name"]["path"]) == 1 and not node["try_cast"]
        if not is_known or (digits and (written != "DECIMAL" or not all(map(str.isdecimal, digits)))):
            raise _Refused("a cast to a type that not all databases have")
        if node["child"]["class"] != "CONSTANT":
            raise _Refused("a cast of something that is no constant")
        if self._system is System.SQLITE and written not in _OF_SQLITE:
            raise _Refused(f"a cast to {written}, which SQLite does not have (compare with a text or a number)")
        size = f"({', '.join(digits)})" if digits else ""
        return f"CAST({self._constant(node['child'])} AS {written}{size})"

    def _computed(self, node: _Node) -> str:
        if node["class"] == "FUNCTION":
            return f"{node['function_name'][:40]!r}, which computes"
        return _COMPUTED.get(node["class"], "an expression")


_OF_STARS = ("class", "type", "relation_name", "query_location", "query_location_length")


def checked(query: str, system: System) -> str:
    """The query written anew, if each of its rows is one row of one table; its text alone is looked at."""
    return _written(query, system).statement()


def trial(query: str) -> str:
    """A statement for DuckDB, without a row, that fails if the query compares a column with a constant it cannot be."""
    return _written(query, System.DUCKDB).trial()


def _written(query: str, system: System) -> _Written:
    try:
        return _Written(_parsed(_folded(query, system)), system)
    except _Refused as refused:
        reason = str(refused)
    except RecursionError:
        reason = "a condition that is nested too deeply"
    raise InvalidValue(
        f"query has {reason}: it may only select columns of one table, and compare them with each other and with"
        f" constants. {_WAY_OUT}"
    )
