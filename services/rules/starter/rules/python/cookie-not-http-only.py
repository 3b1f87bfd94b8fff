def cookies(response, value):
    # ruleid: palisade.python.cookie-not-http-only
    response.set_cookie("session", value, secure=True, httponly=False)
    # ok: palisade.python.cookie-not-http-only
    response.set_cookie("session", value, secure=False, httponly=True)
    # ok: palisade.python.cookie-not-http-only
    response.set_cookie("theme", "dark")
    # ok: palisade.python.cookie-not-http-only
    response.delete_cookie("session")
