const crypto = require("crypto");

function digests(key, algorithm) {
  // ruleid: palisade.javascript.weak-hash
  crypto.createHash("md5");
  // ruleid: palisade.javascript.weak-hash
  crypto.createHmac("sha1", key);
  // ok: palisade.javascript.weak-hash
  crypto.createHash("sha256");
  // ok: palisade.javascript.weak-hash
  crypto.createHash(algorithm);
}
