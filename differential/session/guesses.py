"""Hints for a program that calls a method by the name that it has elsewhere: in pandas, Polars or SQL.

An attribute that does not exist raises an error that names the one to use. Nothing is an alias: one thing has one name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from differential.session.near import meant

_FILTER = "filter(lambda r: r.total > 10) keeps the records that satisfy a predicate"
_COMPUTE = "select('kept', new=lambda r: r.total * 2) computes a column"
_CONCAT = "concat(other) has the records of both"
_DISTINCT = "distinct() has each record once"
_ORDER = (
    "a collection has no order. What is read of an answer is sorted, and group_by().top_k(3, by='total') keeps the "
    "largest records"
)
_LEFT = 'left.left_join(right, on="id", missing={"city": ""}) keeps records without a match'
_DIFFERENT = "group_by('column').count_distinct('other') counts the different values of each group"
_ALL = "group_by().count() counts all records"
_LARGEST = "top_k(3, by='total') keeps the largest records of each group"
_ROWS = (
    "keyed_by('column').reduce(function) receives all records of a group, in no order, and returns those that it makes "
    "of them"
)
RELATION = {
    "where": _FILTER,
    "query": _FILTER,
    "groupby": "group_by('column') makes groups",
    "merge": "join(other, on='column') matches records",
    "rename": "select('kept', new='old') renames a column",
    "drop": "select('column', ...) names the columns to keep",
    **dict.fromkeys(("assign", "with_columns", "mutate", "apply", "eval"), _COMPUTE),
    **dict.fromkeys(("append", "extend", "union_all", "vstack"), _CONCAT),
    **dict.fromkeys(("unique", "drop_duplicates"), _DISTINCT),
    **dict.fromkeys(("sort", "sort_values", "sort_by", "order_by", "orderby", "limit", "head", "nlargest"), _ORDER),
    "isin": "semijoin(keys) keeps the records whose key is in a collection",
    **dict.fromkeys(("difference", "subtract", "minus"), "except_(other) has the records that are not in the other"),
    **dict.fromkeys(("outer_join", "full_join", "right_join"), _LEFT),
    **dict.fromkeys(("count_distinct", "nunique", "n_unique"), _DIFFERENT),
    **dict.fromkeys(("size", "shape", "len"), _ALL),
    **dict.fromkeys(
        ("mean", "avg"),
        "group_by('column').mean('total') makes the mean of each group, and group_by().mean('total') that of all",
    ),
    **dict.fromkeys(("unnest", "flatten", "split"), "flat_map(function) makes several records of each"),
    **dict.fromkeys(("lag", "lead", "shift", "diff", "cumsum", "rank", "over", "rolling"), _ROWS),
    "columns": "names has the names of the columns",
    "value_counts": "group_by('column').count() counts the records of each value",
    **dict.fromkeys(
        ("agg", "aggregate"), "group_by('column').aggregate(n='count', spent=('total', 'sum')) makes several"
    ),
}
"""Names that other libraries have for what a definition does with a collection."""

_OTHERS = (
    "there are count, count_distinct, sum, min, max and mean; keyed_by('column').reduce(function) computes any other "
    "aggregate"
)
_AROUND = "before window(...) and group_by('column'), or after an aggregate such as count()"
_BEFORE = "filter", "select", "map", "join"
GROUPS = {
    "window": "window(...) comes before group_by('column')",
    **{each: f"{each}(...) comes {_AROUND}" for each in _BEFORE},
    "agg": "aggregate(n='count', spent=('total', 'sum')) makes several",
    **dict.fromkeys(("size", "len"), "count() counts the records of each group"),
    **dict.fromkeys(("avg", "average"), "mean('column') is the mean"),
    **dict.fromkeys(("nunique", "n_unique", "distinct"), "count_distinct('column') counts the different values"),
    **dict.fromkeys(("nlargest", "head", "limit", "sort"), _LARGEST),
    **dict.fromkeys(
        ("median", "std", "var", "first", "last", "quantile", "list", "collect", "apply", "reduce"), _OTHERS
    ),
    **dict.fromkeys(("lag", "lead", "shift", "diff", "cumsum", "rank", "over", "rolling"), _ROWS),
}
"""The same for groups."""

_INSERT = "insert(...) adds rows"
_DELETE = "delete(...) removes rows"
_UPSERT = "upsert(...) replaces the rows of a key"
_FIND = "find(...) reads the rows of a key, as in find(id=3)"
_READ = "to_pandas(), to_polars(), to_arrow() and records() read the rows"
_WRITE = "to_pandas() and to_polars() write files of the present rows, and write_to(...) of the changes of each commit"
TABLE = {
    **dict.fromkeys(("add", "append", "extend", "put", "write", "load"), _INSERT),
    **dict.fromkeys(("remove", "pop", "discard"), _DELETE),
    "drop": "delete(...) removes rows, and db.drop(name) the table",
    **dict.fromkeys(("clear", "truncate"), "delete(table.to_pandas()) removes all rows"),
    **dict.fromkeys(("update", "replace", "set"), _UPSERT),
    **dict.fromkeys(("head", "tail", "show", "collect", "df", "to_df", "to_dataframe", "to_dict", "to_list"), _READ),
    **dict.fromkeys(("get", "lookup", "loc", "fetch", "first", "one"), _FIND),
    **dict.fromkeys(("types", "dtypes", "schema"), "to_arrow().schema has the types of the columns"),
    "names": ".columns are the names of the columns",
    **dict.fromkeys(("to_csv", "write_csv", "to_json", "to_parquet", "write_parquet", "export"), _WRITE),
    "shape": "len(...) is the number of rows, and .columns are the names",
    "size": "len(...) is the number of rows",
    "subscribe": "watch(callback) calls a function at each commit, and changes() collects what commits change",
}
"""The same for tables and views."""

_ASK = "ask(definition) answers a question; DuckDB reads tables and views for SQL"
_TABLE = "table(name, data) makes a table, and table(name) returns it"
_LIST = "status() lists tables and views"
SESSION = {
    **dict.fromkeys(("query", "sql", "execute", "select"), _ASK),
    **dict.fromkeys(("create_table", "add_table", "register", "from_pandas", "get_table", "read_csv"), _TABLE),
    **dict.fromkeys(
        ("create_view", "add_view", "get_view"), "view(name, definition) makes a view, and view(name) returns it"
    ),
    **dict.fromkeys(("tables", "views", "names", "list", "items", "keys"), _LIST),
    **dict.fromkeys(("begin", "atomic"), "with transaction(): makes a block that is committed at its end"),
    **dict.fromkeys(("save", "flush"), "commit() makes all changes visible"),
    **dict.fromkeys(("abort", "undo"), "rollback() forgets what is not committed"),
    **dict.fromkeys(("delete", "remove", "drop_table", "drop_view"), "drop(name) drops a table or view"),
    **dict.fromkeys(("stop", "shutdown", "disconnect", "quit", "exit"), "close() ends the session"),
    "insert": "table(name).insert(...) adds rows",
}
"""The same for sessions."""


def absent(owner: object, name: str, guesses: Mapping[str, str], columns: Iterable[str] = ()) -> str:
    """Return the text of the error for an attribute that does not exist, with what the program may mean.

    >>> absent(object(), "agg", GROUPS)
    "'object' object has no attribute 'agg': aggregate(n='count', spent=('total', 'sum')) makes several"
    """
    plain = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if name.startswith("_"):
        return plain
    if name in columns:
        return f"{plain}: it is a column, which functions receive, as in filter(lambda r: r.{name} > 0)"
    if name in guesses:
        return f"{plain}: {guesses[name]}"
    return plain + meant(name, [each for each in dir(type(owner)) if not each.startswith("_")])
