<?php
function read($data)
{
    // ruleid: palisade.php.unsafe-deserialization
    unserialize($data);
    // ok: palisade.php.unsafe-deserialization
    unserialize($data, ['allowed_classes' => false]);
    // ok: palisade.php.unsafe-deserialization
    json_decode($data);
    // ok: palisade.php.unsafe-deserialization
    serialize($data);
}
