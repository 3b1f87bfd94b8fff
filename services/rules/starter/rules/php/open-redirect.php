<?php
// ruleid: palisade.php.open-redirect
header('Location: ' . $_GET['next']);
// ok: palisade.php.open-redirect
header('Location: /');
// ok: palisade.php.open-redirect
header('Location: /items/' . $_GET['id']);
// ok: palisade.php.open-redirect
header('Location: https://login.acme.test/?next=' . $_GET['next']);
