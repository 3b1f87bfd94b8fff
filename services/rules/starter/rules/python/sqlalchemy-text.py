from sqlalchemy import text


def find(session, name):
    # ruleid: palisade.python.sqlalchemy-text
    session.execute(text(f"SELECT id FROM users WHERE name = '{name}'"))
    # ruleid: palisade.python.sqlalchemy-text
    session.execute(text("SELECT id FROM users WHERE name = '%s'" % name))
    # ok: palisade.python.sqlalchemy-text
    session.execute(text("SELECT id FROM users WHERE name = :name"), {"name": name})
    # ok: palisade.python.sqlalchemy-text
    session.execute(text("SELECT id FROM users " + "WHERE name = :name"), {"name": name})
