"""The service: studies over HTTP and on pages. It translates and decides nothing.

app.py       builds it: routes, pages, what stands before them    server.py  runs it until it is stopped
routes.py    /v1, for programs        schemas.py  what they may send and what they get
pages/       for people               auth.py     who is asking, and what they may do
desk.py      the studies that are open here, and what was worked out for readers
"""
