<?php
function run($text, $calculator)
{
    // ruleid: palisade.php.eval-injection
    eval($text);
    // ruleid: palisade.php.eval-injection
    create_function('$x', 'return ' . $text);
    // ok: palisade.php.eval-injection
    eval('return 1 + 1;');
    // ok: palisade.php.eval-injection
    $calculator->evaluate($text);
}
