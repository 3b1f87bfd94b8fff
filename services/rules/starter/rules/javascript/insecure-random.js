const crypto = require("crypto");

function values() {
  // ruleid: palisade.javascript.insecure-random
  const resetToken = Math.random().toString(36);
  // ok: palisade.javascript.insecure-random
  const sessionToken = crypto.randomBytes(32).toString("hex");
  // ok: palisade.javascript.insecure-random
  const footprint = Math.random() * 360;
  // ok: palisade.javascript.insecure-random
  const tokenCount = Math.floor(Math.random() * 10);
  return [resetToken, sessionToken, footprint, tokenCount];
}
