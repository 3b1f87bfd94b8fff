using System.Data.SqlClient;

class Users
{
    void Find(SqlConnection connection, AppContext context, string id)
    {
        // ruleid: palisade.csharp.sql-injection
        new SqlCommand("SELECT name FROM users WHERE id = " + id, connection);
        // ruleid: palisade.csharp.sql-injection
        context.Users.FromSqlRaw($"SELECT * FROM users WHERE id = {id}");
        // ok: palisade.csharp.sql-injection
        new SqlCommand("SELECT name FROM users WHERE id = @id", connection);
        // ok: palisade.csharp.sql-injection
        context.Users.FromSqlInterpolated($"SELECT * FROM users WHERE id = {id}");
        // ok: palisade.csharp.sql-injection
        new SqlCommand("SELECT name FROM users " + "WHERE id = @id", connection);
    }

    void FindElsewhere(NpgsqlConnection postgres, MySqlConnection mysql, SqliteConnection sqlite, string id)
    {
        // ruleid: palisade.csharp.sql-injection
        new NpgsqlCommand($"SELECT name FROM users WHERE id = {id}", postgres);
        // ruleid: palisade.csharp.sql-injection
        new MySqlCommand($"SELECT name FROM users WHERE id = {id}", mysql);
        // ruleid: palisade.csharp.sql-injection
        new SqliteCommand("SELECT name FROM users WHERE id = " + id, sqlite);
        // ok: palisade.csharp.sql-injection
        new NpgsqlCommand("SELECT name FROM users " + "WHERE id = @id", postgres);
        // ok: palisade.csharp.sql-injection
        new MenuCommand("Update " + id, postgres);
    }

    void Change(SqlCommand command, AppContext context, string id)
    {
        // ruleid: palisade.csharp.sql-injection
        command.CommandText = "SELECT name FROM users WHERE id = " + id;
        // ruleid: palisade.csharp.sql-injection
        command.CommandText = $"SELECT name FROM users WHERE id = {id}";
        // ruleid: palisade.csharp.sql-injection
        context.Database.ExecuteSqlRaw("DELETE FROM users WHERE id = " + id);
        // ok: palisade.csharp.sql-injection
        command.CommandText = "SELECT name " + "FROM users";
        // ok: palisade.csharp.sql-injection
        context.Users.FromSqlRaw("SELECT * FROM users " + "WHERE id = {0}", id);
        // ok: palisade.csharp.sql-injection
        context.Database.ExecuteSqlRaw("DELETE FROM users " + "WHERE id = {0}", id);
        // ok: palisade.csharp.sql-injection
        context.Database.ExecuteSqlRaw("DELETE FROM users WHERE id = {0}", id);
    }
}
