function fetchAll(req) {
  // ruleid: palisade.javascript.ssrf
  fetch(req.query.url);
  // ruleid: palisade.javascript.ssrf
  fetch(`https://${req.query.host}/status`);
  // ok: palisade.javascript.ssrf
  fetch("https://api.acme.test/status");
  // ok: palisade.javascript.ssrf
  fetch(`https://api.acme.test/users/${req.params.id}`);
  // ok: palisade.javascript.ssrf
  fetch("https://api.acme.test/users/" + req.params.id);
}
