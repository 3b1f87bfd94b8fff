import os

# ruleid: palisade.python.hardcoded-credential
database_password = "k9Lw-battery-72"
# ok: palisade.python.hardcoded-credential
mail_password = os.environ["MAIL_PASSWORD"]
# ok: palisade.python.hardcoded-credential
HEADER_API_KEY = "X-API-Key"
# ok: palisade.python.hardcoded-credential
param_auth_token = "oauth2_token"
# ok: palisade.python.hardcoded-credential
sample_password = "changeme-123"
# ok: palisade.python.hardcoded-credential
entered_password = "<password>"


def configure(app):
    # ruleid: palisade.python.hardcoded-credential
    app.config["SECRET_KEY"] = "9f8Qz1mWc0Rt"
    # ok: palisade.python.hardcoded-credential
    app.config["SECRET_KEY"] = os.environ["SECRET_KEY"]
