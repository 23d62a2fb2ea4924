"""Keeps a view of a table up to date in a session, for as many seconds as asked."""

import sys
import time as clock

from differential import Session

with Session() as db:
    words = db.table("words", {"word": ["to", "be"]})
    counts = db.view("counts", lambda t: t.words.count().filter(lambda word, times: times > 1))
    end = clock.monotonic() + float(sys.argv[1])
    while clock.monotonic() < end:
        words.insert(word="or")
        db.commit()
        clock.sleep(0.05)
