function find(db, prisma, cache, id) {
  // ruleid: palisade.javascript.sql-injection
  db.query("SELECT name FROM users WHERE id = " + id);
  // ruleid: palisade.javascript.sql-injection
  db.query(`SELECT name FROM users WHERE id = ${id}`);
  // ok: palisade.javascript.sql-injection
  db.query("SELECT name FROM users WHERE id = $1", [id]);
  // ok: palisade.javascript.sql-injection
  prisma.$queryRaw`SELECT name FROM users WHERE id = ${id}`;
  // ok: palisade.javascript.sql-injection
  cache.get(`user:${id}`);
  // ok: palisade.javascript.sql-injection
  cache.get("update-" + id);
}

function findSeveral(db, ids, names) {
  // ok: palisade.javascript.sql-injection
  db.query("SELECT name FROM users WHERE id IN (" + Array(ids.length).fill("?").join(",") + ")", ids);
  // ok: palisade.javascript.sql-injection
  db.query("SELECT name FROM users WHERE id IN (" + new Array(ids.length).fill("?").join(",") + ")", ids);
  // ok: palisade.javascript.sql-injection
  db.query("SELECT name FROM users WHERE id IN (" + ids.map(() => "?").join(",") + ")", ids);
  // ok: palisade.javascript.sql-injection
  db.query(`SELECT name FROM users WHERE id IN (${Array(ids.length).fill("?").join(",")})`, ids);
  // ruleid: palisade.javascript.sql-injection
  db.query("SELECT name FROM users WHERE name IN (" + names.join(",") + ")");
}
