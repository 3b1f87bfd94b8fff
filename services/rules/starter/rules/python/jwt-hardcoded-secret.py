import os

import jwt


def tokens(claims, token):
    # ruleid: palisade.python.jwt-hardcoded-secret
    jwt.encode(claims, "k9Lw-battery-72", algorithm="HS256")
    # ruleid: palisade.python.jwt-hardcoded-secret
    jwt.decode(token, "k9Lw-battery-72", algorithms=["HS256"])
    # ok: palisade.python.jwt-hardcoded-secret
    jwt.encode(claims, os.environ["TOKEN_KEY"], algorithm="HS256")
    # ok: palisade.python.jwt-hardcoded-secret
    jwt.decode(token, "", options={"verify_signature": False})
    # ok: palisade.python.jwt-hardcoded-secret
    jwt.decode(token, key=os.environ["TOKEN_KEY"], algorithms=["HS256"])
