import requests
from flask import request


def fetch():
    # ruleid: palisade.python.ssrf
    requests.get(request.args["url"])
    # ruleid: palisade.python.ssrf
    requests.get(f"https://{request.args['host']}/status")
    # ok: palisade.python.ssrf
    requests.get("https://api.acme.test/status")
    # ok: palisade.python.ssrf
    requests.get("https://api.acme.test/users/" + request.args["id"])
    # ok: palisade.python.ssrf
    requests.get(f"https://api.acme.test/users/{request.args['id']}")
