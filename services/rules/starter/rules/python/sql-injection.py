def find(cursor, pool, number):
    # ruleid: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE id = " + number)
    # ruleid: palisade.python.sql-injection
    cursor.execute(f"SELECT name FROM users WHERE id = {number}")
    # ruleid: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE id = %s" % number)
    # ruleid: palisade.python.sql-injection
    cursor.execute("DELETE FROM users WHERE id = {}".format(number))
    # ok: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE id = %s", (number,))
    # ok: palisade.python.sql-injection
    pool.execute(f"job-{number}")
    # ok: palisade.python.sql-injection
    pool.execute("restart " + number)


def find_several(cursor, numbers, names):
    # ok: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE id IN (" + ",".join(["?"] * len(numbers)) + ")", numbers)
    # ok: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE id IN (" + ",".join("?" * len(numbers)) + ")", numbers)
    # ok: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE id IN (" + ",".join("?" for _ in numbers) + ")", numbers)
    # ok: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE id IN (%s)" % ",".join(["%s"] * len(numbers)), numbers)
    # ruleid: palisade.python.sql-injection
    cursor.execute("SELECT name FROM users WHERE name IN (" + ",".join(names) + ")")
