def cookies(response, value, secure):
    # ruleid: palisade.python.cookie-not-secure
    response.set_cookie("session", value, secure=False, httponly=True)
    # ok: palisade.python.cookie-not-secure
    response.set_cookie("session", value, secure=True, httponly=False)
    # ok: palisade.python.cookie-not-secure
    response.set_cookie("session", value, secure=secure)
    # ok: palisade.python.cookie-not-secure
    response.delete_cookie("session")
