const crypto = require("crypto");

function ciphers(key, iv) {
  // ruleid: palisade.javascript.weak-cipher
  crypto.createCipheriv("aes-128-ecb", key, iv);
  // ruleid: palisade.javascript.weak-cipher
  crypto.createCipher("aes-256-cbc", key);
  // ok: palisade.javascript.weak-cipher
  crypto.createCipheriv("aes-256-gcm", key, iv);
  // ok: palisade.javascript.weak-cipher
  crypto.createDecipheriv("aes-256-cbc", key, iv);
  // ok: palisade.javascript.weak-cipher
  crypto.createCipheriv("chacha20-poly1305", key, iv);
}
