import java.sql.Connection;
import java.sql.Statement;

class Users {
    void find(Connection connection, Statement statement, SearchIndex index, String id) throws Exception {
        // ruleid: palisade.java.sql-injection
        statement.executeQuery("SELECT name FROM users WHERE id = " + id);
        // ruleid: palisade.java.sql-injection
        statement.executeQuery("SELECT name FROM users WHERE id = '" + id + "'");
        // ruleid: palisade.java.sql-injection
        statement.execute(String.format("DELETE FROM users WHERE id = '%s'", id));
        // ok: palisade.java.sql-injection
        connection.prepareStatement("SELECT name FROM users WHERE id = ?");
        // ok: palisade.java.sql-injection
        connection.prepareStatement("SELECT name FROM users " + "WHERE id = ?");
        // ok: palisade.java.sql-injection
        index.query("title:" + id);
    }
}
