function connections(agent, verify) {
  // ruleid: palisade.javascript.tls-verification-off
  const insecure = { host: "db.acme.test", rejectUnauthorized: false };
  // ruleid: palisade.javascript.tls-verification-off
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  // ok: palisade.javascript.tls-verification-off
  const secure = { host: "db.acme.test", rejectUnauthorized: true };
  // ok: palisade.javascript.tls-verification-off
  const chosen = { host: "db.acme.test", rejectUnauthorized: verify };
  // ok: palisade.javascript.tls-verification-off
  process.env.NODE_EXTRA_CA_CERTS = "/etc/ssl/acme.pem";
  return [insecure, secure, chosen];
}
