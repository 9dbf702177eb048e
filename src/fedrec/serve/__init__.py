"""Recommendations over HTTP, a page that follows runs, and a page that recommends in the visitor's own browser.

asking.py      what may be asked, and its limits
model.py       a recommender that answers many asks at once, as JSON
sources.py     where a model comes from, and when it is a newer one
batches.py     asks that wait together are answered together
app.py         the routes
door.py        what every request passes: token, limits, counting, the access log
counts.py      what /metrics says
search.py      items by title
http.py        a server on a socket
private_page.py   a static page with the shared part of a linear model
live.py        a page that follows run folders
"""
