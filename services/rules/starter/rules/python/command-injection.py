import os
import shlex
import subprocess

from flask import request


def ping():
    # ruleid: palisade.python.command-injection
    os.system("ping -c 1 " + request.args["host"])
    # ruleid: palisade.python.command-injection
    subprocess.run(f"ping -c 1 {request.args['host']}", shell=True)
    # ok: palisade.python.command-injection
    os.system("ping -c 1 " + shlex.quote(request.args["host"]))
    # ok: palisade.python.command-injection
    subprocess.run(["ping", "-c", "1", request.args["host"]])
    # ok: palisade.python.command-injection
    subprocess.run("uptime", shell=True)
