import os

from flask import request


def report():
    # ruleid: palisade.python.path-traversal
    open("/srv/reports/" + request.args["name"])
    # ruleid: palisade.python.path-traversal
    os.remove(os.path.join("/srv/reports", request.form["name"]))
    # ok: palisade.python.path-traversal
    open("/srv/reports/" + os.path.basename(request.args["name"]))
    # ok: palisade.python.path-traversal
    open("/srv/reports/index.html")
