def find(connection, name)
  # ruleid: palisade.ruby.sql-injection
  User.where("name = '#{name}'")
  # ruleid: palisade.ruby.sql-injection
  connection.execute("DELETE FROM users WHERE name = '#{name}'")
  # ok: palisade.ruby.sql-injection
  User.where("name = ?", name)
  # ok: palisade.ruby.sql-injection
  User.where(name: name)
  # ok: palisade.ruby.sql-injection
  User.where("name = #{connection.quote(name)}")
  # ok: palisade.ruby.sql-injection
  User.where("#{table_name}.active = ?", true)
  # ok: palisade.ruby.sql-injection
  User.joins("JOIN teams ON teams.id = #{User.quoted_table_name}.team_id")
  # ok: palisade.ruby.sql-injection
  User.where("name LIKE ?", "#{User.sanitize_sql_like(name)}%")
  # sanitize_sql_like escapes wildcards only, so a quote still ends the text.
  # ruleid: palisade.ruby.sql-injection
  User.where("name LIKE '#{User.sanitize_sql_like(name)}%'")
end
