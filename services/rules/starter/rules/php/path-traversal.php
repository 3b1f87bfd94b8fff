<?php
// ruleid: palisade.php.path-traversal
readfile('/srv/reports/' . $_GET['name']);
// ruleid: palisade.php.path-traversal
unlink('/srv/reports/' . $_POST['name']);
// ok: palisade.php.path-traversal
readfile('/srv/reports/' . basename($_GET['name']));
// ok: palisade.php.path-traversal
readfile('/srv/reports/' . intval($_GET['id']) . '.pdf');
// ok: palisade.php.path-traversal
file_put_contents('/srv/reports/last.txt', $_POST['text']);
