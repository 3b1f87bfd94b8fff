<?php
function fetch($curl)
{
    // ruleid: palisade.php.tls-verification-off
    curl_setopt($curl, CURLOPT_SSL_VERIFYPEER, false);
    // ruleid: palisade.php.tls-verification-off
    curl_setopt($curl, CURLOPT_SSL_VERIFYHOST, 0);
    // ok: palisade.php.tls-verification-off
    curl_setopt($curl, CURLOPT_SSL_VERIFYPEER, true);
    // ok: palisade.php.tls-verification-off
    curl_setopt($curl, CURLOPT_SSL_VERIFYHOST, 2);
    // ok: palisade.php.tls-verification-off
    curl_setopt($curl, CURLOPT_RETURNTRANSFER, false);
}
