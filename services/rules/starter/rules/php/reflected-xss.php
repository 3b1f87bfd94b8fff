<?php
// ruleid: palisade.php.reflected-xss
echo 'Hello ' . $_GET['name'];
// ruleid: palisade.php.reflected-xss
print('Hello ' . $_POST['name']);
// ok: palisade.php.reflected-xss
echo 'Hello ' . htmlspecialchars($_GET['name']);
// ok: palisade.php.reflected-xss
echo json_encode($_GET);
// ok: palisade.php.reflected-xss
echo 'Hello';
