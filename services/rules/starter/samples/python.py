import hashlib
import marshal
import os
import pickle
import random
import secrets
import shlex
import ssl
import subprocess
import tarfile
import xml.sax.handler

import flask
import jinja2
import jwt
import lxml.etree
import requests
import yaml
from Crypto.Cipher import AES, DES
from django.utils.safestring import mark_safe
from flask import request


def commands(name):
    # ruleid: palisade.python.command-injection
    os.system("ping -c 1 " + request.args["host"])
    # ok: palisade.python.command-injection
    os.system("ping -c 1 " + shlex.quote(request.args["host"]))
    # ruleid: palisade.python.subprocess-shell
    subprocess.run("ls " + name, shell=True)
    # ok: palisade.python.subprocess-shell
    subprocess.run("ls | wc -l", shell=True)
    # ok: palisade.python.subprocess-shell
    subprocess.run(["ls", name])


def statements(cursor, number):
    # ruleid: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE id = " + number)
    # ruleid: palisade.python.sql-injection
    cursor.execute(f"SELECT name FROM users WHERE id = {number}")
    # ok: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE id = %s", (number,))


def code(text):
    # ruleid: palisade.python.eval-injection
    eval(text)
    # ok: palisade.python.eval-injection
    eval("1 + 1")
    # ruleid: palisade.python.template-injection
    flask.render_template_string("Hello " + text)
    # ok: palisade.python.template-injection
    flask.render_template_string("Hello {{ name }}", name=text)
    # ruleid: palisade.python.autoescape-off
    mark_safe(text)
    # ruleid: palisade.python.autoescape-off
    jinja2.Environment(autoescape=False)
    # ok: palisade.python.autoescape-off
    jinja2.Environment(autoescape=True)


def data(raw):
    # ruleid: palisade.python.unsafe-deserialization
    pickle.loads(raw)
    # ruleid: palisade.python.unsafe-deserialization
    marshal.loads(raw)
    # ok: palisade.python.unsafe-deserialization
    flask.json.loads(raw)
    # ruleid: palisade.python.unsafe-yaml-load
    yaml.load(raw)
    # ok: palisade.python.unsafe-yaml-load
    yaml.load(raw, Loader=yaml.SafeLoader)
    # ok: palisade.python.unsafe-yaml-load
    yaml.safe_load(raw)
    # ruleid: palisade.python.xxe
    lxml.etree.XMLParser(resolve_entities=True)
    # ok: palisade.python.xxe
    lxml.etree.XMLParser(resolve_entities=False)


def cryptography(key, raw):
    # ruleid: palisade.python.weak-hash
    hashlib.md5(raw)
    # ok: palisade.python.weak-hash
    hashlib.md5(raw, usedforsecurity=False)
    # ok: palisade.python.weak-hash
    hashlib.sha256(raw)
    # ruleid: palisade.python.weak-cipher
    DES.new(key, DES.MODE_CBC)
    # ruleid: palisade.python.weak-cipher
    AES.new(key, AES.MODE_ECB)
    # ok: palisade.python.weak-cipher
    AES.new(key, AES.MODE_GCM)
    # ruleid: palisade.python.insecure-random
    reset_token = random.randint(0, 999999)
    # ok: palisade.python.insecure-random
    session_token = secrets.token_urlsafe(32)
    # ok: palisade.python.insecure-random
    dice = random.randint(1, 6)
    return reset_token, session_token, dice


def connections(url, token, key):
    # ruleid: palisade.python.tls-verification-off
    requests.get(url, verify=False)
    # ruleid: palisade.python.tls-verification-off
    ssl._create_unverified_context()
    # ok: palisade.python.tls-verification-off
    requests.get(url, verify="/etc/ssl/acme.pem")
    # ruleid: palisade.python.jwt-unverified
    jwt.decode(token, options={"verify_signature": False})
    # ok: palisade.python.jwt-unverified
    jwt.decode(token, key, algorithms=["RS256"])


def requested():
    # ruleid: palisade.python.path-traversal
    open("/srv/reports/" + request.args["name"])
    # ok: palisade.python.path-traversal
    open("/srv/reports/" + os.path.basename(request.args["name"]))
    # ruleid: palisade.python.ssrf
    requests.get(request.args["url"])
    # ok: palisade.python.ssrf
    requests.get("https://api.acme.test/status")
    # ruleid: palisade.python.open-redirect
    flask.redirect(request.args["next"])
    # ok: palisade.python.open-redirect
    flask.redirect(flask.url_for("index"))


# ruleid: palisade.python.hardcoded-credential
database_password = "correct-horse-battery"
# ok: palisade.python.hardcoded-credential
database_password = os.environ["DATABASE_PASSWORD"]
# ok: palisade.python.hardcoded-credential
database_password = "<password>"


def files(path):
    # ruleid: palisade.python.world-writable
    os.chmod(path, 0o777)
    # ok: palisade.python.world-writable
    os.chmod(path, 0o640)
    archive = tarfile.open(path)
    # ruleid: palisade.python.archive-extract-all
    archive.extractall("/srv/in")
    # ok: palisade.python.archive-extract-all
    archive.extractall("/srv/in", filter="data")


def serve(app):
    # ruleid: palisade.python.debug-mode
    app.run(debug=True)
    # ok: palisade.python.debug-mode
    app.run(debug=os.environ.get("DEBUG") == "1")
