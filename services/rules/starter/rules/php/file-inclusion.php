<?php
// ruleid: palisade.php.file-inclusion
include('pages/' . $_GET['page']);
// ruleid: palisade.php.file-inclusion
require_once($_GET['module'] . '.php');
// ok: palisade.php.file-inclusion
include('pages/home.php');
// ok: palisade.php.file-inclusion
include('pages/' . basename($_GET['page']) . '.php');
// ok: palisade.php.file-inclusion
include(__DIR__ . '/menu.php');
