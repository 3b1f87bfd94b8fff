import asyncio
import os

from flask import Flask

app = Flask(__name__)


def serve(main):
    # ruleid: palisade.python.debug-mode
    app.run(debug=True)
    # ok: palisade.python.debug-mode
    app.run(debug=os.environ.get("DEBUG") == "1")
    # ok: palisade.python.debug-mode
    app.run()


# A module that is no settings file of Django may name a constant so.
# ok: palisade.python.debug-mode
DEBUG = True
