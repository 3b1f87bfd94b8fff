<?php
// ruleid: palisade.php.phpinfo-exposed
phpinfo();
// ok: palisade.php.phpinfo-exposed
phpversion();
// ok: palisade.php.phpinfo-exposed
php_uname();
// ok: palisade.php.phpinfo-exposed
phpversion('curl');
