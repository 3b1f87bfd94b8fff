<?php
function find($db, $index, $id)
{
    // ruleid: palisade.php.sql-injection
    mysqli_query($db, 'SELECT name FROM users WHERE id = ' . $id);
    // ruleid: palisade.php.sql-injection
    $db->query("SELECT name FROM users WHERE id = '" . $id . "'");
    // ok: palisade.php.sql-injection
    $db->prepare('SELECT name FROM users WHERE id = ?')->execute([$id]);
    // ok: palisade.php.sql-injection
    $db->query('SELECT name FROM users');
    // ok: palisade.php.sql-injection
    $index->query('title:' . $id);
    // ruleid: palisade.php.sql-injection
    pg_query($db, "SELECT name FROM users WHERE id = $id");
    // ruleid: palisade.php.sql-injection
    $db->prepare("SELECT name FROM users WHERE id = $id");
    // ok: palisade.php.sql-injection
    mysqli_query($db, 'SELECT name ' . 'FROM users');
    // ok: palisade.php.sql-injection
    pg_query($db, 'SELECT name ' . 'FROM users');
    // ok: palisade.php.sql-injection
    pg_query_params($db, 'SELECT name FROM users WHERE id = $1', [$id]);
    // ok: palisade.php.sql-injection
    $db->prepare('SELECT name FROM users ' . 'WHERE id = ?');
}
