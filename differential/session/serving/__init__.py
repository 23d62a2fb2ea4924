"""A session over HTTP: requests change its tables, and readers follow its views (`Session.serve`).

>>> import httpx
>>> from differential.session import Session
>>> with Session() as db:
...     stock = db.table("stock", {"item": str, "pieces": int}, key="item")
...     server = db.serve()
...     headers = {"Authorization": f"Bearer {server.token}"}
...     lines = '{"insert": {"item": "nut", "pieces": 3}}'
...     httpx.post(f"{server.url}tables/stock", headers=headers, content=lines).json(), stock.records()
({'commit': 1, 'rows': 1, 'rejected': 0}, [('nut', 3)])
"""

from differential.session.serving.server import Server, serve

__all__ = ["Server", "serve"]
