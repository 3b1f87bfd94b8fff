<?php
function store($password, $file, $user)
{
    // ruleid: palisade.php.weak-password-hash
    md5($password);
    // ruleid: palisade.php.weak-password-hash
    hash('sha256', $user->password);
    // ok: palisade.php.weak-password-hash
    password_hash($password, PASSWORD_DEFAULT);
    // ok: palisade.php.weak-password-hash
    md5($file);
    // ok: palisade.php.weak-password-hash
    hash('sha256', $file);
}
