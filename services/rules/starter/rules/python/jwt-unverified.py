import jwt


def read(token, key):
    # ruleid: palisade.python.jwt-unverified
    jwt.decode(token, options={"verify_signature": False})
    # ruleid: palisade.python.jwt-unverified
    jwt.decode(token, key, algorithms=["HS256", "none"])
    # ok: palisade.python.jwt-unverified
    jwt.decode(token, key, algorithms=["RS256"])
    # ok: palisade.python.jwt-unverified
    jwt.decode(token, key, algorithms=["ES256"], options={"verify_aud": False})
    # ok: palisade.python.jwt-unverified
    if jwt.get_unverified_header(token)["alg"] == "none":
        raise ValueError("tokens need a signature")
