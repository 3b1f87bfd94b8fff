fun find(db: SQLiteDatabase, index: Index, id: String) {
    // ruleid: palisade.kotlin.sql-injection
    db.rawQuery("SELECT name FROM users WHERE id = " + id, null)
    // ruleid: palisade.kotlin.sql-injection
    db.execSQL("DELETE FROM users WHERE id = ${id}")
    // ok: palisade.kotlin.sql-injection
    db.rawQuery("SELECT name FROM users WHERE id = ?", arrayOf(id))
    // ok: palisade.kotlin.sql-injection
    db.rawQuery("SELECT name FROM users " + "WHERE id = ?", arrayOf(id))
    // ok: palisade.kotlin.sql-injection
    index.executeQuery("title:" + id)
}
