"""Keep who is in a ring of followers up to date, in a database of tables and views.

docs/howto/notebook.md has the same as the cells of a notebook.

python examples/notebook.py
"""

from __future__ import annotations

import argparse

import differential as dd
from differential.graphs import strongly_connected_components


def main() -> None:
    """Make a table and a view, change the table, and ask a question."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with dd.Session() as db:
        follows = db.table("follows", {"src": ["ann", "bob", "cem"], "dst": ["bob", "cem", "ann"]}, key="src")
        rings = db.view("rings", lambda t: strongly_connected_components(t.follows), columns=("member", "ring"))
        db.commit()
        print(rings)

        follows.delete(src="cem")
        follows.insert(src=["bob", "eve"], dst=["ann", "bob"])
        db.commit()
        print(rings)
        print(db.ask(lambda t: t.follows.group_by("src").count().filter(lambda r: r["count"] > 1)))


if __name__ == "__main__":
    main()
