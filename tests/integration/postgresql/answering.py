"""A program between two tables of PostgreSQL, to be killed: `python answering.py DSN DIRECTORY`."""

from __future__ import annotations

import sys
from pathlib import Path

from differential import Session
from differential.session.sinks.postgresql import postgresql as sink
from differential.session.sources.postgresql import postgresql as source

dsn, directory = sys.argv[1], Path(sys.argv[2])
with Session(state=str(directory / "db")) as db:
    server = source(dsn, "accounts", "payments", slot="kills")
    accounts = db.table("accounts", {"id": int, "balance": int}, key="id")
    accounts.read_from(server["accounts"])
    payments = db.table("payments", {"number": int, "account": int, "amount": int}, key="number")
    payments.read_from(server["payments"])
    paid = db.view(
        "paid", lambda t: t.payments.group_by("account").sum("amount").named("account", "amount"), durable=True
    )
    paid.write_to(sink(dsn, "paid", key="account"), patience=60)
    # Each transaction changes a balance and adds a payment, so this is empty after each commit.
    torn = db.view(
        "torn",
        lambda t: t.accounts.concat(t.payments.group_by("account").sum("amount").negate()).consolidate(),
    )
    torn.watch(lambda change: (directory / "torn").write_text(str(change.records())))
    print("begins", flush=True)
    db.run(until=(directory / "end").exists)
    db.commit()
