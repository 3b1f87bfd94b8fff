<?php
// ruleid: palisade.php.command-injection
system('ping -c 1 ' . $_GET['host']);
$name = $_POST['name'];
// ruleid: palisade.php.command-injection
shell_exec("ls $name");
// ok: palisade.php.command-injection
system('ping -c 1 ' . escapeshellarg($_GET['host']));
// ok: palisade.php.command-injection
system('ls -l');
// ok: palisade.php.command-injection
exec('ping -c ' . intval($_GET['count']) . ' acme.test');
